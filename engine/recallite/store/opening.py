"""Opening a store, and handling the files of a closed one; `foreign` reads the files of other programs."""

from __future__ import annotations

import os
import re
from typing import Protocol, TypedDict, Unpack

from recallite.errors import InvalidInput
from recallite.model.checks import check_path, is_address
from recallite.store.columns import Derive
from recallite.store.sqlite import foreign
from recallite.store.sqlite.connection import files_beside, is_file_of, remove_database, rename_database
from recallite.store.sqlite.restoring import discard, proven_damage, put_back
from recallite.store.sqlite.store import SqliteStore
from recallite.store.store import Store
from recallite.system import plugins

__all__ = [
    "discard",
    "files_beside",
    "foreign",
    "is_file_of",
    "open_store",
    "proven_damage",
    "put_back",
    "remove_database",
    "rename_database",
    "shown_path",
    "store_exists",
]

# Of two letters at least: C:/ is a drive.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_SERVER_OPTION = re.compile(r"[?&](pool_size|statement_timeout_ms|server_wait_ms|standby_lag_ms|schema)=")


class StoreOptions(TypedDict, total=False):
    """The settings that a store is opened with; a kind of store ignores what does not apply to it.

    Without `derive` it can be read, copied and searched, and no record can be written or verified.
    """

    busy_timeout_ms: int
    durability: str
    vector_type: str
    unfinished: bool
    derive: Derive


class Scheme(Protocol):
    """An entry point of the group `recallite.stores`, named by the scheme of the addresses that it opens."""

    def open(self, address: str, **options: Unpack[StoreOptions]) -> Store:
        """The store at an address, created if it does not exist."""

    def exists(self, address: str) -> bool:
        """Whether there is a store at an address."""

    def shown(self, address: str) -> str:
        """The address without its password, for messages. Raises InvalidInput for a malformed one, as the others do."""


def open_store(
    path: str | os.PathLike[str], *, key: str | None = None, sql_search: bool = False, **options: Unpack[StoreOptions]
) -> Store:
    """The store at `path`, created if it does not exist: a SQLite file, ':memory:', or an address.

    With `sql_search` a file gets its tables. Raises StoreError for an unfinished copy, unless `unfinished`.
    """
    if not is_address(path):
        _refuse_other_schemes(path)
        return SqliteStore(path, key=key, sql_search=sql_search, **options)
    scheme, address = _scheme(path)
    if key is not None:
        raise InvalidInput(f"key encrypts a file, and {scheme.shown(address)} is none: leave key out")
    if sql_search:
        raise InvalidInput(f"sql_search makes tables in a file, and {scheme.shown(address)} is none: leave it out")
    return scheme.open(address, **options)


def store_exists(path: str | os.PathLike[str]) -> bool:
    """Whether there is a store at a path or an address; one in memory is always new."""
    if not is_address(path):
        _refuse_other_schemes(path)
        return path == ":memory:" or check_path(path).exists()
    scheme, address = _scheme(path)
    return scheme.exists(address)


def _scheme(path: str | os.PathLike[str]) -> tuple[Scheme, str]:
    """The scheme that opens an address, and the address."""
    address = str(path)
    name = address.partition(":")[0]
    return plugins.load("stores", plugins.registered_name("stores", name) or name), address


def _refuse_other_schemes(path: object) -> None:
    """Refuse what was meant as an address, without repeating it: it may have a password."""
    if isinstance(path, str) and _SCHEME.match(path):
        known = " or ".join(f"{name}://" for name in plugins.names("stores"))
        raise InvalidInput(
            f"path looks like an address, and does not begin with {known}: mend it, or install what opens it"
        )
    if isinstance(path, str) and (option := _SERVER_OPTION.search(path)):
        raise InvalidInput(f"{option[1]} is for the address of a server, and path is a file: leave it out")


def shown_path(path: str | os.PathLike[str]) -> str:
    """A path or an address, without its password, for messages."""
    if not is_address(path):
        return os.fspath(path)
    scheme, address = _scheme(path)
    return scheme.shown(address)
