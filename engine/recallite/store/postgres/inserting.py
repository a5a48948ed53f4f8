"""Many rows by one statement: the values of each column are an array, which the server takes apart again.

Faster than a statement a row by a factor of two to five. COPY would be no faster here, and is refused on tables with
row-level security.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg.adapt import Dumper
from psycopg.pq import Format

if TYPE_CHECKING:
    from recallite.store.postgres.statements import PostgresConnection

_PLAIN = re.compile(r"INSERT INTO (\w+) \(([\w, ]+)\) VALUES \(\?(?:, \?)*\)")
FEWEST_ROWS = 8
"""Fewer are inserted one by one."""
# The server holds the arrays of a statement, and what it makes of them, in memory.
_ROWS_A_STATEMENT = 1000
_TYPES_OF = (
    "SELECT attname::text, atttypid::bigint FROM pg_attribute WHERE attrelid = to_regclass(?) AND attnum > 0 "
    "AND NOT attisdropped"
)
_NULL = struct.pack(">i", -1)


class _Type(NamedTuple):
    """A type of PostgreSQL, the number of its array, and a value as an array has it."""

    name: str
    array: int
    element: Callable[[Any], bytes]


def _sized(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


_INTEGER, _REAL, _BOOLEAN = struct.Struct(">iq"), struct.Struct(">id"), struct.Struct(">i?")
_TYPES: dict[int, _Type] = {
    16: _Type("bool", 1000, lambda value: _BOOLEAN.pack(1, value)),
    17: _Type("bytea", 1001, _sized),
    20: _Type("bigint", 1016, lambda value: _INTEGER.pack(8, value)),
    25: _Type("text", 1009, lambda value: _sized(value.encode())),
    701: _Type("double precision", 1022, lambda value: _REAL.pack(8, value)),
}


class Column(NamedTuple):
    """Values of one column, None for NULL."""

    type: int
    values: Sequence[Any]


class _ColumnDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Column) -> bytes:
        element = _TYPES[obj.type].element
        head = struct.pack(">iiiii", 1, None in obj.values, obj.type, len(obj.values), 1)
        return head + b"".join([_NULL if value is None else element(value) for value in obj.values])


class _DumperOf(_ColumnDumper):
    """The dumper of a column, whose type it tells."""

    def get_key(self, obj: Column, format: Any) -> Any:
        return (self.cls, obj.type)

    def upgrade(self, obj: Column, format: Any) -> Dumper:
        dumper = _ColumnDumper(self.cls)
        dumper.oid = _TYPES[obj.type].array
        return dumper


class Inserter:
    """Inserts many rows on one connection, whose columns' types it keeps."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection
        self._types: dict[str, dict[str, int]] = {}
        connection.raw.adapters.register_dumper(Column, _DumperOf)

    def insert(self, sql: str, rows: Sequence[Sequence[Any]]) -> bool:
        """Insert rows by a plain INSERT; False where it is another statement, or too few rows."""
        plain = _PLAIN.fullmatch(sql) if len(rows) >= FEWEST_ROWS else None
        if plain is None:
            return False
        table, names = plain[1], plain[2].split(", ")
        if table not in self._types:
            self._types[table] = dict(self._connection.execute(_TYPES_OF, (table,)))
        types = [self._types[table].get(name, 0) for name in names]
        if not _TYPES.keys() >= set(types):
            return False
        arrays = ", ".join(f"?::{_TYPES[type].name}[]" for type in types)
        together = f"INSERT INTO {table} ({plain[2]}) SELECT * FROM unnest({arrays})"
        every = iter(rows)
        while some := list(islice(every, _ROWS_A_STATEMENT)):
            columns = zip(*some, strict=True)
            self._connection.execute(together, [Column(*each) for each in zip(types, columns, strict=True)])
        return True
