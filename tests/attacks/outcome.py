"""What an attack gives: how often it tried and what failed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["FAILURES", "Outcome"]

# lost: an acknowledged write is gone; half done: part of a transaction is seen; leak: something of another scope, or
# a forgotten text, is seen, or a descriptor, thread or file is left; crash: a process ended by itself; untyped: an
# error that is no RecalliteError; wrong: another answer than the oracle's; hung: no end within its limit.
FAILURES = ("lost", "half done", "leak", "crash", "untyped", "wrong", "hung")


@dataclass
class Outcome:
    """Counts of one attack. `unit` names what was tried; `examples` has the first failures in words, with their seeds.

    `figures` is for measurements that are no failure, such as {"slope_mb_an_hour": 0.2}.
    """

    unit: str
    tries: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)

    def fail(self, kind: str, what: str) -> None:
        """Count a failure of a kind in FAILURES; the first twenty are kept in words."""
        assert kind in FAILURES, kind
        self.failures[kind] += 1
        if len(self.examples) < 20:
            self.examples.append(f"{kind}: {what}")

    def __iadd__(self, other: Outcome) -> Outcome:
        """Add a part of the same attack."""
        self.tries += other.tries
        self.failures += other.failures
        self.examples = [*self.examples, *other.examples][:20]
        self.figures |= other.figures
        return self
