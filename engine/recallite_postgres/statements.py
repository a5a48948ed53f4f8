"""Statements of the repositories, as PostgreSQL takes them, and a connection that runs them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import RawCursor

_PLACEHOLDER = re.compile(r"'[^']*'|\?(\d*)")


@lru_cache(maxsize=2048)
def statement(sql: str) -> bytes:
    """A statement with `$1` for the first bound value, and without hints for SQLite's planner."""
    count = 0

    def numbered(match: re.Match[str]) -> str:
        nonlocal count
        if match[0].startswith("'"):
            return match[0]
        number = int(match[1]) if match[1] else count + 1
        count = max(count, number)
        return f"${number}"

    return _PLACEHOLDER.sub(numbered, sql).replace(" NOT INDEXED", "").replace(" CROSS JOIN ", " JOIN ").encode()


class PostgresRows:
    """The rows that a statement returned, all of them in this process."""

    def __init__(self, cursor: RawCursor[tuple[Any, ...]]) -> None:
        self._cursor = cursor

    @property
    def get(self) -> Any:
        """The value of the first row, or the row where it has several; None without a row."""
        row = self._cursor.fetchone()
        return row if row is None or len(row) > 1 else row[0]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._cursor)

    def fetchone(self) -> Any:
        return self._cursor.fetchone()

    def fetchall(self) -> list[Any]:
        return self._cursor.fetchall()


class PostgresConnection:
    """A connection of psycopg, for the repositories: values travel in binary form."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.raw = connection
        self._changes = 0

    def execute(self, sql: str, bindings: Sequence[Any] = ()) -> PostgresRows:
        """Run a statement."""
        cursor: RawCursor[tuple[Any, ...]] = RawCursor(self.raw)
        cursor.execute(statement(sql), bindings or None, binary=True)
        self._changes = cursor.rowcount
        return PostgresRows(cursor)

    def executemany(self, sql: str, rows: Iterable[Any]) -> None:
        """Run a statement for each row of values; psycopg sends them without waiting for each answer."""
        rows = list(rows)
        if not rows:
            return
        cursor: RawCursor[tuple[Any, ...]] = RawCursor(self.raw)
        cursor.executemany(statement(sql), rows)
        self._changes = cursor.rowcount

    def changes(self) -> int:
        """The number of rows that the last statement inserted, updated or deleted."""
        return self._changes

    def copy(self, statement: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Run COPY ... FROM STDIN (FORMAT BINARY) with rows whose columns have these types."""
        with self.raw.cursor().copy(statement.encode()) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)
