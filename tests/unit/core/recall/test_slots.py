"""What questions ask for, and which texts have it."""

from __future__ import annotations

import pytest

from recallite import Memory
from recallite.recall.slots import HAS, SLOTS, contradicts, named_in, only_asks, slot_of
from tests.conftest import PLAIN

ASKED = {
    "What is Ada's phone number?": "phone", "Under which number can she be reached?": "phone",
    "What's my email address?": "email", "How long does it take?": "duration", "How old is the cat?": "amount",
    "What is our budget?": "amount", "When do we ship?": "time", "Since when has she worked there?": "time",
    "What day is the deadline?": "time", "Where does Bo live?": "place", "Which city is it?": "place",
    "Who signs it off?": "person", "With whom do I travel?": "person", "Why did we move?": "reason",
    "What is the name of the dog?": "name", "What do I like to drink?": None, "Is it raining?": None, "tea": None,
    "": None,
}  # fmt: skip
HAVING = {
    "phone": "Reach her on +49 171 555 01", "email": "Mail goes to ada@example.org", "duration": "It takes two hours",
    "amount": "Budget is capped at 40k euros", "time": "Releases go out every second Tuesday",
    "place": "I moved to Bergen", "person": "My sister signs it", "reason": "We moved because the rent rose",
    "name": "The dog is called Rufus",
}  # fmt: skip
LACKING = {
    "phone": "She works in room 12", "email": "Write her a letter", "duration": "Bo does it", "place": "Tea is fine",
    "amount": "The concert is on November 3 at 19:30", "time": "Bo likes tea", "person": "The lift is broken",
    "reason": "Bo moved", "name": "The dog likes bones",
}  # fmt: skip


@pytest.mark.parametrize("question", ASKED)
def test_a_question_asks_for_a_kind_of_value(question):
    assert slot_of(question) == ASKED[question]


@pytest.mark.parametrize("slot", SLOTS)
def test_a_text_has_the_value_or_lacks_it(slot):
    assert HAS[slot](HAVING[slot])
    assert not HAS[slot](LACKING[slot])


def test_names_in_small_letters_are_not_known():
    assert HAS["name"]("the kitten answers to olga")
    assert not HAS["place"]("The reunion takes place in mid October")


def test_a_context_may_be_the_person(tmp_path):
    confidence = []
    for context in (None, "the tower"):
        with Memory(tmp_path / f"{context}.db", settings=PLAIN) as memory:
            memory.remember("The lift is broken", context=context)
            confidence.append(memory.recall("Who says that the lift is broken?")[0].confidence)
    assert confidence[0] + 0.2 < confidence[1]


def test_a_question_holds_nothing():
    assert only_asks("What do you do?")
    assert only_asks("Really?")
    for text in ("I bake bread. And you?", "Bo said why", "", "A" * 300 + "?"):
        assert not only_asks(text)


def test_a_long_question_asks_for_several_things():
    assert slot_of("Where is it? " + "And " * 80) is None


@pytest.mark.parametrize(
    ("text", "without"),
    [("We meet at half past", False), ("Quarter to nine suits me", False), ("A quarter of the budget is gone", True)],
)
def test_a_time_in_words_is_a_time_and_a_share_is_none(text, without):
    assert HAS["time"](text) is not without


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What does E0001 mean?", "Error E1968 means that the pump is dry"),
        ("What was the budget for Q3?", "The Q2 budget was 40k"),
        ("What runs on port 8080?", "Postgres runs on port 5432"),
        ("How much is the Student plan?", "The Team plan is 20 dollars a month"),
        ("Does it work on Android?", "It works on iOS 15"),
        ("When is check-in at Hotel Borealis?", "Hotel Aurora lets guests check in from 15:00"),
        ("Who has room 7?", "Ada moved to room 12"),
        ("How many seats has train 204?", "The seats are 61 to 64, in coach 3"),
        ("What did I buy in 2021?", "I bought a car in 2020"),
        ("Where did Omar work in 2021?", "Omar worked at BP until 2019"),
        ("Who was our vet in 2020?", "Our vet was Dr. Hahn from 2014 to 2018"),
        ("Where did Omar live in 2010?", "Omar has lived in Kiel since May 2012"),
        ("Where did Omar work in 2020?", "Omar worked at Lidl between 2014 and 2018"),
        ("Where did Omar work in 2012?", "Omar worked at Lidl from March 2014 to the end of May 2018"),
        ("Where did Omar work in 2012?", "Omar worked at Lidl, 2014 \u2013 2018"),
        ("Where did Omar work in 2016?", "Omar worked at Lidl in 2014 and 2018"),
        ("Which car did Omar buy in 2020?", "Omar bought a car from 2019"),
        ("Where did Omar work before 2016?", "Omar has worked at Lidl since 2018"),
        ("Where did Omar work after 2016?", "Omar worked at Lidl until 2014"),
        ("Where did Omar work between 2010 and 2012?", "Omar worked at Lidl from 2014 to 2018"),
    ],
)
def test_a_text_has_another_one_of_the_kind_asked_for(question, text):
    assert contradicts(named_in(question), text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What does E1968 mean?", "Error E1968 means that the pump is dry, unlike E0001"),
        ("What is EU law?", "The European Union law comes before that of its members"),
        ("What did I cook on May 23, 2023?", "Fish, for 12 guests"),
        ("What did I cook in 2021?", "Fish, for 12 guests"),
        ("Who has room 7?", "Room seven is for Ada and her 2 cats"),
        ("Who has room 7?", "Ada has had it since May 4 of 2019"),
        ("Do we start at 9?", "We start at 10"),
        ("Who drives to Malmö?", "Ada drives to Malmoe"),
        ("Who called on Monday?", "Ada called on Tuesday"),
        ("Where does Ada work?", "She works for Calder Freight"),
        ("Does the pump run on Linux?", "The tram stops on Main Street"),
        ("Where did Omar work in 2018?", "Omar worked at BP until 2019"),
        ("Who was our vet in 2016?", "Our vet was Dr. Hahn from 2014 to 2018"),
        ("Where did Omar live in 2020?", "Omar has lived in Kiel since May 2012"),
        ("Where did Omar work in 2016?", "Omar worked at Lidl between 2014 and 2018"),
        ("Where did Omar work in 2016?", "Between March 2014 and the end of May 2018 Omar worked at Lidl"),
        ("Where did Omar work in 2016?", "Omar worked at Lidl 2014-2018"),
        ("Where did Omar work in 2016?", "Omar worked at Lidl 2014\u20132018"),
        ("Where did Omar work in 2016?", "Omar worked at Lidl (2014 \u2013 2018)"),
        ("Where did Omar work in 2016?", "Omar worked at Lidl, Mar 2014 - May 2018"),
        ("Where did Omar work in 2016?", "Omar worked at Lidl 2014 to 2018"),
        ("Where did Omar work in 2016?", "Omar worked at Lidl from 2014 on"),
        ("Who won in 2015?", "Omar won the season of 2014/15"),
        ("Where did Omar work in 2018?", "Omar worked at Lidl from 2014 to 2016 and at Aldi from 2017 to 2019"),
        ("Where did Omar work in 2016?", "Omar worked at Lidl until the end of the summer of 2018"),
        ("Where did Omar work in 2016?", "Omar worked at Lidl before 3 May 2018"),
        ("Where did Omar work before 2016?", "Omar worked at Lidl in 2014"),
        ("Where did Omar work after 2016?", "Omar worked at Lidl in 2018"),
        ("Where did Omar work between 2014 and 2018?", "Omar worked at Lidl in 2016"),
    ],
)
def test_a_text_without_the_same_kind_in_that_place_contradicts_nothing(question, text):
    named = named_in(question)
    assert named is None or not contradicts(named, text)


def test_a_name_beside_the_text_is_not_lacking():
    assert contradicts(named_in("What did Bo cook in Oslo?"), "Ada cooked fish in Rome")
    assert not contradicts(named_in("What did Bo cook in Oslo?"), "Ada cooked fish in Rome", ("Oslo", "Bo"))


def test_of_the_year_in_which_it_was_told_a_memory_may_name_another(tmp_path):
    with Memory(tmp_path / "m.db", settings=PLAIN) as memory:
        memory.remember("Bought a car from 2019", valid_from="2021-05-04T09:00:00+00:00")
        found = {year: memory.recall(f"Which car was bought in {year}?", relevant=True) for year in (2020, 2021)}
    assert found[2021]
    assert not found[2020]


def test_a_question_in_small_letters_without_numbers_names_nothing():
    assert named_in("what does it mean?") is None
    assert named_in("What happened on the 3rd, at 10am or in the 1990s?") is None
