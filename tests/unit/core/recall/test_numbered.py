"""Names with a number: what has one that the question has comes before what is only like it."""

from __future__ import annotations

import pytest

from recallite import Memory
from recallite.recall.slots import numbered_names

NAMES = {
    "What does EIP-3368 propose?": (("EIP-3368",),),
    "What does E1968 mean, and AX-4410-B?": (("E1968",), ("AX-4410-B",)),
    "What changed in v2.14.3 and in 2.15.0?": (("v2.14.3",), ("2.15.0",)),
    "Is RFC 1918 older than RFC 7231?": (("RFC", "1918"), ("RFC", "7231")),
    "Who merged PR #482?": (("PR", "482"),),
    "What is in room 12b?": (("room", "12b"),),
    "How old was Ada in 2019?": (),
    "Who joined us on Friday 7, in March 2020, at 5am or on the 3rd?": (),
    "Who works a 24-hour shift in the 4-bedroom house of winter 2019?": (),
    "Where did she find the 12 eggs?": (),
}
WHAT = "changes the reward of miners and the price of storage in every block"


@pytest.mark.parametrize("question", NAMES)
def test_a_code_or_a_number_after_a_name_is_one(question):
    assert numbered_names(question) == NAMES[question]


@pytest.fixture(scope="module")
def notes():
    """Passages that move documents, which are like any question about one, and long ones about other things."""
    with Memory(":memory:") as memory:
        memory.remember_many([f"What does EIP-{number} propose? It was moved." for number in range(40)])
        about = {3368: "about-3368", 3369: "about-3369"}
        memory.remember_many(
            [{"id": id, "text": f"eip: {number}. " + f"It {WHAT}. " * 20} for number, id in about.items()]
        )
        memory.remember("The dinner is at Mia's", id="dinner", scope="/home")
        yield memory


def ids_of(hits):
    return [hit.id for hit in hits]


@pytest.mark.parametrize("limit", [1, 2, 5, 20])
def test_what_has_the_name_is_first_whatever_the_limit(notes, limit):
    question = "What does EIP-3368 propose?"
    assert notes.recall(question, limit=limit, profile={"adaptive": False})[0].id != "about-3368"
    hits = notes.recall(question, limit=limit)
    assert hits[0].id == "about-3368"
    assert len({*ids_of(hits)}) == len(hits) == limit
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert not any("EIP-3368" in gap for gap in hits.evidence_gaps)


def test_what_is_first_for_a_name_that_is_as_rare_loses_no_place():
    with Memory(":memory:") as memory:
        first = memory.remember("The medgasprice opcode pushes the median price of gas onto the stack")
        other = memory.remember("Fees are burnt since EIP-1559 was adopted by all clients in London")
        hits = memory.recall("Does the medgasprice opcode push the median onto the stack since EIP-1559?")
        assert ids_of(hits) == [first.id, other.id]


def test_each_of_several_names_is_found(notes):
    assert {*ids_of(notes.recall("Do EIP-3368 and EIP-3369 differ?", limit=4))} >= {"about-3368", "about-3369"}


def test_questions_that_are_asked_together_are_answered_as_alone(notes):
    questions = ["What does EIP-3368 propose?", "Where is the dinner?", "Who wrote EIP 3369?"]
    together = notes.recall_many(questions, limit=5)
    assert [ids_of(hits) for hits in together] == [ids_of(notes.recall(text, limit=5)) for text in questions]


def test_what_a_filter_hides_is_not_brought(notes):
    assert ids_of(notes.recall("What does EIP-3368 propose?", scope="/home")) == ["dinner"]


@pytest.mark.parametrize("options", [{"profile": "hermes"}, {"mode": "vector"}])
def test_other_systems_and_meaning_alone_bring_nothing(notes, options):
    assert notes.recall("What does EIP-3368 propose?", limit=2, **options)[0].id != "about-3368"


def test_what_lost_its_place_says_so(notes):
    question = "What does EIP-3368 propose?"
    without = notes.recall(question, limit=1, profile={"adaptive": False})[0]
    told = notes.review.explain(question, without.id, limit=1)
    assert (told.stage, told.rank) == ("limit", 1)
    assert told.reason == "it ranks 1, and records with a name that the question has take its place"


CITES = "This fork includes {0}, {1} and {0} again: {0} is what {0} says."


@pytest.mark.parametrize(
    ("question", "page", "others"),
    [
        ("What is EIP-145?", "/eips/eip-145.md", ("EIP-145", "EIP-146")),
        ("Who wrote PEP 8?", "peps/pep-0008.rst", ("PEP 8", "PEP 20")),
        ("RFC 7231", "rfcs/rfc7231.txt", ("RFC 7231", "RFC 9110")),
    ],
)
def test_a_document_that_has_the_name_comes_before_what_cites_it(question, page, others):
    with Memory(":memory:") as memory:
        cites = memory.remember(CITES.format(*others), source="/forks/other.md").id
        name, _, number = others[0].replace("-", " ").partition(" ")
        own = memory.remember(f"A proposal of shifts ({name.lower()}: {number}; status: Final)", source=page).id
        memory.remember_many([f"Block {i} was mined by pool {i} of the valley" for i in range(20)])
        assert ids_of(memory.recall(question))[:2] == [own, cites]
        # What tells of something else that the question names, beside the name, keeps its place.
        assert ids_of(memory.recall(f"Which fork includes {others[0]} and {others[1]}?"))[0] == cites
