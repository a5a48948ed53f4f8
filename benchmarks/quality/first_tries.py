"""First tries: what a newcomer stores and asks, in stores of 2 to 10 memories.

Eight stores and thirty questions in `first_tries.jsonl`, written before anything was tuned on them and never trained
on. Most questions share few words with the memory that answers them; five have no answer in their store, four of these
on its topic. The memories are dated a minute apart, at most ten days before the question.

"answered first" is the share of the answerable questions whose memory is the first hit. "first and confident" is the
share of all questions that come out right at `THRESHOLD`: the right memory is first and its confidence reaches it, or
nothing answers and no hit reaches it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.quality import checkout
from benchmarks.quality.calibration import THRESHOLD
from benchmarks.quality.columns import COLUMNS
from benchmarks.quality.result import OpenMemory, Progress, Tally
from recallite.recall.request import recall_arguments

__all__ = ["TABLE", "evaluate", "read"]

TABLE = Path(__file__).with_name("first_tries.jsonl")
LIMIT = 10
_WRITTEN = datetime(2026, 3, 2, 9, tzinfo=UTC)
_ASKED = datetime(2026, 3, 12, 18, tzinfo=UTC)


def read() -> list[dict[str, Any]]:
    """Stores: memories as `remember_many` takes them, and questions with the place of their answer, or None."""
    return checkout.table(TABLE)


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """Both shares of every column, and what went wrong with `default`."""
    tally = Tally()
    missed: list[dict[str, Any]] = []
    stores = read()
    for done, store in enumerate(stores, 1):
        with open_memory() as memory:
            ids = tally.remember(memory, _dated(store["memories"]))
            for column, options in COLUMNS.items():
                with tally.timed(column):
                    answers = memory.recall_many(
                        list(store["questions"]), limit=LIMIT, **recall_arguments({"as_of": _ASKED, **options})
                    )
                for (question, place), hits in zip(store["questions"].items(), answers, strict=True):
                    best = max((hit.confidence for hit in hits), default=0.0)
                    if place is None:
                        figures = {"first and confident": float(best < THRESHOLD)}
                    else:
                        first = bool(hits) and hits[0].id == ids[place]
                        sure = first and hits[0].confidence >= THRESHOLD
                        figures = {"answered first": float(first), "first and confident": float(sure)}
                    tally.add(column, figures)
                    if column == "default" and not figures["first and confident"]:
                        confidence = hits[0].confidence if place is not None and hits else best
                        missed.append(
                            {"store": store["store"], "question": question, **figures, "confidence": confidence}
                        )
        on_progress(done, len(stores))
    return tally.result(stores=len(stores), threshold=THRESHOLD, missed=missed)


def _dated(memories: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**memory, "created_at": _WRITTEN + timedelta(minutes=place)} for place, memory in enumerate(memories)]
