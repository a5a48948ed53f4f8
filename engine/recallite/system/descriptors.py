"""Files by their descriptors: opened without following links, read and written at an offset, and synced."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ALWAYS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_BLOCK_BYTES = 2**20
_seeking = threading.Lock()


def open_to_overwrite(path: str) -> int:
    """A descriptor of a file, to be written. Raises OSError."""
    return os.open(path, os.O_WRONLY | _ALWAYS)


def create_private(path: str) -> int:
    """A descriptor of a new file, to be written, that its owner alone may use. Raises FileExistsError and OSError."""
    return opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)


def open_to_add(path: str | os.PathLike[str], *, empty: bool = False) -> int:
    """A descriptor of a file that is written at its end, made for its owner alone, and emptied first with `empty`.

    Raises OSError.
    """
    return opened(path, os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if empty else os.O_APPEND))


def opened(path: str | os.PathLike[str], flags: int, *, parent: int | None = None) -> int:
    """A descriptor of what is at a path, or in the open folder `parent`, unless it is a symbolic link; a new file has
    the mode 0600. Raises OSError.
    """
    if sys.platform != "win32":
        return os.open(path, flags | os.O_NOFOLLOW | _ALWAYS, 0o600, dir_fd=parent)
    if os.path.islink(path):
        raise _is_a_link(path)
    descriptor = os.open(path, flags | _ALWAYS, 0o600)
    try:
        # A link that was put there in between was followed.
        if not os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False)):
            raise _is_a_link(path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _is_a_link(path: str | os.PathLike[str]) -> OSError:
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Read at most `size` bytes of a file from `offset` on; fewer at its end. Safe in threads. Raises OSError."""
    if sys.platform != "win32":
        return os.pread(descriptor, size, offset)
    with _moved_to(descriptor, offset):
        return os.read(descriptor, size)


def read_into(descriptor: int, view: memoryview, offset: int) -> int:
    """Fill bytes with those of a file from `offset` on; returns how many were read, as `read_at`. Raises OSError."""
    if sys.platform != "win32" and hasattr(os, "preadv"):  # macOS has it since version 11
        return os.preadv(descriptor, [view], offset)
    data = read_at(descriptor, len(view), offset)
    view[: len(data)] = data
    return len(data)


def write_at(descriptor: int, data: bytes, offset: int) -> int:
    """Write bytes into a file at `offset`; returns how many were written. Raises OSError."""
    if sys.platform != "win32":
        return os.pwrite(descriptor, data, offset)
    with _moved_to(descriptor, offset):
        return os.write(descriptor, data)


def copy_at(source: int, target: int, size: int, offset: int) -> int:
    """Copy at most `size` bytes at `offset` to the same place in another file; returns how many. Raises OSError."""
    if sys.platform == "linux" and hasattr(os, "copy_file_range"):  # shares the blocks on a file system that can
        return os.copy_file_range(source, target, size, offset, offset)
    return write_at(target, read_at(source, min(size, _BLOCK_BYTES), offset), offset)


@contextmanager
def _moved_to(descriptor: int, offset: int) -> Iterator[None]:
    """Move the position, which a descriptor's users share, for a system that reads and writes there only."""
    with _seeking:
        before = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, offset, os.SEEK_SET)
        try:
            yield
        finally:
            os.lseek(descriptor, before, os.SEEK_SET)


def sync_file(path: str) -> None:
    """Flush a file to the disk that was written and closed. Raises OSError."""
    _sync(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)  # there only what may be written is flushed


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Flush the names in a folder to the disk. Windows writes them with the files. Raises OSError."""
    if sys.platform != "win32":
        _sync(path, os.O_RDONLY)


def _sync(path: str | os.PathLike[str], flags: int) -> None:
    descriptor = os.open(path, flags | _ALWAYS)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
