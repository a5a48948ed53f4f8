"""One run at a time in a folder, among threads and processes. A killed process holds nothing."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recallite.system.descriptors import opened

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


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
