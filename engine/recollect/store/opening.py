"""Opening a store, and handling the files of a closed one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

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
]


def open_store(
    path: str | os.PathLike[str], *, busy_timeout_ms: int = 10_000, durability: str = "full", key: str | None = None
) -> Store:
    """The store at `path`, created if it does not exist: a SQLite file, or ':memory:'."""
    return SqliteStore(path, busy_timeout_ms=busy_timeout_ms, durability=durability, key=key)
