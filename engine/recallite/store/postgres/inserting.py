"""Many rows at once: by COPY, and for a tenant by one statement with an array for each column.

A record with its vector takes the server 58 us by COPY and 66 by arrays. PostgreSQL refuses
COPY to roles that row-level security confines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg.adapt import Dumper
from psycopg.pq import Format

from recallite.store.postgres.encoding import TYPES, Column, as_array, as_copied

if TYPE_CHECKING:
    from recallite.store.postgres.statements import PostgresConnection

FEWEST_ROWS = 8
"""Fewer are inserted one by one."""
# They are in memory once more, encoded; arrays are in the server's memory too.
_ROWS_A_STATEMENT = 2048
_COLUMNS_OF = (
    "SELECT attname::text, atttypid::bigint, row_security_active(attrelid) FROM pg_attribute "
    "WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped"
)


class _ColumnDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Column) -> bytes:
        return as_array(obj)


class _DumperOf(_ColumnDumper):
    """The dumper of a column, whose type it tells."""

    def get_key(self, obj: Column, format: Any) -> Any:
        return (self.cls, obj.type)

    def upgrade(self, obj: Column, format: Any) -> Dumper:
        dumper = _ColumnDumper(self.cls)
        dumper.oid = TYPES[obj.type].array
        return dumper


class _Table(NamedTuple):
    """The types of a table's columns, and whether row-level security confines this role."""

    types: dict[str, int]
    confined: bool


class Inserter:
    """Inserts many rows on one connection, whose tables it keeps in mind."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection
        self._tables: dict[str, _Table] = {}
        connection.raw.adapters.register_dumper(Column, _DumperOf)

    def insert(self, table: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> bool:
        """Insert rows of these columns; False if they are few, or a column's type is not one of `TYPES`."""
        if len(rows) < FEWEST_ROWS:
            return False
        types, confined = self._table(table)
        if not TYPES.keys() >= {types.get(name) for name in names}:
            return False
        columns = [*zip(*rows, strict=True)]
        into = f"{table} ({', '.join(names)})"
        arrays = ", ".join(f"?::{TYPES[types[name]].name}[]" for name in names)
        for start in range(0, len(columns[0]), _ROWS_A_STATEMENT):
            some = [
                Column(types[name], values[start : start + _ROWS_A_STATEMENT])
                for name, values in zip(names, columns, strict=True)
            ]
            if confined:
                self._connection.execute(f"INSERT INTO {into} SELECT * FROM unnest({arrays})", some)
            else:
                self._connection.copy(f"COPY {into} FROM STDIN (FORMAT BINARY)", as_copied(some))
        return True

    def _table(self, name: str) -> _Table:
        if name not in self._tables:
            rows = self._connection.execute(_COLUMNS_OF, (name,)).fetchall()
            self._tables[name] = _Table({column: type for column, type, _ in rows}, any(row[2] for row in rows))
        return self._tables[name]
