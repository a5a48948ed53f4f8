"""Matches within a batch: each row is compared with the rows before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from recollect.remember.threshold_search import first_parts
from recollect.store.values import Row

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["BatchMatches"]

_BLOCK = 256


class BatchMatches:
    """Cosines between the rows of a batch that share scope and kind, computed a block at a time."""

    def __init__(self, rows: Sequence[Row], wanted: int) -> None:
        self._wanted = wanted
        groups: dict[tuple[str, str], list[int]] = {}
        self._seat: list[tuple[tuple[str, str], int] | None] = [None] * len(rows)
        for place, row in enumerate(rows):
            if row.vectors:
                group = groups.setdefault((row.scope, row.kind), [])
                self._seat[place] = (row.scope, row.kind), len(group)
                group.append(place)
        self._places = {key: np.array(places) for key, places in groups.items()}
        self._vectors = {
            key: first_parts([rows[place] for place in places], len(rows[places[0]].vectors[0]) // 4)
            for key, places in groups.items()
        }
        self._block: tuple[tuple[str, str], int, NDArray[np.float32]] | None = None

    def near(self, place: int, floor: float) -> list[tuple[int, float]]:
        """The nearest earlier rows at a cosine of at least `floor`, nearest first."""
        seat = self._seat[place]
        if seat is None or not seat[1]:
            return []
        key, own = seat
        start = own - own % _BLOCK
        if self._block is None or self._block[:2] != (key, start):
            every = self._vectors[key]
            self._block = key, start, every[start : start + _BLOCK] @ every[: start + _BLOCK].T
        cosines = self._block[2][own - start, :own]
        found = np.flatnonzero(cosines >= floor)
        found = found[np.argsort(-cosines[found], kind="stable")][: self._wanted]
        return [(int(self._places[key][other]), min(1.0, float(cosines[other]))) for other in found.tolist()]
