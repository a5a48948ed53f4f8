"""Training data comes from pinned files alone: the commit, not what is checked out, and the very bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.training import data
from tests.unit.training.test_data import git, pinned  # noqa: F401


def test_scenes_of_an_episode_are_one_store(pinned: Path) -> None:
    [store] = data.stores(pinned, "vectors", ("friendsqa",))
    assert store == data.Store(
        "friendsqa/s01_e01",
        [
            {"text": "I don't know where it is.", "context": "Ada Byron", "source": "s01_e01_c01", "position": 0},
            {"text": "In the drawer!", "context": "Charles Babbage, Ada Byron", "source": "s01_e01_c01", "position": 1},
            {"text": "...", "context": None, "source": "s01_e01_c02", "position": 0},
            {"text": "It rains.", "context": "Ada Byron", "source": "s01_e01_c02", "position": 1},
        ],
        [data.Question("Where is it?", (1,)), data.Question("What is the weather like?", (3,))],
    )


def test_a_span_of_a_meeting_is_its_turns_that_say_something(pinned: Path) -> None:
    [store] = data.stores(pinned, "vectors", ("qmsum",))
    assert [turn["text"] for turn in store.turns] == ["We ship on Friday.", "Fine."]
    assert store.questions == [data.Question("When do they ship?", (0,)), data.Question("What is all of it?", (0,))]


def test_an_answer_in_a_chat_is_the_turn_at_its_place(pinned: Path) -> None:
    first, second = (data.stores(pinned, split, ("molweni",)) for split in data.SPLITS)
    assert first[0].questions == [data.Question("What does lee say?", (1,)), data.Question("What does kim use?", (0,))]
    assert first[0].turns != second[0].turns, "each half has a name of its own as source"


def test_what_is_checked_out_does_not_matter(pinned: Path) -> None:
    sets = ("friendsqa", "molweni", "qmsum")  # the others are in no repository
    before = data.stores(pinned, "vectors", sets)
    for file in pinned.glob("*/dat/*.json"):
        file.write_text("{}", "utf-8")
    assert data.stores(pinned, "vectors", sets) == before


def test_a_changed_file_a_missing_commit_and_a_missing_repository_are_named(pinned: Path) -> None:
    pin = data.sources()["emorynlp/FriendsQA"]
    pin["files"]["dat/friendsqa_dev.json"] = "0" * 64
    with pytest.raises(data.DataError, match=r"friendsqa_dev.json of emorynlp/FriendsQA has sha256 \w+, expected 000"):
        data.stores(pinned, "vectors", ("friendsqa",))
    pin["commit"] = "1" * 40
    with pytest.raises(data.DataError, match=r"has no dat/friendsqa_dev.json at commit 1111"):
        data.stores(pinned, "vectors", ("friendsqa",))
    with pytest.raises(data.DataError, match=r"git clone https://github.com/emorynlp/FriendsQA"):
        data.stores(pinned / "nowhere", "vectors", ("friendsqa",))
