"""A folder below a root, held open or checked, in which files are made, replaced and removed.

No symbolic link leads out of the root, not even one that is put there meanwhile.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

_BY_DESCRIPTOR = os.open in os.supports_dir_fd and os.link in os.supports_dir_fd


class WritableFolder:
    """The names in it are those of its own entries: to be used with `atomic_file.unfinished(prefix, ..., parent=)`."""

    def __init__(self, parent: int | None, prefix: str) -> None:
        self.parent = parent
        self.prefix = prefix

    def mode(self, name: str) -> int:
        """The permissions of a file. Raises OSError."""
        return stat.S_IMODE(os.stat(self.prefix + name, dir_fd=self.parent).st_mode)

    def add(self, part: str, name: str) -> None:
        """Give an unfinished file a second name; unlike a rename that never replaces a file. Raises OSError."""
        os.link(part, self.prefix + name, src_dir_fd=self.parent, dst_dir_fd=self.parent)

    def replace(self, part: str, name: str) -> None:
        """Put an unfinished file in the place of another. Raises OSError."""
        os.replace(part, self.prefix + name, src_dir_fd=self.parent, dst_dir_fd=self.parent)

    def remove(self, name: str) -> None:
        """Remove a file. Raises OSError."""
        os.unlink(self.prefix + name, dir_fd=self.parent)

    def sync(self) -> None:
        """Flush the names to the disk, if the folder is held open. Raises OSError."""
        if self.parent is not None:
            os.fsync(self.parent)


@contextmanager
def writable_folder(root: Path, folders: Sequence[str]) -> Iterator[WritableFolder]:
    """The folder below `root` at these names, each created if it is missing. Raises OSError, also for a link."""
    if sys.platform == "win32" or not _BY_DESCRIPTOR:
        yield WritableFolder(None, f"{_checked(root.resolve(), folders)}{os.sep}")
        return
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    parent = os.open(root, flags)
    try:
        for folder in folders:
            with suppress(FileExistsError):
                os.mkdir(folder, dir_fd=parent)
            inner = os.open(folder, flags | os.O_NOFOLLOW, dir_fd=parent)
            os.close(parent)
            parent = inner
        yield WritableFolder(parent, "")
    finally:
        os.close(parent)


def _checked(place: Path, folders: Sequence[str]) -> Path:
    """The path of a folder, created if missing, none of whose names is a link."""
    for folder in folders:
        place = place / folder
        place.mkdir(exist_ok=True)
        if place.resolve() != place:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(place))
    return place
