"""The store in a SQLite file: one writer, many readers, and `atomic()` as the only way to write."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from typing import Any
from weakref import WeakSet

import apsw

from recallite.errors import InvalidInput, StoreCorrupt, StoreError, StoreUnavailable, WriteUnknown
from recallite.model.reports import ErasureReceipt, Verification
from recallite.store.columns import Derive, without_deriving
from recallite.store.sql.derived import WordNumbers
from recallite.store.sql.maintenance import Erased, figures
from recallite.store.sql.meta import unfinished_copy
from recallite.store.sqlite.connection import (
    MEMORY,
    Checkpoints,
    bytes_on_disk,
    open_connection,
    open_unwritable,
    resolve,
    snapshot_of,
    sqlite_vec_version,
)
from recallite.store.sqlite.encryption import Key, remove_unfinished, replace_file, salt_of, seal, unseal
from recallite.store.sqlite.faults import (
    is_unwritable,
    only_readable,
    raise_translated,
    reading_failed,
    removed,
    translated,
)
from recallite.store.sqlite.held_files import HeldFiles, all_copied, aside_of, leave
from recallite.store.sqlite.maintenance import (
    BESIDE,
    backup,
    drop_unused,
    prove,
    rebuild,
    verify,
)
from recallite.store.sqlite.schema import SCHEMA_VERSION
from recallite.store.sqlite.sql_search import create_search, has_table
from recallite.store.sqlite.transaction import Reading, SqliteTransaction
from recallite.store.store import COMPARING, EMBEDDING, Progress, Store
from recallite.system.files import sweep_beside
from recallite.system.turnstile import Turnstile, gives_way, giving_way, is_present, note_begin, note_end, present

# How long a writer waits before it asks for the lock again: work in the background leaves it free for 10 ms.
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.0005, 0.004

# What other processes are told of by a file beside the database, named like this.
_TURN = "turn"
_TOLD = (_TURN, COMPARING, EMBEDDING)

# The stores of this process.
_OPEN: WeakSet[SqliteStore] = WeakSet()


class SqliteStore(Store):
    """A database file, open for one process.

    Each reader has a connection of its own and never waits for the writer; only ':memory:' shares one connection.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        busy_timeout_ms: int = 10_000,
        durability: str = "full",
        vector_type: str = "float32",
        key: str | None = None,
        unfinished: bool = False,
        sql_search: bool = False,
        derive: Derive = without_deriving,
    ) -> None:
        super().__init__()
        self.path = resolve(path)
        self.in_memory = self.path == MEMORY
        made = None if key is None else Key(key)
        self.key = None if self.in_memory else made
        self._busy_timeout_ms, self._durability, self._vector_type = busy_timeout_ms, durability, vector_type
        self._sql_search = sql_search
        self._lock = threading.RLock()
        self._numbers, self._derive = WordNumbers(), derive
        self._idle: list[SqliteTransaction] = []
        self._depth = 0
        # The thread that writes, if one does.
        self._holder: int | None = None
        # The thread that is inside `transaction`, if one is.
        self._inside: int | None = None
        self._checkpoints = Checkpoints()
        self._reading: set[SqliteTransaction] = set()
        # The files that the connections have open, where there are any.
        self._held: HeldFiles | None = None
        self._current: SqliteTransaction | None = None
        # As SQLite names the file; a connection that another thread uses does not tell it.
        self._database: str = "" if self.in_memory else os.path.realpath(self.path)
        self._turnstile = Turnstile(None if self.in_memory else f"{self._database}-{_TURN}", self._database)
        self._current = self._open_writer()
        _OPEN.add(self)
        mark = None
        # A damaged file is opened, so that it can be mended.
        with suppress(apsw.Error, StoreCorrupt, UnicodeDecodeError):
            mark = None if unfinished else self._writer.meta.copy_mark()
        if mark is not None:
            self._checkpoints.close()
            self._close_connections(checkpoint=True)
            raise unfinished_copy(self.path, mark)
        if not self.in_memory:
            remove_unfinished(self._database)
            self.snapshot_path = snapshot_of(self._database)
            for work in _TOLD:  # removes the file of a process that was killed at it
                self.is_done_elsewhere(work)
        if sql_search and not self.read_only:
            with self._read_as_writer() as reader:
                lacks = not has_table(reader.connection, "memories_fts")
            if lacks:
                with self.atomic() as writer:
                    create_search(writer.connection)

    @property
    def encrypted(self) -> bool:
        return self.key is not None

    @contextmanager
    def atomic(self, *, wait: bool = True, locks: Sequence[str] | None = None) -> Iterator[SqliteTransaction]:
        if self._closed or os.getpid() != self._process:
            self.check_usable()
        background = wait and gives_way.get()
        self._enter(background=background)
        writer: SqliteTransaction | None = None
        try:
            writer = self._writing()  # refuses a store that was closed meanwhile
            if self.read_only:
                raise only_readable(self.path)
            if self._depth:
                with self._savepoint(writer.connection):
                    yield writer
                return
            writer = self._begin(writer, wait=wait, background=background)
            connection, began = writer.connection, time.monotonic()
            self._depth, self._holder = 1, threading.get_ident()
            thread = note_begin(locks=True)
            try:
                writer.begin_writing()
                if self._held is not None:
                    self._held.begin(connection)
                yield writer
                self._check_begun(connection)
                writer.before_commit()
                held_files = self._held if writer.wrote else None
                if held_files is not None:
                    held_files.mark(connection, f"{writer.commit_name:x}")
                connection.execute("COMMIT")
                if held_files is not None:
                    held_files.committed(connection, writer.fed)
            except BaseException:
                self._forget_written()
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            finally:
                self._depth, self._holder = 0, None
                note_end(thread)
                writer.end_writing()
                if background:
                    self._turnstile.had_turn(time.monotonic() - began)
            self._check_stored(writer)
            self._checkpoints.after_commit(connection)
        except BaseException as fault:
            used = None if writer is None else writer.connection
            raise_translated(fault, self.path, used, encrypted=self.key is not None)
            raise
        finally:
            self._lock.release()

    @contextmanager
    def _savepoint(self, connection: apsw.Connection) -> Iterator[None]:
        self._check_begun(connection)
        connection.execute(f"SAVEPOINT depth_{self._depth}")
        self._depth += 1
        try:
            yield
            self._check_begun(connection)
        except BaseException:
            self._forget_written()
            if connection.in_transaction:
                connection.execute(f"ROLLBACK TO depth_{self._depth - 1}")
            raise
        finally:
            self._depth -= 1
            if connection.in_transaction:
                connection.execute(f"RELEASE depth_{self._depth}")

    def _check_begun(self, connection: apsw.Connection) -> None:
        """Refuse to go on where an error has made SQLite roll the transaction back: what follows would commit alone."""
        if not connection.in_transaction:
            raise StoreError(
                f"{self.path}: an earlier error has undone the whole transaction, and nothing of it was written: begin "
                "it again"
            )

    def _enter(self, *, background: bool) -> None:
        """Take the lock of this process's threads. Who has to wait for it goes before the background."""
        if background and not self.writing:
            while not self._lock.acquire(blocking=not self._turnstile.wait_until_free()):
                time.sleep(_LONGEST_PAUSE_SECONDS)
        elif not self._lock.acquire(blocking=False):
            with self._turnstile.waiting():
                self._lock.acquire()

    def _begin(self, writer: SqliteTransaction, *, wait: bool, background: bool) -> SqliteTransaction:
        """The writer, with the write lock of the file at the path, which another may have replaced meanwhile.

        Who has to wait for the lock goes before what other processes do in the background.
        """
        deadline, pause = time.monotonic() + self._busy_timeout_ms / 1000, _FIRST_PAUSE_SECONDS
        with ExitStack() as waiting:
            while True:
                connection = writer.connection
                connection.set_busy_timeout(0)
                try:
                    # A deferred transaction that reads and then writes fails at once with BUSY, whatever the timeout.
                    connection.execute("BEGIN IMMEDIATE")
                    break
                except apsw.BusyError:
                    if not wait or time.monotonic() >= deadline:
                        raise apsw.BusyError("another process is writing") from None
                finally:
                    connection.set_busy_timeout(self._busy_timeout_ms)
                if background:
                    self._lock.release()  # this process's threads may write, and whoever waits in another one
                    try:
                        time.sleep(pause)
                        self._turnstile.wait_until_free()
                    finally:
                        self._lock.acquire()
                    writer = self._writer  # others may have closed it, or opened the file again
                else:
                    if pause == _FIRST_PAUSE_SECONDS:
                        waiting.enter_context(self._turnstile.waiting())
                    time.sleep(pause)
                # SQLite itself would ask ten times a second only, after a while.
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        while self._held is not None and self._held.moved:
            connection.execute("ROLLBACK")
            self._open_again()
            writer = self._writer
            connection = writer.connection
            connection.execute("BEGIN IMMEDIATE")
        return writer

    def doing(self, work: str) -> AbstractContextManager[bool]:
        if self.in_memory:
            return super().doing(work)
        return present(f"{self._database}-{work}", self._database, alone=True)

    def is_done_elsewhere(self, work: str) -> bool:
        return not self.in_memory and is_present(f"{self._database}-{work}")

    @property
    def nested(self) -> bool:
        return self._depth > 1

    @property
    def in_transaction(self) -> bool:
        return self._inside == threading.get_ident()

    @property
    def writing(self) -> bool:
        return self._holder == threading.get_ident()

    def _share(self, inside: bool) -> None:
        self._inside = threading.get_ident() if inside else None

    def _forget_written(self) -> None:
        """Know nothing of what is rolled back, before another thread may write."""
        self._numbers.forget()
        self._writer.forget_known()

    def read(self) -> AbstractContextManager[SqliteTransaction]:
        if self._closed or os.getpid() != self._process:
            self.check_usable()
        if self.in_memory or self.in_transaction:
            return self._read_as_writer()
        return Reading(self)

    @contextmanager
    def _read_as_writer(self) -> Iterator[SqliteTransaction]:
        with self._lock, self._translated(self._writer.connection):
            thread = note_begin(locks=True)
            try:
                yield self._writer
            finally:
                note_end(thread)

    @property
    def _writer(self) -> SqliteTransaction:
        """The connection that writes; it is opened again where it was let go of."""
        current = self._current
        if current is None:
            with self._lock:
                if self._current is None:
                    self.check_usable()
                    if not os.path.exists(self._database):
                        raise removed(self._database)
                    self._current = self._open_writer()
                current = self._current
        return current

    def _check_stored(self, writer: SqliteTransaction) -> None:
        """Raise WriteUnknown if the last commit went to files that others had removed or replaced before."""
        if self._held is None:
            return
        with suppress(StoreError):
            if self._held.usable(writer.connection):
                return
        with suppress(StoreError, apsw.Error):
            commit = writer.changes.commit()
            self._open_again()
            if self._writer.changes.since(commit) is not None:
                return
        raise WriteUnknown(
            f"the write went to files of {self.path} that were removed or replaced meanwhile, and is lost: write "
            "again. Nobody may write to the file of an open store but SQLite, and another SQLite library, such as that "
            "of sqlite3, only in another process"
        )

    def _writing(self) -> SqliteTransaction:
        """The connection that writes, opened again where its files were removed or replaced."""
        writer = self._writer
        # A program that closes the file with another SQLite library drops all locks of the process, as POSIX has it,
        # and removes the WAL as if nobody else had the file open.
        if not self._depth and self._held is not None and not self._held.usable(writer.connection):
            self._open_again()
            writer = self._writer
        return writer

    def _open_again(self) -> None:
        """Open all connections anew; no page of a WAL that is gone, or not of this file, is copied into it."""
        self.check_usable()  # a closed store's is gone too
        held_files, writer = self._held, self._writer
        assert held_files is not None
        if not held_files.moved:
            # All connections of a process to one file share what SQLite knows of its WAL.
            self._wait_for_readers()
            for other in self._others():
                other._step_aside()
        self._leave_files(held_files, writer)
        _ = self._writer

    def _others(self) -> list[SqliteStore]:
        """The stores of this process that have the same file open."""
        return [
            store
            for store in [*_OPEN]
            if store is not self and store._database == self._database and store._current and not store.closed
        ]

    def _wait_for_readers(self) -> None:
        deadline = time.monotonic() + self._busy_timeout_ms / 1000
        while self._reading:
            if time.monotonic() >= deadline:
                raise StoreUnavailable(
                    f"{self.path} was replaced, and another thread still reads the old file; nothing was written. "
                    "Try again when it is done"
                )
            time.sleep(0.001)

    def _look(self) -> None:
        """Notice whether the file was replaced, unless a thread writes, which has looked before."""
        if self._lock.acquire(blocking=False):
            try:
                with suppress(StoreError):
                    self._writing()
            finally:
                self._lock.release()

    def _step_aside(self) -> None:
        """Close the connections, for example to the old content of a file; the next use opens others."""
        if not self._lock.acquire(timeout=self._busy_timeout_ms / 1000):
            raise StoreUnavailable(f"{self.path} was replaced while another thread writes to it: try again")
        try:
            if self._depth:
                raise StoreUnavailable(f"{self.path} was replaced while this thread writes to it: write again")
            self._wait_for_readers()
            self._close_connections(checkpoint=False)
        finally:
            self._lock.release()

    def _close_connections(self, *, checkpoint: bool) -> None:
        """Close all connections that are not being read from; the next use opens others."""
        current, self._current, self._held = self._current, None, None
        with self._checkpoints.paused():
            for transaction in [*self._idle, *([] if current is None else [current])]:
                if checkpoint:
                    transaction.connection.close()
                else:
                    leave(transaction.connection)
            self._idle.clear()
            self._numbers.forget()
        self.on_let_go()

    def let_go(self) -> bool:
        if self.in_memory:
            return True
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._depth or self._reading or self._closed:
                return False
            self._close_files()
            return True
        finally:
            self._lock.release()

    def _close_files(self) -> None:
        """Close the connections; what they have written is copied into the file, if it is still theirs."""
        held_files, writer, usable = self._held, self._current, True
        if held_files is not None and writer is not None:
            with suppress(StoreError):  # it is gone: SQLite removes its WAL
                usable = held_files.usable(writer.connection)
            if not usable:
                self._leave_files(held_files, writer)
        if usable:
            self._close_connections(checkpoint=True)

    def _leave_files(self, held_files: HeldFiles, writer: SqliteTransaction) -> None:
        """Close connections to removed or replaced files, and leave no WAL that another database would get."""
        replaced = not held_files.belong(writer.connection)
        if replaced and held_files.moved:
            with suppress(apsw.Error):  # for who has renamed the old file: it is whole
                writer.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        keep = not all_copied(writer.connection)
        self._close_connections(checkpoint=False)
        if replaced:
            held_files.take_wal_away(keep=keep)

    def take_reader(self) -> SqliteTransaction:
        """A connection that nobody reads from."""
        try:
            reader = self._idle.pop()
        except IndexError:
            writer = self._writer
            if self.read_only:
                reader = self._open_unwritable(writer)
            else:
                connection = self._opening(readonly=True)()
                reader = SqliteTransaction(
                    connection, self.path, self._numbers, self._derive, self._vector_type, beside=writer
                )
        self._reading.add(reader)
        held_files = self._held
        try:
            if held_files is None or held_files.usable(reader.connection):
                return reader
        except BaseException:
            self.give_back(reader, sound=True)
            raise
        if self.writing:
            return reader  # the end of the transaction tells
        self.give_back(reader, sound=False)
        with self._lock:
            if held_files is self._held:
                self._open_again()
        return self.take_reader()

    def failed(self, reader: SqliteTransaction) -> apsw.Connection:
        """The connection with the fault that ends the transaction of `reader`: another, if it could not read the disk.

        Who reads by two connections at a time has the faults of both pass through both.
        """
        reading = [reader.connection, *(each.connection for each in [*self._reading])]
        return next(filter(reading_failed, reading), reader.connection)

    def give_back(self, reader: SqliteTransaction, *, sound: bool) -> None:
        """Let another read from a connection; one that is not `sound` is closed."""
        self._reading.discard(reader)
        # On a damaged file even the end of a read transaction can fail; the connection is not used again.
        connection = reader.connection
        try:
            if connection.in_transaction:
                connection.execute("COMMIT")
        except apsw.Error:
            sound = False
        if self._closed or not sound or reader.beside is not self._current:
            leave(connection)
        else:
            self._idle.append(reader)

    @contextmanager
    def exclusive(self) -> Iterator[apsw.Connection]:
        """The writer outside a transaction, for statements that refuse one (VACUUM, checkpoints, backups)."""
        self.check_outside()
        with self._lock, self._translated(self._writing().connection):
            self.check_usable()
            yield self._writer.connection

    def stats(self, scope: str) -> dict[str, Any]:
        with self.read() as reader:
            return {
                **figures(reader, scope),
                "bytes_on_disk": bytes_on_disk(self.path) if scope == "/" else None,
                "schema_version": SCHEMA_VERSION,
                "database": f"SQLite {apsw.sqlite_lib_version()}",
                "vector_extension": sqlite_vec_version(reader.connection),
                "behind_ms": None,
            }

    def verify(self, on_progress: Progress | None = None) -> Verification:
        with self.read() as reader:
            return verify(reader, on_progress)

    def rebuild(self, on_progress: Progress | None = None) -> None:
        with giving_way(), self.atomic() as writer:
            rebuild(writer, on_progress, sql_search=self._sql_search)

    def vacuum(self) -> int:
        self.check_outside()
        before = bytes_on_disk(self.path)
        with giving_way(), self.atomic() as writer:
            drop_unused(writer)
        self._numbers.forget()
        self._turnstile.wait_until_free()
        self.compact()
        return before - bytes_on_disk(self.path)

    def compact(self) -> bool:
        """Rewrite the file without free space and empty its WAL; False where a reader keeps the WAL.

        Copies of it that killed processes left beside it are removed.
        """
        if not self.in_memory:
            sweep_beside(self._database, beside=BESIDE)
        with self.exclusive() as connection, self._checkpoints.paused():
            connection.execute("VACUUM").fetchall()
            with suppress(OSError):
                os.unlink(aside_of(self._database))
            deadline = time.monotonic() + self._busy_timeout_ms / 1000
            while True:
                busy: Any = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                # SQLite waits for readers, but not for the checkpoint of another process.
                if not busy[0] or time.monotonic() >= deadline:
                    return not busy[0]
                time.sleep(0.01)

    def backup(self, target: str | os.PathLike[str], on_progress: Progress | None = None) -> str:
        return backup(self, target, on_progress)

    def prove_erasure(self, erased: Erased) -> ErasureReceipt:
        self.check_outside()
        self._numbers.forget()
        with self._lock, self._checkpoints.paused():
            return prove(self, erased)

    def sealed(self, data: bytes) -> bytes:
        if self.key is None:
            return data
        with self._lock:
            salt = salt_of(self._writer.connection)
        return seal(data, self.key, salt)

    def unsealed(self, data: bytes, path: str) -> bytes | None:
        return unseal(data, self.key, path)

    def rekey(self, key: str | None) -> None:
        made = None if key is None else Key(key)
        self.check_outside()
        if self.in_memory:
            raise InvalidInput(":memory: is no file, and has no key")
        with self.atomic() as writer:
            writer.snapshot.discard()
        with self._lock, self._checkpoints.paused(), self._translated(self._writing().connection):
            self.check_usable()
            connection = self._writer.connection
            while self._idle:
                self._idle.pop().connection.close(True)
            connection.pragma("locking_mode", "exclusive")
            try:
                connection.pragma("journal_mode", "delete")
                connection.execute("BEGIN EXCLUSIVE; COMMIT").fetchall()
                with replace_file(connection, self.key, made):
                    self.key = made
            finally:
                connection.close(True)
                self._current = self._held = None
                _ = self._writer

    def close(self) -> None:
        if os.getpid() != self._process:
            return
        with self._lock:
            if self._closed:
                return
            self.check_outside()
            self._closed = True
            self._checkpoints.close()
            self._close_files()

    def _translated(self, connection: apsw.Connection) -> AbstractContextManager[None]:
        return translated(self.path, connection, encrypted=self.key is not None)

    def _open_writer(self) -> SqliteTransaction:
        for other in self._others():
            other._look()
        connect = self._opening()
        try:
            connection = connect()
        except StoreError as fault:
            if self.in_memory or not is_unwritable(self.path, fault):
                raise
            self.read_only = True
            return self._open_unwritable()
        self.read_only = False
        if not self.in_memory:
            try:
                with self._translated(connection):
                    held_files = HeldFiles(connection.filename, self.key)
                    belongs = held_files.opened(connection)
            except BaseException:
                leave(connection)
                raise
            if not belongs:
                leave(connection)
                held_files.take_wal_away(keep=True)
                return self._open_writer()
            self._held = held_files
            self._checkpoints.watch(connection, connect, held_files.usable)
        return SqliteTransaction(connection, self.path, self._numbers, self._derive, self._vector_type)

    def _open_unwritable(self, beside: SqliteTransaction | None = None) -> SqliteTransaction:
        connection = open_unwritable(self.path, busy_timeout_ms=self._busy_timeout_ms, key=self.key)
        if beside is None:
            self._held = HeldFiles(os.path.realpath(self.path), self.key, read_only=True)
        return SqliteTransaction(connection, self.path, self._numbers, self._derive, self._vector_type, beside)

    def _opening(self, *, readonly: bool = False) -> Callable[[], apsw.Connection]:
        """The function that opens a connection; it does not refer to the store."""
        return partial(
            open_connection,
            self.path,
            busy_timeout_ms=self._busy_timeout_ms,
            durability=self._durability,
            readonly=readonly,
            key=self.key,
        )
