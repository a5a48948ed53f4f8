"""A column of whole numbers in the narrowest type that holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recallite.index.growable import Growable
from recallite.store.values import NEVER

_TYPES = (np.int8, np.int16, np.int32, np.int64)
_GREATEST = {np.dtype(dtype): int(np.iinfo(dtype).max) for dtype in _TYPES}


class NarrowColumn(Growable[Any]):
    """Whole numbers by row, of 1 byte each until one needs more; the greatest of the type stands for NEVER.

    So numbers compare as they are, within one array: it widens, at most three times, where a number does not fit.
    """

    def __init__(self) -> None:
        super().__init__(_TYPES[0])

    def at(self, rows: NDArray[np.int64] | int) -> NDArray[np.int64]:
        """The numbers of some rows, int64."""
        numbers = self.array[rows]
        return np.where(numbers == self._greatest, NEVER, numbers.astype(np.int64))

    def extend(self, rows: NDArray[Any]) -> None:
        """Append rows."""
        super().extend(self._fitted(rows))

    def put(self, rows: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Replace the numbers of some rows."""
        super().put(rows, self._fitted(values))

    def _takes(self, saved: NDArray[Any]) -> bool:
        return saved.dtype in _TYPES and saved.ndim == 1

    @property
    def _greatest(self) -> int:
        return _GREATEST[self._data.dtype]

    def _fitted(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values with the greatest number for NEVER; the own type is widened where one needs it."""
        never = values == NEVER
        known = values[~never]
        if len(known):
            least, most = int(known.min()), int(known.max())
            for wider in _TYPES:
                if -self._greatest <= least and most < self._greatest:
                    break
                if np.dtype(wider).itemsize > self._data.itemsize:
                    self._widen(wider)
        return values if len(known) == len(values) else np.where(never, self._greatest, values)

    def _widen(self, wider: type[np.signedinteger[Any]]) -> None:
        room, numbers = len(self._data) // 2, self.array
        never = np.flatnonzero(numbers == self._greatest)
        self._data, self._size, self._written = np.empty(0, dtype=wider), 0, 0
        self.reserve(max(room, len(numbers)))
        super().extend(numbers)
        self._data[never] = self._greatest
