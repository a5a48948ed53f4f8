"""Neighbours of a record: the ones before and after it in its source, and explicit links."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recallite.index.growable import Growable, IndexPart, check_lengths, check_within, filled
from recallite.index.table import RecordTable


class RecordGraph(IndexPart):
    """Neighbours by row. The members of a source, or of a run, are chained by position (none: last), then by row id.

    Closed versions are in no chain.
    """

    # The rows before and after each row in its source; -1 for none.
    previous: NDArray[np.int32] = filled("_previous")
    next: NDArray[np.int32] = filled("_next")

    def __init__(self, table: RecordTable) -> None:
        self._table = table
        self._previous = Growable(np.int32)
        self._next = Growable(np.int32)
        # Of the sources that have changed: their members by position and record id, with their rows.
        self._changed: dict[int, list[tuple[int, int, int]]] = {}
        # The sources that had members before the first change, ascending, and the row where the chain of each began.
        self._began: tuple[NDArray[np.int32], NDArray[np.int64]] | None = None
        # Linked lists in arrays: for each row the index of its first link, for each link the index of the next one.
        # Heads are empty until there is a link.
        self._heads = Growable(np.int32)
        self._nexts = Growable(np.int32)
        self._targets = Growable(np.int32)
        self._strengths = Growable(np.float32)

    @property
    def links(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
        """Heads by row, empty without links; next, target (-1: removed) and strength by link: see `kernels.Graph`."""
        return self._heads.array, self._nexts.array, self._targets.array, self._strengths.array

    def load(self) -> None:
        """Chain all rows of the table at once."""
        table = self._table
        members = np.flatnonzero((table.sources != -1) & (table.open == 1))
        sources, positions, ids = table.sources, table.positions.array, table.ids
        if len(members) < len(table):
            sources, positions, ids = sources[members], positions[members], ids[members]
        order = _by_source(sources, positions, ids)
        rows, owners = members[order], sources[order]
        within = owners[1:] == owners[:-1]
        before, after = rows[:-1][within], rows[1:][within]
        self._add_rows(len(table))
        self._next.array[before] = after
        self._previous.array[after] = before

    def check(self, rows: int, vectors: int) -> None:
        """Chains and links lead to rows."""
        check_lengths(rows, self.previous, self.next)
        check_lengths(rows if len(self._targets) else 0, self._heads.array)
        check_lengths(len(self._targets), self._nexts.array, self._strengths.array)
        for chain in (self.previous, self.next, self._targets.array):
            check_within(chain, -1, rows)
        before = np.flatnonzero(self.next >= 0)
        if np.count_nonzero(self.previous >= 0) != len(before) or (self.previous[self.next[before]] != before).any():
            raise ValueError("a row is not the one before the row after it")
        for links in (self._heads.array, self._nexts.array):
            check_within(links, -1, len(self._targets))

    def append(self, rows: NDArray[np.int64]) -> None:
        """Chain the rows that the table has just appended."""
        self._note_begins()
        self._add_rows(len(rows))
        self.insert(rows.tolist())

    def insert(self, rows: Iterable[int]) -> None:
        """Insert rows that are in no chain into the chains of their sources."""
        table = self._table
        for row in rows:
            if table.sources[row] == -1 or not table.open[row]:
                continue
            members, key = self._members(int(table.sources[row])), self._key(row)
            i = bisect_left(members, key)
            members.insert(i, key)
            before = members[i - 1][2] if i else -1
            after = members[i + 1][2] if i + 1 < len(members) else -1
            self._chain(before, row)
            self._chain(row, after)

    def remove(self, rows: Iterable[int]) -> None:
        """Take rows out of their chains. Call it before the table changes or deletes them."""
        self._note_begins()
        for row in rows:
            source = int(self._table.sources[row])
            if source == -1:
                continue
            members, key = self._members(source), self._key(row)
            i = bisect_left(members, key)
            if i < len(members) and members[i] == key:
                del members[i]
            self._chain(int(self.previous[row]), int(self.next[row]))
            self._previous.array[row] = self._next.array[row] = -1

    def add_links(self, rows: NDArray[np.int64], others: NDArray[np.int64], strengths: NDArray[np.float64]) -> None:
        """Link pairs of rows in both directions; of several links between two rows the strongest counts."""
        if not len(self._heads.array):
            self._heads.extend_with(-1, len(self._previous))
        ends, targets = np.concatenate([rows, others]), np.concatenate([others, rows])
        order = np.argsort(ends, kind="stable")
        ends, first = ends[order], len(self._targets)
        # The links of one row are adjacent; the last points to the links it had before.
        links = np.arange(first, first + len(ends))
        last = np.append(ends[1:] != ends[:-1], True)[: len(ends)]
        begins = np.insert(last[:-1], 0, True)[: len(ends)]
        self._nexts.extend(np.where(last, self._heads.array[ends], links + 1))
        self._targets.extend(targets[order])
        self._strengths.extend(np.concatenate([strengths, strengths])[order])
        self._heads.array[ends[begins]] = links[begins]

    def unlink(self, row: int) -> None:
        """Remove every link of a row; their memory stays unused until the next load."""
        if not len(self._heads.array):
            return
        targets = self._targets.array
        for link in self._links_of(row):
            other = int(targets[link])
            for back in self._links_of(other) if other >= 0 else ():
                if targets[back] == row:
                    targets[back] = -1
            targets[link] = -1
        self._heads.array[row] = -1

    def _links_of(self, row: int) -> Iterator[int]:
        link = int(self._heads.array[row])
        while link >= 0:
            yield link
            link = int(self._nexts.array[link])

    def _add_rows(self, count: int) -> None:
        linked = (self._heads,) if len(self._heads.array) else ()
        for column in (self._previous, self._next, *linked):
            column.extend_with(-1, count)

    def _note_begins(self) -> None:
        """Note where chains begin, before the first change. Kept for all rows, members would take 4 MB a million."""
        if self._began is None:
            chained = len(self.previous)
            sources, current = self._table.sources[:chained], self._table.open[:chained] == 1
            rows = np.flatnonzero((self.previous < 0) & (sources != -1) & current)
            order = np.argsort(sources[rows])
            self._began = sources[rows[order]], rows[order]

    def _members(self, source: int) -> list[tuple[int, int, int]]:
        members = self._changed.get(source)
        if members is None:
            assert self._began is not None
            sources, rows = self._began
            i = int(np.searchsorted(sources, np.int32(source)))
            row = int(rows[i]) if i < len(sources) and sources[i] == source else -1
            members = self._changed[source] = []
            while row >= 0:
                members.append(self._key(row))
                row = int(self._next.array[row])
        return members

    def _key(self, row: int) -> tuple[int, int, int]:
        return int(self._table.positions.get(row)), int(self._table.ids[row]), row

    def _chain(self, before: int, after: int) -> None:
        if before >= 0:
            self._next.array[before] = after
        if after >= 0:
            self._previous.array[after] = before


def _by_source(sources: NDArray[np.int32], positions: NDArray[Any], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order of members by source, position and id, int64.

    Where each source was written in order and at once its runs are sorted: a million records take a fifth of the time.
    """
    begins = np.flatnonzero(np.append(True, sources[1:] != sources[:-1])[: len(sources)])
    runs = np.argsort(sources[begins])
    owners = sources[begins[runs]]
    level = positions[1:] == positions[:-1]
    following = (positions[1:] > positions[:-1]) | (level & (ids[1:] > ids[:-1]))
    if not (following | (sources[1:] != sources[:-1])).all() or not (owners[1:] > owners[:-1]).all():
        return np.lexsort((ids, positions, sources))
    sizes = np.diff(np.append(begins, len(sources)))[runs]
    return np.repeat(begins[runs] - np.cumsum(sizes) + sizes, sizes) + np.arange(len(sources))
