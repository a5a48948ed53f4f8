"""The attacks by name: their module, and how many tries the long run makes.

A module has `attack(tries, seed) -> Outcome`. The same seed makes the same tries, but for where a kill happens to hit.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import NamedTuple

from tests.attacks.outcome import Outcome

__all__ = ["ATTACKS", "Attack"]


class Attack(NamedTuple):
    """A module of this package and the tries of the long run."""

    module: str
    tries: int

    def __call__(self, tries: int, seed: int) -> Outcome:
        """Make so many tries."""
        run: Callable[[int, int], Outcome] = importlib.import_module(f"tests.attacks.{self.module}").attack
        return run(tries, seed)


ATTACKS: dict[str, Attack] = {
    "corruption": Attack("corruption", 1_000),
    "kills": Attack("kills", 1_000),
    "faults": Attack("faults", 5_000),
    "power loss": Attack("power", 5_000),
    "full disk": Attack("full_disk", 100),
    "writers": Attack("writers", 20_000),
    "postgres": Attack("postgres", 20_000),
    "postgres faults": Attack("postgres_faults", 400),
    "soak": Attack("soak", 7_200),
    "ssrf": Attack("ssrf", 10_000),
    "hostile files": Attack("hostile_files", 500),
    "tenants": Attack("tenants", 100_000),
    "fuzz": Attack("fuzz", 1_000_000),
    "stateful": Attack("stateful", 20_000),
}
