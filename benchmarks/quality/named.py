"""Named: does recall return what a question names by a tag or a title, and nothing else?

Eight stores of 9 to 12 memories with tags, some with a title as context, and the questions asked of each, in
`named.jsonl`. Their texts hardly say what they are about: only the names do. Some questions name several things, some
are not answered by their store.

Questions are asked with `relevant=True`. "exact" is the share of all questions whose hits are exactly the memories that
are named, "precision" and "recall" those of the hits, "refused" the share of the unanswerable ones without a hit.
"first" is the share whose first hit in plain recall is one of the memories, and "MRR" their first one's reciprocal
rank.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.quality import checkout
from benchmarks.quality.metrics import reciprocal_rank
from benchmarks.quality.result import OpenMemory, Progress, Tally

__all__ = ["TABLE", "evaluate", "read"]

TABLE = Path(__file__).with_name("named.jsonl")
LIMIT = 10


def read() -> list[dict[str, Any]]:
    """Stores: memories as `remember_many` takes them, and questions with the places of what they name."""
    return checkout.table(TABLE)


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """The shares of all stores, and the questions whose hits are not exactly those named."""
    tally = Tally(["default"])
    stores = read()
    missed: dict[str, list[str]] = {}
    for done, store in enumerate(stores, 1):
        with open_memory() as memory:
            ids = tally.remember(memory, store["memories"])
            with tally.timed("default"):
                answers = memory.recall_many([*store["questions"]], limit=LIMIT, relevant=True)
            plain = memory.recall_many([*store["questions"]], limit=LIMIT)
            for (question, places), hits, ranked in zip(store["questions"].items(), answers, plain, strict=True):
                gold, shown = {ids[place] for place in places}, {hit.id for hit in hits}
                figures = {"exact": float(gold == shown)}
                if shown:
                    figures["precision"] = len(gold & shown) / len(shown)
                if gold:
                    rank = reciprocal_rank([hit.id for hit in ranked], gold)
                    figures |= {"recall": len(gold & shown) / len(gold), "first": float(rank == 1.0), "MRR": rank}
                else:
                    figures["refused"] = float(not shown)
                tally.add("default", figures)
                if gold != shown:
                    missed[question] = [f"{hit.confidence:.2f} {hit.text}" for hit in ranked[:4]]
        on_progress(done, len(stores))
    return tally.result(stores=len(stores), missed=missed)
