"""Opening a store, and handling the files of a closed one."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from recallite.checks import check_path, is_address
from recallite.errors import InvalidInput
from recallite.store.postgres.address import parse_address
from recallite.store.sqlite.damage import proven_damage
from recallite.store.sqlite.files import copy_database, files_beside, is_file_of, remove_database, rename_database
from recallite.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from recallite.store.protocol import Store

__all__ = [
    "copy_database",
    "files_beside",
    "is_address",
    "is_file_of",
    "open_store",
    "proven_damage",
    "remove_database",
    "rename_database",
    "shown_path",
    "store_exists",
]

# Of two letters at least: C:/ is a drive.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def open_store(
    path: str | os.PathLike[str],
    *,
    busy_timeout_ms: int = 10_000,
    durability: str = "full",
    key: str | None = None,
    pool_size: int = 8,
    statement_timeout_ms: int = 60_000,
    server_wait_ms: int = 30_000,
    standby_lag_ms: int = 10_000,
    unfinished: bool = False,
) -> Store:
    """The store at `path`, created if it does not exist: a SQLite file, ':memory:', or an address of PostgreSQL.

    Raises StoreError for an unfinished copy, unless `unfinished`.
    """
    if not is_address(path):
        _refuse_other_schemes(path)
        return SqliteStore(path, busy_timeout_ms=busy_timeout_ms, durability=durability, key=key, unfinished=unfinished)
    if key is not None:
        raise InvalidInput(f"{parse_address(str(path))} is on a server, which encrypts its disks itself: leave key out")
    parse_address(str(path))  # says which package is missing
    from recallite.store.postgres.store import PostgresStore

    return PostgresStore(
        str(path),
        busy_timeout_ms=busy_timeout_ms,
        durability=durability,
        pool_size=pool_size,
        statement_timeout_ms=statement_timeout_ms,
        server_wait_ms=server_wait_ms,
        standby_lag_ms=standby_lag_ms,
        unfinished=unfinished,
    )


def store_exists(path: str | os.PathLike[str]) -> bool:
    """Whether there is a store at a path or an address; one in memory is always new."""
    if not is_address(path):
        _refuse_other_schemes(path)
        return path == ":memory:" or check_path(path).exists()
    address = parse_address(str(path))
    from recallite.store.postgres.migrating import holds_memory

    return holds_memory(address)


def _refuse_other_schemes(path: object) -> None:
    """Refuse what was meant as an address, without repeating it: it may have a password."""
    if isinstance(path, str) and _SCHEME.match(path):
        raise InvalidInput("path looks like an address, and begins neither with postgresql:// nor with postgres://")


def shown_path(path: str | os.PathLike[str]) -> str:
    """A path or an address, without its password, for messages."""
    if not is_address(path):
        return os.fspath(path)
    return str(parse_address(str(path)))
