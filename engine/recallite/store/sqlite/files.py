"""The files of a database: its WAL, its shared memory, and the index snapshot beside it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import apsw

from recallite.store.sqlite.connection import MEMORY
from recallite.store.sqlite.held_files import aside_of


def snapshot_of(database: str) -> str:
    """The path of the index snapshot of a database."""
    return f"{database}-index"


def part_of_snapshot(database: str) -> str:
    """The path of an index snapshot while it is written."""
    return f"{database}-index-part"


def files_of(path: str) -> list[Path]:
    """The existing files of a database: itself, its WAL, that of a file that it replaced, and its index snapshot."""
    every = (path, f"{path}-wal", aside_of(path), snapshot_of(path), part_of_snapshot(path))
    return [Path(name) for name in every if Path(name).exists()]


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
