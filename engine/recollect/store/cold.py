"""Shortlists in SQL, for a recall that loads no index: words by FTS5, neighbours by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import apsw
import numpy as np

from recollect.store import full_text, reading
from recollect.store.arrays import id_array
from recollect.store.filters import Condition, records_in, scope_condition
from recollect.store.full_text import Table, tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Ages", "Places", "Worded", "ages", "best_by_words", "hides_some", "linked_to", "places_around"]


_WORDS = Table("record_fts", "record r", "r.id")


class Worded(NamedTuple):
    """The best records for some queries by their words, as row ids, and what BM25 needs of all they were chosen from:
    records, words in all, and in how many records each asked word stands.
    """

    found: list[list[int]]
    records: int
    words: int
    frequencies: dict[str, int]


class Places(NamedTuple):
    """Records with their place in their source, from 0."""

    ids: NDArray[np.int64]
    places: NDArray[np.int64]


class Ages(NamedTuple):
    """Records, ascending, with when they were created in microseconds, and their importance, float64."""

    ids: NDArray[np.int64]
    created_at: NDArray[np.int64]
    importance: NDArray[np.float64]


def ages(connection: apsw.Connection, condition: Condition) -> Ages:
    """The age and the importance of every record where `condition` holds."""
    rows = connection.execute(
        f"SELECT r.id, r.created_at, r.importance FROM record r WHERE {condition.sql} ORDER BY r.id", condition.values
    ).fetchall()
    ids, created_at, importance = zip(*rows, strict=True) if rows else ((), (), ())
    return Ages(
        np.array(ids, dtype=np.int64), np.array(created_at, dtype=np.int64),
        np.array(importance, dtype=np.float32).astype(np.float64),
    )  # fmt: skip


def hides_some(connection: apsw.Connection) -> bool:
    """Whether any record is a closed version or will expire, so that not every sketch stands for a visible one."""
    found = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM record WHERE valid_to IS NOT NULL) "
        "OR EXISTS (SELECT 1 FROM record WHERE expires_at IS NOT NULL)"
    ).get
    return bool(found)


def best_by_words(
    connection: apsw.Connection, queries: Sequence[Sequence[str]], base: str, condition: Condition, wanted: int
) -> Worded:
    """The `wanted` records with the best BM25 by FTS5 for the words of each query, where `condition` holds.

    Words are weighed by all that is in the scope `base`, closed versions included.
    """
    every = list(dict.fromkeys(word for words in queries for word in words))
    if base == "/":
        found = [_best(connection, words, condition, wanted) for words in queries]
        return Worded(found, *_statistics(connection, every))
    part = scope_condition(base)
    found = []
    for words in queries:
        held = tally(connection, _WORDS, words, part)
        visible = np.isin(held.rows, reading.matching_ids(connection, records_in(held.rows) & condition))
        rows = held.rows[visible]
        found.append(rows[np.argsort(-held.scores[visible], kind="stable")[:wanted]].tolist())
    counts = tally(connection, _WORDS, every, part)
    return Worded(found, counts.records, counts.words, dict(zip(every, counts.frequencies.tolist(), strict=True)))


def _best(connection: apsw.Connection, words: Sequence[str], condition: Condition, wanted: int) -> list[int]:
    """Row ids of the records with the best BM25 by FTS5, where `condition` holds."""
    if not words:
        return []
    rows = connection.execute(
        "SELECT r.id FROM record_fts f JOIN record r ON r.id = f.rowid WHERE f.record_fts MATCH ? "
        f"AND {condition.sql} ORDER BY f.rank, r.id LIMIT ?",
        (quoted(words), *condition.values, wanted),
    )
    return [row[0] for row in rows]


def quoted(words: Sequence[str]) -> str:
    """An FTS5 query for any of the words. Raw text never reaches FTS5: each word is a quoted string."""
    return " OR ".join('"' + word.replace('"', '""').replace("\x00", "") + '"' for word in words)


def _statistics(connection: apsw.Connection, words: Sequence[str]) -> tuple[int, int, dict[str, int]]:
    """Records, words in all and frequencies over the whole store, closed versions included, without reading it."""
    connection.execute("CREATE VIRTUAL TABLE IF NOT EXISTS temp.fts_rows USING fts5vocab(main, record_fts, 'row')")
    found = dict(
        connection.execute(
            "SELECT term, doc FROM temp.fts_rows WHERE term IN (SELECT value FROM carray(?))",
            (apsw.carray(tuple(words) or ("",)),),
        )
    )
    return *full_text.whole(connection, _WORDS.name), {word: found.get(word, 0) for word in words}


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
