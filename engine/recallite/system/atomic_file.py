"""Files that appear complete or not at all: written beside their final name, private, and removed after a kill."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from recallite.system.descriptors import opened
from recallite.system.folder_lock import try_lock

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

    def finish(self) -> None:
        """Flush it to the disk; then it can be renamed. Raises OSError."""
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
def unfinished(folder: str, name: str, *, parent: int | None = None, beside: Sequence[str] = ()) -> Iterator[Part]:
    """A new file beside `name`, to be renamed to it when it is complete; removed at the end if it still exists.

    Its mode is 0600, and it is locked. Files that killed processes left beside this `name` are removed first, those of
    running ones are not; files of the same name with an ending of `beside` are removed with each. `folder` is a path
    that ends in a separator, or "" with the descriptor `parent`. Raises OSError.
    """
    sweep(folder, re.compile(re.escape(_stem(name))), parent=parent, beside=beside)
    part = _create(folder, name, parent)
    try:
        yield part
    finally:
        if sys.platform == "win32":
            part.close()
        _remove(part.path, parent, beside)
        part.close()


def sweep(folder: str, stem: re.Pattern[str], *, parent: int | None = None, beside: Sequence[str] = ()) -> None:
    """Remove what killed processes left in a folder for files whose names match, as far as possible."""
    try:
        names = os.listdir(folder or "." if parent is None else parent)
    except OSError:
        return
    for name in names:
        match = _PART.fullmatch(name)
        if match is not None and stem.fullmatch(match[1]):
            with suppress(OSError):
                _remove_if_left(folder + name, parent, beside)


def new_file_mode() -> int:
    """The mode of a new file by the umask of the process."""
    with _changing_umask:  # the only way to read it; meanwhile it is stricter
        umask = os.umask(0o077)
        os.umask(umask)
    return 0o666 & ~umask


_PART = re.compile(r"\.(.+)\.[0-9a-f]{8}\.part", re.DOTALL)


def _stem(name: str) -> str:
    return os.fsdecode(os.fsencode(name)[:_NAME_BYTES])


def _create(folder: str, name: str, parent: int | None) -> Part:
    for _ in range(_ATTEMPTS):
        path = f"{folder}.{_stem(name)}.{os.urandom(4).hex()}.part"
        descriptor = opened(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, parent=parent)
        locked = None if sys.platform == "win32" else try_lock(descriptor)
        # Another process may have removed it before it was locked; without locks nothing is removed.
        if locked is None or (locked and os.fstat(descriptor).st_nlink):
            return Part(path, descriptor)
        os.close(descriptor)
    raise FileExistsError(f"{folder}{name}: the file beside it was removed repeatedly")


def _remove_if_left(path: str, parent: int | None, beside: Sequence[str]) -> None:
    if sys.platform != "win32":  # there an open file cannot be removed
        descriptor = opened(path, os.O_RDWR | os.O_NONBLOCK, parent=parent)
        try:
            if not try_lock(descriptor):
                return
            _remove(path, parent, beside)
        finally:
            os.close(descriptor)
    else:
        _remove(path, parent, beside)


def _remove(path: str, parent: int | None, beside: Sequence[str]) -> None:
    for ending in ("", *beside):
        with suppress(OSError):
            os.unlink(path + ending, dir_fd=parent)
