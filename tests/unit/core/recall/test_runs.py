"""Turns of a conversation that are stored as text alone: "Ada: ..." is beside what was said before and after it."""

from __future__ import annotations

from recallite import Memory
from tests.unit.core.memory.support import PLAIN

TALK = ("Ada: Where did you leave the tent?", "Bo: In the loft, behind the skis.", "Ada: Is it dry up there?")
OTHERS = ("Bo: The skis were waxed.", "Ada: My sister sent a parcel.", "Bo: She is kind.", "Ada: So she is.")


def spread(memory: Memory, query: str) -> dict[str, bool]:
    """Whether each hit was reached by a neighbour."""
    return {hit.text: "session" in hit.match_reasons for hit in memory.recall(query, limit=10)}


def test_a_turn_without_the_words_of_the_question_is_reached_by_the_turn_before(memory):
    memory.remember_many(TALK + OTHERS)
    one_by_one = Memory(":memory:", settings=PLAIN)
    for text in TALK + OTHERS:
        one_by_one.remember(text)
    query = "tent in the loft"
    assert spread(memory, query)[TALK[1]]
    assert spread(one_by_one, query) == spread(memory, query)


def test_texts_without_a_name_before_them_and_other_scopes_are_no_conversation(memory):
    memory.remember_many(text.partition(": ")[2] for text in TALK)
    memory.remember(TALK[0], scope="/a")
    memory.remember(TALK[1], scope="/b")
    assert not any(spread(memory, "tent in the loft").values())


def test_a_conversation_is_no_source_where_hits_are_one_a_source(memory):
    memory.remember_many(TALK)
    assert len(memory.recall("tent loft dry", diversify_by="one_per_source")) == 3
