"""Values computed once between two changes of the index: resolved filters, statistics, listings.

Some outlive a change that only adds current records: what supersedes what, for instance.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

# A filter is resolved once between two commits. A resolved one takes a byte per record and 8 per admitted record.
# This many are cached, and more while they are small: those of a hundred scopes in 100,000 records.
_KEPT_FILTERS = 16
_KEPT_BYTES = 32 * 2**20

Kept = TypeVar("Kept")


class KeptValues:
    """A cache of one version of the index."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, Hashable], tuple[Any, int]] = {}
        self._bytes = 0
        self._version = -1
        self._lock = threading.Lock()

    def get(self, version: int, key: tuple[str, Hashable], make: Callable[[], Kept]) -> Kept:
        """Return the value of this kind and key in this version of the index; `make` it if it is missing."""
        if self._version != version:
            self._values, self._bytes, self._version = {}, 0, version
        values = self._values
        entry = values.get(key)
        if entry is not None:
            return entry[0]  # type: ignore[no-any-return]
        value = make()
        size = _bytes_of(value)
        with self._lock:  # recalls share the index: another thread may add while the oldest is being found
            while len(values) >= _KEPT_FILTERS and self._bytes + size > _KEPT_BYTES:
                self._bytes -= values.pop(next(iter(values)))[1]
            self._bytes += size
            values[key] = value, size
        return value

    def carry(self, version: int, outlives: Callable[[str, Any], bool]) -> None:
        """Move the cache to the next version of the index, with the values for which `outlives(kind, value)` is true.

        A cache of any version but the one before is emptied.
        """
        with self._lock:
            current = self._version == version - 1
            carried = {key: entry for key, entry in self._values.items() if current and outlives(key[0], entry[0])}
            self._values, self._bytes, self._version = carried, sum(entry[1] for entry in carried.values()), version


def _bytes_of(value: object) -> int:
    """Bytes of the arrays in a cached value; the masks of statistics are cached by themselves."""
    arrays = value if isinstance(value, tuple) else (value,)
    return sum([array.nbytes for array in arrays if isinstance(array, np.ndarray)])
