"""The columns that filters and scoring read, one row per version of a record, and a recall's filter as they take it.

And the neighbours of a record: the ones before and after it in its source, and explicit links.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from msgspec import Struct, json
from numpy.typing import NDArray

from recallite.index.growable import (
    Growable,
    IndexPart,
    NarrowColumn,
    SparseColumn,
    check_lengths,
    check_within,
    extend,
    filled,
)
from recallite.model.filters import MESSAGE_KIND
from recallite.model.records import Standing
from recallite.store.sql.blocks import Columns
from recallite.store.sql.repository import NEVER
from recallite.text.statements.keys import MAX_FRAMES


class RowFilter(Struct, frozen=True, kw_only=True):
    """A recall's filter, resolved to numbers: None if it does not restrict. Times are in microseconds.

    `condition_mask` is 1 for the rows that meet tags and conditions in the store; `hidden` rows hold no longer.
    """

    now: int
    as_of: int | None = None
    scopes: tuple[int, ...] | None = None
    kinds: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    valid_at: int | None = None
    condition_mask: NDArray[np.uint8] | None = None
    hidden: NDArray[np.int64] | None = None

    @property
    def only_scopes(self) -> bool:
        """True when nothing but scopes and expiry restricts."""
        if self.kinds or (self.hidden is not None and len(self.hidden)) or self.condition_mask is not None:
            return False
        return self.as_of is self.since is self.until is self.valid_at is None


PREFERENCE, INSTRUCTION = 1, 2
"""The values of `RecordTable.standing`."""
_STANDING: dict[Standing, int] = {"preference": PREFERENCE, "instruction": INSTRUCTION}
# What a change to a record may change: all but its id.
_DENSE = ("scopes", "kinds", "sources", "positions", "created_at", "moments", "moments_until", "importance", "resolved",
          "authorities")  # fmt: skip
# Columns that few records have a value of: of a million records they would take 40 MB.
_SPARSE = ("recorded_until", "expires_at", "superseded_at", "held_until")
# What is added to the number of a source for the messages of a session: no source has as great a number.
_OF_MESSAGES = 2**31
# Up to this many are looked through, which takes 5 us.
_TAGS_AS_THEY_CAME = 4096


class RecordTable(IndexPart):
    """Rows are appended, and deleted by a tombstone; they never move. `rows_of` finds the live row of a record."""

    _numbers = ("_tags_in_order",)
    # By row; times are in microseconds.
    ids: NDArray[np.int64] = filled("_ids")
    scopes: NDArray[np.int32] = filled("_scopes")
    sources: NDArray[np.int32] = filled("_sources")  # -1 for none, below it the run of a scope
    positioned: NDArray[np.uint8] = filled("_positioned")  # 1 with a position in the source, as a turn of a transcript
    # What each row states: things and their values, (rows, MAX_FRAMES, 2), 0 for none.
    frames: NDArray[np.uint32] = filled("_frames")
    standing: NDArray[np.uint8] = filled("_standing")  # `INSTRUCTION` or `PREFERENCE`, else 0
    created_at: NDArray[np.int64] = filled("_created_at")
    # When the content happened: its valid time, else its creation; and its end, excluded, NEVER for a moment or none.
    moments: NDArray[np.int64] = filled("_moments")
    moments_until: NDArray[np.int64] = filled("_moments_until")
    resolved: NDArray[np.uint8] = filled("_resolved")  # 1 if the valid time was found in the text
    authorities: NDArray[np.uint8] = filled("_authorities")  # ranks of who said it, without their sign
    importance: NDArray[np.float32] = filled("_importance")
    open: NDArray[np.uint8] = filled("_open")  # 1 for the current version of a record
    present: NDArray[np.uint8] = filled("_present")  # 1 if it was not deleted

    def __init__(self) -> None:
        self._ids = Growable(np.int64)
        self._scopes = Growable(np.int32)
        self._kinds = NarrowColumn()
        self._sources = Growable(np.int32)
        self._positions = NarrowColumn()
        self._created_at = Growable(np.int64)
        self._moments = Growable(np.int64)
        self._moments_until = Growable(np.int64)
        # Of the rows that became valid after they were created: a changed text.
        self._recorded_from = SparseColumn()
        self._recorded_until = SparseColumn()
        self._expires_at = SparseColumn()
        self._superseded_at = SparseColumn()
        self._held_until = SparseColumn()
        self._importance = Growable(np.float32)
        self._resolved = Growable(np.uint8)
        self._authorities = Growable(np.uint8)
        self._frames = Growable(np.uint32, (MAX_FRAMES, 2))
        self._positioned = Growable(np.uint8)
        self._standing = Growable(np.uint8)
        self._present = Growable(np.uint8)
        self._open = Growable(np.uint8)
        self._kind_numbers: dict[str, int] = {}
        # Ascending: the record's id, or the largest before it for a record that was appended again (a changed text);
        # their rows are in `_moved`. Empty while there is none: the ids are then in order.
        self._keys = Growable(np.int64)
        self._moved: dict[int, int] = {}
        # The rows with an end of their valid time, found once between two changes.
        self._lasting: NDArray[np.int64] | None = None
        # The rows of standing instructions and preferences.
        self._standing_rows: NDArray[np.int64] | None = None
        self.dead_rows = 0
        self.open_rows = 0
        # The tags of records by number, with their rows: the first ones in the order of numbers, others as they came.
        self._tags = Growable(np.int32)
        self._tagged = Growable(np.int32)
        self._tags_in_order = 0

    def __len__(self) -> int:
        return len(self._ids.array)

    @property
    def positions(self) -> NarrowColumn:
        """Positions by row; NEVER for none."""
        return self._positions

    @property
    def kinds_of_memories(self) -> tuple[str, ...]:
        """The kinds but that of the messages of sessions; () for a table without any message."""
        if MESSAGE_KIND not in self._kind_numbers:
            return ()
        return tuple(kind for kind in self._kind_numbers if kind != MESSAGE_KIND) or ("memory",)

    @property
    def all_open(self) -> bool:
        """True when every row is a current version: counts over rows then need no mask."""
        return self.open_rows == len(self.ids)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All arrays that `restore` needs."""
        return {
            **super().arrays(),
            "moved": np.array([*self._moved.items()], dtype=np.int64).reshape(-1, 2),
            "kind_numbers": np.frombuffer(json.encode(self._kind_numbers), dtype=np.uint8),
        }

    def restore(self, saved: Mapping[str, Growable[Any]]) -> None:
        """Take over what `arrays` gave."""
        super().restore(saved)
        self._moved = dict(saved["moved"].array.tolist())
        self._kind_numbers = json.decode(saved["kind_numbers"].array.tobytes())
        self.open_rows = int(self.open.sum())
        self._lasting = self._standing_rows = None
        self.dead_rows = len(self) - int(self._present.array.sum())

    def check(self, rows: int, vectors: int) -> None:
        """Every column has a value for each row; a record that was appended again has one of them."""
        check_lengths(rows, *(getattr(self, f"_{name}").array for name in _DENSE))
        check_lengths(rows, self.ids, self._present.array, self.open, self.frames, self.positioned, self.standing)
        check_lengths(rows if self._moved else 0, self._keys.array)
        check_within(np.array([*self._moved.values()], dtype=np.int64), 0, rows)
        for name in (*_SPARSE, "recorded_from"):
            getattr(self, f"_{name}").check(rows)
        check_lengths(len(self._tags), self._tagged.array)
        check_within(self._tagged.array, 0, rows)
        in_order = self._tags.array[: self._tags_in_order]
        if len(in_order) != self._tags_in_order or (in_order[1:] < in_order[:-1]).any():
            raise ValueError("tags are not in order")

    def append(self, columns: Columns) -> NDArray[np.int64]:
        """Append records, ascending by row id; returns their rows."""
        first, n = len(self.ids), len(columns.ids)
        self._kind_numbers.update(columns.kind_numbers)
        rows = np.arange(first, first + n, dtype=np.int64)
        opened = columns.recorded_until == NEVER
        before = self._keys.array if self._moved else self.ids
        last = before[-1] if len(before) else -1
        if self._moved or (n and columns.ids[0] <= last):  # not all are in order
            again = columns.ids <= last
            if again.any() and not self._moved:
                self._keys.extend(self.ids)
            if again.any() or self._moved:
                self._keys.extend(np.maximum(columns.ids, last))
            self._moved.update(zip(columns.ids[again].tolist(), rows[again].tolist(), strict=True))
        extend(
            (self._ids, columns.ids), *[(getattr(self, f"_{name}"), getattr(columns, name)) for name in _DENSE],
            (self._positioned, columns.positions != NEVER), (self._present, np.ones(n, dtype=np.uint8)),
            (self._open, opened),
        )  # fmt: skip
        for name in _SPARSE:
            getattr(self, f"_{name}").append(first, getattr(columns, name))
        self._recorded_from.append(first, columns.recorded_from, columns.created_at)
        self._frames.extend_with(0, n)
        self._standing.extend_with(0, n)
        self.open_rows += int(opened.sum())
        self._lasting = None
        if len(columns.tags):
            owners = columns.ids.searchsorted(columns.tagged)
            known = columns.ids.take(owners, mode="clip") == columns.tagged
            extend((self._tags, columns.tags[known]), (self._tagged, first + owners[known]))
        return rows

    def order_tags(self) -> None:
        """Order the tags of new rows by number, when there are many."""
        if len(self._tags.array) - self._tags_in_order > max(_TAGS_AS_THEY_CAME, self._tags_in_order // 8):
            order = np.argsort(self._tags.array, kind="stable")
            for column in (self._tags, self._tagged):
                column.array[:] = column.array[order]
            self._tags_in_order = len(order)

    def with_tags(self, numbers: Sequence[int]) -> NDArray[np.uint8]:
        """1 for the rows that have any of these tags."""
        mask, wanted = np.zeros(len(self), dtype=np.uint8), np.sort(np.array(numbers, dtype=np.int32))
        tags, rows, count = self._tags.array, self._tagged.array, self._tags_in_order
        bounds = (tags[:count].searchsorted(wanted, side).tolist() for side in ("left", "right"))
        for start, stop in zip(*bounds, strict=True):
            mask[rows[start:stop]] = 1
        if len(wanted):
            found = wanted.take(wanted.searchsorted(tags[count:]), mode="clip") == tags[count:]
            mask[rows[count:][found]] = 1
        return mask

    def reserve(self, rows: int) -> None:
        """Reserve capacity for this many rows."""
        for name, column in self.growables().items():
            if column not in (self._keys, self._tags, self._tagged) and "." not in name:  # sparse columns have one
                column.reserve(rows)

    def overwrite(self, columns: Columns) -> None:
        """Replace the columns of indexed records."""
        rows = self.rows_of(columns.ids)
        known = rows >= 0
        rows = rows[known]
        self._kind_numbers.update(columns.kind_numbers)
        for name in (*_DENSE, *_SPARSE):
            getattr(self, f"_{name}").put(rows, getattr(columns, name)[known])
        self._recorded_from.put(rows, columns.recorded_from[known], columns.created_at[known])
        self._positioned.put(rows, columns.positions[known] != NEVER)
        self._lasting = None

    def put_frames(self, ids: NDArray[np.int64], stated: Sequence[tuple[int, bytes]]) -> None:
        """Replace what indexed records state by frames as the store has them; the others of `ids` state nothing."""
        frames = np.zeros((len(ids), MAX_FRAMES, 2), dtype=np.uint32)
        if stated:  # most turns of transcripts state nothing
            size = frames.itemsize * MAX_FRAMES * 2
            blobs = b"".join([blob[:size].ljust(size, b"\0") for _, blob in stated])
            order = np.argsort(ids, kind="stable")
            found = np.searchsorted(ids, [row_id for row_id, _ in stated], sorter=order)
            frames[order[found]] = np.frombuffer(blobs, dtype="<u4").reshape(-1, MAX_FRAMES, 2)
        rows = self.rows_of(ids)
        self._frames.put(rows[rows >= 0], frames[rows >= 0])

    def put_standing(self, named: Mapping[int, Standing], ids: Sequence[int] | None = None) -> None:
        """Set which of the records `ids`, all if None, are standing instructions and preferences, as `named` says."""
        rows = ... if ids is None else self.known_rows(ids)
        if named or self.standing[rows].any():
            self._standing_rows = None
        self.standing[rows] = 0
        if named:
            found = self.rows_of(np.array([*named], dtype=np.int64))
            # Another program may have changed a name, which `verify` finds: recall goes on without it.
            values = np.array([_STANDING.get(name, 0) for name in named.values()], dtype=np.uint8)
            self.standing[found[found >= 0]] = values[found >= 0]

    @property
    def standing_rows(self) -> NDArray[np.int64]:
        """The rows of standing instructions and preferences, deleted ones too, ascending."""
        if self._standing_rows is None:
            self._standing_rows = np.flatnonzero(self.standing != 0)
        return self._standing_rows

    def tombstone(self, ids: Sequence[int]) -> None:
        """Mark the rows of these records as deleted."""
        rows: NDArray[np.int64] = np.unique(self.known_rows(ids))
        rows = rows[self._present.array[rows] == 1]
        self.open_rows -= int(self._open.array[rows].sum())
        self._present.array[rows] = 0
        self._open.array[rows] = 0
        self.dead_rows += len(rows)

    def rows_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of each record, -1 where it is not indexed. The row may be deleted."""
        keys = self._keys.array if self._moved else self.ids
        start = int(keys.searchsorted(ids[0])) if len(ids) else 0
        # A run of all records that are here from one on: a load asks for a million, and the search takes 50 ms.
        run = keys[start : start + len(ids)]
        if not self._moved and len(run) == len(ids) and (run == ids).all():
            return np.arange(start, start + len(ids), dtype=np.int64)
        rows = keys.searchsorted(ids)
        rows[rows == len(keys)] = 0
        rows[keys[rows] != ids if len(keys) else ...] = -1
        if self._moved:
            for i, row_id in enumerate(ids.tolist()):
                rows[i] = self._moved.get(row_id, rows[i])
        return rows

    def known_rows(self, ids: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of the records among these that are indexed."""
        rows = self.rows_of(np.array(ids, dtype=np.int64))
        return rows[rows >= 0]

    def mask(self, row_filter: RowFilter, *, closed: bool = False) -> NDArray[np.uint8]:
        """1 for the rows that `row_filter` admits, expired or not; with `closed` the closed versions too."""
        moment = row_filter.now if row_filter.as_of is None else row_filter.as_of
        if closed:
            mask = self._present.array.copy()
        elif row_filter.as_of is None:
            mask = self._open.array.copy()
        else:
            mask = ((self._present.array == 1) & (self._created_at.array <= moment)).view(np.uint8)
            mask[self._recorded_from.above(moment)] = 0
            mask[self._recorded_until.up_to(moment)] = 0
        if row_filter.scopes is not None:
            mask &= _among(self.scopes, row_filter.scopes)
        if row_filter.kinds:
            mask &= self.of_kinds(row_filter.kinds)
        if row_filter.since is not None:
            since = self.moments >= row_filter.since
            lasting = self._lasting_rows()
            since[lasting] |= self.moments_until[lasting] > row_filter.since
            mask &= since.view(np.uint8)
        for latest in (row_filter.until, row_filter.valid_at):
            if latest is not None:
                mask &= (self.moments <= latest).view(np.uint8)
        if row_filter.valid_at is not None:
            lasting = self._lasting_rows()
            over = (self.moments_until[lasting] <= row_filter.valid_at) & (self.resolved[lasting] == 0)
            mask[lasting[over]] = 0
        if row_filter.condition_mask is not None:
            mask &= row_filter.condition_mask
        if row_filter.hidden is not None:
            mask[row_filter.hidden] = 0
        return mask

    def of_kinds(self, kinds: Sequence[str]) -> NDArray[np.uint8]:
        """1 for the rows of these kinds."""
        return _among(self._kinds.array, [self._kind_numbers[kind] for kind in kinds if kind in self._kind_numbers])

    def chains(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the chain of each row, -1 for none: that of its source or run, another for messages of sessions."""
        chains: NDArray[np.int64] = self.sources[rows].astype(np.int64)
        if (message := self._kind_numbers.get(MESSAGE_KIND)) is not None:
            chains[self._kinds.array[rows] == message] += _OF_MESSAGES
        return chains

    def of_sources(self, numbers: Sequence[int]) -> NDArray[np.uint8]:
        """1 for the rows of these sources."""
        return _among(np.maximum(self.sources, -1) + 1, [number + 1 for number in numbers])

    def listing(self, ids: Sequence[int]) -> NDArray[np.uint8]:
        """1 for the rows of these records."""
        mask = np.zeros(len(self), dtype=np.uint8)
        mask[self.known_rows(ids)] = 1
        return mask

    def expired_rows(self, moment: int) -> NDArray[np.int64]:
        """The rows that have expired at `moment`."""
        return self._expires_at.up_to(moment)

    @property
    def last_id(self) -> int:
        """The largest row id of a record; -1 for none."""
        ids = self._keys.array if self._moved else self.ids
        return int(ids[-1]) if len(ids) else -1

    @property
    def others(self) -> tuple[int, int]:
        """The numbers of deleted or closed and of superseded rows, which stay the same if current ones are added."""
        return len(self) - self.open_rows, len(self._superseded_at)

    def lifetimes(self) -> tuple[bool, bool]:
        """Whether any row expires, and whether any version has a successor."""
        return len(self._expires_at.values) > 0, len(self._superseded_at.values) > 0

    def superseded_rows(self) -> NDArray[np.int64]:
        """The rows that are superseded, ascending."""
        return self._superseded_at.rows

    def superseded_among(self, ids: NDArray[np.int64]) -> list[int]:
        """The ids among these, int64 ascending, whose rows are superseded."""
        rows = self.rows_of(ids)
        superseded: list[int] = ids[(rows >= 0) & (self._superseded_at.get(rows) != NEVER)].tolist()
        return superseded

    def ended_rows(self, known_at: int | None = None, valid_at: int | None = None) -> NDArray[np.int64]:
        """The rows that no longer hold: as the store knew it at one time, by what held at another (valid time)."""
        rows = self._held_until.rows
        if known_at is not None:
            rows = rows[self._superseded_at.get(rows) <= known_at]
        if valid_at is not None:
            rows = rows[self._held_until.get(rows) <= valid_at]
        return rows

    def announced_rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Until when the rows with an announced successor hold, ascending, and the rows."""
        rows = self._held_until.rows
        until = self._held_until.get(rows)
        announced = until > self._superseded_at.get(rows)
        order = np.argsort(until[announced], kind="stable")
        return until[announced][order], rows[announced][order]

    def _lasting_rows(self) -> NDArray[np.int64]:
        if self._lasting is None:
            self._lasting = np.flatnonzero(self.moments_until != NEVER)
        return self._lasting


def _among(numbers: NDArray[Any], chosen: Sequence[int]) -> NDArray[np.uint8]:
    """1 where a small number is a chosen one: a lookup table takes a tenth of the time of `np.isin`."""
    table = np.zeros(int(numbers.max(initial=0)) + 1, dtype=np.uint8)
    table[[number for number in chosen if number < len(table)]] = 1
    among: NDArray[np.uint8] = table[numbers]
    return among


# Neighbours.


class RecordGraph(IndexPart):
    """Neighbours by row. The members of a source, or of a run, are chained by position (none: last), then by row id.

    Closed versions are in no chain, and the messages of a session in another than memories of its source.
    """

    # The rows before and after each row in its source; -1 for none.
    previous: NDArray[np.int32] = filled("_previous")
    next: NDArray[np.int32] = filled("_next")
    # The first link of each row, empty without links; of each link the next, the target (-1: removed) and the strength.
    heads: NDArray[np.int32] = filled("_heads")
    nexts: NDArray[np.int32] = filled("_nexts")
    targets: NDArray[np.int32] = filled("_targets")
    strengths: NDArray[np.float32] = filled("_strengths")

    def __init__(self, table: RecordTable) -> None:
        self._table = table
        self._previous = Growable(np.int32)
        self._next = Growable(np.int32)
        # Of the chains that have changed before their ends: their members by position and record id, with their rows.
        self._listed: dict[int, list[tuple[int, int, int]]] = {}
        # The last rows of others that have grown.
        self._ends: dict[int, int] = {}
        # The chains that had members before the first change, ascending, and the rows where each began and ended.
        self._before: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None = None
        # Linked lists in arrays: for each row the index of its first link, for each link the index of the next one.
        # Heads are empty until there is a link.
        self._heads = Growable(np.int32)
        self._nexts = Growable(np.int32)
        self._targets = Growable(np.int32)
        self._strengths = Growable(np.float32)

    def load(self) -> None:
        """Chain all rows of the table at once."""
        table = self._table
        members = np.flatnonzero((table.sources != -1) & (table.open == 1))
        chains, positions, ids = table.chains(members), table.positions.array, table.ids
        if len(members) < len(table):
            positions, ids = positions[members], ids[members]
        order = _by_chain(chains, positions, ids)
        rows, owners = members[order], chains[order]
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
        self._note_chains()
        self._add_rows(len(rows))
        self.insert(rows)

    def insert(self, rows: NDArray[np.int64]) -> None:
        """Insert rows that are in no chain into the chains of their sources."""
        table = self._table
        for row, chain in zip(rows.tolist(), table.chains(rows).tolist(), strict=True):
            if chain == -1 or not table.open[row]:
                continue
            key, before, after = self._key(row), self._end(chain), -1
            if before >= 0 and self._key(before) < key:  # nearly always, and a run may have a quarter of all records
                self._ends[chain] = row
            else:
                members = self._members(chain)
                i = bisect_left(members, key)
                members.insert(i, key)
                before = members[i - 1][2] if i else -1
                after = members[i + 1][2] if i + 1 < len(members) else -1
            self._chain(before, row)
            self._chain(row, after)

    def remove(self, rows: NDArray[np.int64]) -> None:
        """Take rows out of their chains. Call it before the table changes or deletes them."""
        self._note_chains()
        for row, chain in zip(rows.tolist(), self._table.chains(rows).tolist(), strict=True):
            if chain == -1:
                continue
            members, key = self._members(chain), self._key(row)
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
        extend(
            (self._nexts, np.where(last, self._heads.array[ends], links + 1)), (self._targets, targets[order]),
            (self._strengths, np.concatenate([strengths, strengths])[order]),
        )  # fmt: skip
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

    def _note_chains(self) -> None:
        """Note where chains begin and end, before the first change. Members of all would take 4 MB a million rows."""
        if self._before is None:
            chained = len(self.previous)
            member = (self._table.sources[:chained] != -1) & (self._table.open[:chained] == 1)
            begins, ends = (np.flatnonzero((beside < 0) & member) for beside in (self.previous, self.next))
            chains = self._table.chains(begins)
            order = np.argsort(chains)
            self._before = chains[order], begins[order], ends[np.argsort(self._table.chains(ends))]

    def _end(self, chain: int) -> int:
        """The last row of a chain whose members are not listed; -1 for others."""
        if chain in self._listed:
            return -1
        return self._ends[chain] if chain in self._ends else self._noted(chain, 2)

    def _noted(self, chain: int, which: Literal[1, 2]) -> int:
        """The row where a chain began or ended before the first change; -1 if it had none."""
        assert self._before is not None
        chains, rows = self._before[0], self._before[which]
        i = int(chains.searchsorted(chain))
        return int(rows[i]) if i < len(chains) and chains[i] == chain else -1

    def _members(self, chain: int) -> list[tuple[int, int, int]]:
        members = self._listed.get(chain)
        if members is None:
            row, nexts, rows = self._noted(chain, 1), self._next.array, []
            while row >= 0:
                rows.append(row)
                row = nexts.item(row)
            array = np.array(rows, dtype=np.int64)
            keys = self._table.positions.get(array).tolist(), self._table.ids[array].tolist()
            members = self._listed[chain] = [*zip(*keys, rows, strict=True)]
        return members

    def _key(self, row: int) -> tuple[int, int, int]:
        return int(self._table.positions.get(row)), int(self._table.ids[row]), row

    def _chain(self, before: int, after: int) -> None:
        if before >= 0:
            self._next.array[before] = after
        if after >= 0:
            self._previous.array[after] = before


def _by_chain(chains: NDArray[np.int64], positions: NDArray[Any], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order of members by chain, position and id, int64.

    Where each chain was written in order and at once its runs are sorted: a million records take a fifth of the time.
    """
    begins = np.flatnonzero(np.append(True, chains[1:] != chains[:-1])[: len(chains)])
    runs = np.argsort(chains[begins])
    owners = chains[begins[runs]]
    level = positions[1:] == positions[:-1]
    following = (positions[1:] > positions[:-1]) | (level & (ids[1:] > ids[:-1]))
    if not (following | (chains[1:] != chains[:-1])).all() or not (owners[1:] > owners[:-1]).all():
        return np.lexsort((ids, positions, chains))
    sizes = np.diff(np.append(begins, len(chains)))[runs]
    return np.repeat(begins[runs] - np.cumsum(sizes) + sizes, sizes) + np.arange(len(chains))
