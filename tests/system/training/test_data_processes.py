"""Training data comes from pinned files alone: the commit, not what is checked out, and the very bytes."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from recallite_models.training import data

SCENES = {
    "data": [
        {
            "title": "s01_e01_c01",
            "paragraphs": [
                {
                    "utterances:": [
                        {"uid": 0, "speakers": ["Ada Byron"], "utterance": "I do n't know where it is ."},
                        {"uid": 1, "speakers": ["Charles Babbage", "Ada Byron"], "utterance": "In the drawer !"},
                    ],
                    "qas": [{"question": "Where is it ?", "answers": [{"utterance_id": 1}, {"utterance_id": 1}]}],
                }
            ],
        },
        {
            "title": "s01_e01_c02",
            "paragraphs": [
                {
                    "utterances:": [
                        {"uid": 0, "speakers": [], "utterance": ""},
                        {"uid": 1, "speakers": ["Ada Byron"], "utterance": "It rains ."},
                    ],
                    "qas": [{"question": "What is the weather like ?", "answers": [{"utterance_id": 1}]}],
                }
            ],
        },
    ]
}
MEETING = {
    "meeting_transcripts": [
        {"speaker": "A", "content": "{vocalsound}"},
        {"speaker": "A", "content": "We ship {disfmarker} on Friday ."},
        {"speaker": "B", "content": "Fine ."},
    ],
    "specific_query_list": [
        {"query": "When do they ship ?", "relevant_text_span": [["0", "1"]]},
        {"query": "What is all of it ?", "relevant_text_span": [["0", "400"]]},
        {"query": "What is the sound ?", "relevant_text_span": [["0", "0"]]},
    ],
}
CHAT = {
    "data": {
        "dialogues": [
            {
                "edus": [{"text": "use fstab", "speaker": "kim"}, {"text": "thanks a lot", "speaker": "lee"}],
                "context": "kim: use fstab lee: thanks a lot",
                "qas": [
                    {"question": "What does lee say ?", "answers": [{"answer_start": 20}], "is_impossible": False},
                    {"question": "What does kim use ?", "answers": [{"answer_start": 5}], "is_impossible": False},
                    {"question": "What does lee use ?", "answers": [], "is_impossible": True},
                ],
            }
        ]
        * 2
    }
}


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    ran = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, check=True, text=True)
    return ran.stdout.strip()


@pytest.fixture
def pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of repositories with small files of the real sets' form, and pins to them."""
    files: dict[str, dict[str, Any]] = {
        "emorynlp/FriendsQA": {"dat/friendsqa_dev.json": SCENES},
        "HIT-SCIR/Molweni": {"MRC(withDiscourse)/test.json": CHAT},
        "Yale-LILY/QMSum": {"data/ALL/train/M1.json": MEETING},
    }
    pins: dict[str, Any] = {}
    for repository, contents in files.items():
        folder = tmp_path / repository.replace("/", "+")
        folder.mkdir()
        git(folder, "init", "--quiet")
        hashes = {}
        for path, content in contents.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(json.dumps(content), "utf-8")
            hashes[path] = hashlib.sha256((folder / path).read_bytes()).hexdigest()
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", "Data")
        pins[repository] = {"commit": git(folder, "rev-parse", "HEAD"), "licence": "MIT", "files": hashes}
    monkeypatch.setattr(data, "sources", lambda: pins)
    return tmp_path


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
