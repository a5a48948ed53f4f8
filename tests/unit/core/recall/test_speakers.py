"""A question that names the context of records raises them."""

from __future__ import annotations

import pytest

from recallite import Memory
from recallite.recall.request import recall_arguments


def speakers(memory, question, **options):
    """The context of each hit whose signal says that the question names it."""
    return {
        hit.context for hit in memory.recall(question, limit=50, **recall_arguments(options)) if hit.signals["speaker"]
    }


@pytest.fixture
def talk(memory):
    for context in ("Anna Smith", "Bob", "user", "assistant", "Dr. Ortega", "release notes", "\u7530\u4e2d", None):
        memory.remember("The hotel in Rome was fine", context=context)
    return memory


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("Which hotel did Anna like?", {"Anna Smith"}),
        ("What is anna's hotel?", {"Anna Smith"}),
        ("Which hotel did Smith choose?", {"Anna Smith"}),
        ("Which hotel did Anna and Bob like?", {"Anna Smith", "Bob"}),
        ("Which hotel did Ortega like?", {"Dr. Ortega"}),
        ("Which hotel did the user like?", set()),
        ("What did the assistant say of the hotel?", set()),
        ("Which notes on the hotel in the release?", set()),
        ("\u7530\u4e2d hotel", {"\u7530\u4e2d"}),
        ("Which hotel did Annabel like?", set()),
    ],
)
def test_the_speaker_that_a_question_names(talk, question, named):
    assert speakers(talk, question) == named


def test_the_named_speaker_comes_first_and_says_why(talk):
    best = talk.recall("Which hotel did Bob like?", limit=1)[0]
    assert best.context == "Bob"
    assert "speaker" in best.match_reasons
    plain = {
        hit.context: hit.score
        for hit in talk.recall("Which hotel did Bob like?", limit=50, profile={"speaker_weight": 0})
    }
    assert best.score == pytest.approx(min(1.0, (1 + 0.2) * plain["Bob"]), rel=1e-3)
    told = talk.review.explain("Which hotel did Bob like?", best.id)
    assert told.signals["speaker"] == 1.0
    assert (
        "speaker"
        not in talk.recall("Which hotel did Bob like?", limit=1, profile={"speaker_weight": 0})[0].match_reasons
    )


def test_a_name_in_the_text_is_no_speaker(memory):
    memory.remember("Bob liked the hotel", context="Anna")
    assert speakers(memory, "Which hotel did Bob like?") == set()


def test_the_speaker_follows_changes_versions_and_a_reopened_file(path):
    with Memory(path, embedder="none") as memory:
        stored = memory.remember("The hotel was fine", context="Anna")
        before = memory.get(stored.id).recorded_from
        memory.update(stored.id, context="Bob")
        assert speakers(memory, "Bob's hotel") == {"Bob"}
        assert speakers(memory, "Anna's hotel") == set()
        assert speakers(memory, "Anna's hotel", as_of=before) == {"Anna"}
    with Memory(path, embedder="none") as memory:
        assert speakers(memory, "Bob's hotel") == {"Bob"}
        assert memory.store.verify().ok
        memory.store.rebuild()
        assert speakers(memory, "Bob's hotel") == {"Bob"}


def test_a_speaker_of_another_scope_changes_nothing(memory):
    memory.remember("The hotel was fine", context="Anna", scope="/a")
    memory.remember("The hotel was fine", scope="/b")
    memory.remember("The hotel was fine", context="Bob", scope="/b")
    (first, second) = memory.recall("Anna's hotel", scope="/b")
    assert first.signals["speaker"] == second.signals["speaker"] == 0.0
