"""Shortlists in SQL, for a recall that loads no index: words by FTS5, neighbours by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import apsw
import numpy as np

from recollect.store.arrays import id_array
from recollect.store.filters import Condition

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Places", "Statistics", "hides_some", "linked_to", "places_around", "statistics", "with_words"]


class Statistics(NamedTuple):
    """What BM25 needs of the whole store: records, words in all, and in how many records each asked word stands."""

    records: int
    words: int
    frequencies: NDArray[np.int64]


class Places(NamedTuple):
    """Records with their place in their source, from 0."""

    ids: NDArray[np.int64]
    places: NDArray[np.int64]


def hides_some(connection: apsw.Connection) -> bool:
    """Whether any record is a closed version or will expire, so that not every sketch stands for a visible one."""
    found = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM record WHERE valid_to IS NOT NULL) "
        "OR EXISTS (SELECT 1 FROM record WHERE expires_at IS NOT NULL)"
    ).get
    return bool(found)


def with_words(connection: apsw.Connection, words: Sequence[str], condition: Condition, wanted: int) -> list[int]:
    """Row ids of the records with the best BM25 by FTS5, where `condition` holds."""
    if not words:
        return []
    rows = connection.execute(
        "SELECT r.id FROM record_fts f JOIN record r ON r.id = f.rowid WHERE f.record_fts MATCH ? "
        f"AND {condition.sql} ORDER BY f.rank LIMIT ?",
        (quoted(words), *condition.values, wanted),
    )
    return [row[0] for row in rows]


def quoted(words: Sequence[str]) -> str:
    """An FTS5 query for any of the words. Raw text never reaches FTS5: each word is a quoted string."""
    return " OR ".join('"' + word.replace('"', '""').replace("\x00", "") + '"' for word in words)


def statistics(connection: apsw.Connection, words: Sequence[str]) -> Statistics:
    """Counts over the whole store, closed versions included, without reading it."""
    # FTS5 keeps the number of rows and of words in its "averages" record, as variable-length integers.
    averages = connection.execute("SELECT block FROM record_fts_data WHERE id = 1").get or b""
    records, total = (*_varints(averages), 0, 0)[:2]
    connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.fts_rows USING fts5vocab(main, record_fts, 'row')")
    found = dict(
        connection.execute(
            "SELECT term, doc FROM temp.fts_rows WHERE term IN (SELECT value FROM carray(?))",
            (apsw.carray(tuple(words) or ("",)),),
        )
    )
    return Statistics(records, total, np.array([found.get(word, 0) for word in words], dtype=np.int64))


def places_around(connection: apsw.Connection, ids: Sequence[int], reach: int) -> Places:
    """These records and those up to `reach` places beside them, each with its place in its source."""
    rows = connection.execute(
        "SELECT m.id, m.source_id FROM record m WHERE m.valid_to IS NULL AND m.source_id IN "
        "(SELECT source_id FROM record WHERE source_id IS NOT NULL AND id IN (SELECT value FROM carray(?))) "
        "ORDER BY m.source_id, m.position IS NULL, m.position, m.id",
        (id_array(ids),),
    ).fetchall()
    wanted = np.unique(np.array(ids, dtype=np.int64))
    if not rows:
        return Places(wanted, np.zeros(len(wanted), dtype=np.int64))
    members, sources = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    firsts = np.flatnonzero(np.r_[True, sources[1:] != sources[:-1]])
    places = np.arange(len(members)) - np.repeat(firsts, np.diff(np.r_[firsts, len(members)]))
    kept = np.isin(members, wanted)
    near = kept.copy()
    for step in range(1, reach + 1):
        same = sources[step:] == sources[:-step]
        near[step:] |= kept[:-step] & same
        near[:-step] |= kept[step:] & same
    lone = wanted[~np.isin(wanted, members)]
    found = np.concatenate([members[near], lone])
    order = np.argsort(found)
    return Places(found[order], np.concatenate([places[near], np.zeros(len(lone), dtype=np.int64)])[order])


def linked_to(connection: apsw.Connection, ids: Sequence[int]) -> list[int]:
    """Row ids at the other end of these records' links."""
    rows = connection.execute(
        "SELECT target_id FROM link WHERE source_id IN (SELECT value FROM carray(?1)) "
        "UNION SELECT source_id FROM link WHERE target_id IN (SELECT value FROM carray(?2))",
        (id_array(ids), id_array(ids)),
    )
    return [row[0] for row in rows]


def _varints(blob: bytes) -> list[int]:
    """SQLite's variable-length integers: seven bits a byte, high bit set on all but the last."""
    numbers, value = [], 0
    for byte in blob:
        value = (value << 7) | (byte & 0x7F)
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    return numbers
