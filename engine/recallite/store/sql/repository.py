"""The base of repositories: their transaction, and short ways to ask its connection.

Statements are written once, in the part of SQL that SQLite and PostgreSQL have in common, with `?` for a bound value
and `carray(?)` for an array of them, which PostgreSQL has as a function of the schema. `CROSS JOIN ... ON` and
`NOT INDEXED` tell SQLite's planner in which order to read; PostgreSQL plans without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from recallite.store.transaction import Writer


INSIDE = "this is not possible inside transaction(): call it before or after"
"""The message for what a database cannot do in a transaction, or what would end it."""
NO_LIMIT = 2**63 - 1
"""A LIMIT that both databases read as none."""
IN_ARRAY = "IN (SELECT value FROM carray(?))"
"""The condition that a column has one of the values of an array."""


class Rows(Protocol):
    """The rows that a statement returned."""

    @property
    def get(self) -> Any:
        """The value of the first row, or the row where it has several; None without a row."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchone(self) -> Any:
        """The next row; None without one."""

    def fetchall(self) -> list[Any]:
        """The rows that are left."""


class SqlConnection(Protocol):
    """A connection to a database, as the repositories use it."""

    def execute(self, sql: str, bindings: Any = ()) -> Rows:
        """Run a statement."""

    def executemany(self, sql: str, rows: Iterable[Any]) -> Any:
        """Run a statement for each row of values."""

    def changes(self) -> int:
        """The number of rows that the last statement inserted, updated or deleted."""


class Repository:
    """Part of a transaction."""

    def __init__(self, transaction: Writer) -> None:
        self._tx = transaction
        self._connection = transaction.connection
        self._execute = transaction.connection.execute
        self._insert_many = transaction.insert
        self._id_array = transaction.id_array
        self._array = transaction.array
        self._byte_array = transaction.byte_array

    def _execute_many(self, sql: str, rows: Iterable[Any]) -> None:
        """Run a statement for each of some rows. Without a row it is not even prepared, which takes 3 to 10 us."""
        if not isinstance(rows, list) or rows:
            self._connection.executemany(sql, rows)

    def _rows(self, sql: str, bindings: Any = ()) -> list[Any]:
        return self._execute(sql, bindings).fetchall()

    def _column(self, sql: str, bindings: Any = ()) -> list[Any]:
        return [row[0] for row in self._execute(sql, bindings)]

    def _number(self, sql: str, bindings: Any = ()) -> int:
        return int(self._execute(sql, bindings).get)


@cache
def insert_sql(table: str, columns: str) -> str:
    """The statement that inserts a row of these columns."""
    return f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * (columns.count(',') + 1))})"


def columns_sql(names: Sequence[str], sql: Mapping[str, str] | None = None, *, of: str = "r") -> str:
    """The columns of these names, of the table `of` unless `sql` says otherwise, with its scope `s` and source `o`."""
    elsewhere = {"scope": "s.path", "source": "o.name", **(sql or {})}
    return ", ".join(elsewhere.get(name, f"{of}.{name}") for name in names)


def within(scope: str) -> tuple[str, tuple[str, ...]]:
    """The condition on `path` that holds for a scope and its descendants, and what it binds."""
    if scope == "/":
        return "true", ()
    # '0' follows '/' in ASCII, so the range holds exactly what starts with scope + '/'.
    return "(path = ? OR (path >= ? AND path < ?))", (scope, scope + "/", scope + "0")


def json_list(column: str, order: str, rows: str) -> str:
    """A subquery that lists a column of some rows as JSON, '[]' without rows."""
    return f"(SELECT json_group_array({column} ORDER BY {order}) FROM {rows})"


# The tags of a record in their order, as JSON.
TAGS_SQL = json_list("t.name", "p.place", "record_tag p JOIN tag t ON t.id = p.tag_id WHERE p.record_id = r.id")
