"""Large pieces of memory: zeros that take none until they are written, and maps of unlinked files."""

from __future__ import annotations

import mmap
import os
import sys

if sys.platform == "darwin":
    import fcntl
    import struct

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
    if sys.platform == "linux" and huge and _huge_pages_free(size):
        mapped.madvise(mmap.MADV_HUGEPAGE)
    return mapped


def zeros_on_disk(size: int, folder: str) -> mmap.mmap:
    """Map `size` zeros in an unlinked file in `folder`, which the system can page out. Raises OSError."""
    import tempfile  # takes 5 ms, which nobody else needs

    with tempfile.TemporaryFile(dir=folder, prefix="recallite-") as file:
        # Reserve the space now: writing a mapped page on a full disk would kill the process.
        _reserve(file.fileno(), size)
        return mmap.mmap(file.fileno(), size)


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


def _reserve(descriptor: int, size: int) -> None:
    if sys.platform == "win32":
        os.ftruncate(descriptor, size)  # sets the space aside: the file is not sparse
    elif sys.platform == "darwin":
        wanted = struct.pack("@Iiqqq", _F_ALLOCATEALL, _F_PEOFPOSMODE, 0, size, 0)
        fcntl.fcntl(descriptor, _F_PREALLOCATE, wanted)
        os.ftruncate(descriptor, size)
    else:
        os.posix_fallocate(descriptor, 0, size)


def _huge_pages_free(size: int) -> bool:
    """Whether Linux has `size` bytes free in pieces of 2 MiB or more."""
    try:
        with open("/proc/buddyinfo", encoding="ascii") as zones:
            pieces = [map(int, zone.split()[4 + _HUGE_ORDER :]) for zone in zones]
    except (OSError, ValueError):
        return False
    free = sum(count << order for zone in pieces for order, count in enumerate(zone, _HUGE_ORDER))
    return free * mmap.PAGESIZE >= size
