"""Near misses that the reader is trained on."""

from __future__ import annotations

import random

from benchmarks.training import neighbours
from benchmarks.training.neighbours import Values, near_misses, subjects


def test_every_wording_can_be_filled():
    for subject in subjects():
        assert subject.slots
        values = Values(random.Random(0), None)
        values["e"] = (subject.entities or [""])[0].format_map(values)
        for slot in subject.slots:
            for text in (*slot.say, *slot.ask):
                assert "{" not in text.format_map(values)


def test_a_value_is_drawn_once_and_differs_by_store():
    values = Values(random.Random(1), "dog")
    assert values["e"] == "dog"
    assert values["phone"] == values["phone"]
    assert len({Values(random.Random(seed), None)["phone"] for seed in range(9)}) > 5


def test_groups_have_an_answer_or_name_another_speaker_and_are_the_same_each_time(monkeypatch):
    monkeypatch.setattr(neighbours, "_ROUNDS", {True: 1, False: 1})
    groups = list(near_misses())
    assert groups == list(near_misses())
    assert {group.set for group in groups} == {"near", "near_swapped"}
    for group in groups:
        assert group.wrong
        assert bool(group.answers) == (group.set == "near")
        assert not set(group.answers) & set(group.wrong)
    assert {group.apart for group in groups} == {False, True}
