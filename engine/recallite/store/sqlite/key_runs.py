"""Runs: the keys of many records as one sorted array, with their records in the same order. No SQL is here."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recallite.errors import StoreCorrupt

MOST_APART = 2**32
"""The row ids of a run are less than this apart."""
_SMALLEST, _FACTOR_BITS, _FACTOR = 8, 3, 8
# Entries of a run that is merged no further: 12 MB. A million records have ten to twenty of them.
_LARGEST = 2**20
# Up to this many keys are sought one by one.
_FEW = 24


class Run(NamedTuple):
    """Keys, ascending, and the records that they find; those of equal keys ascend too.

    The key of an erased entry is that of another entry, and its record no longer counts in this run.
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


class KeptRuns:
    """The runs that a process has read, by their ids, and how many rows of single writes could not become a run."""

    def __init__(self) -> None:
        self.by_id: dict[int, Run] = {}
        self.left = 0


def run_of(keys: NDArray[np.int64], ids: NDArray[np.int64], *, in_order: bool = False) -> Run:
    """Sort entries, each of which is stored once; `in_order` says that those of equal keys have ascending ids."""
    order = np.argsort(keys, kind="stable") if in_order else np.lexsort((ids, keys))
    keys, ids = keys[order], ids[order]
    first_id = int(ids.min())
    return Run(first_id, int(ids.max()), keys, (ids - first_id).astype(np.uint32))


def read_run(first_id: int, keys: object, offsets: object, path: str) -> Run:
    """Read a run from its stored columns."""
    if isinstance(keys, bytes) and isinstance(offsets, bytes) and keys and len(keys) == 2 * len(offsets):
        array, places = np.frombuffer(keys, dtype="<i8"), np.frombuffer(offsets, dtype="<u4")
        if not (array[1:] < array[:-1]).any():
            return Run(first_id, first_id + int(places.max()), array, places)
    raise StoreCorrupt(
        f"{path}: a run of keys is not what was stored: another program changed it; run recallite rebuild"
    )


def merged(runs: Sequence[Run], without: NDArray[np.int64]) -> Run | None:
    """Merge runs into one, without the entries of some records; None if none is left."""
    runs = sorted(runs, key=lambda run: run.first_id)
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

    The second result has the keys that may have more records, with a number that is greater than the ids of those.
    """
    runs = sorted(runs, key=lambda run: run.first_id, reverse=True)
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
                ids = [run.first_id + offset for offset in run.offsets[max(start, stop - most) : stop].tolist()]
                if stop - start > most:
                    beyond[key] = max(beyond.get(key, 0), ids[0])
                by_key.setdefault(key, []).extend(ids)
    return by_key, beyond


def _newest_of_many(runs: Sequence[Run], keys: Sequence[int], most: int) -> tuple[dict[int, list[int]], dict[int, int]]:
    """`newest` with arrays."""
    array = np.array(sorted(keys), dtype=np.int64)
    counts, beyond = np.zeros(len(array), dtype=np.int64), np.zeros(len(array), dtype=np.int64)
    places, ids = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
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
        at = np.repeat(ends - np.cumsum(sizes), sizes) + np.arange(sizes.sum())
        places.append(np.repeat(present, sizes))
        ids.append(run.offsets[at] + np.int64(run.first_id))
    every = np.concatenate(places)
    order = np.argsort(every, kind="stable")
    listed, stops = np.concatenate(ids)[order].tolist(), np.cumsum(counts).tolist()
    spans = zip(array.tolist(), [0, *stops], stops, strict=False)
    some = np.flatnonzero(beyond)
    return (
        {key: listed[start:stop] for key, start, stop in spans if start < stop},
        dict(zip(array[some].tolist(), beyond[some].tolist(), strict=True)),
    )


def entries_of(run: Run, keys: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of these entries, each a key and a record, ascending; those that the run lacks have none."""
    keys, ids = (column[(ids >= run.first_id) & (ids <= run.last_id)] for column in (keys, ids))
    offsets = (ids - run.first_id).astype(np.uint32)
    starts, stops = run.spans(keys)
    present = np.flatnonzero(stops > starts)
    spans = zip(starts[present].tolist(), stops[present].tolist(), offsets[present], strict=True)
    places = [start + np.flatnonzero(run.offsets[start:stop] == offset) for start, stop, offset in spans]
    return np.sort(np.concatenate(places)) if places else np.empty(0, dtype=np.int64)


def keys_instead(run: Run, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what overwrites the keys at these places: the key of the last entry before it that stays, or of the first.

    So the run remains sorted. Empty if no entry stays.
    """
    stays = np.ones(len(run.keys), dtype=np.bool_)
    stays[places] = False
    left = np.flatnonzero(stays)
    if not len(left):
        return np.empty(0, dtype=np.int64)
    instead: NDArray[np.int64] = run.keys[left[np.maximum(np.searchsorted(left, places) - 1, 0)]]
    return instead
