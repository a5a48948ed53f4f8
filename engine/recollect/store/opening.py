"""Opening a store, and handling the files of a closed one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from recollect.checks import check_path, is_address
from recollect.errors import InvalidInput
from recollect.store.postgres.address import parse_address
from recollect.store.sqlite.damage import proven_damage
from recollect.store.sqlite.files import copy_database, files_beside, is_file_of, remove_database, rename_database
from recollect.store.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from recollect.store.protocol import Store

__all__ = [
    "copy_database",
    "files_beside",
    "is_file_of",
    "open_store",
    "proven_damage",
    "remove_database",
    "rename_database",
    "shown_path",
    "store_exists",
]


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
) -> Store:
    """The store at `path`, created if it does not exist: a SQLite file, ':memory:', or an address of PostgreSQL."""
    if not is_address(path):
        return SqliteStore(path, busy_timeout_ms=busy_timeout_ms, durability=durability, key=key)
    if key is not None:
        raise InvalidInput(f"{parse_address(str(path))} is on a server, which encrypts its disks itself: leave key out")
    parse_address(str(path))  # says which package is missing
    from recollect.store.postgres.store import PostgresStore

    return PostgresStore(
        str(path),
        busy_timeout_ms=busy_timeout_ms,
        durability=durability,
        pool_size=pool_size,
        statement_timeout_ms=statement_timeout_ms,
        server_wait_ms=server_wait_ms,
        standby_lag_ms=standby_lag_ms,
    )


def store_exists(path: str) -> bool:
    """Whether there is a store at a path or an address; one in memory is always new."""
    if not is_address(path):
        return path == ":memory:" or check_path(path).exists()
    address = parse_address(path)
    from recollect.store.postgres.migrating import holds_memory

    return holds_memory(address)


def shown_path(path: str) -> str:
    """A path or an address, without its password, for messages."""
    if not is_address(path):
        return path
    return str(parse_address(path))
