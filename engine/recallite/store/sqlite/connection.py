"""A database file: opened with checks and the same pragmas for all, its other files, and its checkpoints."""

from __future__ import annotations

import glob
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import apsw

from recallite.errors import NotADatabase, StoreError, WrongKey
from recallite.model.checks import check_path, encodable
from recallite.store.sqlite.encryption import Key, refuse_unfit
from recallite.store.sqlite.faults import not_writable, translated
from recallite.store.sqlite.held_files import aside_of, mark_file, open_immutable
from recallite.store.sqlite.schema import APPLICATION_ID, MIGRATIONS, PAGE_SIZE_BYTES, SCHEMA, SCHEMA_VERSION
from recallite.system.telemetry import logger
from recallite.system.turnstile import Background

_log = logger(__name__)
MEMORY = ":memory:"
BEFORE = "-before-"  # and a time, after the name of a store whose place a backup took
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
                if connection.readonly("main"):
                    raise not_writable(path)
                if not check_ours(connection, path):  # a new one: read before anything is written
                    connection.pragma("page_size", PAGE_SIZE_BYTES)
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
    found = find_spec("sqlite_vec")  # which is not imported: it would load another SQLite
    if found is None or found.origin is None:
        _tell_without_vec("is not installed")
        return
    connection.enable_load_extension(True)
    try:
        connection.load_extension(os.path.join(os.path.dirname(found.origin), "vec0"))
    except apsw.ExtensionLoadingError:
        _tell_without_vec("cannot be loaded")
        return
    finally:
        connection.enable_load_extension(False)


@cache
def _tell_without_vec(why: str) -> None:
    """Once in a process: every connection would say the same."""
    _log.warning("sqlite-vec %s: SQL has no vector functions; Python measures vectors instead", why)


# The files of a database: its WAL, its shared memory, and the index snapshot beside it.


def snapshot_of(database: str) -> str:
    """The path of the index snapshot of a database."""
    return f"{database}-index"


def part_of_snapshot(database: str) -> str:
    """The path of an index snapshot while it is written."""
    return f"{database}-index-part"


def files_of(path: str) -> list[Path]:
    """The existing files of a database: itself, its WAL, the WAL of a file it replaced, and its index snapshot."""
    every = (path, f"{path}-wal", aside_of(path), snapshot_of(path), part_of_snapshot(path))
    return [Path(name) for name in every if Path(name).exists()]


def replaced_files_of(path: str) -> list[Path]:
    """The files that were put aside when backups took their place, with their WALs."""
    return sorted(Path(path).parent.glob(f"{glob.escape(Path(path).name)}{BEFORE}*"))


def files_beside(path: Path) -> list[Path]:
    """Every path that a database and what SQLite writes beside it may have."""
    return [Path(f"{path}{ending}") for ending in ("", "-wal", "-shm", "-index")]


def bytes_on_disk(path: str) -> int:
    """The size of the database with its WAL; 0 in memory."""
    if path == MEMORY:
        return 0
    return sum(Path(path + suffix).stat().st_size for suffix in ("", "-wal") if Path(path + suffix).exists())


def is_file_of(path: Path, database: str) -> bool:
    """Whether an existing path is the database itself, its WAL or its shared memory."""
    paths = [Path(database + ending) for ending in ("", "-wal", "-shm")]
    return any(own_path.exists() and path.samefile(own_path) for own_path in paths)


def rename_database(path: Path, target: Path) -> None:
    """Rename a database with its WAL, and remove the files beside it that are derived."""
    # The WAL first: SQLite would apply it to a new file of the old name.
    for ending in ("-wal", ""):
        with suppress(FileNotFoundError):
            os.rename(f"{path}{ending}", f"{target}{ending}")
    for ending in ("-shm", "-index"):
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{ending}")


def remove_database(path: Path) -> None:
    """Remove a closed database, as far as the system permits."""
    for ending in ("", "-wal", "-shm"):
        with suppress(OSError):
            os.unlink(f"{path}{ending}")


class RawDatabase:
    """A database file as a stream of bytes.

    It is opened through SQLite: closing any other descriptor of the file would drop the locks that this process holds
    on it (https://sqlite.org/howtocorrupt.html, 2.2), and another process could then remove its WAL.
    """

    def __init__(self, path: str) -> None:
        flags = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY
        self._file = apsw.VFSFile("", path, [flags, 0])
        self._offset = 0
        self.size = self._file.xFileSize()

    def read(self, size: int) -> bytes:
        """The next bytes, at most `size`."""
        data = self._file.xRead(max(0, min(size, self.size - self._offset)), self._offset)
        self._offset += len(data)
        return data

    def close(self) -> None:
        """Close the file."""
        self._file.xClose()


# Checkpoints of the WAL beside the writer, so that no caller waits while pages are copied into the file. A thread with
# a connection of its own copies what is committed. Only a WAL from which every page is copied can begin again, and
# under writes without a pause it never is: at its limit the writer copies the few pages that are left.

# Pages of 4 KiB that commits leave in the WAL before they are copied. A commit waits for what the copy has written and
# not yet synced: of 1000 pages that is 1.1 MB, of 4000 2.8 MB. In all, a tenth more is written.
_STEP_PAGES = 1000
# 64 MiB: one write in a thousand waits for the rest of a checkpoint. Before, one in 300 waited for all of it.
_LIMIT_PAGES = 16_000
# What is left for the writer at the limit.
_LEAST_STEP_PAGES = 400


class Checkpoints:
    """The checkpoints of one store."""

    def __init__(self) -> None:
        self._open: Callable[[], apsw.Connection] | None = None
        self._connection: apsw.Connection | None = None
        self._may_copy: Callable[[apsw.Connection], bool] = lambda _: True
        self._background = Background("a checkpoint")
        self._paused = False
        # The pages for which a checkpoint has been started.
        self._copied = 0

    def watch(
        self,
        writer: apsw.Connection,
        open_connection: Callable[[], apsw.Connection],
        may_copy: Callable[[apsw.Connection], bool],
    ) -> None:
        """Take over from the commits of a writer, in which SQLite then makes no checkpoints any more.

        `open_connection` opens another connection like it, with the same key and durability; `may_copy` says whether
        a connection still has the files of the path.
        """
        self._open, self._may_copy, self._copied = open_connection, may_copy, 0
        writer.wal_autocheckpoint(0)

    def after_commit(self, writer: apsw.Connection) -> None:
        """Start a checkpoint where enough was committed. Call it outside a transaction; it raises nothing."""
        try:
            pages, _ = writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
        except apsw.Error:  # the commit after this one looks again
            return
        if pages < self._copied:  # the WAL has begun again
            self._copied = 0
        step = max(_LEAST_STEP_PAGES, min(_STEP_PAGES, (_LIMIT_PAGES - pages) // 2))
        if pages - self._copied < step or self._paused:
            return
        self._copied = pages
        if pages >= _LIMIT_PAGES:
            self._background.wait()
            _copy(writer)
        else:
            self._background.start(self._copy_beside)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hold off checkpoints while the file or its WAL is needed alone; the caller keeps others from writing."""
        before, self._paused = self._paused, True
        try:
            self._background.wait()
            self._close_connection()
            yield
        finally:
            self._paused = before

    def close(self) -> None:
        """End a checkpoint that is under way. The pages that are left are copied as the store closes."""
        self._paused = True
        self._background.stop()
        self._background.wait()
        self._close_connection()

    def _copy_beside(self, stopped: Callable[[], bool]) -> None:
        if self._connection is None and self._open is not None:
            with suppress(Exception):  # the file is gone, say: the next write says what is wrong
                self._connection = self._open()
        if self._connection is not None and not stopped() and self._may_copy(self._connection):
            _copy(self._connection)

    def _close_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close(True)


def _copy(connection: apsw.Connection) -> None:
    """Copy pages as far as readers allow. If that fails, on a full disk say, the WAL still holds all of them."""
    began = perf_counter()
    try:
        pages, copied = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    except apsw.Error as fault:
        _log.debug("checkpoint failed with %s; the next one tries again", type(fault).__name__)
    else:
        _log.debug("checkpoint: %d of %d pages in %.0f ms", copied, pages, (perf_counter() - began) * 1e3)
