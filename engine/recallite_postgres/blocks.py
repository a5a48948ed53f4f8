"""Bulk reads for the in-memory index: the rows of a block in one value, which NumPy reads as it is.

COPY would send a message for each row: psycopg takes 1.5 times as long for these.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recallite.store.packing import PackedVectors, pack
from recallite.store.sql.blocks import COLUMNS, ROWS_A_BLOCK, Blocks, Table, term_block
from recallite.store.values import Columns, EmbedderRow, LinkBlock, TermBlock, TokenBlock

# The columns of a block, as SQL and in PostgreSQL's binary format.
_TYPES = {"importance": ">f8", "scopes": ">i4", "kinds": ">i4", "resolved": "u1"}
_COLUMNS = {
    name: (f"({sql})::int4" if _TYPES.get(name) == ">i4" else sql, _TYPES.get(name, ">i8"))
    for name, sql in {**COLUMNS, "kinds": "k.id"}.items()
}
# `record_send` makes of a row the number of its fields, and before each field its type and its size.
_ROW = np.dtype(
    [
        ("fields", ">i4"),
        *(
            field
            for name, (_, type) in _COLUMNS.items()
            for field in ((f"{name} type", ">i4"), (f"{name} size", ">i4"), (name, type))
        ),
    ]
)
_SELECT = (
    f"SELECT ROW({', '.join(sql for sql, _ in _COLUMNS.values())}) AS row FROM record r "
    "JOIN kind k ON k.name = r.kind WHERE r.indexed AND"
)
_IMPORTANCE_UNIT = 1e-15


class PostgresBlocks(Blocks):
    """Whole columns of the tables, of all records or of those in a scope and its descendants."""

    _scope = "/"

    def within(self, scope: str) -> PostgresBlocks:
        made = type(self)(self._tx)
        made._scope = scope
        return made

    def _inside(self) -> str:
        """The condition that a record `r` is in the scope; a path is quoted, for COPY takes no values."""
        if self._scope == "/":
            return "true"
        path = self._scope.replace("'", "''")
        return f"r.scope_id IN (SELECT id FROM scope WHERE path = '{path}' OR (path >= '{path}/' AND path < '{path}0'))"

    def columns(self, ids: Sequence[int]) -> Columns:
        listed = ",".join(map(str, ids))
        return self._columns(f"{_SELECT} r.id = ANY('{{{listed}}}'::bigint[]) AND {self._inside()} ORDER BY r.id")

    def column_range(self, bounds: tuple[int, int]) -> Columns:
        within = f"r.id > {bounds[0]} AND r.id <= {bounds[1]} AND {self._inside()}"
        return self._columns(f"{_SELECT} {within} ORDER BY r.id")

    def _columns(self, query: str) -> Columns:
        packed_rows: bytes | None = self._execute(
            f"SELECT string_agg(record_send(found.row), ''::bytea) FROM ({query}) found"
        ).get
        rows = np.frombuffer(packed_rows or b"", dtype=_ROW)
        fields: dict[str, NDArray[Any]] = {
            name: rows[name].astype(rows[name].dtype.newbyteorder("=")) for name in _COLUMNS
        }
        # Rounded as in SQLite.
        packed = (fields["importance"] / _IMPORTANCE_UNIT + 0.5).astype(np.int64)
        fields["importance"] = (packed * _IMPORTANCE_UNIT).astype(np.float32)
        return Columns(**fields, kind_numbers=dict(self._execute("SELECT name, id FROM kind")))

    def ranges(self, table: Table) -> list[tuple[int, int]]:
        source = {"columns": "record t", "terms": "record_terms t", "vectors": "vector t"}[table]
        key = "t.record_id" if table == "terms" else "t.id"
        rows = f"SELECT {key} AS id FROM {source} {self._of_record(table)}"
        # By count, not by number: ids have gaps.
        ends = self._column(
            f"SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM ({rows}) found) numbered "
            "WHERE place % ? = 0 ORDER BY 1",
            (ROWS_A_BLOCK[table],),
        )
        last: int = self._execute(f"SELECT coalesce(max(id), 0) FROM ({rows}) found").get
        return [*pairwise([0, *ends, *([last] if last > ([0, *ends])[-1] else [])])]

    def vector_range(self, embedder: EmbedderRow, bounds: tuple[int, int]) -> PackedVectors:
        numbers, values = self._execute(
            "SELECT string_agg(int8send(id) || int8send(record_id), ''::bytea), string_agg(value, ''::bytea) "
            f"FROM (SELECT t.id, t.record_id, t.value FROM vector t {self._of_record('vectors')} AND t.id > ? "
            "AND t.id <= ? AND t.embedder_id = ? AND length(t.value) = ? ORDER BY t.id) found",
            (*bounds, embedder.id, embedder.vector_bytes),
        ).fetchone()
        ids, owners = np.frombuffer(numbers or b"", dtype=">i8").astype(np.int64).reshape(-1, 2).T
        stored = np.frombuffer(values or b"", dtype=embedder.dtype).reshape(-1, embedder.dimension)
        return pack(ids, owners, stored.astype(np.float32, copy=False))

    def token_code_range(self, bounds: tuple[int, int]) -> TokenBlock:
        ids, sizes, codes = self._execute(
            "SELECT string_agg(int8send(vector_id), ''::bytea), string_agg(int4send(length(codes)), ''::bytea), "
            "string_agg(codes, ''::bytea) FROM (SELECT vector_id, codes FROM token_code WHERE vector_id > ? "
            "AND vector_id <= ? AND length(codes) % 8 = 0 ORDER BY vector_id) found",
            bounds,
        ).fetchone()
        return TokenBlock(
            np.frombuffer(ids or b"", dtype=">i8").astype(np.int64),
            np.frombuffer(sizes or b"", dtype=">i4").astype(np.int64) // 8,
            np.frombuffer(codes or b"", dtype="<u8"),
        )

    def term_range(self, bounds: tuple[int, int]) -> TermBlock:
        # A count is never 0, so a zero byte ends each record's counts.
        numbers, counts, ids = self._execute(
            "SELECT string_agg(terms, ''::bytea), string_agg(counts || '\\x00'::bytea, ''::bytea), "
            "string_agg(int8send(record_id), ''::bytea) FROM (SELECT t.record_id, t.terms, t.counts "
            f"FROM record_terms t {self._of_record('terms')} AND t.record_id > ? AND t.record_id <= ? "
            "ORDER BY t.record_id) found",
            bounds,
        ).fetchone()
        return term_block(np.frombuffer(ids or b"", dtype=">i8").astype(np.int64), numbers or b"", counts or b"")

    def links(self, ids: Sequence[int] | None = None) -> LinkBlock:
        if ids is None and self._scope != "/":
            ids = self._column(f"SELECT r.id FROM record r WHERE {self._inside()}")
        return super().links(ids)

    def _of_record(self, table: Table) -> str:
        """The records that rows `t` of a table belong to, and the condition that these are in the scope."""
        if self._scope == "/":
            return "WHERE true"
        key = "id" if table == "columns" else "record_id"
        return f"JOIN record r ON r.id = t.{key} WHERE {self._inside()}"
