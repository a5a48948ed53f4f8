"""Counts how often verdicts on two statements are right: python -m benchmarks.training.statements

`statements.jsonl` has pairs that were written for rules, `changes/` such as a memory meets: `pairs.jsonl` and
`styles.jsonl` for about 900 older statements some that replace them, and more that say something else of the same, or
alike of something else, the second file in more styles (notes, tickets, settings, facts that agents extract), half of
it without a word of change; `elsewhere.jsonl`, for each that replaces one, the nearest older statement of another
group; `chat.jsonl` lines of small talk. Each pair has the outcome that a person would want.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from recallite.text.statements import Outcome, Verdict, judge, statement_of

FOLDER = Path(__file__).parent
FILES = {
    "statements": ("statements.jsonl",),
    "changes": tuple(f"changes/{name}.jsonl" for name in ("pairs", "styles", "elsewhere", "chat")),
}


class Pair(msgspec.Struct):
    """Two statements and the outcome; `moment`: both are of the same time."""

    outcome: Outcome
    old: str
    new: str
    old_context: str | None = None
    new_context: str | None = None
    moment: bool = False

    def judged(self) -> Verdict:
        """The verdict on them."""
        old, new = statement_of(self.old, self.old_context), statement_of(self.new, self.new_context)
        return judge(new, old, later=not self.moment)


def pairs(name: str) -> list[Pair]:
    """The pairs of one of the sets."""
    lines = [line for file in FILES[name] for line in (FOLDER / file).read_bytes().splitlines()]
    return [msgspec.json.decode(line, type=Pair) for line in lines]


def figures(some: Sequence[Pair]) -> dict[str, Any]:
    """Precision and recall of what supersedes, of what does so with certainty, and by reason; of contradictions.

    By reason: how many were found, and how many of these are right.
    """
    judged = [(pair, pair.judged()) for pair in some]
    by_reason: dict[str, list[int]] = {}
    for pair, verdict in judged:
        if verdict.outcome == "supersedes":
            counts = by_reason.setdefault(verdict.reason, [0, 0])
            counts[0] += 1
            counts[1] += pair.outcome == "supersedes"
    certain = [pair.outcome == "supersedes" for pair, verdict in judged if verdict.certain]
    return {
        "pairs": len(judged),
        "supersedes": _figures(judged, "supersedes"),
        "certain": {"found": len(certain), "precision": _share(sum(certain), len(certain))},
        "contradicts": _figures(judged, "contradicts"),
        "by reason": dict(sorted(by_reason.items(), key=lambda item: -item[1][0])),
    }


def _figures(judged: Sequence[tuple[Pair, Verdict]], outcome: Outcome) -> dict[str, float]:
    found = [pair.outcome == outcome for pair, verdict in judged if verdict.outcome == outcome]
    wanted = sum(pair.outcome == outcome for pair, _ in judged)
    return {"found": len(found), "precision": _share(sum(found), len(found)), "recall": _share(sum(found), wanted)}


def _share(right: int, of: int) -> float:
    return round(right / max(1, of), 3)


def main() -> None:
    """Print the figures of each set."""
    print(json.dumps({name: figures(pairs(name)) for name in FILES}, indent=1))


if __name__ == "__main__":
    main()
