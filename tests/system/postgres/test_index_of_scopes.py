"""On a server the index of one scope is loaded by itself, and answers as the whole one does."""

from __future__ import annotations

import pytest

from recallite import Memory
from recallite.model.settings import WritePolicy

TEXTS = {
    "/users/ada": ["Ada drinks green tea", "Ada moved to Bonn in May", "Ada's dog is called Rex"],
    "/users/ada/work": ["Ada leads the billing team", "The billing service is on call on Fridays"],
    "/users/adam": ["Adam drinks coffee", "Adam moved to Rome"],
    "/users/bob": ["Bob drinks black tea", "Bob's cat is called Tom"],
}
QUESTIONS = ("What does she drink?", "Who moved?", "What is the pet called?", "billing", "tea")


@pytest.fixture
def filled(postgres_address):
    with Memory(postgres_address) as memory:
        for scope, texts in TEXTS.items():
            memory.remember_many({"text": text, "scope": scope} for text in texts)
        a, b = memory.list(scope="/users/ada", limit=2)
        memory.link(a.id, b.id)
    return postgres_address


def answers(memory):
    return [[(hit.id, round(hit.score, 5)) for hit in memory.recall(question, limit=8)] for question in QUESTIONS]


def loaded(memory):
    return {scope: len(index.table) for scope, index in memory._engine._of_scopes.items()}


def linked(memory):
    """The ends of all links in the index of Ada's scope, by row ids."""
    index = memory._engine._of_scopes["/users/ada"]
    heads, nexts, targets = index.graph.heads, index.graph.nexts, index.graph.targets
    found = set()
    for row, place in enumerate(heads.tolist()):
        while place >= 0:
            found.add((int(index.table.ids[row]), int(index.table.ids[targets[place]])))
            place = int(nexts[place])
    return found


def test_it_holds_its_scope_alone_and_answers_as_the_whole(filled):
    with Memory(filled) as memory, Memory(filled) as whole:
        whole.store.warmup()
        ada = memory.scoped("/users/ada")
        assert answers(ada) == answers(whole.scoped("/users/ada"))
        assert loaded(memory) == {"/users/ada": 5}
        assert memory._engine.index.commit is None
        # What is below it asks the same index.
        assert answers(ada.scoped("/work")) == answers(whole.scoped("/users/ada/work"))
        assert loaded(memory) == {"/users/ada": 5}
        assert answers(memory) == answers(whole)


def test_it_follows_what_comes_into_the_scope_and_what_leaves_it(filled):
    with Memory(filled) as memory, Memory(filled) as other:
        ada = memory.scoped("/users/ada")
        answers(ada)
        tom = other.recall("Bob's cat", limit=1)[0]
        other.update(tom.id, scope="/users/ada/pets")
        other.remember("Ada's fish is called Nemo", scope="/users/ada/pets")
        gone = other.recall("Ada moved to Bonn", limit=1)[0]
        other.update(gone.id, scope="/users/bob")
        other.forget(other.recall("green tea", limit=1)[0].id)
        other.update(other.recall("Ada's dog", limit=1)[0].id, text="Ada's dog is called Max")
        assert answers(ada) == answers(other.scoped("/users/ada"))
        assert "Bob's cat is called Tom" in [hit.text for hit in ada.recall("cat", limit=3)]
        assert loaded(memory)["/users/ada"] >= 6
        assert memory._engine.index.commit is None


def test_a_writer_that_compares_loads_its_scope_alone(filled):
    with Memory(filled) as memory:
        policy = WritePolicy(link_cosine=0.5)
        written = memory.remember("Ada drinks green tea every day", scope="/users/ada", policy=policy)
        assert [link.type for link in written.links]
        assert loaded(memory) == {"/users/ada": 5}


def test_a_file_has_one_index(tmp_path):
    with Memory(tmp_path / "agent.db") as memory:
        memory.remember("Ada drinks green tea", scope="/users/ada")
        assert len(memory.scoped("/users/ada").recall("tea")) == 1
        assert loaded(memory) == {}


def test_what_comes_into_the_scope_brings_its_links(filled):
    with Memory(filled) as memory, Memory(filled) as other:
        dog = other.recall("Ada's dog", limit=1)[0]
        cat = other.recall("Bob's cat", limit=1)[0]
        other.link(cat.id, dog.id)
        ada = memory.scoped("/users/ada")
        answers(ada)
        other.update(cat.id, scope="/users/ada/pets")
        assert answers(ada) == answers(other.scoped("/users/ada"))
        with Memory(filled) as fresh:
            answers(fresh.scoped("/users/ada"))
            assert linked(memory) == linked(fresh)


def test_each_index_asks_for_words_by_numbers_of_its_own(filled):
    with Memory(filled) as memory:
        for scope in ("/users/ada", "/users/bob"):
            memory.scoped(scope).recall("tea")
        generations = {index.generation for index in memory._engine._of_scopes.values()}
        assert len(generations) == 2
