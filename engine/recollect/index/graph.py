"""Neighbours of a record: the ones before and after it in its source, and explicit links."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.index.growable import Growable, IndexPart, check_lengths, check_within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from recollect.index.table import RecordTable


class RecordGraph(IndexPart):
    """Neighbours by row. The members of a source are chained by position, those without one last, then by record id.

    Closed versions are in no chain.
    """

    def __init__(self, table: RecordTable) -> None:
        self._table = table
        self._previous = Growable(np.int32)
        self._next = Growable(np.int32)
        # Members as loaded, by source; a source that has changed has a list of (position, record id, row) instead.
        self._loaded_rows = np.empty(0, dtype=np.int64)
        self._loaded_sources = np.empty(0, dtype=np.int64)
        self._changed: dict[int, list[tuple[int, int, int]]] = {}
        # Rows taken out of their chain and not yet put back.
        self._loose: set[int] = set()
        # Linked lists in arrays: for each row the place of its first link, for each link the place of the next one.
        self._heads = Growable(np.int32)
        self._nexts = Growable(np.int32)
        self._targets = Growable(np.int32)
        self._strengths = Growable(np.float32)

    @property
    def previous(self) -> NDArray[np.int32]:
        """The row before each row in its source; -1 for none."""
        return self._previous.array

    @property
    def next(self) -> NDArray[np.int32]:
        """The row after each row in its source; -1 for none."""
        return self._next.array

    @property
    def links(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
        """Heads by row; next, target (-1: removed) and strength by link: see `recollect_kernels.Graph`."""
        return self._heads.array, self._nexts.array, self._targets.array, self._strengths.array

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return super().nbytes + self._loaded_rows.nbytes + self._loaded_sources.nbytes

    def load(self) -> None:
        """Chain all rows of the table at once."""
        table = self._table
        self._add_rows(len(table))
        self._loaded_rows, self._loaded_sources = self._members_of_all()
        order = self._loaded_rows
        adjacent = self._loaded_sources[:-1] == self._loaded_sources[1:]
        self._next.array[order[:-1][adjacent]] = order[1:][adjacent]
        self._previous.array[order[1:][adjacent]] = order[:-1][adjacent]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that `restore` needs."""
        loaded = self._loaded_rows, self._loaded_sources
        rows, sources = self._members_of_all() if self._changed or self._loose else loaded
        return {**super().arrays(), "loaded_rows": rows, "loaded_sources": sources}

    def restore(self, saved: Mapping[str, Growable[Any]]) -> None:
        """Take over what `arrays` gave."""
        super().restore(saved)
        self._loaded_rows, self._loaded_sources = saved["loaded_rows"].array, saved["loaded_sources"].array

    def check(self, rows: int, vectors: int) -> None:
        """Chains and links lead to rows."""
        check_lengths(rows, self.previous, self.next, self._heads.array)
        check_lengths(len(self._targets), self._nexts.array, self._strengths.array)
        check_lengths(len(self._loaded_rows), self._loaded_sources)
        for chain in (self.previous, self.next, self._targets.array):
            check_within(chain, -1, rows)
        for links in (self._heads.array, self._nexts.array):
            check_within(links, -1, len(self._targets))
        check_within(self._loaded_rows, 0, rows)

    def append(self, rows: NDArray[np.int64]) -> None:
        """Chain the rows that the table has just appended."""
        self._add_rows(len(rows))
        self.insert(rows.tolist())

    def insert(self, rows: Iterable[int]) -> None:
        """Insert rows that are in no chain into those of their sources."""
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
        """Take rows out of their chains. Call it before the table changes or deletes them."""
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

    def add_links(self, rows: NDArray[np.int64], others: NDArray[np.int64], strengths: NDArray[np.float64]) -> None:
        """Link pairs of rows in both directions; of several links between two rows the strongest counts."""
        ends, targets = np.concatenate([rows, others]), np.concatenate([others, rows])
        order = np.argsort(ends, kind="stable")
        ends, first = ends[order], len(self._targets)
        # The links of one row are adjacent; the last points to the links it had before.
        places = np.arange(first, first + len(ends))
        last = np.append(ends[1:] != ends[:-1], True)[: len(ends)]
        begins = np.insert(last[:-1], 0, True)[: len(ends)]
        self._nexts.extend(np.where(last, self._heads.array[ends], places + 1))
        self._targets.extend(targets[order])
        self._strengths.extend(np.concatenate([strengths, strengths])[order])
        self._heads.array[ends[begins]] = places[begins]

    def unlink(self, row: int) -> None:
        """Remove every link of a row; their places stay unused until the next load."""
        for place in self._links_of(row):
            other = int(self._targets.array[place])
            for back in self._links_of(other) if other >= 0 else ():
                if self._targets.array[back] == row:
                    self._targets.array[back] = -1
            self._targets.array[place] = -1
        self._heads.array[row] = -1

    def _links_of(self, row: int) -> Iterator[int]:
        place = int(self._heads.array[row])
        while place >= 0:
            yield place
            place = int(self._nexts.array[place])

    def _add_rows(self, count: int) -> None:
        for column in (self._previous, self._next, self._heads):
            column.extend(np.full(count, -1, dtype=np.int32))

    def _members_of_all(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows of all members, ordered by source and position, and the source of each."""
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
            # Positions may have changed since the load.
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
    """Whether members are already in order, as in a file written source by source: checking is cheaper than sorting."""
    same = sources[1:] == sources[:-1]
    level = positions[1:] == positions[:-1]
    following = (positions[1:] > positions[:-1]) | (level & (ids[1:] > ids[:-1]))
    return bool(((sources[1:] > sources[:-1]) | (same & following)).all())
