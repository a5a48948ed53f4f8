"""Who stands beside whom: the records before and after in the same source, and explicit links."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.index.growable import Growable, growables, restore

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
        self._loaded_rows, self._loaded_sources = self._members_of_all()
        order = self._loaded_rows
        adjacent = self._loaded_sources[:-1] == self._loaded_sources[1:]
        if places is not None:
            adjacent &= np.diff(places[order]) == 1
        self._next.array[order[:-1][adjacent]] = order[1:][adjacent]
        self._previous.array[order[1:][adjacent]] = order[:-1][adjacent]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that `restore` needs."""
        loaded = self._loaded_rows, self._loaded_sources
        rows, sources = self._members_of_all() if self._changed or self._loose else loaded
        ends = [(row, other, strength) for row, others in self._links.items() for other, strength in others.items()]
        return {
            **{name: each.array for name, each in growables(self).items()},
            "loaded_rows": rows,
            "loaded_sources": sources,
            "links": np.array(ends, dtype=np.float64).reshape(-1, 3),
        }

    def restore(self, saved: Mapping[str, Growable[Any]]) -> None:
        """Take over what `arrays` gave."""
        restore(self, saved)
        self._loaded_rows, self._loaded_sources = saved["loaded_rows"].array, saved["loaded_sources"].array
        for row, other, strength in saved["links"].array.tolist():
            self.add_link(int(row), int(other), strength)

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

    def _members_of_all(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows of all members, source by source, in order; and the source of each."""
        table = self._table
        members = np.flatnonzero((table.sources >= 0) & (table.open == 1))
        keys = table.sources[members], table.positions[members], table.ids[members]
        order = members if _ascends(*keys) else members[np.lexsort(keys[::-1])]
        return order, table.sources[order]

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


def _ascends(sources: NDArray[np.int64], positions: NDArray[np.int64], ids: NDArray[np.int64]) -> bool:
    """Whether members are in order as they are, as those of a file written source by source: sorting takes longer."""
    same = sources[1:] == sources[:-1]
    level = positions[1:] == positions[:-1]
    following = (positions[1:] > positions[:-1]) | (level & (ids[1:] > ids[:-1]))
    return bool(((sources[1:] > sources[:-1]) | (same & following)).all())
