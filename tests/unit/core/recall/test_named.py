"""A memory that the question names by a tag or a title: surer, before those that are less sure, and part by part."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp

import pytest

from recallite import Memory
from recallite.recall.confidence import NAME_COUNTS, SUREST_BY_NAME, Missing, TextWeights, names_of
from recallite.recall.judge import adjust_confidence
from recallite_kernels import smoothed_idf

TEXTS = {
    "Takes half a tablet each morning": ("bisoprolol",),
    "Sleeps with a mask at a pressure of nine": ("CPAP machine",),
    "The knee was scanned last week": ("MRI",),
    "Reads without glasses": ("eyes",),
}


@dataclass
class Bearer:
    context: str | None
    tags: tuple[str, ...] = ()
    text: str = "Boils water"
    position: int | None = None


def texts_of(hits):
    return [hit.text for hit in hits]


@pytest.fixture(scope="module")
def tagged():
    with Memory(":memory:") as memory:
        memory.remember_many([{"text": text, "tags": tags} for text, tags in TEXTS.items()])
        yield memory


def test_a_question_that_has_a_whole_tag_finds_its_memory_and_no_other(tagged):
    question = "What do we know about the CPAP machine?"
    assert texts_of(tagged.recall(question, relevant=True)) == ["Sleeps with a mask at a pressure of nine"]
    named = tagged.recall(question)[0]
    assert named.confidence > 0.4
    assert tagged.review.explain(question, named.id).confidence == pytest.approx(named.confidence)


def test_a_part_of_a_tag_is_no_name(tagged):
    hits = tagged.recall("Was the washing machine repaired?", relevant=True)
    assert "Sleeps with a mask at a pressure of nine" not in texts_of(hits)


def test_several_named_things_are_judged_part_by_part(tagged):
    hits = tagged.recall("Before the operation tell me about bisoprolol, the MRI and the CPAP machine", relevant=True)
    assert set(texts_of(hits)) == {text for text, tags in TEXTS.items() if tags != ("eyes",)}


def test_the_more_memories_bear_a_name_the_less_it_counts(memory):
    memory.remember("The blue folder is on the shelf", tags=["insurance"])
    confidence = []
    for count in (0, 4, 40):
        memory.remember_many([{"text": f"Room {count}-{n} is painted", "tags": ["insurance"]} for n in range(count)])
        hits = memory.recall("Where is the insurance?", limit=50)
        confidence.append(next(hit.confidence for hit in hits if "folder" in hit.text))
    assert confidence[0] > confidence[1] > confidence[2]


def test_a_title_is_a_name_and_a_role_or_a_long_heading_is_none():
    words = ["focaccia", "assist", "flour"]
    missing = Missing(words, [3.0] * 3, [2] * 3, 0.1, 0.1, False, True, True, 0.15, 30.0)
    hits = [Bearer("Focaccia"), Bearer("assistant"), Bearer(f"Flour{' ' * 60}flour"), None, Bearer(None)]
    names = names_of("Is there flour for the focaccia, assistant?", missing, hits)
    assert [name and name.word for name in names] == ["focaccia", None, None, None, None]
    assert names[0].added == pytest.approx(NAME_COUNTS + 3.0 - float(smoothed_idf(30.0, 1.0, 0.0)))
    assert names_of("focaccia", None, hits) == [None] * 5


def test_scores_keep_their_places_when_a_named_hit_goes_first(tagged):
    hits = tagged.recall("Which eyes need the MRI?")
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert {hits[0].text, hits[1].text} == {"The knee was scanned last week", "Reads without glasses"}


def test_the_least_confidence_counts_after_names(tagged):
    question = "Is there something about bisoprolol?"
    (hit,) = tagged.recall(question, profile={"min_confidence": 0.15})
    assert hit.text == "Takes half a tablet each morning"
    assert tagged.recall("Is there something about the harpsichord?", profile={"min_confidence": 0.15}) == []


def test_a_name_alone_makes_no_certainty():
    bearer, weights = Bearer(None), TextWeights(lacking=-1.0, turn_lacking=-0.5, asking=-2.0)
    assert adjust_confidence(0.1, bearer, False, weights, 3.0) == pytest.approx(0.1 / (0.1 + 0.9 * exp(-3.0)))
    assert adjust_confidence(0.9, bearer, False, weights, 3.0) == SUREST_BY_NAME
    assert adjust_confidence(0.97, bearer, False, weights, 3.0) == 0.97
