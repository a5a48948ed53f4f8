"""A column that few rows have a value of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recallite.index.growable import Growable, check_lengths, check_within
from recallite.store.values import NEVER

Given = NDArray[np.int64] | int


class SparseColumn:
    """Times by row, in microseconds; NEVER for none. 12 bytes for a row that has one, and nothing for the others."""

    def __init__(self) -> None:
        self._rows: Growable[Any] = Growable(np.int32)
        self._values: Growable[Any] = Growable(np.int64)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The rows that have a value, ascending."""
        return self._rows.array.astype(np.int64)

    @property
    def values(self) -> NDArray[np.int64]:
        """The values of `rows`."""
        return self._values.array

    def up_to(self, limit: int) -> NDArray[np.int64]:
        """The rows whose value is at most `limit`, ascending."""
        return self._rows.array[self.values <= limit].astype(np.int64)

    def above(self, limit: int) -> NDArray[np.int64]:
        """The rows whose value is above `limit`, ascending; without those that have none."""
        return self._rows.array[self.values > limit].astype(np.int64)

    def growables(self) -> dict[str, Growable[Any]]:
        """The growable arrays."""
        return {"_rows": self._rows, "_values": self._values}

    def check(self, rows: int) -> None:
        """Raise ValueError if these are no values of `rows` rows."""
        check_lengths(len(self._rows), self._values.array)
        check_within(self._rows.array, 0, rows)
        if (self._rows.array[1:] <= self._rows.array[:-1]).any():
            raise ValueError("rows do not ascend")

    def at(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The values of some rows, int64."""
        times = np.full(len(rows), NEVER, dtype=np.int64)
        if len(self):
            places, present = self._find(rows.astype(np.int32))
            times[present] = self.values[places[present]]
        return times

    def append(self, first: int, values: NDArray[np.int64], none: Given = NEVER) -> None:
        """Set the values of the rows from `first` on, which are after all others; what equals `none` is no value."""
        present = (values != none).nonzero()[0]
        if len(present):
            self._rows.extend(first + present)
            self._values.extend(values[present])

    def put(self, rows: NDArray[np.int64], values: NDArray[np.int64], none: Given = NEVER) -> None:
        """Replace the values of some rows, each named once; what equals `none` is no value."""
        has_value = values != none
        if not len(self) and not has_value.any():
            return
        order = np.argsort(rows)
        narrow, values, has_value = rows[order].astype(np.int32), values[order], has_value[order]
        places, present = self._find(narrow)
        self.values[places[present & has_value]] = values[present & has_value]
        gone, new = places[present & ~has_value], has_value & ~present
        if len(gone) or new.any():
            kept_rows, kept_values = np.delete(self._rows.array, gone), np.delete(self.values, gone)
            at = np.searchsorted(kept_rows, narrow[new])
            for column, remaining in (
                (self._rows, np.insert(kept_rows, at, narrow[new])),
                (self._values, np.insert(kept_values, at, values[new])),
            ):
                column.truncate(0)
                column.extend(remaining)

    def _find(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The place of each row among those that have a value, and whether it is there."""
        numbers = self._rows.array
        if not len(numbers):
            return np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.bool_)
        places = np.minimum(np.searchsorted(numbers, rows), len(numbers) - 1)
        return places, numbers[places] == rows
