"""Opening a database file through APSW, with checks of the file and of SQLite, and the same pragmas for all."""

from __future__ import annotations

import os
import stat
import time
from functools import cache

import apsw

from recallite.errors import NotADatabase, StoreError, WrongKey
from recallite.model.checks import check_path, encodable
from recallite.store.sqlite.faults import not_writable, translated
from recallite.store.sqlite.held_files import mark_file, open_immutable
from recallite.store.sqlite.keys import Key, refuse_unfit
from recallite.store.sqlite.schema import APPLICATION_ID, MIGRATIONS, PAGE_SIZE_BYTES, SCHEMA, SCHEMA_VERSION
from recallite.system.telemetry import logger

_log = logger(__name__)
MEMORY = ":memory:"
# 3.51.3 fixes a race that could corrupt a WAL database at a checkpoint.
_MINIMUM_SQLITE = (3, 51, 3)
CACHE_KIB = 32 * 1024
# Not mapped: if a mapped file is truncated or its disk fails, the process ends by SIGBUS. With read() a recall from
# 100,000 records takes 2 % more processor time, and a load of their index 5 %.
_MAPPED_BYTES = 0


def resolve(path: str | os.PathLike[str]) -> str:
    """The absolute path of a store, or ':memory:'; a directory, a FIFO or a missing folder is refused."""
    if isinstance(path, str) and path == MEMORY:
        return MEMORY
    full = check_path(path)
    encodable(str(full), "path")
    try:
        mode = full.stat().st_mode
    except FileNotFoundError:
        if not full.parent.is_dir():
            raise StoreError(f"the folder {full.parent} does not exist: create it first") from None
    except OSError as fault:
        raise StoreError(f"{full} cannot be opened: {fault.strerror}") from fault
    else:
        if stat.S_ISDIR(mode):
            raise NotADatabase(f"{full} is a directory: give the path of a file, e.g. {full / 'memory.db'}")
        if not stat.S_ISREG(mode):
            raise NotADatabase(f"{full} is not a regular file: give another path")
    return str(full)


def open_connection(
    path: str, *, busy_timeout_ms: int, durability: str, readonly: bool = False, key: Key | None = None
) -> apsw.Connection:
    """An open connection to `path` with the schema in place.

    The file of another program, or of another key, is refused before anything is written to it.
    """
    _require_sqlite()
    try:
        return _open(path, busy_timeout_ms, durability, readonly, key)
    except (NotADatabase, WrongKey):
        # Another process may just have created the file, with a salt of its own, or changed its key.
        return _open(path, busy_timeout_ms, durability, readonly, key)


def open_unwritable(path: str, *, busy_timeout_ms: int, key: Key | None = None) -> apsw.Connection:
    """A connection to a store that writes nothing, neither to the file nor beside it.

    Without a WAL nobody has the store open, and the file is read as it is. With one, a process that has it open also
    has made the index of the WAL; else that is made in memory.
    """
    _require_sqlite()
    try:
        connection = _open(path, busy_timeout_ms, "full", True, key, unlocked=not os.path.exists(f"{path}-wal"))
    except StoreError as fault:
        if not isinstance(fault.__cause__, apsw.CantOpenError):
            raise
        connection = _open(path, busy_timeout_ms, "full", True, key, unlocked=True)
    try:
        with translated(path, connection, encrypted=key is not None):
            if not check_ours(connection, path):
                raise NotADatabase(f"{path} is empty: give the path of a store")
    except BaseException:
        connection.close(True)
        raise
    return connection


def _unlocked(path: str, key: Key | None) -> apsw.Connection:
    """A connection that takes no lock: it has the index of a WAL to itself, and reads a file without one as it is."""
    wal = f"{path}-wal"
    if not os.path.exists(wal) or not os.path.getsize(wal):
        return open_immutable(path)
    system = "win32-none" if os.name == "nt" else "unix-none"
    vfs = system if key is None else f"multipleciphers-{system}"
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY, vfs=vfs)
    connection.execute("PRAGMA locking_mode = exclusive")
    return connection


def _open(
    path: str, busy_timeout_ms: int, durability: str, readonly: bool, key: Key | None, *, unlocked: bool = False
) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    with translated(path):
        connection = _unlocked(path, key) if unlocked else apsw.Connection(path, flags=flags)
    try:
        with translated(path, connection, encrypted=key is not None):
            connection.set_busy_timeout(busy_timeout_ms)
            if path != MEMORY:
                refuse_unfit(connection, key, path)
                if key is not None:
                    key.unlock(connection)
            if not readonly:
                _claim(connection, path)
                _use_wal(connection, busy_timeout_ms)
                connection.pragma("synchronous", "full" if durability == "full" else "normal")
                connection.pragma("foreign_keys", True)
                # Overwrites what is deleted instead of leaving it in free pages; bulk writing is not slower.
                connection.pragma("secure_delete", True)
                _migrate(connection)
            connection.pragma("cache_size", -CACHE_KIB)
            connection.pragma("temp_store", "memory")
            connection.pragma("mmap_size", _MAPPED_BYTES)
            _load_sqlite_vec(connection)
    except BaseException:
        connection.close(True)
        raise
    return connection


def sqlite_vec_version(connection: apsw.Connection) -> str | None:
    """The name and version of sqlite-vec; None if it could not be loaded."""
    try:
        version: str = connection.execute("SELECT vec_version()").get
    except apsw.SQLError:
        return None
    return f"sqlite-vec {version}"


def _require_sqlite() -> None:
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split(".")[:3])
    if version < _MINIMUM_SQLITE:
        raise StoreError(
            f"SQLite {apsw.sqlite_lib_version()} is too old for concurrent use: "
            f"install apsw>={'.'.join(map(str, _MINIMUM_SQLITE))}"
        )


def _claim(connection: apsw.Connection, path: str) -> None:
    """Refuse the file of another program; prepare a new one. Reads before it writes."""
    if connection.readonly("main"):
        raise not_writable(path)
    if not check_ours(connection, path):
        connection.pragma("page_size", PAGE_SIZE_BYTES)


def check_ours(connection: apsw.Connection, path: str) -> bool:
    """Refuse the file of another program or of a newer version; False for one that is empty."""
    # In one transaction: another process may be creating the schema.
    connection.execute("BEGIN")
    application_id = connection.pragma("application_id")
    version = connection.pragma("user_version")
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").get
    connection.execute("COMMIT")
    if application_id == 0 and version == 0 and tables == 0:
        return False
    if application_id != APPLICATION_ID:
        raise NotADatabase(
            f"{path} is a database of another program (application id {application_id:#x}, {tables} tables): "
            "give another path; the file was left as it is"
        )
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{path} has schema {version} and this Recallite knows up to {SCHEMA_VERSION}: upgrade recallite",
            "newer_schema",
        )
    return True


def _use_wal(connection: apsw.Connection, busy_timeout_ms: int) -> None:
    """Switch to WAL, waiting for other processes that are opening the file; SQLite itself does not wait here."""
    deadline = time.monotonic() + busy_timeout_ms / 1000
    while True:
        try:
            connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.005)
        else:
            return


def _migrate(connection: apsw.Connection) -> None:
    if connection.pragma("user_version") == SCHEMA_VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have migrated while this one waited for the lock.
        before = connection.pragma("user_version")
        for step in MIGRATIONS[before - 1 :] if before else [SCHEMA]:
            connection.execute(step).fetchall()
        if before == 0:
            mark_file(connection, copy=False)
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", SCHEMA_VERSION)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    name = connection.filename or MEMORY
    if before == 0:
        _log.info("created %s with schema %d", name, SCHEMA_VERSION)
    elif before != SCHEMA_VERSION:
        _log.info("migrated %s from schema %d to %d", name, before, SCHEMA_VERSION)


def _load_sqlite_vec(connection: apsw.Connection) -> None:
    try:
        import sqlite_vec
    except ImportError:
        _tell_without_vec("is not installed")
        return
    connection.enable_load_extension(True)
    try:
        connection.load_extension(sqlite_vec.loadable_path())
    except apsw.ExtensionLoadingError:
        _tell_without_vec("cannot be loaded")
        return
    finally:
        connection.enable_load_extension(False)


@cache
def _tell_without_vec(why: str) -> None:
    """Once in a process: every connection would say the same."""
    _log.warning("sqlite-vec %s: SQL has no vector functions; Python measures vectors instead", why)
