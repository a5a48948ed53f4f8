"""A text that an embedder refuses: found once, remembered, and of no harm to the others."""

from __future__ import annotations

import pytest

from recallite import Memory, Workspace
from recallite.embedding.remote_embedder import RemoteEmbedder
from recallite.errors import EmbedderError
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from recallite_notes.config import WorkspaceConfig
from tests.endpoint import Clock, refusing, serving
from tests.unit.core.memory.support import WordEmbedder

BAD = "unspeakable"


@pytest.fixture
def endpoint():
    with serving() as server:
        server.otherwise = refusing(BAD)
        yield server


def embedder_of(server, **options):
    return RemoteEmbedder(server.url, "words", **{"batch_size": 20, **options})


def notes(count, bad=()):
    return [f"note number{number} {BAD if number in bad else 'plain'}" for number in range(count)]


@pytest.mark.parametrize("status", [400, 413, 422])
def test_it_is_found_by_bisection_and_all_others_are_embedded(path, endpoint, status):
    endpoint.otherwise = refusing(BAD, status=status)
    with Memory(path, embedder=embedder_of(endpoint)) as memory:
        ids = memory.remember_many(notes(20, bad=[13]))
        # The dimension; all; a plain word, to know that it works; then at most 2 log2(20).
        assert len(endpoint.asked) <= 3 + 9
        states = [memory.get(id).embedding_state for id in ids]
        assert states == ["refused" if number == 13 else "embedded" for number in range(20)]
        figures = memory.store.stats()
        assert (figures.refused, figures.pending, figures.vectors) == (1, 0, 19)
        (note,) = [note for note in figures.notes if ids[13] in note]
        assert note.startswith(f"the embedder refuses {ids[13]}: words: http")
        assert "too long" in note
        assert memory.recall(BAD)[0].id == ids[13], "keyword search finds it"
        assert memory.store.verify().ok


def test_it_is_not_asked_for_again_by_writes_reopening_and_rebuilding(path, endpoint):
    with Memory(path, embedder=embedder_of(endpoint)) as memory:
        memory.remember_many(notes(8, bad=[2]))
        before = len(endpoint.asked)
        memory.remember("one more")
        assert len(endpoint.asked) == before + 1
    with Memory(path, embedder=embedder_of(endpoint)) as memory:
        memory.remember("and another")
        assert memory.store.rebuild().ok
        assert memory.store.stats().refused == 1
    assert not any(BAD in text for asked in endpoint.asked[before:] for text in asked.body["input"])


def test_a_new_text_and_reembed_try_it_again(path, endpoint):
    with Memory(path, embedder=embedder_of(endpoint)) as memory:
        first, second = memory.remember_many(notes(2, bad=[0, 1]))
        assert memory.store.stats().refused == 2
        assert memory.update(first, text="a plain note").embedding_state == "embedded"
        assert [each.embedding_state for each in memory.history(first)] == ["refused", "embedded"]
        assert memory.store.reembed() == 0
        assert (memory.store.stats().refused, memory.get(second).embedding_state) == (1, "refused")
        endpoint.otherwise = refusing("nothing of the kind")
        assert memory.store.reembed() == 2, "the text that stands, and the closed version"
        assert (memory.store.stats().refused, memory.get(second).embedding_state) == (0, "embedded")
        assert memory.store.verify().ok


def test_another_embedder_is_asked_for_it_and_a_move_to_one_that_refuses_it_ends(path, endpoint):
    with Memory(path, embedder=WordEmbedder()) as memory:
        ids = memory.remember_many(notes(5, bad=[1]))
    with Memory(path, embedder=embedder_of(endpoint)) as memory:
        assert memory.store.reembed() == 4
        assert memory.get(ids[1]).embedding_state == "refused"
        assert memory.store.verify().ok
    with Memory(path, embedder=WordEmbedder()) as memory:
        assert memory.store.reembed() == 5
        assert memory.store.stats().refused == 0


def test_updated_restored_and_imported_texts_are_marked_too(path, endpoint, tmp_path):
    with Memory(path, embedder=embedder_of(endpoint)) as memory:
        id = memory.remember("plain").id
        assert memory.update(id, text=BAD).embedding_state == "refused"
        memory.update(id, text="plain again")
        assert memory.restore(id, 1).embedding_state == "refused"
        memory.transfer.export(tmp_path / "all.jsonl")
        with Memory(":memory:", embedder=embedder_of(endpoint)) as other:
            other.transfer.import_(tmp_path / "all.jsonl")
            assert (other.get(id).embedding_state, other.store.stats().pending) == ("refused", 0)


def test_texts_written_under_a_policy_and_procedures_are_marked_too(path, endpoint):
    merging = WritePolicy(merge_strategy="latest", topic_cosine=0.95)
    with Memory(path, embedder=embedder_of(endpoint)) as memory:
        new = memory.remember(f"a {BAD} note", policy=merging)
        (listed,) = memory.remember_many([f"the second {BAD} note"], policy=merging)
        first = memory.remember(NewRecord("a plain note", topic="note"), policy=merging)
        merged = memory.remember(NewRecord(f"now a {BAD} one", topic="note"), policy=merging)
        assert (merged.id, merged.outcome) == (first.id, "merged")
        saved = memory.procedures.save("deploy", "a plain way")
        memory.procedures.save("deploy", f"a {BAD} way")
        for id in (new.id, listed, merged.id, saved.id):
            assert memory.get(id).embedding_state == "refused"
            assert any(id in note for note in memory.store.stats().notes)
        assert (memory.store.stats().refused, memory.store.stats().pending) == (4, 0)
        assert memory.store.verify().ok


def test_an_endpoint_that_refuses_everything_is_broken_and_its_texts_wait(endpoint):
    with Memory(":memory:", embedder=embedder_of(endpoint)) as memory:
        memory.remember("the striped zebra")
        endpoint.otherwise = refusing("")
        ids = memory.remember_many(notes(20))
        assert {memory.get(id).embedding_state for id in ids} == {"pending"}
        assert len(endpoint.asked) == 2 + 2, "all of them, and a plain word"
        endpoint.otherwise = refusing(BAD)
        memory.remember("it works again")
        assert (memory.store.stats().pending, memory.store.stats().refused) == (0, 0)


def test_one_that_goes_down_while_the_text_is_looked_for_leaves_them_waiting(endpoint):
    clock = Clock()
    refuse = refusing(BAD)

    def answer(asked):
        if len(endpoint.asked) > 5:
            endpoint.down = True
        return refuse(asked)

    endpoint.otherwise = answer
    with Memory(":memory:", embedder=embedder_of(endpoint, clock=clock)) as memory:
        memory.remember_many(notes(20, bad=[13]))
        assert (memory.store.stats().pending, memory.store.stats().refused) == (20, 0)
        endpoint.down, endpoint.otherwise = False, refuse
        clock.seconds += 2
        memory.remember("it is back")
        assert (memory.store.stats().pending, memory.store.stats().refused) == (0, 1)


def test_a_query_that_is_refused_is_searched_by_its_words(endpoint):
    with Memory(":memory:", embedder=embedder_of(endpoint)) as memory:
        memory.remember("the striped zebra")
        hits = memory.recall(f"{BAD} zebra")
        assert hits[0].text == "the striped zebra"
        assert any("too long" in gap for gap in hits.evidence_gaps)
        assert memory.recall("striped")[0].signals["cosine"] > 0, "the next question is embedded"


def test_an_embedder_of_ones_own_may_refuse_a_text():
    class Choosy(WordEmbedder):
        def embed(self, texts):
            if any(BAD in text for text in texts):
                raise EmbedderError("not in this house", "text_refused")
            return super().embed(texts)

    with Memory(":memory:", embedder=Choosy()) as memory:
        ids = memory.remember_many(notes(10, bad=[0, 9]))
        assert [memory.get(id).embedding_state for id in ids] == ["refused", *["embedded"] * 8, "refused"]


def test_one_that_fails_without_saying_that_it_refuses_keeps_its_text_waiting(path):
    class Crashing(WordEmbedder):
        def embed(self, texts):
            if any(BAD in text for text in texts):
                raise ValueError("boom")
            return super().embed(texts)

    with Memory(path, embedder=Crashing()) as memory:
        ids = memory.remember_many(notes(10, bad=[4]))
        memory.remember("the next write embeds what waits")
        states = [memory.get(id).embedding_state for id in ids]
        assert states == ["pending" if number == 4 else "embedded" for number in range(10)]
        with pytest.raises(EmbedderError, match="boom"):
            memory.store.reembed()


def test_chunks_of_a_document_that_are_refused_are_remembered(endpoint):
    text = "\n\n".join(f"## Part {number}\n\n" + f"word{number} " * 500 for number in range(6))
    text += f"\n\n## Last\n\n{BAD} " + "nothing else here " * 300
    with Memory(":memory:", embedder=embedder_of(endpoint)) as memory:
        document = memory.knowledge.ingest(text.encode(), name="guide.md").documents[0]
        figures = memory.store.stats()
        assert (document.pending, figures.pending) == (0, 0)
        assert 0 < figures.refused < document.chunks
        before = len(endpoint.asked)
        memory.knowledge.ingest((text + "\n").encode(), name="guide.md")
        assert memory.store.stats().refused == figures.refused
        assert len(endpoint.asked) - before <= 1, "only what is new is embedded"


def test_a_file_with_a_refused_chunk_is_not_asked_for_at_each_index(tmp_path, endpoint):
    for number in range(40):
        file = tmp_path / "memory" / f"n{number}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text(notes(40, bad=[7])[number])
    with Workspace(tmp_path, embedder=embedder_of(endpoint)) as workspace:
        result = workspace.index()
        assert (result.files_indexed, result.pending, result.embeddings_computed) == (40, 0, 39)
        assert len(endpoint.asked) <= 1 + 2 + 1 + 12
        status = workspace.status()
        assert (status.pending, status.refused) == (0, 1)
        (problem,) = [problem for problem in status.problems if problem.path == "memory/n7.md"]
        assert "the embedder refuses" in problem.reason
        assert problem.indexed
        before = len(endpoint.asked)
        workspace.index(force=True)
        (tmp_path / "memory/n8.md").write_text("something else")
        workspace.index()
        assert len(endpoint.asked) == before + 1
        assert workspace.search(BAD, min_score=0.0)[0].path == "memory/n7.md"


@pytest.mark.parametrize("size", [7, 50])
def test_as_many_chunks_are_sent_together_as_the_batch_size_says(tmp_path, endpoint, size, monkeypatch):
    monkeypatch.setenv("EMBEDDING_PROVIDER", endpoint.url)
    monkeypatch.setenv("EMBEDDING_MODEL", "words")
    for number in range(100):
        file = tmp_path / "memory" / f"n{number}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"note number{number}")
    config = WorkspaceConfig.from_dict({"embedding": {"model": "words", "api_base": endpoint.url, "batch_size": size}})
    with Workspace(tmp_path, config) as workspace:
        assert workspace.index().embeddings_computed == 100
    sent = [len(asked.body["input"]) for asked in endpoint.asked]
    assert max(sent) == size
    assert len(sent) <= 1 + -(-100 // size) + 5
