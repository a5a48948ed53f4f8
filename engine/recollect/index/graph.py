"""Neighbours of a record: the ones before and after it in its source, and explicit links."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recollect.index.growable import Growable, IndexPart, check_lengths, check_offsets, check_within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from recollect.index.table import RecordTable


class _Members(NamedTuple):
    """Rows int32 (m,): sources[i], int64 (s,) ascending, has those from starts[i] to starts[i + 1], int64 (s + 1,)."""

    rows: NDArray[np.int32]
    sources: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, rows: NDArray[np.int32], owners: NDArray[np.int64]) -> _Members:
        """Rows in the order of the sources `owners`."""
        starts = np.flatnonzero(np.append(True, owners[1:] != owners[:-1])[: len(owners)])
        return cls(rows, owners[starts], np.append(starts, len(rows)))

    @classmethod
    def none(cls) -> _Members:
        """Those of no source."""
        return cls.of(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64))

    def of_source(self, source: int) -> NDArray[np.int32]:
        """The rows of one source."""
        place = int(np.searchsorted(self.sources, source))
        if place == len(self.sources) or self.sources[place] != source:
            return self.rows[:0]
        return self.rows[self.starts[place] : self.starts[place + 1]]


class RecordGraph(IndexPart):
    """Neighbours by row. The members of a source are chained by position, those without one last, then by record id.

    Closed versions are in no chain.
    """

    def __init__(self, table: RecordTable) -> None:
        self._table = table
        self._previous = Growable(np.int32)
        self._next = Growable(np.int32)
        # Members as loaded; a source that has changed has a list of (position, record id, row) instead.
        self._loaded = _Members.none()
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
        return super().nbytes + sum(each.nbytes for each in self._loaded)

    def load(self) -> None:
        """Chain all rows of the table at once."""
        self._add_rows(len(self._table))
        self._loaded = self._members_of_all()
        order, begins = self._loaded.rows, np.zeros(len(self._loaded.rows) + 1, dtype=np.bool_)
        begins[self._loaded.starts] = True
        adjacent = ~begins[1:-1]
        before, after = order[:-1][adjacent], order[1:][adjacent]
        self._next.array[before] = after
        self._previous.array[after] = before

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that `restore` needs."""
        loaded = self._members_of_all() if self._changed or self._loose else self._loaded
        return {**super().arrays(), **{f"loaded_{name}": each for name, each in loaded._asdict().items()}}

    def restore(self, saved: Mapping[str, Growable[Any]]) -> None:
        """Take over what `arrays` gave."""
        super().restore(saved)
        self._loaded = _Members(*(saved[f"loaded_{name}"].array for name in _Members._fields))

    def check(self, rows: int, vectors: int) -> None:
        """Chains and links lead to rows."""
        check_lengths(rows, self.previous, self.next, self._heads.array)
        check_lengths(len(self._targets), self._nexts.array, self._strengths.array)
        check_lengths(len(self._loaded.sources), self._loaded.starts[1:])
        check_offsets(self._loaded.starts, 0, len(self._loaded.rows))
        for chain in (self.previous, self.next, self._targets.array):
            check_within(chain, -1, rows)
        for links in (self._heads.array, self._nexts.array):
            check_within(links, -1, len(self._targets))
        check_within(self._loaded.rows, 0, rows)

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
            column.extend_with(-1, count)

    def _members_of_all(self) -> _Members:
        """The members of all sources."""
        table = self._table
        chosen = (table.sources >= 0) & (table.open == 1)
        members = np.flatnonzero(chosen).astype(np.int32)
        sources, positions, ids = table.sources, table.positions, table.ids
        if len(members) < len(table):
            sources, positions, ids = sources[members], positions[members], ids[members]
        order = _by_source(sources, positions, ids)
        return _Members.of(members[order], sources[order])

    def _members(self, source: int, excluded: int) -> list[tuple[int, int, int]]:
        members = self._changed.get(source)
        if members is None:
            table = self._table
            members = [
                self._key(row)
                for row in self._loaded.of_source(source).tolist()
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


def _by_source(sources: NDArray[np.int64], positions: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of members by source, position and id, int64.

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
