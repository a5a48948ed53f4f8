"""Checkpoints of the WAL beside the writer, so that no caller waits while pages are copied into the file.

A thread with a connection of its own copies what is committed. Only a WAL from which every page is copied can begin
again, and under writes without a pause it never is: at its limit the writer copies the few pages that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import perf_counter

import apsw

from recallite.system.background import Background
from recallite.system.logs import logger

_log = logger(__name__)
# Pages of 8 KiB that commits leave in the WAL before they are copied. A commit waits for what the copy has written and
# not yet synced: of 500 pages that is 1.1 MB, of 2000 2.8 MB. In all, a tenth more is written.
_STEP_PAGES = 500
# 64 MiB: one write in a thousand waits for the rest of a checkpoint. Before, one in 300 waited for all of it.
_LIMIT_PAGES = 8000
# What is left for the writer at the limit.
_LEAST_STEP_PAGES = 200


class _Wal:
    """The pages in the WAL after the last commit. It refers to nothing, as the connection refers to it."""

    def __init__(self) -> None:
        self.pages = 0

    def committed(self, writer: apsw.Connection, name: str, pages: int) -> int:
        self.pages = pages
        return apsw.SQLITE_OK


class Checkpoints:
    """The checkpoints of one store."""

    def __init__(self) -> None:
        self._open: Callable[[], apsw.Connection] | None = None
        self._connection: apsw.Connection | None = None
        self._may_copy: Callable[[apsw.Connection], bool] = lambda _: True
        self._background = Background("a checkpoint")
        self._paused = False
        self._wal = _Wal()
        # The pages for which a checkpoint has been started.
        self._copied = 0

    def watch(
        self,
        writer: apsw.Connection,
        open_connection: Callable[[], apsw.Connection],
        may_copy: Callable[[apsw.Connection], bool],
    ) -> None:
        """Have the commits of a writer counted, in which SQLite then makes no checkpoints any more.

        `open_connection` opens another connection like it, with the same key and durability; `may_copy` says whether
        the files of one are still those of the path.
        """
        self._open, self._may_copy, self._wal, self._copied = open_connection, may_copy, _Wal(), 0
        writer.set_wal_hook(self._wal.committed)

    def after_commit(self, writer: apsw.Connection) -> None:
        """Start a checkpoint where enough was committed. Call it outside a transaction; it raises nothing."""
        pages = self._wal.pages
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
