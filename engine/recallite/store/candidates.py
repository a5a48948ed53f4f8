"""Candidates that a server finds, for stores that are larger than the memory of a process.

PostgreSQL has HNSW of pgvector for vectors, and GIN for words.

Both are indexes on expressions: what they hold is derived by PostgreSQL itself as records are written, from the
vectors and the term lists that the in-memory index reads too. `postgres/candidate_indexes.py` makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recallite.model.filters import Filter
from recallite.store.sql.conditions import Condition
from recallite.store.sql.repository import IN_ARRAY, Repository
from recallite.store.values import EmbedderRow
from recallite.text.record_words import MOST

WORD_INDEX = "record_words"
"""The name of the index of words."""
# pgvector takes no more than 1,000 for ef_search, and scans until the limit is reached.
_MOST_EF = 1000
# Tuples of the graph that a scan may visit: 0.1 % of this many are enough candidates for a recall.
_MOST_SCANNED = 400_000
# The number of records that the mean length of a record comes from.
_SAMPLE = 20_000
_OPEN = "r.indexed AND r.recorded_until IS NULL"
_IDS = np.dtype(">i8")
_IDS_AND_SIZES = np.dtype([("id", ">i8"), ("size", ">i4")])


def vector_index(embedder: EmbedderRow) -> str:
    """The name of the index of an embedder's vectors."""
    return f"vector_near_{embedder.id}"


def halves_of(embedder: EmbedderRow, column: str) -> str:
    """The indexed expression: a vector as pgvector compares it."""
    return f"halves({column}, {embedder.dimension:d})::halfvec({embedder.dimension:d})"


class Chains(NamedTuple):
    """Neighbours in sources, row ids int64 (n,): `after` comes right after `before`."""

    before: NDArray[np.int64]
    after: NDArray[np.int64]


class CorpusCounts(NamedTuple):
    """The number of current records in some scopes, their mean number of words, and the state of the store.

    `changes` grows with the writes to the store.
    """

    records: int
    average_length: float
    changes: int


class CandidateSearch(Repository):
    """Searches by indexes of a server, in a read transaction."""

    _ef_search = 0  # of the transaction

    def ready(self, embedder: EmbedderRow | None) -> bool:
        """Whether the indexes are there: for words, and for the vectors of this embedder."""
        return len(self.sizes(embedder)) == (1 if embedder is None else 2)

    def sizes(self, embedder: EmbedderRow | None) -> dict[str, int]:
        """The bytes of those of these indexes that are there, by name."""
        names = [WORD_INDEX] if embedder is None else [WORD_INDEX, vector_index(embedder)]
        return dict(
            self._rows(
                "SELECT c.relname::text, pg_relation_size(c.oid) FROM pg_index i JOIN pg_class c "
                "ON c.oid = i.indexrelid "
                f"WHERE i.indisvalid AND c.relnamespace = current_schema()::regnamespace AND c.relname {IN_ARRAY}",
                (self._array(names),),
            )
        )

    def listed(self, filter: Filter, now: int, most: int) -> NDArray[np.int64] | None:
        """The row ids of all records that the filter admits; None where they are more than `most`."""
        admitted = self._admitting(filter, now)
        ids = self._ids(f"SELECT r.id FROM record r WHERE {admitted.sql} LIMIT {most + 1:d}", admitted.values)
        return None if len(ids) > most else np.sort(ids)

    def admitted(self, filter: Filter, now: int, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row ids among these that the filter admits."""
        admitted = self._admitting(filter, now)
        return self._ids(
            f"SELECT r.id FROM carray(?) c JOIN record r ON r.id = c.value WHERE {admitted.sql}",
            (self._id_array(ids), *admitted.values),
        )

    def nearest(
        self, filter: Filter, now: int, embedder: EmbedderRow, vector: NDArray[np.float32], most: int
    ) -> NDArray[np.int64]:
        """The row ids of about the `most` records nearest to a vector, nearest first."""
        admitted = self._admitting(filter, now)
        query = f"[{','.join(f'{value:.6g}' for value in vector.tolist())}]"
        self._allow(min(most, _MOST_EF))
        record_ids = np.empty(0, dtype=np.int64)
        for factor in (1, 4, 16):  # the parts of one record may fill the list
            limit = most * factor
            record_ids = self._ids(
                "SELECT v.record_id AS id FROM vector v "
                f"JOIN record r ON r.id = v.record_id WHERE v.embedder_id = {embedder.id:d} AND {admitted.sql} "
                f"ORDER BY {halves_of(embedder, 'v.value')} <=> ?::halfvec({embedder.dimension:d}) LIMIT {limit:d}",
                (*admitted.values, query),
            )
            first = np.sort(np.unique(record_ids, return_index=True)[1])
            if len(first) >= most or len(record_ids) < limit:
                return record_ids[first[:most]]
        return record_ids[first]

    def with_each(self, terms: Sequence[int]) -> dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """The row ids of the records that have each word, and their numbers of words; no filter is applied."""
        rows = self._rows(
            "SELECT c.value, (SELECT string_agg(int8send(t.record_id) || int4send(length(t.counts)), ''::bytea) "
            "FROM record_terms t WHERE term_numbers(t.terms) @> ARRAY[c.value::int]) FROM carray(?) c",
            (self._id_array(terms),),
        )
        return {term: _ids_and_sizes(packed) for term, packed in rows}

    def with_all(self, terms: Sequence[int], most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The same of at most `most` records that have all of these words."""
        return _ids_and_sizes(
            self._execute(
                "SELECT string_agg(int8send(record_id) || int4send(size), ''::bytea) FROM (SELECT t.record_id, "
                "length(t.counts) AS size FROM record_terms t "
                f"WHERE term_numbers(t.terms) @> '{{{','.join(map(str, terms))}}}'::int[] LIMIT {most:d}) found"
            ).get
        )

    def begin(self) -> None:
        """Note that a transaction begins."""
        self._ef_search = 0

    def _allow(self, ef_search: int) -> None:
        """Have scans go on until there are enough; set once for a transaction."""
        if ef_search != self._ef_search:
            self._execute(
                "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', "
                f"'{ef_search:d}', true), set_config('hnsw.max_scan_tuples', '{_MOST_SCANNED:d}', true)"
            )
            self._ef_search = ef_search

    def chains(self, ids: NDArray[np.int64]) -> Chains:
        """The two records before and the two after each of these in its source."""
        rows = self._rows(_CHAINS, (self._id_array(ids),))
        before, after = zip(*rows, strict=True) if rows else ((), ())
        return Chains(np.array(before, dtype=np.int64), np.array(after, dtype=np.int64))

    def changes(self) -> int:
        """A number that grows with the writes to the store."""
        return self._number(
            "SELECT (SELECT coalesce(max(sequence), 0) FROM feed) + (SELECT coalesce(max(id), 0) FROM record)"
        )

    def corpus(self, scopes: Sequence[int] | None) -> CorpusCounts:
        """Figures of the current records in these scopes, None for all of them."""
        within = self._within(scopes)
        records = self._number(f"SELECT count(*) FROM record r WHERE {_OPEN} AND {within.sql}", within.values)
        # Without a scope the sample is of pages from everywhere.
        share = 100.0 * min(1.0, 2 * _SAMPLE / max(records, 1))
        sampled = f"TABLESAMPLE SYSTEM ({share:f}) REPEATABLE (0)" if scopes is None and share < 100 else ""
        counts = self._execute(
            "SELECT string_agg(counts || '\\x00'::bytea, ''::bytea) FROM (SELECT t.counts "
            f"FROM record_terms t {sampled} JOIN record r ON r.id = t.record_id "
            f"WHERE {_OPEN} AND {within.sql} LIMIT {_SAMPLE}) sampled",
            within.values,
        ).get
        marked = np.frombuffer(counts or b"", dtype=np.uint8)
        ended = int(np.count_nonzero(marked == 0))
        words = float((marked & np.uint8(MOST)).sum(dtype=np.int64))
        # A record whose text has no words has no term list.
        return CorpusCounts(records, words / ended if ended and words else 1.0, self.changes())

    def frequencies(self, scopes: Sequence[int] | None, terms: Sequence[int]) -> dict[int, int]:
        """The number of current records in these scopes that have each word; -1 if no closed version has it either."""
        has = "term_numbers(t.terms) @> ARRAY[c.value::int]"
        bound: tuple[object, ...] = ()
        joined = f"(SELECT count(*) FROM record r JOIN record_terms t ON t.record_id = r.id WHERE {has} AND"
        if scopes is None:
            # To look up the record of each takes ten times as long as to count them, and closed versions are few.
            every, closed = f"(SELECT count(*) FROM record_terms t WHERE {has})", "r.recorded_until IS NOT NULL)"
        else:
            within, bound = f"r.scope_id {IN_ARRAY.replace('?', '?2')}", (self._id_array(scopes),)
            every, closed = f"{joined} {within})", f"r.recorded_until IS NOT NULL AND {within})"
        rows = self._rows(
            f"SELECT c.value, {every}, {joined} {closed} FROM carray(?1) c", (self._id_array(terms), *bound)
        )
        return {term: count - closed if count else -1 for term, count, closed in rows}

    def _admitting(self, filter: Filter, now: int) -> Condition:
        return Condition("r.indexed") & self._tx.conditions.matching(filter, now)

    def _within(self, scopes: Sequence[int] | None) -> Condition:
        if scopes is None:
            return Condition("true")
        return Condition(f"r.scope_id {IN_ARRAY}", (self._id_array(scopes),))

    def _ids(self, sql: str, bound: Sequence[object]) -> NDArray[np.int64]:
        """Row ids in the order of a statement whose column is `id`."""
        packed = self._execute(f"SELECT string_agg(int8send(id), ''::bytea) FROM ({sql}) found", tuple(bound)).get
        return np.frombuffer(packed or b"", dtype=_IDS).astype(np.int64)


def _ids_and_sizes(packed: bytes | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    pairs = np.frombuffer(packed or b"", dtype=_IDS_AND_SIZES)
    return pairs["id"].astype(np.int64), pairs["size"].astype(np.int64)


def _beside(direction: str, order: str) -> str:
    """The two records on one side of `r` in its source: by position, those without one last; then by id.

    Two parts, so that each is read from the index in order.
    """
    chained = "FROM record n WHERE n.source_id = r.source_id AND n.recorded_until IS NULL AND n.indexed"
    ordered = f"ORDER BY n.position {order}, n.id {order} LIMIT 2"
    placed = f"SELECT n.id, n.position {chained} AND (n.position, n.id) {direction} (r.position, r.id) {ordered}"
    bare = f"SELECT n.id, n.position {chained} AND n.position IS NULL AND "
    if direction == ">":
        bare += f"(r.position IS NOT NULL OR n.id > r.id) {ordered}"
        return f"({placed}) UNION ALL ({bare})"
    bare += f"r.position IS NULL AND n.id < r.id {ordered}"
    every = f"SELECT n.id, n.position {chained} AND r.position IS NULL AND n.position IS NOT NULL {ordered}"
    return f"({placed}) UNION ALL ({bare}) UNION ALL ({every})"


def _chain(direction: str, order: str, nulls: str) -> str:
    return (
        f"LATERAL (SELECT array_agg(id) AS ids FROM (SELECT id FROM ({_beside(direction, order)}) beside "
        f"ORDER BY position {order} NULLS {nulls}, id {order} LIMIT 2) two)"
    )


_CHAINS = (
    "SELECT DISTINCT pair.before, pair.after FROM (SELECT r.id, b.ids AS before, a.ids AS after FROM carray(?) c JOIN "
    "record r ON r.id = c.value AND r.source_id IS NOT NULL AND r.recorded_until IS NULL JOIN "
    f"{_chain('<', 'DESC', 'FIRST')} b ON true JOIN {_chain('>', 'ASC', 'LAST')} a ON true) found JOIN LATERAL (VALUES "
    "(before[2], before[1]), (before[1], found.id), (found.id, after[1]), (after[1], after[2])) pair(before, after) ON "
    "true WHERE pair.before IS NOT NULL AND pair.after IS NOT NULL"
)
