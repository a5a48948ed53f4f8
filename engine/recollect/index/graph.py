"""Who stands beside whom: the records before and after in the same source, and explicit links."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from recollect.index.growable import Growable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from recollect.index.table import RecordTable

__all__ = ["RecordGraph"]


class RecordGraph:
    """Neighbours by row. A source's members stand in order of position, those without one last, then by record id.

    Closed versions stand in no chain.
    """

    def __init__(self, table: RecordTable) -> None:
        self._table = table
        self._previous = Growable(np.int32)
        self._next = Growable(np.int32)
        # Members as loaded, by source; a source that changes gets a list of (position, record id, row) of its own.
        self._loaded_rows = np.empty(0, dtype=np.int64)
        self._loaded_sources = np.empty(0, dtype=np.int64)
        self._changed: dict[int, list[tuple[int, int, int]]] = {}
        # Rows taken out of their chain and not yet put back.
        self._loose: set[int] = set()
        self._links: dict[int, dict[int, float]] = {}

    @property
    def previous(self) -> NDArray[np.int32]:
        """The row before each row in its source; -1 for none."""
        return self._previous.array

    @property
    def next(self) -> NDArray[np.int32]:
        """The row after each row in its source; -1 for none."""
        return self._next.array

    @property
    def nbytes(self) -> int:
        """Bytes held, a link counted as 200."""
        arrays = self._previous.nbytes + self._next.nbytes + self._loaded_rows.nbytes + self._loaded_sources.nbytes
        return arrays + 200 * sum(map(len, self._links.values()))

    @property
    def has_links(self) -> bool:
        """True when any link is known."""
        return bool(self._links)

    def load(self, places: NDArray[np.int64] | None = None) -> None:
        """Chain all rows of the table at once; with `places` by row, only those of consecutive places."""
        table = self._table
        self._previous.extend(np.full(len(table), -1, dtype=np.int32))
        self._next.extend(np.full(len(table), -1, dtype=np.int32))
        members = np.flatnonzero((table.sources >= 0) & (table.open == 1))
        order = members[np.lexsort((table.ids[members], table.positions[members], table.sources[members]))]
        self._loaded_rows, self._loaded_sources = order, table.sources[order]
        adjacent = self._loaded_sources[:-1] == self._loaded_sources[1:]
        if places is not None:
            adjacent &= np.diff(places[order]) == 1
        self._next.array[order[:-1][adjacent]] = order[1:][adjacent]
        self._previous.array[order[1:][adjacent]] = order[:-1][adjacent]

    def append(self, rows: NDArray[np.int64]) -> None:
        """Chain the rows that the table has just appended."""
        self._previous.extend(np.full(len(rows), -1, dtype=np.int32))
        self._next.extend(np.full(len(rows), -1, dtype=np.int32))
        self.insert(rows.tolist())

    def insert(self, rows: Iterable[int]) -> None:
        """Put rows that are in no chain into those of their sources."""
        table = self._table
        for row in rows:
            if table.sources[row] < 0 or not table.open[row]:
                continue
            members = self._members(int(table.sources[row]), row)
            self._loose.discard(row)
            key = self._key(row)
            at = bisect_left(members, key)
            members.insert(at, key)
            before = members[at - 1][2] if at else -1
            after = members[at + 1][2] if at + 1 < len(members) else -1
            self._chain(before, row)
            self._chain(row, after)

    def remove(self, rows: Iterable[int]) -> None:
        """Take rows out of their chains. Call before the table changes or buries them."""
        for row in rows:
            source = int(self._table.sources[row])
            if source < 0:
                continue
            if source in self._changed:
                members, key = self._changed[source], self._key(row)
                at = bisect_left(members, key)
                if at < len(members) and members[at] == key:
                    del members[at]
            self._loose.add(row)
            self._chain(int(self.previous[row]), int(self.next[row]))
            self._previous.array[row] = self._next.array[row] = -1

    def add_link(self, row: int, other: int, strength: float) -> None:
        """Link two rows; spreading goes both ways."""
        self._links.setdefault(row, {})[other] = strength
        self._links.setdefault(other, {})[row] = strength

    def unlink(self, row: int) -> None:
        """Remove every link of a row."""
        for other in self._links.pop(row, {}):
            self._links.get(other, {}).pop(row, None)

    def links(self, row: int) -> dict[int, float]:
        """The rows linked with this one, with strengths."""
        return self._links.get(row, {})

    def _members(self, source: int, excluded: int) -> list[tuple[int, int, int]]:
        members = self._changed.get(source)
        if members is None:
            start, stop = np.searchsorted(self._loaded_sources, [source, source + 1])
            table = self._table
            members = [
                self._key(row)
                for row in self._loaded_rows[start:stop].tolist()
                if row != excluded and row not in self._loose and table.open[row] and table.sources[row] == source
            ]
            # A position may have changed since the load.
            members.sort()
            self._changed[source] = members
        return members

    def _key(self, row: int) -> tuple[int, int, int]:
        return int(self._table.positions[row]), int(self._table.ids[row]), row

    def _chain(self, before: int, after: int) -> None:
        if before >= 0:
            self._next.array[before] = after
        if after >= 0:
            self._previous.array[after] = before
