"""Left out: does recall refuse questions on the topics of a store that it has no answer to?

Fifty stores of 10 to 40 facts, and as many answerable as unanswerable questions, made of `left_out.toml` by a fixed
rule. A store has some subjects; of each subject it has some facts and lacks others, which are asked for too: it knows
the dog's name and is asked for the breed. Half of the stores are of a user in the third person, half in the first.

Questions are asked with `relevant=True`. "answered" is the share of the answerable ones with a hit that has the fact,
"first" of those whose first hit has it, "refused" the share of the unanswerable ones without a hit, and "hits" those
of an answerable question. "ROC AUC" is that of the first hit's confidence in plain recall.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.quality.metrics import roc_auc
from benchmarks.quality.result import OpenMemory, Progress, Tally

__all__ = ["TABLE", "Store", "evaluate", "read"]

TABLE = Path(__file__).with_name("left_out.toml")
STORES = 50
LIMIT = 10
_LEAST, _MOST = 10, 40
_WRITTEN = datetime(2026, 3, 2, 9, tzinfo=UTC)


class Store(NamedTuple):
    """The facts of a store, the questions with the places of their facts, and those whose facts it lacks."""

    facts: list[str]
    answered: dict[str, int]
    left_out: list[str]


def read() -> Iterator[Store]:
    """The stores, always the same."""
    for number in range(STORES):
        yield _store(random.Random(f"left out {number}"), number % 2)


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """The shares of all stores."""
    tally = Tally(["default"])
    known: list[float] = []
    unknown: list[float] = []
    for done, store in enumerate(read(), 1):
        with open_memory() as memory:
            ids = tally.remember(
                memory,
                [
                    {"text": text, "created_at": _WRITTEN + timedelta(minutes=place)}
                    for place, text in enumerate(store.facts)
                ],
            )
            questions = [*store.answered, *store.left_out]
            with tally.timed("default"):
                answers = memory.recall_many(questions, limit=LIMIT, relevant=True)
            plain = memory.recall_many(questions, limit=1)
            for question, hits, first in zip(questions, answers, plain, strict=True):
                place = store.answered.get(question)
                (unknown if place is None else known).append(first[0].confidence if first else 0.0)
                if place is None:
                    tally.add("default", {"refused": float(not hits)})
                    continue
                ranked = [hit.id for hit in hits]
                tally.add(
                    "default",
                    {
                        "answered": float(ids[place] in ranked),
                        "first": float(ranked[:1] == [ids[place]]),
                        "hits": float(len(ranked)),
                    },
                )
        on_progress(done, STORES)
    result = tally.result(stores=STORES)
    result["figures"]["default"]["ROC AUC"] = round(roc_auc(known, unknown), 4)
    return result


@cache
def _subjects() -> dict[str, dict[str, dict[str, list[str]]]]:
    return tomllib.loads(TABLE.read_text("utf-8"))


def _store(chance: random.Random, voice: int) -> Store:
    """A store in one voice: subjects until it has enough facts, of each about half of what could be told."""
    wanted = chance.randint(_LEAST, _MOST)
    facts: list[tuple[str, str]] = []
    left_out: list[str] = []
    subjects = list(_subjects().values())
    for subject in chance.sample(subjects, len(subjects)):
        if len(facts) >= wanted:
            break
        slots = chance.sample(list(subject.values()), len(subject))
        count = min(chance.randint(2, len(slots) - 1), wanted - len(facts))
        facts += [(slot["told"][voice], slot["ask"][voice]) for slot in slots[:count]]
        left_out += [slot["ask"][voice] for slot in slots[count:]]
    chance.shuffle(facts)
    half = min(len(facts), len(left_out))
    answered = {question: place for place, (_, question) in enumerate(facts)}
    questions = chance.sample(list(answered), half)
    return Store([fact for fact, _ in facts], {question: answered[question] for question in questions}, left_out[:half])
