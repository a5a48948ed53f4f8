"""What counts as one topic: held to the table of pairs."""

from __future__ import annotations

import pytest

from recallite.text.topics import same_topic
from tests.unit.core.text.topic_pairs import DIFFERENT, SAME


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=map(" | ".join, DIFFERENT))
def test_look_alikes_are_on_two_topics(one, other):
    assert not same_topic(one, other)
    assert not same_topic(other, one)


def test_restatements_and_updates_are_on_one_topic():
    kept_apart = [pair for pair in SAME if not same_topic(*pair)]
    assert kept_apart == [
        ("The deploy runs every night", "The deploy runs every evening at night"),
        ("The logs are kept for thirty days", "The logs are kept for 30 days"),
    ]
    assert all(same_topic(other, one) == same_topic(one, other) for one, other in SAME)


def test_a_text_is_on_its_own_topic_whatever_its_punctuation():
    for text in {text for pair in SAME + DIFFERENT for text in pair}:
        assert same_topic(text, f"{text}!")
        assert same_topic(text, text.casefold())
