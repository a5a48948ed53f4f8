"""Tables of another program's SQLite file, read without writing to it or beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import apsw

from recallite.errors import InvalidInput, NotADatabase, StoreCorrupt, StoreError, StoreUnavailable
from recallite.model.checks import check_path
from recallite.store.sqlite.connection import resolve

Value: TypeAlias = str | int | float | bytes | None
_MAX_VALUE_BYTES = 256 << 20
_WAIT_MS = 10_000
_MAGIC = b"SQLite format 3\0"
_WAL_VERSION = 2  # of bytes 18 and 19 of the header


def tables(path: str | os.PathLike[str]) -> dict[str, tuple[str, ...]]:
    """The tables of a file, with their columns. Raises StoreError, as NotADatabase."""
    with _opened(check_path(path)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM pragma_table_list WHERE type = 'table'")]
        return {
            name: tuple(column for (column,) in connection.execute("SELECT name FROM pragma_table_info(?)", (name,)))
            for name in names
            if not name.startswith("sqlite_")
        }


def rows(
    path: str | os.PathLike[str], table: str, columns: Sequence[str], *, order_by: Sequence[str] = ()
) -> Iterator[tuple[Value, ...]]:
    """The rows of a table, one at a time, in the order of their row ids or of `order_by`.

    Text that is not in the encoding of the file has U+FFFD for what is wrong. InvalidInput without table or column;
    StoreError where the file is damaged, is locked, or changed while it was read.
    """
    known = tables(path)
    if table not in known:
        raise InvalidInput(f"{path} has no table {table}")
    if missing := [name for name in (*columns, *order_by) if name not in known[table]]:
        raise InvalidInput(f"{path}: the table {table} has no column {missing[0]}")
    return _rows(check_path(path), table, columns, order_by)


def _rows(path: Path, table: str, columns: Sequence[str], order_by: Sequence[str]) -> Iterator[tuple[Value, ...]]:
    # Text comes as bytes: APSW raises for a text that is not UTF-8. An index would give another order.
    values = ", ".join(
        f"typeof({name}) = 'text', CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB) ELSE {name} END"
        for name in map(_quoted, columns)
    )
    order = f" ORDER BY {', '.join(map(_quoted, order_by))}" if order_by else ""
    with _opened(path) as connection:
        encoding = str(connection.pragma("encoding"))
        for row in connection.execute(f"SELECT {values} FROM {_quoted(table)} NOT INDEXED{order}"):
            yield tuple(
                value.decode(encoding, "replace") if is_text else value
                for is_text, value in zip(row[::2], row[1::2], strict=True)
            )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _opened(path: Path) -> Iterator[apsw.Connection]:
    resolve(path)  # refuses what is no file
    immutable = _is_settled(path)
    before = path.stat()
    # Reading a file in WAL mode leaves two files beside it, unless SQLite is told that nobody writes.
    address = f"{path.as_uri()}?{'immutable=1' if immutable else 'mode=ro'}"
    try:
        connection = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            connection.set_busy_timeout(_WAIT_MS)
            connection.limit(apsw.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
            # The file's own schema runs no functions of it.
            connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
            connection.pragma("cell_size_check", True)
            connection.pragma("temp_store", "memory")
            yield connection
            after = path.stat()
            if immutable and (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
                raise StoreError(f"{path} changed while it was read: run this again")
        finally:
            connection.close(True)
    except apsw.NotADBError:
        raise NotADatabase(f"{path} is not a SQLite database, or is encrypted") from None
    except (apsw.BusyError, apsw.LockedError):
        raise StoreUnavailable(f"{path} is locked by another program: run this again when that is done") from None
    except apsw.CorruptError as fault:
        raise StoreCorrupt(f"{path} is damaged: {fault}") from None
    except (apsw.Error, OSError) as fault:
        raise StoreError(f"{path} cannot be read: {fault}") from fault


def _is_settled(path: Path) -> bool:
    """Whether a file is in WAL mode and has all its transactions itself."""
    try:
        with path.open("rb") as stream:
            header = stream.read(20)
    except OSError as fault:
        raise StoreError(f"{path} cannot be read: {fault.strerror}") from fault
    if header and not header.startswith(_MAGIC):
        raise NotADatabase(f"{path} is not a SQLite database, or is encrypted")
    try:
        return header[18:] == bytes((_WAL_VERSION, _WAL_VERSION)) and os.path.getsize(f"{path}-wal") == 0
    except FileNotFoundError:
        return True
