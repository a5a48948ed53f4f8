"""Lists of records by random 64-bit keys: sorted runs, a row each, in which processes search in memory.

In one B-tree each key of a batch would be written with a page of its own, once a store has grown.

Records that are stored together become one run. The newest are in none until there are enough for one, or many others
beside them: their keys are read from their own rows, so that a single write has no list to write. Eight runs of about
one size are merged into one, so that there are few, and a key is written once for each size. All of this happens in the
transaction that adds the keys. `meta` has the last record that a run may have. Up to it, the keys of a record are all
in one run, or in `<name>_key` if it was in a run before; `<name>_unlisted` has the records that no longer count in a
run.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recallite.errors import StoreCorrupt
from recallite.store.sql.derived import KEY, KeysOf, pairs_of
from recallite.store.sql.repository import IN_ARRAY, Repository

if TYPE_CHECKING:
    from recallite.store.sqlite.transaction import SqliteTransaction


# Runs: the keys of many records as one sorted array, with their records in the same order. No SQL is here.

MOST_APART = 2**32
"""The row ids of a run are less than this apart."""
_SMALLEST, _FACTOR_BITS, _FACTOR = 8, 3, 8
# Entries of a run that is merged no further: 12 MB. A million records have ten to twenty of them.
_LARGEST = 2**20
# Up to this many keys are sought one by one.
_FEW = 24


class Run(NamedTuple):
    """Keys, ascending, and the records that they find, which ascend under equal keys.

    An erased entry has the key of another entry, and its record no longer counts in this run.
    """

    first_id: int
    last_id: int
    keys: NDArray[np.int64]
    offsets: NDArray[np.uint32]

    @property
    def ids(self) -> NDArray[np.int64]:
        """The records."""
        return self.offsets + np.int64(self.first_id)

    def spans(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the entries of each of these keys begin and end."""
        starts = np.searchsorted(self.keys, keys)
        stops = starts.copy()
        present = np.flatnonzero(self.keys.take(starts, mode="clip") == keys)
        stops[present] = np.searchsorted(self.keys, keys[present], side="right")
        return starts, stops


_first_id = itemgetter(0)


class KeptRuns:
    """The runs that a process has read, by their ids."""

    def __init__(self) -> None:
        self.by_id: dict[int, Run] = {}


def run_of(keys: NDArray[np.int64], ids: NDArray[np.int64], *, in_order: bool = False) -> Run:
    """Sort distinct entries into a run; `in_order` says that ids ascend under equal keys already."""
    order = np.argsort(keys, kind="stable") if in_order else np.lexsort((ids, keys))
    keys, ids = keys[order], ids[order]
    first_id = int(ids.min())
    return Run(first_id, int(ids.max()), keys, (ids - first_id).astype(np.uint32))


def read_run(first_id: int, keys: object, offsets: object, path: str) -> Run:
    """Read a run from its stored columns."""
    if isinstance(keys, bytes) and isinstance(offsets, bytes) and keys and len(keys) == 2 * len(offsets):
        array, positions = np.frombuffer(keys, dtype="<i8"), np.frombuffer(offsets, dtype="<u4")
        if not (array[1:] < array[:-1]).any():
            return Run(first_id, first_id + int(positions.max()), array, positions)
    raise StoreCorrupt(
        f"{path}: a run of keys is not what was stored: another program changed it; run recallite rebuild"
    )


def merged(runs: Sequence[Run], without: NDArray[np.int64]) -> Run | None:
    """Merge runs into one, without the entries of some records; None if none is left."""
    runs = sorted(runs, key=_first_id)
    keys, ids = np.concatenate([run.keys for run in runs]), np.concatenate([run.ids for run in runs])
    if len(without):
        stays = np.isin(ids, without, invert=True)
        keys, ids = keys[stays], ids[stays]
    if not len(keys):
        return None
    apart = all(before.last_id < run.first_id for before, run in pairwise(runs))
    return run_of(keys, ids, in_order=apart)


def to_merge(sizes: dict[int, int]) -> list[int]:
    """Return the ids of enough runs of about one size to merge, given the entries of each; [] if there are too few."""
    levels: dict[int, list[int]] = {}
    for run_id, size in sizes.items():
        levels.setdefault(max(size.bit_length() - _SMALLEST, 0) // _FACTOR_BITS, []).append(run_id)
    for _, run_ids in sorted(levels.items()):
        if len(run_ids) >= _FACTOR and sum(map(sizes.__getitem__, run_ids)) <= _LARGEST:
            return run_ids
    return []


def newest(runs: Sequence[Run], keys: Sequence[int], most: int) -> tuple[dict[int, list[int]], dict[int, int]]:
    """Return the newest records of each key, at most `most` of each run; keys without any are absent.

    The second result has the keys that may have more records, with a number greater than their ids.
    """
    runs = sorted(runs, key=_first_id, reverse=True)
    return (_newest_of_few if len(keys) <= _FEW else _newest_of_many)(runs, keys, most)


def _newest_of_few(runs: Sequence[Run], keys: Sequence[int], most: int) -> tuple[dict[int, list[int]], dict[int, int]]:
    """`newest` without arrays: for the ten keys of a single write it takes a tenth of the time."""
    by_key: dict[int, list[int]] = {}
    beyond: dict[int, int] = {}
    first_id = MOST_APART**2
    for run in runs:
        left = keys
        if run.last_id < first_id and by_key:
            left = [key for key in keys if len(by_key.get(key, ())) < most]
            for key in set(keys).difference(left):
                beyond[key] = max(beyond.get(key, 0), run.last_id + 1)
        first_id = min(first_id, run.first_id)
        array = np.array(left, dtype=np.int64)
        starts, stops = run.keys.searchsorted(array), run.keys.searchsorted(array, "right")
        for key, start, stop in zip(left, starts.tolist(), stops.tolist(), strict=True):
            if start < stop:
                ids = (run.offsets[max(start, stop - most) : stop] + np.int64(run.first_id)).tolist()
                if stop - start > most:
                    beyond[key] = max(beyond.get(key, 0), ids[0])
                by_key.setdefault(key, []).extend(ids)
    return by_key, beyond


def _newest_of_many(runs: Sequence[Run], keys: Sequence[int], most: int) -> tuple[dict[int, list[int]], dict[int, int]]:
    """`newest` with arrays."""
    array = np.array(sorted(keys), dtype=np.int64)
    counts, beyond = np.zeros(len(array), dtype=np.int64), np.zeros(len(array), dtype=np.int64)
    positions, ids = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    first_id = MOST_APART**2
    for run in runs:
        left = np.arange(len(array))
        if run.last_id < first_id:
            enough = counts >= most
            beyond[enough] = np.maximum(beyond[enough], run.last_id + 1)
            left = np.flatnonzero(~enough)
        first_id = min(first_id, run.first_id)
        starts, stops = run.spans(array[left])
        present = np.flatnonzero(stops > starts)
        if not len(present):
            continue
        ends, sizes = stops[present], stops[present] - starts[present]
        present = left[present]
        cut = sizes > most
        oldest = run.offsets[ends[cut] - most] + np.int64(run.first_id)
        beyond[present[cut]] = np.maximum(beyond[present[cut]], oldest)
        sizes = np.minimum(sizes, most)
        counts[present] += sizes
        taken = np.repeat(ends - np.cumsum(sizes), sizes) + np.arange(sizes.sum())
        positions.append(np.repeat(present, sizes))
        ids.append(run.offsets[taken] + np.int64(run.first_id))
    every = np.concatenate(positions)
    order = np.argsort(every, kind="stable")
    listed, stops = np.concatenate(ids)[order].tolist(), np.cumsum(counts).tolist()
    spans = zip(array.tolist(), [0, *stops], stops, strict=False)
    some = np.flatnonzero(beyond)
    return (
        {key: listed[start:stop] for key, start, stop in spans if start < stop},
        dict(zip(array[some].tolist(), beyond[some].tolist(), strict=True)),
    )


def entries_of(run: Run, keys: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of these entries, each a key and a record, ascending; without entries that the run lacks."""
    keys, ids = (column[(ids >= run.first_id) & (ids <= run.last_id)] for column in (keys, ids))
    offsets = (ids - run.first_id).astype(np.uint32)
    starts, stops = run.spans(keys)
    present = np.flatnonzero(stops > starts)
    spans = zip(starts[present].tolist(), stops[present].tolist(), offsets[present], strict=True)
    positions = [start + np.flatnonzero(run.offsets[start:stop] == offset) for start, stop, offset in spans]
    return np.sort(np.concatenate(positions)) if positions else np.empty(0, dtype=np.int64)


def keys_instead(run: Run, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the new keys at these positions: of the last entry before each that stays, or of the first.

    So the run remains sorted. Empty if no entry stays.
    """
    stays = np.ones(len(run.keys), dtype=np.bool_)
    stays[positions] = False
    left = np.flatnonzero(stays)
    if not len(left):
        return np.empty(0, dtype=np.int64)
    instead: NDArray[np.int64] = run.keys[left[np.maximum(np.searchsorted(left, positions) - 1, 0)]]
    return instead


# The lists, and the tables that hold them.

# The newest records that become a run: a process that has not listed them reads as many.
_RECENT_RECORDS = 128
# How many others it passes at most: closed versions, and turns of transcripts, whose statements have no keys.
_MOST_PASSED = 4096
# How many records are removed before a look at which runs to write again.
_LOOK_RECORDS = 64
# A run is written again when more of its records no longer count than one for 32 keys, which are some 8 records, or
# than 4,096: a search for a key that all of them share would take a millisecond.
_KEYS_LEFT, _MOST_UNLISTED = 32, 4096
# Above this many records, the unlisted ones are read as a range and not one by one.
_MANY = 1000
# How many spare entries of a key are read first: some may no longer count.
_SPARE = 8


class Listed:
    """The runs of a list, and the listed records after `after`, which runs have none of, with the keys of each."""

    def __init__(self, read_runs: Callable[[], dict[int, Run]], after: int, rows: Sequence[KeysOf]) -> None:
        self._read_runs, self.after, self.keys = read_runs, after, dict(rows)
        # The records of each key, once they are sought: those of a bulk are in a run before.
        self._by_key: dict[int, list[int]] | None = None

    @cached_property
    def runs(self) -> dict[int, Run]:
        """The runs by their ids, read when they are first sought."""
        return self._read_runs()

    def forget_runs(self) -> None:
        """Read the runs again when they are next sought, as one was added or removed."""
        vars(self).pop("runs", None)

    def move(self, after: int) -> None:
        """Forget the newest records: runs have all up to `after` now."""
        self.after, self._by_key = after, None
        self.keys.clear()

    def add(self, rows: Sequence[KeysOf]) -> None:
        """Add records."""
        self.keys.update(rows)
        if self._by_key is not None:
            for row_id, keys in rows:
                for (key,) in KEY.iter_unpack(keys):
                    self._by_key.setdefault(key, []).append(row_id)

    def remove(self, ids: Sequence[int]) -> None:
        """Remove records; others are passed over."""
        for key, row_id in pairs_of([(row_id, self.keys.pop(row_id, b"")) for row_id in ids]):
            if self._by_key is not None:
                self._by_key[key].remove(row_id)

    def newest(self, keys: Collection[int]) -> dict[int, list[int]]:
        """The records of each of these keys that no run has; keys without any may be absent."""
        if self._by_key is None:
            self._by_key = {}
            self.add([*self.keys.items()])
        return {key: [*self._by_key[key]] for key in keys if key in self._by_key}


TEXT_KEYS = (
    "SELECT id, CAST(substr(content_hash, 1, 8) AS BLOB) FROM record WHERE recorded_until IS NULL "
    "AND length(content_hash) >= 8"
)
"""Selects the open records and their `text_key`, by which they are listed."""


class KeyLists(Repository):
    """Three tables of SQLite, `<name>_run`, `<name>_unlisted` and `<name>_key`, and the newest records.

    `recent` selects the row ids and keys of the records after a row id that are listed.
    """

    _tx: SqliteTransaction

    def __init__(self, transaction: SqliteTransaction, name: str, recent: str) -> None:
        super().__init__(transaction)
        self._after, self._recent_sql = f"{name}_listed", recent
        self._database = transaction.connection
        self._kept = transaction.runs.setdefault(name, KeptRuns())
        self._run, self._off, self._key = f"{name}_run", f"{name}_unlisted", f"{name}_key"

    def all(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the record and the key of each listed entry, ordered by both."""
        runs = [self._read(run_id) for run_id in self._column(f"SELECT id FROM {self._run}")]
        off = self._column(f"SELECT record_id FROM {self._off}")
        rows = self._rows(f"SELECT record_id, key FROM {self._key}")
        rows += [(row_id, key) for key, row_id in pairs_of([*self._listed().keys.items()])]
        pairs = np.array(rows, dtype=np.int64).reshape(-1, 2)
        ids = np.concatenate([run.ids for run in runs] or [pairs[:0, 0]])
        counts = np.isin(ids, off, invert=True)
        keys = np.concatenate([run.keys for run in runs] or [pairs[:0, 1]])[counts]
        ids, keys = np.concatenate([ids[counts], pairs[:, 0]]), np.concatenate([keys, pairs[:, 1]])
        order = np.lexsort((keys, ids))
        return ids[order], keys[order]

    def clear(self) -> None:
        """Unlist everything; the rows of the newest records are to be removed too."""
        listed = self._listed()
        listed.move(listed.after)
        listed.forget_runs()
        for table in (self._run, self._off, self._key):
            self._execute(f"DELETE FROM {table}")

    def add(self, rows: Sequence[KeysOf], newest: int = 0) -> None:
        """List records by their keys; none of them is listed yet. `newest` is the last one stored, listed or not."""
        listed = self._listed()
        # Some may have been read with their rows just now.
        new = [row for row in rows if row[0] > listed.after and row[0] not in listed.keys]
        older = [row for row in rows if row[0] <= listed.after] if len(new) < len(rows) else ()
        if len(listed.keys) + len(new) < _RECENT_RECORDS and newest - listed.after <= _MOST_PASSED:
            listed.add(new)
        else:
            self._fold_recent(listed, new, newest)
        if older:
            self._add_older(older)

    def _add_older(self, rows: Sequence[KeysOf]) -> None:
        """List records that are not among the newest."""
        together = [row[0] for row in rows]
        apart = self._unlisted(together) if max(together) - min(together) < MOST_APART else {*together}
        if apart:  # their entries in a run do not count
            self._insert_many(self._key, "key, record_id", pairs_of([row for row in rows if row[0] in apart]))
            rows = [row for row in rows if row[0] not in apart]
        if rows:
            ids = np.repeat([row[0] for row in rows], [len(row[1]) // 8 for row in rows])
            self._add(run_of(np.frombuffer(b"".join([row[1] for row in rows]), dtype="<i8"), ids))
            self._merge_due()

    def remove(self, rows: Sequence[KeysOf], *, erase: bool) -> None:
        """Unlist records; `erase` leaves nothing of their keys in the file, but in their own rows."""
        listed = self._listed()
        listed.remove([row[0] for row in rows])
        rows = [row for row in rows if row[0] <= listed.after]
        self._execute_many(f"DELETE FROM {self._key} WHERE key = ? AND record_id = ?", pairs_of(rows))
        if not (rows and listed.runs):
            return
        ids = np.repeat([row[0] for row in rows], [len(row[1]) // 8 for row in rows])
        keys = np.frombuffer(b"".join(row[1] for row in rows), dtype="<i8")
        removed = 0
        for run_id, run in listed.runs.items():
            positions = entries_of(run, keys, ids)
            if not len(positions):
                continue
            off = np.unique(run.ids[positions]).tolist()
            self._execute_many(f"INSERT OR IGNORE INTO {self._off} VALUES (?)", [(row_id,) for row_id in off])
            if erase:
                self._erase(run_id, np.unique(run.keys[positions]))
            removed += len(off)
        # Each search for a key that they share would pass them. Of single removals each 64th looks.
        if removed >= _LOOK_RECORDS or (
            removed and not self._number(f"SELECT count(*) FROM {self._off}") % _LOOK_RECORDS
        ):
            self._merge_due()

    def newest(self, keys: Collection[int], count: int) -> dict[int, list[int]]:
        """Return the newest records of each key, the newest first; keys without any may be absent."""
        listed = self._listed()
        by_key = listed.newest(keys)
        for key, row_id in self._execute(
            f"SELECT k.key, k.record_id FROM carray(?) wanted CROSS JOIN {self._key} k ON k.key = wanted.value",
            (self._id_array([*keys]),),
        ):
            by_key.setdefault(key, []).append(row_id)
        runs = [*listed.runs.values()]
        left, most = [*keys], count + _SPARE
        while runs and left:
            in_runs, beyond = newest(runs, left, most)
            unlisted = self._unlisted([*itertools.chain.from_iterable(in_runs.values())])
            left, most = [], 8 * most
            for key, ids in in_runs.items():
                counted = ids if unlisted.isdisjoint(ids) else [row_id for row_id in ids if row_id not in unlisted]
                counted.sort(reverse=True)
                if key in beyond and (len(counted) < count or counted[count - 1] < beyond[key]):
                    left.append(key)
                else:
                    by_key[key] = [*by_key.get(key, ()), *counted]
        return {key: sorted(row_ids, reverse=True)[:count] for key, row_ids in by_key.items()}

    def _listed(self) -> Listed:
        """Return what this transaction sees of the list; a writer reads it once, until others have written."""
        return self._tx.known(self._after, self._read_listed)

    def _read_listed(self) -> Listed:
        after = self._execute("SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?", (self._after,)).get or 0
        return Listed(self._read_runs, after, self._rows(self._recent_sql, (after,)))

    def _fold_recent(self, listed: Listed, new: Sequence[KeysOf], newest: int) -> None:
        """Make a run of the newest records and of new ones, if any; runs have all up to `newest` then."""
        rows = [*listed.keys.items(), *new]
        listed.move(max([newest, *(row[0] for row in rows)]))
        self._execute(
            "INSERT INTO meta VALUES (?1, CAST(?2 AS TEXT)) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (self._after, listed.after),
        )
        if rows:
            self._add_older(rows)

    def _read_runs(self) -> dict[int, Run]:
        """Read the runs that this transaction sees, each of them once in a process."""
        kept, run_ids = self._kept.by_id, self._column(f"SELECT id FROM {self._run}")
        runs = {run_id: kept.get(run_id) or self._read(run_id) for run_id in run_ids}
        # What a transaction removes may be there again: read anew then, it would lack what is erased and rolled back.
        removes = self._database.in_transaction and self._tx.wrote
        self._kept.by_id = kept | runs if removes else dict(runs)
        return runs

    def _read(self, run_id: int) -> Run:
        ((first_id, keys, offsets),) = self._rows(
            f"SELECT first_id, keys, offsets FROM {self._run} WHERE id = ?", (run_id,)
        )
        return read_run(first_id, keys, offsets, self._tx.path)

    def _unlisted(self, ids: Sequence[int] | NDArray[np.int64]) -> set[int]:
        """Return which of these records have entries in a run that no longer count."""
        if not len(ids):
            return set()
        if len(ids) > _MANY:  # takes a tenth of the time
            condition, bound = "BETWEEN ? AND ?", [int(np.min(ids)), int(np.max(ids))]
        else:
            condition, bound = IN_ARRAY, [self._id_array(ids)]
        return set(self._column(f"SELECT record_id FROM {self._off} WHERE record_id {condition}", bound))

    def _add(self, run: Run) -> None:
        run_id = int.from_bytes(os.urandom(7), "little")
        self._execute(
            f"INSERT INTO {self._run} VALUES (?, ?, ?, ?)",
            (run_id, run.first_id, run.keys.astype("<i8").tobytes(), run.offsets.astype("<u4").tobytes()),
        )
        self._kept.by_id[run_id] = run
        self._listed().forget_runs()

    def _merge_due(self) -> None:
        """Merge runs while there are enough of one size, and rewrite any in which much no longer counts."""
        sizes = dict(self._rows(f"SELECT id, length(offsets) / 4 FROM {self._run}"))
        while run_ids := to_merge(sizes):
            if not self._merge(run_ids):
                break
            sizes = dict(self._rows(f"SELECT id, length(offsets) / 4 FROM {self._run}"))
        unlisted = np.array(self._column(f"SELECT record_id FROM {self._off}"), dtype=np.int64)
        for run_id, run in self._listed().runs.items() if len(unlisted) >= _LOOK_RECORDS else ():
            # Unlisted records in the range of a run are nearly always its own.
            within = np.count_nonzero((unlisted >= run.first_id) & (unlisted <= run.last_id))
            if within > min(len(run.keys) // _KEYS_LEFT, _MOST_UNLISTED):
                self._merge([run_id])

    def _merge(self, run_ids: Sequence[int]) -> bool:
        """Replace runs by one, without what no longer counts; False if it cannot be made or would change nothing."""
        every = self._listed().runs
        runs = [every[run_id] for run_id in run_ids]
        first, last = min(run.first_id for run in runs), max(run.last_id for run in runs)
        if last - first >= MOST_APART:
            return False
        unlisted = np.array(
            self._column(f"SELECT record_id FROM {self._off} WHERE record_id BETWEEN ? AND ?", (first, last)),
            dtype=np.int64,
        )
        gone = unlisted[np.isin(unlisted, np.concatenate([run.ids for run in runs]))] if len(unlisted) else unlisted
        if len(run_ids) == 1 and not len(gone):
            return False
        self._execute(f"DELETE FROM {self._run} WHERE id {IN_ARRAY}", (self._id_array(run_ids),))
        self._listed().forget_runs()
        if len(gone):
            self._execute(f"DELETE FROM {self._off} WHERE record_id {IN_ARRAY}", (self._id_array(gone),))
        whole = merged(runs, gone)
        if whole is not None:
            self._add(whole)
        return True

    def _erase(self, run_id: int, keys: NDArray[np.int64]) -> None:
        """Overwrite the entries of these keys that no longer count, in place: a run may have megabytes."""
        run = self._read(run_id)
        # Entries that were erased before may have been overwritten with one of these keys.
        spans = zip(*(bounds.tolist() for bounds in run.spans(keys)), strict=True)
        positions = np.concatenate([np.arange(start, stop) for start, stop in spans])
        ids = run.ids[positions]
        positions = positions[np.isin(ids, [*self._unlisted(np.unique(ids))])]
        if not len(positions):  # they were erased already: the run in memory has them still
            return
        instead = keys_instead(run, positions)
        if not len(instead):
            self._execute(f"DELETE FROM {self._run} WHERE id = ?", (run_id,))
            self._listed().forget_runs()
            self._execute(f"DELETE FROM {self._off} WHERE record_id {IN_ARRAY}", (self._id_array(run.ids),))
            return
        with self._database.blob_open("main", self._run, "keys", run_id, True) as blob:
            for position, key in zip(positions.tolist(), instead.astype("<i8"), strict=True):
                blob.seek(8 * position)
                blob.write(key.tobytes())
