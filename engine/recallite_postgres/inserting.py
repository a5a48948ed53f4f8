"""Many rows at once: by COPY, and for a tenant by one statement with an array for each column.

A record with its vector takes the server 58 us by COPY and 66 by arrays. PostgreSQL refuses
COPY to roles that row-level security confines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from psycopg.types.array import ListBinaryDumper

from recallite_postgres.statements import PostgresConnection

FEWEST_ROWS = 8
"""Fewer are inserted one by one."""
# Arrays are in memory once more, encoded, and in the server's memory too.
_ROWS_OF_ARRAYS = 2048
_COLUMNS_OF = (
    "SELECT attname::text, format_type(atttypid, NULL), row_security_active(attrelid) FROM pg_attribute "
    "WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped"
)
_REAL = "double precision"


class _Table(NamedTuple):
    """The types of a table's columns, and whether row-level security confines this role."""

    types: dict[str, str]
    confined: bool


class Inserter:
    """Inserts many rows on one connection, whose tables it keeps in mind."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection
        self._tables: dict[str, _Table] = {}
        connection.raw.adapters.register_dumper(list, ListBinaryDumper)

    def insert(self, table: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> bool:
        """Insert rows of these columns; False if they are few."""
        if len(rows) < FEWEST_ROWS:
            return False
        types, confined = self._table(table)
        into = f"{table} ({', '.join(names)})"
        if not confined:
            self._connection.copy(f"COPY {into} FROM STDIN (FORMAT BINARY)", [types[name] for name in names], rows)
            return True
        arrays = ", ".join(f"?::{types[name]}[]" for name in names)
        for start in range(0, len(rows), _ROWS_OF_ARRAYS):
            columns = zip(*rows[start : start + _ROWS_OF_ARRAYS], strict=True)
            values = [_array(types[name], column) for name, column in zip(names, columns, strict=True)]
            self._connection.execute(f"INSERT INTO {into} SELECT * FROM unnest({arrays})", values)
        return True

    def _table(self, name: str) -> _Table:
        if name not in self._tables:
            rows = self._connection.execute(_COLUMNS_OF, (name,)).fetchall()
            self._tables[name] = _Table({column: type for column, type, _ in rows}, any(row[2] for row in rows))
        return self._tables[name]


def _array(type: str, column: Sequence[Any]) -> list[Any]:
    """The values of a column, of one class, as psycopg takes them for an array."""
    return [None if value is None else float(value) for value in column] if type == _REAL else [*column]
