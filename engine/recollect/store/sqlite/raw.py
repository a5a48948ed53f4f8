"""The bytes of a database file that this process may have open."""

from __future__ import annotations

from types import TracebackType

import apsw

__all__ = ["RawDatabase"]


class RawDatabase:
    """A database file as a stream of bytes.

    It is opened through SQLite: closing any other descriptor of the file would drop the locks that this process holds
    on it (https://sqlite.org/howtocorrupt.html, 2.2), and another process could then remove its WAL.
    """

    def __init__(self, path: str) -> None:
        flags = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY
        self._file = apsw.VFSFile("", path, [flags, 0])
        self._place = 0
        self.size = self._file.xFileSize()

    def read(self, size: int) -> bytes:
        """The next bytes, at most `size`."""
        data = self._file.xRead(max(0, min(size, self.size - self._place)), self._place)
        self._place += len(data)
        return data

    def __enter__(self) -> RawDatabase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.xClose()
