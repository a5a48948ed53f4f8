"""Bulk reads for the in-memory index: whole columns at a time, in row-id order.

Small blobs are concatenated by SQLite (`group_concat` is byte-exact for blobs) without the GIL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import apsw
import msgspec
import numpy as np

from recallite.store.packing import PackedVectors
from recallite.store.rows import read_rows
from recallite.store.sql.blocks import COLUMNS, ROWS_A_BLOCK, Blocks, Table, packed_rows, term_block
from recallite.store.sql.repository import IN_ARRAY
from recallite.store.sqlite.arrays import id_array
from recallite.store.sqlite.connection import CACHE_KIB
from recallite.store.values import Columns, EmbedderRow, TermBlock

# Of pages that are read once: with the cache that recall uses, reading a million vectors took 1.25 times as long, and
# left 64 MB behind.
_PASSING_CACHE_KIB = 512

_IMPORTANCE_UNIT = 1e-15
_COLUMNS = {**COLUMNS, "importance": f"CAST(round({COLUMNS['importance']} * 1e15) AS INTEGER)"}
_TYPES = {"scopes": np.int32, "kinds": np.int32, "resolved": np.uint8, "authorities": np.uint8}
_ColumnsOfOne = NamedTuple("_ColumnsOfOne", [(name, int) for name in _COLUMNS])  # type: ignore[misc]
_numbers = msgspec.json.Decoder(list[int])


class _Kind(NamedTuple):
    name: str
    id: int


class SqliteBlocks(Blocks):
    """Whole columns of the tables, concatenated by SQLite."""

    @contextmanager
    def reading_all(self) -> Iterator[None]:
        connection: apsw.Connection = self._tx.connection  # type: ignore[assignment]
        connection.pragma("cache_size", -_PASSING_CACHE_KIB)
        try:
            yield
        finally:
            connection.pragma("cache_size", -CACHE_KIB)

    def columns(self, ids: Sequence[int]) -> Columns:
        rows = self._rows(
            f"SELECT {', '.join(_COLUMNS.values())} FROM record r WHERE r.indexed AND r.id {IN_ARRAY} ORDER BY r.id",
            (id_array(ids),),
        )
        return self._columns([*zip(*read_rows(rows, _ColumnsOfOne, "record"), strict=True)] or [()] * len(_COLUMNS))

    def column_range(self, bounds: tuple[int, int]) -> Columns:
        # A range of row ids is walked in their order. As JSON, without the GIL: rows take 1.6 times as long.
        lists = ", ".join(f"json_group_array({sql})" for sql in _COLUMNS.values())
        row: Any = self._execute(
            f"SELECT {lists} FROM record r WHERE r.indexed AND r.id > ? AND r.id <= ?", bounds
        ).fetchone()
        try:
            return self._columns([_numbers.decode(column) for column in row])
        except msgspec.ValidationError:  # row by row, which names the record
            return self.columns(self._column("SELECT id FROM record WHERE id > ? AND id <= ?", bounds))

    def _columns(self, lists: Sequence[Sequence[int]]) -> Columns:
        fields: dict[str, Any] = {
            name: np.array(numbers, dtype=np.int64).astype(_TYPES.get(name, np.int64), copy=False)
            for name, numbers in zip(_COLUMNS, lists, strict=True)
        }
        fields["importance"] = (fields["importance"] * _IMPORTANCE_UNIT).astype(np.float32)
        kinds = read_rows(self._execute("SELECT name, id FROM kind"), _Kind, "kind")
        return Columns(**fields, kind_numbers=dict(kinds))

    def ranges(self, table: Table) -> list[tuple[int, int]]:
        name = {"columns": "record", "terms": "record_terms", "vectors": "vector"}[table]
        key = "record_id" if table == "terms" else "id"
        last: int = self._execute(f"SELECT coalesce(max({key}), 0) FROM {name}").get
        chunk = ROWS_A_BLOCK[table]
        return [(start, start + chunk) for start in range(0, last, chunk)]

    def vector_range(self, embedder: EmbedderRow, bounds: tuple[int, int]) -> PackedVectors:
        # A range of row ids is walked in their order. Concatenating values and ids in SQLite takes as long.
        return packed_rows(
            self._rows(
                "SELECT id, record_id, value FROM vector WHERE id > ? AND id <= ? AND embedder_id = ? ORDER BY id",
                (*bounds, embedder.id),
            ),
            embedder.dimension,
        )

    def term_range(self, bounds: tuple[int, int]) -> TermBlock:
        rows_of = "FROM record_terms WHERE record_id > ? AND record_id <= ?"
        # A count is never 0, so a zero byte ends each record's counts.
        row: Any = self._execute(
            f"SELECT CAST(group_concat(terms, '') AS BLOB), CAST(group_concat(counts || x'00', '') AS BLOB) {rows_of}",
            bounds,
        ).fetchone()
        numbers, counts = row[0] or b"", row[1] or b""
        ends: Any = self._execute(
            "SELECT (SELECT min(record_id) FROM record_terms WHERE record_id > ?), "
            "(SELECT max(record_id) FROM record_terms WHERE record_id <= ?)",
            bounds,
        ).fetchone()
        count = counts.count(b"\0")
        if count and ends[1] - ends[0] + 1 == count:
            ids = np.arange(ends[0], ends[1] + 1, dtype=np.int64)
        else:
            rows = self._rows(f"SELECT record_id {rows_of} ORDER BY record_id", bounds)
            ids = np.array(rows, dtype=np.int64).ravel()
        return term_block(ids, numbers, counts)
