"""Training data comes from pinned files alone: the commit, not what is checked out, and the very bytes."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.training import data, passages

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


def test_each_pin_has_a_commit_a_licence_and_the_hash_of_each_file() -> None:
    for repository, pin in data.sources().items():
        assert repository.count("/") == 1
        assert len(pin["commit"]) == 40
        weights_only = {"reader", "standing", "foreign"}.issuperset(pin.get("used_by", ["vectors"]))
        alike = {"CC-BY-3.0", "CC-BY-SA-3.0", "CC-BY-SA-4.0"} if weights_only else set()
        assert pin["licence"] in {"Apache-2.0", "MIT", "CC-BY-2.0", "CC-BY-4.0", "CC0-1.0"} | alike
        assert all(len(digest) == 64 for digest in pin["files"].values())


def test_each_question_on_passages_names_notes_that_are_pinned() -> None:
    notes = {Path(path).stem for path in data.sources()[passages.NOTES]["files"]}
    named = [name for names in json.loads(passages.TABLE.read_text("utf-8"))["questions"].values() for name in names]
    assert named
    assert notes.issuperset(named)


def test_an_unknown_split_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="give one of vectors, ranking"):
        data.stores(tmp_path, "test")  # type: ignore[arg-type]
