"""Pairs: what happens to a statement when another is remembered after it.

400 pairs in `pairs.jsonl`, 100 of each expected outcome (see the README). Each pair has a store of its own: the old
statement is remembered, then the new one, with their contexts and times, and what the new record says is read:
"superseded" if it superseded the old one, "contradicting" if it names it as contradicting, "one" if it was merged with
it, else "independent".

"precision" is the share of pairs marked as superseded that are, "recall" the share of the superseded pairs that were
marked; the same of contradictions.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.quality import checkout
from benchmarks.quality.result import OpenMemory, Progress
from recallite import Memory

__all__ = ["TABLE", "evaluate", "read"]

TABLE = Path(__file__).with_name("pairs.jsonl")
SUPERSEDED, CONTRADICTING = "superseded", "contradicting"
_OUTCOMES = (SUPERSEDED, CONTRADICTING, "one", "independent")


def evaluate(data: Path, open_memory: OpenMemory, on_progress: Progress) -> dict[str, Any]:
    """Precision and recall of both outcomes, and the confusion table."""
    pairs = read()
    confusion: Counter[tuple[str, str]] = Counter()
    for done, pair in enumerate(pairs, 1):
        with open_memory() as memory:
            confusion[pair["expected"], _written(memory, pair)] += 1
        on_progress(done, len(pairs))
    figures = {
        f"{outcome}: {name}": value
        for outcome in (SUPERSEDED, CONTRADICTING)
        for name, value in _figures(confusion, outcome).items()
    }
    return {
        "questions": len(pairs),
        "records": 2 * len(pairs),
        "figures": {"default": figures},
        "confusion": {"written": _table(confusion)},
        "seconds": {},
    }


def read() -> list[dict[str, Any]]:
    """The pairs of the table."""
    return checkout.table(TABLE)


def _written(memory: Memory, pair: dict[str, Any]) -> str:
    old, new = (
        memory.remember(pair[side], context=pair.get(f"{side}_context"), created_at=pair.get(f"{side}_at"))
        for side in ("old", "new")
    )
    if new.id == old.id:
        return "one"
    if old.id in new.supersedes:
        return SUPERSEDED
    return CONTRADICTING if old.id in {contradiction.id for contradiction in new.contradictions} else "independent"


def _figures(counts: Counter[tuple[str, str]], outcome: str) -> dict[str, float]:
    marked = sum(count for (_, seen), count in counts.items() if seen == outcome)
    expected = sum(count for (wanted, _), count in counts.items() if wanted == outcome)
    right = counts[outcome, outcome]
    return {"precision": round(right / marked, 4) if marked else 0.0, "recall": round(right / expected, 4)}


def _table(counts: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    expected = dict.fromkeys(wanted for wanted, _ in counts)
    return {wanted: {seen: counts[wanted, seen] for seen in _OUTCOMES} for wanted in expected}
