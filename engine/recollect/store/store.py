"""The store: one writer, many readers, and `atomic()` as the only door to a write."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import apsw

from recollect.errors import ForkedProcess, InvalidInput, StoreClosed
from recollect.store.connection import MEMORY, open_connection, resolve, sqlite_vec_version
from recollect.store.faults import translated
from recollect.store.keys import Key
from recollect.store.rekeying import remove_unfinished, replace_file

__all__ = ["Store"]


class Store:
    """A database file, open for one process.

    Writing goes through `atomic()`, one thread at a time. Reading goes through `read()`, each caller on a
    connection of its own, so that a reader never waits for the writer; only ':memory:' shares one connection.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        busy_timeout_ms: int = 10_000,
        durability: str = "full",
        key: Key | None = None,
    ) -> None:
        self.path = resolve(path)
        self.key = None if self.in_memory else key
        self._busy_timeout_ms = busy_timeout_ms
        self._durability = durability
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._idle: list[apsw.Connection] = []
        self._depth = 0
        self._on_rollback: list[Callable[[], None]] = []
        self._closed = False
        self._writer = self._open()
        if not self.in_memory:
            remove_unfinished(self._writer.filename)
        self.sqlite_vec = sqlite_vec_version(self._writer)

    @property
    def in_memory(self) -> bool:
        """True for ':memory:'."""
        return self.path == MEMORY

    @property
    def closed(self) -> bool:
        """True after `close`, and in a forked child, where the connections are not ours to use."""
        return self._closed or os.getpid() != self._process

    @contextmanager
    def atomic(self, *, wait: bool = True) -> Iterator[apsw.Connection]:
        """A write transaction: all of it or nothing. Within another of this thread it is a savepoint.

        Without `wait`, another process's lock is an error at once.
        """
        self.check_usable()
        with self._lock, self._translated(self._writer):
            self.check_usable()
            if self._depth:
                self._depth += 1
                try:
                    with self._undone(), self._writer:
                        yield self._writer
                finally:
                    self._depth -= 1
                return
            # A deferred transaction that reads and then writes fails at once with BUSY, whatever the timeout.
            self._writer.set_busy_timeout(self._busy_timeout_ms if wait else 0)
            self._writer.execute("BEGIN IMMEDIATE")
            self._depth = 1
            try:
                with self._undone():
                    yield self._writer
                    self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
            finally:
                self._depth = 0

    @property
    def nested(self) -> bool:
        """For who is inside `atomic()`: whether that is within another, which may have written what can be undone."""
        return self._depth > 1

    def on_rollback(self, callback: Callable[[], None]) -> None:
        """Run `callback` at every rollback, before another thread may write: caches of what was written go then."""
        self._on_rollback.append(callback)

    @contextmanager
    def _undone(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            for callback in self._on_rollback:
                callback()
            raise

    @contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """A read transaction: every statement in it sees the same commit."""
        self.check_usable()
        if self.in_memory:
            with self._lock, self._translated(self._writer):
                yield self._writer
            return
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._open(readonly=True)
        sound = False
        try:
            with self._translated(connection):
                connection.execute("BEGIN")
                yield connection
            sound = True
        finally:
            # On a damaged file even the end of a read transaction can fail; such a connection is not used again.
            try:
                if connection.in_transaction:
                    connection.execute("COMMIT")
            except apsw.Error:
                sound = False
            if self._closed or not sound:
                connection.close(True)
            else:
                self._idle.append(connection)

    def size(self) -> int:
        """About how many records there are: the highest row id."""
        with self.read() as connection:
            found: int = connection.execute("SELECT coalesce(max(id), 0) FROM record").get
        return found

    @contextmanager
    def exclusive(self) -> Iterator[apsw.Connection]:
        """The writer outside a transaction, for statements that refuse one (VACUUM, checkpoints, backups)."""
        self.check_usable()
        with self._lock, self._translated(self._writer):
            self.check_usable()
            yield self._writer

    def rekey(self, key: Key | None) -> None:
        """Encrypt the file anew with `key`, or write it without encryption; all of it or nothing.

        Raises StoreLocked where another connection, of this process or another, has the file open.
        """
        self.check_usable()
        if self.in_memory:
            raise InvalidInput(":memory: is no file, and has no key")
        with self._lock, self._translated(self._writer):
            self.check_usable()
            while self._idle:
                self._idle.pop().close(True)
            self._writer.pragma("locking_mode", "exclusive")
            try:
                self._writer.pragma("journal_mode", "delete")
                self._writer.execute("BEGIN EXCLUSIVE; COMMIT").fetchall()
                with replace_file(self._writer, self.key, key):
                    self.key = key
            finally:
                self._writer.close(True)
                self._writer = self._open()

    def check_usable(self) -> None:
        """Raise if the store was closed, or was opened by the process that forked this one."""
        if os.getpid() != self._process:
            raise ForkedProcess(
                f"{self.path} was opened before fork(): SQLite connections do not survive it. "
                "Open a new Memory in the child process"
            )
        if self._closed:
            raise StoreClosed(f"{self.path} was closed: open a new Memory")

    def close(self) -> None:
        """Close every connection. Again, or in a forked child, it does nothing."""
        if os.getpid() != self._process:
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            while self._idle:
                self._idle.pop().close()
            self._writer.close()

    def _translated(self, connection: apsw.Connection) -> AbstractContextManager[None]:
        return translated(self.path, connection, encrypted=self.key is not None)

    def _open(self, *, readonly: bool = False) -> apsw.Connection:
        return open_connection(
            self.path,
            busy_timeout_ms=self._busy_timeout_ms,
            durability=self._durability,
            readonly=readonly,
            key=self.key,
        )
