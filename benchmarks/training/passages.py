"""Fits the confidence of passages of documents: python -m benchmarks.training.passages --repositories DIR

Confidence is fitted on turns and statements (`confidence.py`); a store with as many passages has fewer that are alike.
For each set of signals a logistic regression makes a chance of that confidence's logit and of the logarithm of the
number of records, by the first hits of questions: of our own about technical notes (`passages.json`), and the first
sentences of the notes' summaries, which are taken out of the notes. The notes are asked in folders of 3 to 160: for
what is in them, for what is in other notes, and for what is in none. Each kind of question in each size counts alike.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
from collections.abc import Iterator, Sequence
from math import log
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.cached_embedder import cached
from benchmarks.training.confidence import ASKED, SHARES
from benchmarks.training.data import read, sources
from benchmarks.training.logistic import fit_logistic
from recallite import Memory, Settings
from recallite.embedding import load
from recallite.model.filters import CHUNK_KIND
from recallite.recall.confidence import FILE
from recallite.recall.request import recall_arguments

EMBEDDERS = ("default", "instant")
NOTES = "rust-lang/rfcs"
TABLE = Path(__file__).with_suffix(".json")
# Notes in a folder, and how many such folders.
_FOLDERS = ((3, 8), (8, 5), (24, 4), (60, 1), (160, 1))
_OF_OTHERS = 15
_SUMMARY = re.compile(r"^#+ Summary[^\n]*\n+(.*?)(?=^#+ )", re.DOTALL | re.MULTILINE)
_LEAST_CHARS, _MOST_CHARS = 40, 220


class Asked(NamedTuple):
    """The first hit of a question: the logit of its confidence, and whether it is of a note that answers it."""

    cell: tuple[int, str, str]
    records: int
    logit: float
    right: bool


def notes_and_questions(repositories: Path) -> tuple[dict[str, str], list[tuple[str, str, list[str]]]]:
    """The notes without their summaries, by name, and questions: their set, text, and the notes that answer each."""
    table = json.loads(TABLE.read_text("utf-8"))
    questions = [("own", text, names) for text, names in table["questions"].items()]
    questions += [("elsewhere", text, []) for text in table["elsewhere"]]
    notes = {}
    for path in sources()[NOTES]["files"]:
        text = read(repositories, NOTES, path)
        if (summary := _SUMMARY.search(text)) is not None:
            first = re.split(r"(?<=[.!?])\s", " ".join(summary[1].split()))[0]
            if _LEAST_CHARS < len(first) < _MOST_CHARS:
                questions.append(("summary", first, [Path(path).stem]))
                text = text[: summary.start()] + text[summary.end() :]
        notes[Path(path).stem] = text
    return notes, questions


def observe(
    embedder: Any, notes: dict[str, str], questions: Sequence[tuple[str, str, list[str]]]
) -> dict[str, list[Asked]]:
    """The first hit of every question in every folder, by set of signals."""
    chance, names = random.Random(1), sorted(notes)
    chance.shuffle(names)
    asked: dict[str, list[Asked]] = {signals: [] for signals in ASKED}
    first = 0
    for size, count in _FOLDERS:
        for _ in range(count):
            inside = (names + names)[first : first + size]
            first = (first + size) % len(names)
            with (
                tempfile.TemporaryDirectory() as folder,
                Memory(":memory:", embedder=embedder, settings=Settings(token_codes=True)) as memory,
            ):
                for name in inside:
                    (Path(folder) / f"{name}.md").write_text(notes[name], encoding="utf-8")
                memory.knowledge.ingest(folder)
                kinds = [*_kinds(questions, set(inside), chance)]
                for signals, options in ASKED.items():
                    asked[signals] += _ask(memory, size, kinds, options)
    return asked


def _kinds(
    questions: Sequence[tuple[str, str, list[str]]], inside: set[str], chance: random.Random
) -> Iterator[tuple[str, str, str, set[str]]]:
    """Each question's set and kind, its text, and the notes inside that answer it; as many open ones of each set."""
    left_open: dict[str, list[str]] = {}
    for of, text, names in questions:
        if of == "elsewhere":
            yield of, of, text, set()
        elif inside.isdisjoint(names):
            left_open.setdefault(of, []).append(text)
        else:
            yield of, "answered", text, inside.intersection(names)
    for of, texts in left_open.items():
        for text in chance.sample(texts, min(len(texts), _OF_OTHERS)):
            yield of, "open", text, set()


def _ask(
    memory: Memory, size: int, kinds: Sequence[tuple[str, str, str, set[str]]], options: dict[str, Any]
) -> Iterator[Asked]:
    records = memory.count(kinds=[CHUNK_KIND])
    answers = memory.recall_many(
        [text for _, _, text, _ in kinds], limit=1, kinds=[CHUNK_KIND], **recall_arguments(options)
    )
    for (of, kind, _, names), hits in zip(kinds, answers, strict=True):
        for hit in hits:
            sure = min(max(hit.confidence, 1e-6), 1 - 1e-6)
            name = "" if hit.source is None else Path(hit.source.id).stem
            yield Asked((size, of, kind), records, log(sure / (1 - sure)), name in names)


def fit(asked: Sequence[Asked]) -> dict[str, float]:
    """The weights of the logit and of the logarithm of the number of records, and the bias."""
    cells = [answer.cell for answer in asked]
    weights = np.array([SHARES[answer.cell[2]] / cells.count(answer.cell) for answer in asked])
    values = np.array([[answer.logit, log(answer.records)] for answer in asked])
    right = np.array([answer.right for answer in asked])
    fitted = fit_logistic(values, right, weights / weights.mean(), np.array([1, 0]))
    return dict(zip(("logit", "records", "bias"), fitted.round(4).tolist(), strict=True))


def main() -> None:
    """Fit the weights of every embedder and write them beside those of confidence."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repositories", type=Path, required=True, help="folder with the repositories of sources.json")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings between runs")
    options = parser.parse_args()
    made = json.loads(FILE.read_text("utf-8"))
    notes, questions = notes_and_questions(options.repositories)
    made["passages"] = {}
    FILE.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    for name in EMBEDDERS:
        inner = load(name)
        embedder = cached(inner, None if options.cache is None else options.cache / name)
        observed = observe(embedder, notes, questions)
        embedder.flush()
        for signals, asked in observed.items():
            of = signals if signals == "words" else f"{inner.name}, {signals}"
            made["passages"].setdefault(of, fit(asked))
            print(of, made["passages"][of])
    FILE.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
