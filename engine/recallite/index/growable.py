"""Arrays that grow at the end without copying on every append: plain ones, narrow numbers, and values of few rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from recallite.store.sql.repository import NEVER
from recallite.system.files import zeros, zeros_on_disk

Scalar = TypeVar("Scalar", bound=np.generic)

# NumPy requests huge pages from 4 MiB on, for which the kernel may first compact memory: filling 88 MB took 330 ms,
# against 55 ms on plain pages.
_LARGE_BYTES = 2**20
# So they are used for large arrays only, and where enough of them are free: writing 200 MiB then takes 36 ms instead of
# 120, and a million records load in 0.9 of the time.
_HUGE_BYTES = 2**24


class Growable(Generic[Scalar]):
    """A C-contiguous array of shape (n, *item_shape) with amortised O(1) append of a row.

    Capacity doubles: pages that have not been written take address space and no memory.
    """

    narrow = False
    """Whether rows are `fitted` before they are appended."""

    def __init__(self, dtype: type[Scalar], item_shape: tuple[int, ...] = ()) -> None:
        self._data: NDArray[Scalar] = np.empty((0, *item_shape), dtype=dtype)
        # The filled part, as a view that later appends do not change: it is read far more often than rows are added.
        self.array: NDArray[Scalar] = self._data
        # Rows from here on are zero, and their pages have not been written.
        self._written = 0
        # Where a large array that grows is mapped from an unlinked file, with an eighth to spare, so that the system
        # can page it out. None, or a folder where that fails: it stays in memory.
        self.folder: str | None = None

    @classmethod
    def over(cls, data: NDArray[Scalar], size: int) -> Growable[Scalar]:
        """The first `size` rows of `data`, which is not copied; the rows after them are capacity."""
        made = cls(data.dtype.type, data.shape[1:])
        made._data, made.array, made._written = data, data[:size], len(data)
        return made

    def __len__(self) -> int:
        return len(self.array)

    def reserve(self, rows: int) -> None:
        """Reserve capacity for at least `rows` rows in all, so that filling up to there copies nothing."""
        if rows <= len(self._data):
            return
        rows, size, dtype, item_shape = max(rows, 64), len(self.array), self._data.dtype, self._data.shape[1:]
        row_bytes = dtype.itemsize * math.prod(item_shape)
        if 2 * rows * row_bytes < _LARGE_BYTES:
            grown = np.zeros((2 * rows, *item_shape), dtype=dtype)
        else:
            mapped = None
            if self.folder is not None:
                try:
                    mapped = zeros_on_disk((rows + rows // 8) * row_bytes, self.folder)
                except OSError:
                    self.folder = None
            if mapped is None:
                mapped = zeros(2 * rows * row_bytes, huge=rows * row_bytes >= _HUGE_BYTES)
            grown = np.frombuffer(mapped, dtype=dtype).reshape(-1, *item_shape)
        grown[:size] = self.array
        self._data, self.array, self._written = grown, grown[:size], size

    def extend(self, rows: NDArray[Any]) -> None:
        """Append rows."""
        extend((self, rows))

    def fitted(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values as they are kept."""
        return values

    def put(self, rows: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Replace some rows."""
        self.array[rows] = self.fitted(values)

    def adopt(self, saved: Growable[Any]) -> None:
        """Take over the rows and the capacity of another; ValueError where its type or shape differs."""
        if not self._takes(saved.array):
            raise ValueError(f"{saved.array.dtype}{saved.array.shape}")
        self._data, self.array, self._written = saved._data, saved.array, saved._written

    def _takes(self, saved: NDArray[Any]) -> bool:
        return saved.dtype == self._data.dtype and saved.shape[1:] == self._data.shape[1:]

    def extend_with(self, value: float, rows: int) -> None:
        """Append rows that are all `value`; zeros take no memory where nothing was written before."""
        size = len(self.array)
        stop = size + rows
        if stop > len(self._data):
            self.reserve(stop)
        self._data[size : stop if value else min(stop, self._written)] = value
        self.array, self._written = self._data[:stop], max(self._written, stop if value else 0)

    def claim(self, rows: int) -> NDArray[Scalar]:
        """Append rows that the caller fills, and return them."""
        first = len(self.array)
        if first + rows > len(self._data):
            self.reserve(first + rows)
        self.array = self._data[: first + rows]
        self._written = max(self._written, first + rows)
        return self.array[first:]

    def truncate(self, size: int) -> None:
        """Drop the rows from `size` on."""
        self.array = self.array[:size]


def extend(*columns: tuple[Growable[Any], NDArray[Any]]) -> None:
    """Append rows to each of these arrays, as a part of the index does that has a column for each field."""
    for grown, rows in columns:
        size = len(grown.array)
        stop = size + len(rows)
        if grown.narrow:
            rows = grown.fitted(rows)
        if stop > len(grown._data):
            grown.reserve(stop)
        grown._data[size:stop] = rows
        grown.array = grown._data[:stop]
        if stop > grown._written:
            grown._written = stop


def filled(name: str) -> Any:
    """A property of an index part: the filled part of its growable array of this name."""
    return property(attrgetter(f"{name}.array"))


class IndexPart:
    """A part of the index that saves and restores its growable arrays under the names of its attributes.

    The name "a.b" is the attribute b of the sparse column a. `_numbers` are further attributes that are saved.
    """

    _numbers: tuple[str, ...] = ()

    def growables(self) -> dict[str, Growable[Any]]:
        """The growable arrays, by name."""
        by_name = {name: value for name, value in vars(self).items() if isinstance(value, Growable)}
        for name, value in vars(self).items():
            if isinstance(value, SparseColumn):
                by_name |= {f"{name}._rows": value._rows, f"{name}._values": value._values}
        return by_name

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(growable.array.nbytes for growable in self.growables().values())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays that `restore` needs."""
        numbers = {name.removeprefix("_"): np.array([getattr(self, name)]) for name in self._numbers}
        return {name: array.array for name, array in self.growables().items()} | numbers

    def restore(self, saved: Mapping[str, Growable[Any]]) -> None:
        """Take over what `arrays` gave; ValueError where a type or shape differs."""
        for name, array in self.growables().items():
            array.adopt(saved[name])
        for name in self._numbers:
            setattr(self, name, saved[name.removeprefix("_")].array[0].item())

    def check(self, rows: int, vectors: int) -> None:
        """Raise ValueError if a restored part is not of these numbers of records and vectors.

        A kernel would read past an end. Checksums find a damaged file; this finds one that was written wrong. A million
        records take 30 ms.
        """
        raise NotImplementedError


def check_lengths(length: int, *arrays: NDArray[Any]) -> None:
    """ValueError where an array has another length."""
    if any(len(array) != length for array in arrays):
        raise ValueError(f"{[len(array) for array in arrays]} entries; wanted {length}")


def check_within(array: NDArray[Any], low: int, stop: int) -> None:
    """ValueError where a number is not from `low` to below `stop`."""
    if array.size and not low <= int(array.min()) <= int(array.max()) < stop:
        raise ValueError(f"{array.min()} to {array.max()}; wanted {low} to {stop - 1}")


def check_offsets(array: NDArray[np.int64], begin: int, end: int) -> None:
    """ValueError where numbers do not ascend from `begin` to `end`."""
    if not array.size or array[0] != begin or array[-1] != end or bool((array[1:] < array[:-1]).any()):
        raise ValueError(f"not offsets from {begin} to {end}")


_TYPES = (np.int8, np.int16, np.int32, np.int64)
_GREATEST = {np.dtype(dtype): int(np.iinfo(dtype).max) for dtype in _TYPES}


class NarrowColumn(Growable[Any]):
    """Whole numbers by row, of 1 byte each until one needs more; the greatest of the type stands for NEVER.

    So numbers compare as they are, within one array: it widens, at most three times, where a number does not fit.
    """

    narrow = True

    def __init__(self) -> None:
        super().__init__(_TYPES[0])
        self._greatest = _GREATEST[self._data.dtype]

    def get(self, rows: NDArray[np.int64] | int) -> NDArray[np.int64]:
        """The numbers of some rows, int64."""
        numbers = self.array[rows]
        return np.where(numbers == self._greatest, NEVER, numbers.astype(np.int64))

    def adopt(self, saved: Growable[Any]) -> None:
        """Take over the rows and the capacity of another, of whichever width."""
        super().adopt(saved)
        self._greatest = _GREATEST[self._data.dtype]

    def _takes(self, saved: NDArray[Any]) -> bool:
        return saved.dtype in _TYPES and saved.ndim == 1

    def fitted(self, values: NDArray[Any]) -> NDArray[Any]:
        """The values with the greatest number for NEVER; the own type is widened where one needs it."""
        never = values == NEVER
        known = values[~never]
        if len(known):
            least, most = int(known.min()), int(known.max())
            for wider in _TYPES:
                if -self._greatest <= least and most < self._greatest:
                    break
                if np.dtype(wider).itemsize > self._data.itemsize:
                    room, numbers = len(self._data) // 2, self.array
                    none = np.flatnonzero(numbers == self._greatest)
                    self._data = self.array = np.empty(0, dtype=wider)
                    self._written, self._greatest = 0, _GREATEST[self._data.dtype]
                    self.reserve(max(room, len(numbers)))
                    self.claim(len(numbers))[:] = numbers
                    self._data[none] = self._greatest
        return values if len(known) == len(values) else np.where(never, self._greatest, values)


class SparseColumn:
    """Times by row, in microseconds; NEVER for none. 12 bytes for a row that has one, and nothing for the others."""

    def __init__(self) -> None:
        self._rows: Growable[Any] = Growable(np.int32)
        self._values: Growable[Any] = Growable(np.int64)

    def __len__(self) -> int:
        return len(self._rows.array)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The rows that have a value, ascending."""
        return self._rows.array.astype(np.int64)

    values: NDArray[np.int64] = filled("_values")
    """The values of `rows`."""

    def up_to(self, limit: int) -> NDArray[np.int64]:
        """The rows with a value of at most `limit`, ascending."""
        return self._rows.array[self.values <= limit].astype(np.int64)

    def above(self, limit: int) -> NDArray[np.int64]:
        """The rows with a value above `limit`, ascending; rows without a value are left out."""
        return self._rows.array[self.values > limit].astype(np.int64)

    def check(self, rows: int) -> None:
        """Raise ValueError if these are no values of `rows` rows."""
        check_lengths(len(self._rows), self._values.array)
        check_within(self._rows.array, 0, rows)
        if (self._rows.array[1:] <= self._rows.array[:-1]).any():
            raise ValueError("rows do not ascend")

    def get(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The values of some rows, int64."""
        times = np.full(len(rows), NEVER, dtype=np.int64)
        if len(self):
            indices, present = self._find(rows.astype(np.int32))
            times[present] = self.values[indices[present]]
        return times

    def append(self, first: int, values: NDArray[np.int64], none: NDArray[np.int64] | int = NEVER) -> None:
        """Set the values of the rows from `first` on, which are after all others; what equals `none` is no value."""
        present = (values != none).nonzero()[0]
        if len(present):
            extend((self._rows, first + present), (self._values, values[present]))

    def put(self, rows: NDArray[np.int64], values: NDArray[np.int64], none: NDArray[np.int64] | int = NEVER) -> None:
        """Replace the values of some rows, each named once; what equals `none` is no value."""
        has_value = values != none
        if not len(self) and not has_value.any():
            return
        order = np.argsort(rows)
        narrow, values, has_value = rows[order].astype(np.int32), values[order], has_value[order]
        indices, present = self._find(narrow)
        self.values[indices[present & has_value]] = values[present & has_value]
        gone, new = indices[present & ~has_value], has_value & ~present
        if len(gone) or new.any():
            before = np.searchsorted(np.delete(self._rows.array, gone), narrow[new])
            for column, added in ((self._rows, narrow[new]), (self._values, values[new])):
                remaining = np.insert(np.delete(column.array, gone), before, added)
                column.truncate(0)
                column.extend(remaining)

    def _find(self, rows: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The index of each row among the rows that have a value, and whether it is there."""
        numbers = self._rows.array
        if not len(numbers):
            return np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.bool_)
        indices = np.minimum(np.searchsorted(numbers, rows), len(numbers) - 1)
        return indices, numbers[indices] == rows
