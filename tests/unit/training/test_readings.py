"""Stores that were written for the reader."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.quality import written
from benchmarks.training import readings
from benchmarks.training.readings import stores_of, written_stores


@pytest.mark.parametrize(
    ("held", "kind", "least"),
    [
        (False, "questions", 1000), (True, "questions", 100), (False, "multilingual", 400), (True, "multilingual", 80),
        (False, "contrasts", 200), (True, "contrasts", 10), (False, "requests", 600), (True, "requests", 40),
    ],
)  # fmt: skip
def test_every_question_names_memories_of_its_store(held, kind, least):
    stores = written_stores(held, kind)
    assert len(stores) > least
    for store in stores:
        assert len(store.memories) >= 5, store.subject
        assert len(set(store.memories.values())) == len(store.memories), store.subject
        for question, gold in store.questions:
            assert set(gold) <= set(store.memories), question
            assert set(store.concerning.get(question, ())) <= set(store.memories) - set(gold), question


def test_a_third_of_the_questions_have_no_answer():
    answered = Counter(bool(gold) for store in written_stores() for _, gold in store.questions)
    assert 0.3 < answered[False] / answered.total() < 0.5


def test_a_store_is_asked_with_all_its_memories(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("## pets\n1. The cat is Bo.\n2. The dog is Al.\n? Who barks? = 2\n? Age? = -\n")
    monkeypatch.setattr(readings, "_STORES", tmp_path)
    answered, open_question = readings._stores(lambda texts: readings.np.eye(len(texts), 2, dtype="f4"), "questions")
    assert answered[:3] == ("Who barks?", ["The dog is Al."], ["The cat is Bo."])
    assert open_question.answers == []
    assert sorted(open_question.wrong) == ["The cat is Bo.", "The dog is Al."]
    (tmp_path / "a.txt").write_text("## pets\nThe cat is Bo.\n")
    with pytest.raises(ValueError, match=r"no subject, memory or question: .The cat is Bo"):
        written_stores()


@pytest.mark.parametrize("kind", ["questions", "contrasts", "requests", "multilingual"])
def test_no_held_store_trains(kind):
    trained, apart = (
        {text for store in written_stores(held, kind) for text in store.memories.values()} for held in (False, True)
    )
    assert not trained & apart


def test_the_parts_of_the_contrasts_share_no_text_and_half_of_their_questions_have_an_answer():
    texts = []
    for path in written.TABLES.values():
        stores = stores_of(path)
        asked = {question: gold for store in stores for question, gold in store.questions}
        assert sum(map(bool, asked.values())) * 2 == len(asked)
        assert all(set(gold) <= set(store.memories) for store in stores for _, gold in store.questions)
        texts.append({*asked, *(text for store in stores for text in store.memories.values())})
    assert texts[0].isdisjoint(texts[1])
