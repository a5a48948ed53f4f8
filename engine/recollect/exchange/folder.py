"""A folder that is read and written without ever leaving it: no link is followed, no file replaced unread."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from recollect.checks import shown
from recollect.errors import InvalidInput, StoreFull

__all__ = ["MAX_FILE_BYTES", "Changed", "Folder", "digest"]

MAX_FILE_BYTES = 64 * 2**20
"""A larger file is not read."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_INSIDE = _DIRECTORY | os.O_NOFOLLOW
# Without O_NONBLOCK opening a FIFO would wait for who writes to it.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Changed(Exception):
    """A file is not what it was when it was read; nothing was written."""


def digest(data: bytes) -> str:
    """SHA-256 as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


class Folder:
    """Files below a folder, by relative paths with `/`. The folder itself may be reached by links, nothing below it.

    Raises InvalidInput for a path that leaves the folder, a link on the way, what is no regular file, and whatever
    the system refuses.
    """

    def __init__(self, root: str | os.PathLike[str], *, create: bool = False) -> None:
        text = os.fspath(root)
        if not isinstance(text, str) or not text or "\x00" in text:
            raise InvalidInput(f"{shown(text)} is no path: give the path of a folder")
        self.root = Path(text).expanduser().absolute()
        try:
            if create:
                self.root.mkdir(parents=True, exist_ok=True)
            if not self.root.is_dir():
                raise InvalidInput(f"{self.root} is no folder: give the path of one")
        except OSError as fault:
            raise InvalidInput(f"the folder {self.root} cannot be opened: {fault.strerror}") from fault

    def walk(self, suffix: str) -> Iterator[str]:
        """The regular files whose names end so, in order; hidden ones and links are left out."""
        for folder, names, files in os.walk(self.root):
            names[:] = sorted(name for name in names if not name.startswith("."))
            for name in sorted(files):
                path = Path(folder, name)
                if name.endswith(suffix) and not name.startswith(".") and stat.S_ISREG(path.lstat().st_mode):
                    yield path.relative_to(self.root).as_posix()

    def read(self, path: str) -> bytes | None:
        """The bytes of a file; None where there is none."""
        try:
            with self._parent(path, create=False) as (parent, name):
                return _read(parent, name)
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise self._refused(path, fault) from fault

    def write(self, path: str, data: bytes, *, over: bytes | None) -> None:
        """Put `data` in the place of a file that holds `over`, or of none where that is None, at once and for good.

        Changed is raised where the file holds something else by now.
        """
        try:
            with self._parent(path, create=True) as (parent, name):
                unfinished = f".{name[:100]}.{secrets.token_hex(4)}.part"
                try:
                    mode = 0o666 if over is None else stat.S_IMODE(os.stat(name, dir_fd=parent).st_mode)
                    _write(parent, unfinished, data, mode)
                    if over is None:
                        # Unlike a rename, a hard link never replaces what has come to stand there meanwhile.
                        os.link(unfinished, name, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
                    else:
                        if _read(parent, name) != over:
                            raise Changed(path)
                        os.replace(unfinished, name, src_dir_fd=parent, dst_dir_fd=parent)
                    os.fsync(parent)
                finally:
                    _remove(parent, unfinished)
        except (FileExistsError, FileNotFoundError) as fault:
            raise Changed(path) from fault
        except OSError as fault:
            raise self._refused(path, fault) from fault

    def remove(self, path: str, *, over: bytes) -> None:
        """Remove a file that holds `over`; Changed where it holds something else by now."""
        try:
            with self._parent(path, create=False) as (parent, name):
                if _read(parent, name) != over:
                    raise Changed(path)
                os.unlink(name, dir_fd=parent)
        except FileNotFoundError as fault:
            raise Changed(path) from fault
        except OSError as fault:
            raise self._refused(path, fault) from fault

    @contextmanager
    def _parent(self, path: str, *, create: bool) -> Iterator[tuple[int, str]]:
        """The open folder of a file, reached step by step, and the file's name in it."""
        pure = PurePosixPath(path)
        if pure.is_absolute() or not pure.parts or ".." in pure.parts or "\x00" in path:
            raise InvalidInput(f"{shown(path)} leads out of {self.root}")
        *folders, name = pure.parts
        parent = os.open(self.root, _DIRECTORY)
        try:
            for folder in folders:
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(folder, dir_fd=parent)
                inner = os.open(folder, _INSIDE, dir_fd=parent)
                os.close(parent)
                parent = inner
            yield parent, name
        finally:
            os.close(parent)

    def _refused(self, path: str, fault: OSError) -> InvalidInput | StoreFull:
        where = self.root / path
        if fault.errno in (errno.ENOSPC, errno.EDQUOT):
            return StoreFull(f"the disk that holds {where} is full; the file is as it was")
        if fault.errno in (errno.ELOOP, errno.ENOTDIR):
            return InvalidInput(
                f"{where} is reached by a link, or by what is no folder: no link below {self.root} is followed"
            )
        return InvalidInput(f"{where} cannot be used: {fault.strerror}")


def _read(parent: int, name: str) -> bytes:
    with open(os.open(name, _READ, dir_fd=parent), "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInput(f"{name} is no regular file")
        data = stream.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise InvalidInput(f"{name} has more than {MAX_FILE_BYTES:,} bytes")
    return data


def _write(parent: int, name: str, data: bytes, mode: int) -> None:
    with open(os.open(name, _NEW, mode, dir_fd=parent), "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _remove(parent: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=parent)
