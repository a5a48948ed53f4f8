"""Scripts: what does recall find, and what does it refuse, in scripts that the bundled models do not read?

Stores of 6 or 8 memories in Arabic, Chinese, Georgian, Greek, Hebrew, Hindi, Japanese, Korean, Russian and Thai, in
`scripts.jsonl`, with questions and keywords that share a word with their memory, unrelated questions, and prompts as
coding agents get them, which nothing answers. How much shared letters count was chosen on the stores of eight; those of
six were written after, but for what words that ask count.

Questions are asked with `relevant=True`. "kept" is the share of those with an answer whose memory is among the hits,
"refused" that of the unrelated ones without a hit, "quiet" that of the prompts without one. "first" is the share whose
first hit in plain recall is their memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.quality import checkout
from benchmarks.quality.result import OpenMemory, Progress, Tally

__all__ = ["TABLE", "evaluate", "read"]

TABLE = Path(__file__).with_name("scripts.jsonl")


def read() -> list[dict[str, Any]]:
    """Stores: texts, questions with the place of the memory that answers, unrelated questions, and prompts."""
    return checkout.table(TABLE)


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """The shares of all stores, by language too, and what went wrong."""
    tally = Tally(["default"])
    stores = read()
    missed: dict[str, list[str]] = {}
    for done, store in enumerate(stores, 1):
        with open_memory() as memory:
            ids = tally.remember(memory, [{"text": text} for text in store["memories"]])
            asked = {**store["asked"], **dict.fromkeys([*store["unrelated"], *store["prompts"]])}
            with tally.timed("default"):
                answers = memory.recall_many([*asked], relevant=True)
            plain = memory.recall_many([*asked], limit=1)
            for (question, place), hits, ranked in zip(asked.items(), answers, plain, strict=True):
                if place is None:
                    figures = {"refused" if question in store["unrelated"] else "quiet": float(not hits)}
                else:
                    gold = ids[place]
                    figures = {
                        "kept": float(gold in {hit.id for hit in hits}),
                        "first": float([hit.id for hit in ranked] == [gold]),
                    }
                tally.add("default", figures, store["language"])
                if min(figures.values()) == 0:
                    missed[question] = [f"{hit.confidence:.2f} {hit.text}" for hit in hits[:4]]
        on_progress(done, len(stores))
    return tally.result(stores=len(stores), missed=missed)
