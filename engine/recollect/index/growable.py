"""Arrays that grow at the end without copying on every append."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Growable"]

Scalar = TypeVar("Scalar", bound=np.generic)


class Growable(Generic[Scalar]):
    """A C-contiguous array of shape (n, *item_shape) with amortised O(1) append of a row."""

    def __init__(self, dtype: type[Scalar], item_shape: tuple[int, ...] = ()) -> None:
        self._data: NDArray[Scalar] = np.empty((0, *item_shape), dtype=dtype)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def array(self) -> NDArray[Scalar]:
        """The filled part, as a view: a later append does not change it."""
        return self._data[: self._size]

    @property
    def nbytes(self) -> int:
        """Bytes held, the unfilled part included."""
        return self._data.nbytes

    def reserve(self, capacity: int) -> None:
        """Make room for `capacity` rows in all, so that filling up to there copies nothing."""
        if capacity > len(self._data):
            grown = np.empty((capacity, *self._data.shape[1:]), dtype=self._data.dtype)
            grown[: self._size] = self.array
            self._data = grown

    def extend(self, rows: NDArray[Any]) -> None:
        """Append rows."""
        stop = self._size + len(rows)
        if stop > len(self._data):
            self.reserve(stop if not self._size else max(stop, len(self._data) + len(self._data) // 4 + 64))
        self._data[self._size : stop] = rows
        self._size = stop

    def truncate(self, size: int) -> None:
        """Forget the rows from `size` on."""
        self._size = min(size, self._size)
