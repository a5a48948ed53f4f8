"""Stores whose vectors form groups, and what a map should keep of them."""

from __future__ import annotations

import numpy as np

from recallite import Memory
from tests.unit.memory.support import DIMENSION, unit

GROUPS, EACH = 4, 12


def near(group: int, seed: int, noise: float = 0.15) -> np.ndarray:
    """A unit vector near the centre of a group."""
    vector = unit(group) + noise * unit(1_000 + seed)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def grouped(memory: Memory, each: int = EACH, groups: int = GROUPS) -> list[str]:
    """Memories of each group in turn, each group in a scope and a source of its own; returns their ids."""
    return memory.remember_many(
        {
            "text": f"memory {number} of group {number % groups}", "vector": near(number % groups, number),
            "scope": f"/groups/{number % groups}", "source": f"source {number % groups}",
        }
        for number in range(each * groups)
    )  # fmt: skip


def distances(points: np.ndarray) -> np.ndarray:
    """Euclidean distances of all pairs."""
    return np.sqrt(((points[:, None].astype(np.float64) - points[None]) ** 2).sum(axis=2))


def trustworthiness(vectors: np.ndarray, points: np.ndarray, count: int) -> float:
    """By the definition of Venna and Kaski (2001): 1 if the `count` nearest points are the nearest vectors too."""
    n = len(vectors)
    ranks = np.argsort(np.argsort(distances(vectors), axis=1, kind="stable"), axis=1, kind="stable")
    penalty = 0.0
    for place, row in enumerate(np.argsort(distances(points), axis=1, kind="stable")):
        closest = [other for other in row.tolist() if other != place][:count]
        penalty += sum(max(0, int(ranks[place, other]) - count) for other in closest)
    return 1 - 2 * penalty / (n * count * (2 * n - 3 * count - 1))


__all__ = ["DIMENSION", "EACH", "GROUPS", "distances", "grouped", "near", "trustworthiness"]
