"""Written stores: does recall find and keep silent in stores that were written without a look at any other set?

Small stores of notes, messages and dialogues in English and nine other languages, of `benchmarks/training/stores/held`
and `stores/multilingual/held`, which train nothing; the English ones chose the reader's recipe. Some questions of a
store have an answer in it, others are on its topic and have none; and some are of the next store of its language.

Questions are asked with `relevant=True`. "kept" is the share of those with an answer that have a hit that gives it,
"first" of those whose first hit in plain recall does, "unrelated" the share of the questions of another store with a
hit, "left out" of those on the topic.

`contrasts_dev.txt` and, by other subjects and words, `contrasts_held.txt` have six such stores each: a question has a
word in the place of one of a memory, either one that means the same, or another name, number, code or thing, to which
the store has no answer. Choose on `dev`, report on `held`.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.quality.result import OpenMemory, Progress, Tally
from benchmarks.training.readings import WrittenStore, stores_of, written_stores

__all__ = ["METRICS", "TABLES", "evaluate", "of_contrasts"]

TABLES = {part: Path(__file__).with_name(f"contrasts_{part}.txt") for part in ("dev", "held")}
METRICS = ("first", "kept", "unrelated", "left out")
_UNRELATED = 4
"""Questions of another store that a store is asked."""


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """The shares of all stores, and by language."""
    tally = Tally(["default"])
    stores = [*written_stores(apart=True), *written_stores(apart=True, kind="multilingual")]
    by_language = [[*of_one] for _, of_one in groupby(stores, lambda store: store.language)]
    done = 0
    for of_language in by_language:
        for store, other in zip(of_language, [*of_language[1:], of_language[0]], strict=True):
            with open_memory() as memory:
                _ask(tally, memory, store, [question for question, gold in other.questions if gold][:_UNRELATED])
            done += 1
            on_progress(done, len(stores))
    return tally.result(stores=len(stores))


def of_contrasts(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """The shares of the file `data`."""
    tally = Tally(["default"])
    stores = stores_of(data)
    for done, store in enumerate(stores, 1):
        with open_memory() as memory:
            _ask(tally, memory, store, [])
        on_progress(done, len(stores))
    return tally.result(stores=len(stores), part=data.stem.rpartition("_")[2])


def _ask(tally: Tally, memory: Any, store: WrittenStore, unrelated: list[str]) -> None:
    """Ask a store its own questions and those of another."""
    ids = dict(
        zip(store.memories, tally.remember(memory, [{"text": text} for text in store.memories.values()]), strict=True)
    )
    golds = {question: {ids[number] for number in gold} for question, gold in store.questions}
    questions = [*golds, *(question for question in unrelated if question not in golds)]
    with tally.timed("default"):
        answers = memory.recall_many(questions, relevant=True)
    plain = memory.recall_many(questions, limit=1)
    for question, hits, ranked in zip(questions, answers, plain, strict=True):
        if gold := golds.get(question):
            figures = {
                "first": float(bool(gold & {hit.id for hit in ranked})),
                "kept": float(bool(gold & {hit.id for hit in hits})),
            }
        else:
            figures = {"unrelated" if gold is None else "left out": float(bool(hits))}
        tally.add("default", figures, store.language)
