"""Licence-clean questions with the turns that answer them, read from git repositories pinned in `sources.json`.

`DIR` of `stores(DIR, ...)` has a git repository, a clone or a bare one, at `owner+name` for each source. Files are read
with `git show COMMIT:PATH`, whatever is checked out, and checked against their sha256. README.md in `models` has the
commands that clone them.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

Split = Literal["vectors", "ranking"]
SPLITS: tuple[Split, ...] = ("vectors", "ranking")

# Marks of the transcribers of QMSum, as in "{vocalsound}".
_MARKS = re.compile(r"\{\w+\}|<\w+>")
# Of 1,095 questions of QMSum's train split 489 have at most 20 turns as evidence; the median is 23, the longest 700.
_MAX_EVIDENCE = 20
_LEAST_WORDS = 4
_DIALOGUES_TOGETHER = 25


@dataclass(frozen=True)
class Question:
    """A question; `gold` has the places in `Store.turns` of what answers it, and is empty if nothing does."""

    text: str
    gold: tuple[int, ...]
    answerable: bool = True


@dataclass(frozen=True)
class Store:
    """Contents of one store, as `Memory.remember_many` takes them, and the questions to it."""

    name: str
    turns: list[dict[str, Any]]
    questions: list[Question]


class DataError(Exception):
    """A pinned file is missing or differs."""


@cache
def sources() -> dict[str, Any]:
    """The pins: for each repository its commit, licence, and the sha256 of each file that is read."""
    loaded: dict[str, Any] = json.loads(Path(__file__).with_name("sources.json").read_text("utf-8"))
    return loaded


def used_by(module: str) -> dict[str, Any]:
    """The pins of what a module of this package reads: those that name no modules are read by all."""
    return {name: pin for name, pin in sources().items() if module in pin.get("used_by", [module])}


def read(repositories: Path, repository: str, path: str) -> str:
    """The text of a pinned file. Raises DataError if it cannot be read or is not the one that was pinned."""
    pin = sources()[repository]
    folder = repositories / repository.replace("/", "+")
    if not folder.exists():
        raise DataError(f"{folder} is missing: git clone https://github.com/{repository} {folder}")
    ran = subprocess.run(["git", "-C", str(folder), "show", f"{pin['commit']}:{path}"], capture_output=True)
    if ran.returncode:
        reason = ran.stderr.decode("utf-8", "replace").strip()
        raise DataError(f"{folder} has no {path} at commit {pin['commit']}: {reason}")
    digest, expected = hashlib.sha256(ran.stdout).hexdigest(), pin["files"][path]
    if digest != expected:
        raise DataError(f"{path} of {repository} has sha256 {digest}, expected {expected}")
    return ran.stdout.decode("utf-8")


def paths(repository: str, under: str = "") -> list[str]:
    """The pinned files of a repository in a folder, sorted."""
    return sorted(path for path in sources()[repository]["files"] if path.startswith(under))


def stores(repositories: Path, split: Split, sets: tuple[str, ...] | None = None) -> list[Store]:
    """Every store of a split, of all `SETS` or of those named, always in the same order."""
    if split not in SPLITS:
        raise ValueError(f"split is {split!r}: give one of {', '.join(SPLITS)}")
    return [store for name in sets or tuple(SETS) for store in SETS[name](repositories, split)]


def friendsqa(repositories: Path, split: Split) -> Iterator[Store]:
    """FriendsQA (Yang and Choi, 2019): scenes of a series, an episode a store; dev trains vectors, tst ranking."""
    name = "dev" if split == "vectors" else "tst"
    episodes: dict[str, tuple[list[dict[str, Any]], list[Question]]] = {}
    for scene in json.loads(read(repositories, "emorynlp/FriendsQA", f"dat/friendsqa_{name}.json"))["data"]:
        title = scene["title"]
        turns, questions = episodes.setdefault(title[: title.rindex("_")], ([], []))
        for paragraph in scene["paragraphs"]:
            first = len(turns)
            for place, line in enumerate(paragraph["utterances:"]):
                turns.append(_turn(line["utterance"], ", ".join(line["speakers"]), title, place))
            for entry in paragraph["qas"]:
                gold = {first + answer["utterance_id"] for answer in entry["answers"]}
                questions.append(Question(plain(entry["question"]), tuple(sorted(gold))))
    for title, (turns, questions) in sorted(episodes.items()):
        yield Store(f"friendsqa/{title}", turns, questions)


def molweni(repositories: Path, split: Split) -> Iterator[Store]:
    """Molweni (Li et al., 2020): Ubuntu chat, several dialogues a store; the first half trains vectors.

    Only answerable questions: others ask for what an answerable one of the same dialogue is answered with.
    """
    loaded = json.loads(read(repositories, "HIT-SCIR/Molweni", "MRC(withDiscourse)/test.json"))
    dialogues = loaded["data"]["dialogues"]
    half = len(dialogues) // 2
    part = dialogues[:half] if split == "vectors" else dialogues[half:]
    for start in range(0, len(part), _DIALOGUES_TOGETHER):
        turns: list[dict[str, Any]] = []
        questions: list[Question] = []
        for number, dialogue in enumerate(part[start : start + _DIALOGUES_TOGETHER], start):
            first, ends, end = len(turns), [], 0
            for place, line in enumerate(dialogue["edus"]):
                turns.append(_turn(line["text"], line["speaker"], f"{split}-{number}", place))
                # `context` is the dialogue in one line, and answers are places in it.
                end += len(line["speaker"]) + len(line["text"]) + 3
                ends.append(end)
            for entry in dialogue["qas"]:
                gold = {
                    first + next(place for place, end in enumerate(ends) if answer["answer_start"] < end)
                    for answer in entry["answers"]
                    if answer["answer_start"] < ends[-1]
                }
                if gold and not entry["is_impossible"]:
                    questions.append(Question(plain(entry["question"]), tuple(sorted(gold))))
        yield Store(f"molweni/{split}-{start // _DIALOGUES_TOGETHER}", turns, questions)


def qmsum(repositories: Path, split: Split) -> Iterator[Store]:
    """QMSum (Zhong et al., 2021): a meeting a store; train trains vectors, val and test ranking.

    Specific questions whose evidence is at most 20 turns.
    """
    folders = ("train",) if split == "vectors" else ("val", "test")
    for folder in folders:
        for path in paths("Yale-LILY/QMSum", f"data/ALL/{folder}/"):
            meeting = json.loads(read(repositories, "Yale-LILY/QMSum", path))
            name = f"{folder}/{Path(path).stem}"
            turns: list[dict[str, Any]] = []
            turn_of: dict[int, int] = {}
            for place, line in enumerate(meeting["meeting_transcripts"]):
                text = plain(_MARKS.sub(" ", line["content"]))
                if any(map(str.isalnum, text)):
                    turn_of[place] = len(turns)
                    turns.append(_turn(text, line["speaker"], name, place))
            questions = []
            for entry in meeting["specific_query_list"]:
                spans = [range(int(first), int(last) + 1) for first, last in entry["relevant_text_span"]]
                gold = {turn_of[place] for span in spans for place in span if place in turn_of}
                # "Mm-hmm." lies within a span and answers nothing.
                gold = {place for place in gold if len(turns[place]["text"].split()) >= _LEAST_WORDS}
                if 0 < len(gold) <= _MAX_EVIDENCE:
                    questions.append(Question(plain(entry["query"]), tuple(sorted(gold))))
            if questions:
                yield Store(f"qmsum/{name}", turns, questions)


def facts(repositories: Path, split: Split) -> Iterator[Store]:
    """Stores made by the rules of `benchmarks.training.facts`; they need no repository."""
    from benchmarks.training import facts as made

    return made.stores(split)


SETS: dict[str, Callable[[Path, Split], Iterator[Store]]] = {
    "friendsqa": friendsqa,
    "molweni": molweni,
    "qmsum": qmsum,
    "facts": facts,
}


def _turn(text: str, speaker: str, source: str, position: int) -> dict[str, Any]:
    # Never an empty text: FriendsQA has turns that are a stage direction only.
    return {"text": plain(text) or "...", "context": speaker or None, "source": source, "position": position}


def plain(text: str) -> str:
    """Tokenised text as one writes it: "I do n't know ." becomes "I don't know."."""
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r" (n't|'(?:s|m|d|ll|re|ve)|na)\b", r"\1", text, flags=re.IGNORECASE)
    return re.sub(r" ([.,!?;:%)\]])", r"\1", text)
