"""Files that others may use at the same time, and large pieces of memory.

Files are used by their descriptors: opened without following links, read and written at an offset, and synced. A lock
lets one run at a time in a folder, among threads and processes; a killed process holds nothing. An unfinished file is
written beside its final name, private, and appears complete or not at all; what a kill leaves is removed. Memory is
zeros that take none until they are written, and maps of unlinked files.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl
if sys.platform == "darwin":
    import struct

_ALWAYS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
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
        raise is_a_link(path)
    descriptor = os.open(path, flags | _ALWAYS, 0o600)
    try:
        # A link that was put there in between was followed.
        if not os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False)):
            raise is_a_link(path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def is_a_link(path: str | os.PathLike[str]) -> OSError:
    """Return the error of opening a path at which there is a symbolic link."""
    return OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Read at most `size` bytes of a file from `offset` on; fewer at its end. Safe in threads. Raises OSError."""
    if sys.platform != "win32":
        return os.pread(descriptor, size, offset)
    with _moved_to(descriptor, offset):
        return os.read(descriptor, size)


def read_into(descriptor: int, view: memoryview, offset: int) -> int:
    """Read a file from `offset` on into a view; returns how many bytes were read, as `read_at`. Raises OSError."""
    if sys.platform != "win32" and hasattr(os, "preadv"):  # macOS has it since version 11
        return os.preadv(descriptor, [view], offset)
    data = read_at(descriptor, len(view), offset)
    view[: len(data)] = data
    return len(data)


def write_at(descriptor: int, view: memoryview, offset: int) -> int:
    """Write to a file from `offset` on; returns how many bytes were written. Safe in threads. Raises OSError."""
    if sys.platform != "win32":
        return os.pwrite(descriptor, view, offset)
    with _moved_to(descriptor, offset):
        return os.write(descriptor, view)


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


def sync_file(path: str | os.PathLike[str]) -> None:
    """Flush a file to the disk that was written and closed. Raises OSError."""
    # On Windows only what may be written is flushed.
    descriptor = os.open(path, (os.O_RDWR if sys.platform == "win32" else os.O_RDONLY) | _ALWAYS)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Flush the names in a folder to the disk. Windows writes them with the files. Raises OSError."""
    if sys.platform != "win32":
        sync_file(path)


_POLL_SECONDS = 0.005
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


class FolderLock:
    """The lock of a file, which stays. Without it runs double work, and never harm each other: all hold it if the file
    system has no locks.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = threading.Lock()

    @contextmanager
    def held(self, timeout_seconds: float | None = None) -> Iterator[bool]:
        """Hold the lock; False if it was not free in time. None waits without limit."""
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        if not self._threads.acquire(timeout=-1 if timeout_seconds is None else timeout_seconds):
            yield False
            return
        try:
            descriptor = opened(self._path, os.O_RDWR | os.O_CREAT)
            try:
                while (locked := try_lock(descriptor)) is False:
                    if deadline is not None and time.monotonic() >= deadline:
                        break
                    time.sleep(_POLL_SECONDS)
                yield locked is not False
            finally:
                os.close(descriptor)  # which lets go of the lock
        finally:
            self._threads.release()


def try_lock(descriptor: int) -> bool | None:
    """Lock an open file, until it is closed; False where another has it, None where its file system has no locks."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as fault:
        return None if fault.errno in _NO_LOCKS else False
    return True


_ATTEMPTS = 10
# With our suffix and those of files beside it, within the 255 bytes that file systems allow.
_NAME_BYTES = 200
_changing_umask = threading.Lock()


class Part:
    """A file that is being written: its path, or its name in an open folder, and its descriptor."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self._open = True

    def finish(self, *, sync: bool = True) -> None:
        """Flush it to the disk, if `sync`; then it can be renamed. Raises OSError."""
        if sync:
            os.fsync(self.descriptor)
        if sys.platform == "win32":  # an open file cannot be renamed there
            self.close()

    def give(self, mode: int) -> None:
        """Set the mode of the file, once it has its name. Raises OSError."""
        if sys.platform != "win32":
            os.fchmod(self.descriptor, mode)

    def close(self) -> None:
        """Close the file, and release its lock."""
        if self._open:
            self._open = False
            os.close(self.descriptor)


@contextmanager
def unfinished(
    folder: str, name: str, *, parent: int | None = None, beside: Sequence[str] = (), swept: bool = False
) -> Iterator[Part]:
    """A new file beside `name`, to be renamed to it when it is complete; removed at the end if it still exists.

    Its mode is 0600, and it is locked. Files that killed processes left beside this `name` are removed first, those of
    running ones are not, unless the folder is `swept`; files of the same name with an ending of `beside` are removed
    with each. `folder` is a path that ends in a separator, or "" with the descriptor `parent`. Raises OSError.
    """
    stem = _stem_of(name)
    if not swept:
        sweep(folder, re.compile(re.escape(stem)), parent=parent, beside=beside)
    for _ in range(_ATTEMPTS):
        path = f"{folder}.{stem}.{os.urandom(4).hex()}.part"
        descriptor = opened(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, parent=parent)
        locked = None if sys.platform == "win32" else try_lock(descriptor)
        # Another process may have removed it before it was locked; without locks nothing is removed.
        if locked is None or (locked and os.fstat(descriptor).st_nlink):
            break
        os.close(descriptor)
    else:
        raise FileExistsError(f"{folder}{name}: the file beside it was removed repeatedly")
    part = Part(path, descriptor)
    try:
        yield part
    finally:
        if sys.platform == "win32":
            part.close()
        _remove(part.path, parent, beside)
        part.close()


@contextmanager
def replacing(path: str | os.PathLike[str], mode: int = 0o600) -> Iterator[int]:
    """The descriptor of a new file, which takes the place of the one at a path when the block ends without an error.

    Raises OSError.
    """
    folder, name = os.path.split(os.path.abspath(path))
    with unfinished(os.path.join(folder, ""), name) as part:
        yield part.descriptor
        part.finish()
        os.replace(part.path, path)
        part.give(mode)


def sweep(folder: str, stem: re.Pattern[str], *, parent: int | None = None, beside: Sequence[str] = ()) -> None:
    """Remove what killed processes left in a folder beside files with matching names, as far as possible."""
    try:
        names = os.listdir(folder or "." if parent is None else parent)
    except OSError:
        return
    for name in names:
        match = _PART.fullmatch(name)
        if match is None or not stem.fullmatch(match[1]):
            continue
        with suppress(OSError):
            if sys.platform == "win32":  # there an open file cannot be removed
                _remove(folder + name, parent, beside)
                continue
            descriptor = opened(folder + name, os.O_RDWR | os.O_NONBLOCK, parent=parent)
            try:
                if try_lock(descriptor):
                    _remove(folder + name, parent, beside)
            finally:
                os.close(descriptor)


def sweep_beside(path: str, *, beside: Sequence[str] = ()) -> None:
    """Remove what killed processes left beside the file at a path that they were to replace, as far as possible."""
    folder, name = os.path.split(path)
    sweep(os.path.join(folder, ""), re.compile(re.escape(_stem_of(name))), beside=beside)


def _stem_of(name: str) -> str:
    """The beginning of a file's name which the files beside it have in theirs."""
    return os.fsdecode(os.fsencode(name)[:_NAME_BYTES])


def new_file_mode() -> int:
    """The mode of a new file by the umask of the process."""
    with _changing_umask:  # the only way to read it; meanwhile it is stricter
        umask = os.umask(0o077)
        os.umask(umask)
    return 0o666 & ~umask


_PART = re.compile(r"\.(.+)\.[0-9a-f]{8}\.part", re.DOTALL)


def _remove(path: str, parent: int | None, beside: Sequence[str]) -> None:
    for ending in ("", *beside):
        with suppress(OSError):
            os.unlink(path + ending, dir_fd=parent)


Mapped = mmap.mmap
_HUGE_ORDER = 9
# Of <sys/fcntl.h> on macOS: all the bytes or none, from the end of the file on.
_F_PREALLOCATE, _F_ALLOCATEALL, _F_PEOFPOSMODE = 42, 4, 3


def zeros(size: int, *, huge: bool = False) -> mmap.mmap:
    """Map `size` zeros, which take address space and no memory; Windows counts them as memory that it may have to give.

    With `huge` they are on large pages if Linux has as many bytes free in pieces of 2 MiB or more.
    """
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    mapped = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if sys.platform == "linux" and huge:
        with suppress(OSError, ValueError), open("/proc/buddyinfo", encoding="ascii") as zones:
            pieces = [map(int, zone.split()[4 + _HUGE_ORDER :]) for zone in zones]
            free = sum(count << order for zone in pieces for order, count in enumerate(zone, _HUGE_ORDER))
            if free * mmap.PAGESIZE >= size:
                mapped.madvise(mmap.MADV_HUGEPAGE)
    return mapped


def unlinked(folder: str) -> IO[bytes]:
    """A new file in a folder, without a name there. Raises OSError."""
    if sys.platform == "linux":
        with suppress(OSError):  # not every file system has them
            descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR | _ALWAYS, 0o600)
            return open(descriptor, "w+b", buffering=0)
    import tempfile  # takes 5 ms, which nobody else needs

    return tempfile.TemporaryFile(buffering=0, dir=folder, prefix="recallite-")


def zeros_on_disk(size: int, folder: str) -> mmap.mmap:
    """Map `size` zeros in an unlinked file in `folder`, which the system can page out. Raises OSError."""
    with unlinked(folder) as file:
        descriptor = file.fileno()
        # Reserve the space now: writing a mapped page on a full disk would kill the process.
        if sys.platform == "win32":
            os.ftruncate(descriptor, size)  # sets the space aside: the file is not sparse
        elif sys.platform == "darwin":
            request = struct.pack("@Iiqqq", _F_ALLOCATEALL, _F_PEOFPOSMODE, 0, size, 0)
            fcntl.fcntl(descriptor, _F_PREALLOCATE, request)
            os.ftruncate(descriptor, size)
        else:
            os.posix_fallocate(descriptor, 0, size)
        return mmap.mmap(descriptor, size)


def private_copy(descriptor: int, size: int) -> mmap.mmap:
    """A map of a file; what is written to it stays in memory. Raises OSError."""
    return mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY)


def unload(mapped: mmap.mmap) -> None:
    """Let the pages of a private copy to which nothing is written yet take no memory until they are read again."""
    if sys.platform == "linux":
        mapped.madvise(mmap.MADV_DONTNEED)


def return_freed() -> None:
    """Give freed memory back, which the C library of Linux holds for later: loading the models leaves 80 MB of it."""
    if sys.platform == "linux":
        import ctypes

        if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # musl has none
            trim(0)
