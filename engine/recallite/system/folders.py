"""Folders: where a user's own data lies, and folders held open while files in them are read, made and removed.

No symbolic link, `..` or race leads out of the one that was opened first, not even a link that is put there meanwhile.
The workspace, the knowledge base and the import and export of folders all walk, read and write files with this.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from recallite.errors import InvalidInput
from recallite.system.files import is_a_link
from recallite.system.messages import shown

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


def user_folder() -> str:
    """The path of the user's data folder for Recallite; nothing is created."""
    if sys.platform == "linux":  # as platformdirs has it, whose import takes 10 ms
        data = os.environ.get("XDG_DATA_HOME", "").strip() or os.path.expanduser("~/.local/share")
        return os.path.join(data, "recallite")
    from platformdirs import user_data_dir

    return user_data_dir("recallite", appauthor=False)


def is_of_user(path: str | os.PathLike[str]) -> bool:
    """Whether a file is this user's, or this is the superuser; True if the system does not say. Raises OSError."""
    return sys.platform == "win32" or os.geteuid() in (0, os.stat(path).st_uid)


_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# A FIFO in the place of a file is opened without waiting for a writer, and then refused by its mode.
_FILE = _READ | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_FOLDER = _READ | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_DIRECTORY", 0)
_BY_DESCRIPTOR = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
_ATTEMPTS = 4
_BLOCK_BYTES = 1 << 20
SMALL_BYTES = 1 << 20
"""The most bytes of a file that a person or a program writes by hand: of a configuration, of notes for a model."""
MOST = 2**63 - 1
"""The largest integer that the store holds."""


class Stamp(NamedTuple):
    """Identifies one state of a file, in numbers that the store holds."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a file, also where its time is after 2262 or its inode has all 64 bits."""
    return Stamp(status.st_size, clamped(status.st_mtime_ns), clamped(status.st_ctime_ns), status.st_ino & MOST)


def clamped(time_ns: int) -> int:
    """A time within what the store holds."""
    return max(-MOST - 1, min(time_ns, MOST))


class Folder:
    """A folder held open by its descriptor; names are of its own entries, and symbolic links are never followed.

    Its methods raise OSError.
    """

    def __init__(self, location: int | str) -> None:
        self._location: Any = location

    def entries(self) -> list[os.DirEntry[str]]:
        """Its entries, sorted by name."""
        with os.scandir(self._location) as entries:
            return sorted(entries, key=lambda entry: entry.name)

    def enter(self, name: str) -> Folder:
        """A folder of it, held open."""
        return Folder(os.open(_one_name(name), _FOLDER, dir_fd=self._location))

    def open(self, name: str) -> int:
        """A descriptor of a file of it."""
        return os.open(_one_name(name), _FILE, dir_fd=self._location)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._location)


class _FolderByPath(Folder):
    """A folder of a system that opens none (Windows): each entry's real path is checked before and after its use."""

    def enter(self, name: str) -> Folder:
        return _FolderByPath(self._checked(name))

    def open(self, name: str) -> int:
        path = self._checked(name)
        descriptor = os.open(path, _FILE)
        try:
            self._checked(name)
            if not os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False)):
                raise is_a_link(path)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def close(self) -> None:
        pass

    def _checked(self, name: str) -> str:
        path = os.path.join(self._location, _one_name(name))
        if os.path.normcase(os.path.realpath(path, strict=True)) != os.path.normcase(path):
            raise is_a_link(path)
        mode = os.stat(path, follow_symlinks=False).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise OSError(errno.EINVAL, "neither a file nor a folder", path)
        return path


def open_folder(path: Path) -> Folder:
    """The folder at this path, which itself may be reached by symbolic links. Raises OSError."""
    if _BY_DESCRIPTOR:
        return Folder(os.open(path, _FOLDER & ~getattr(os, "O_NOFOLLOW", 0)))
    return _FolderByPath(os.path.realpath(path, strict=True))


def why_closed(path: str) -> int:
    """The errno of opening the folder at a path, ENOSPC if its disk has no space left; 0 if neither is so."""
    try:
        if sys.platform == "win32":
            import shutil

            os.scandir(path).close()
            full = shutil.disk_usage(path).free == 0
        else:
            os.close(os.open(path, _READ))
            disk = os.statvfs(path)
            full = disk.f_bavail == 0 < disk.f_blocks  # /proc and its kin have no blocks
    except OSError as fault:
        return fault.errno or 0
    return errno.ENOSPC if full else 0


def walk(
    root: Path, refused: Callable[[str, OSError], None]
) -> Iterator[tuple[str, list[str], list[os.DirEntry[str]]]]:
    """Each folder from `root` down: its path below `root`, the names of its folders, and its other entries.

    As with `os.walk`, names that the caller removes are not entered. Symbolic links are among the other entries.
    `refused(path, fault)` is told of a folder that cannot be listed; one that vanishes is passed over.
    """
    try:
        folder = open_folder(root)
    except OSError as fault:
        refused("", fault)
        return
    yield from _walk(folder, "", refused)


def _walk(
    folder: Folder, inner: str, refused: Callable[[str, OSError], None]
) -> Iterator[tuple[str, list[str], list[os.DirEntry[str]]]]:
    with closing(folder):
        names: list[str] = []
        others: list[os.DirEntry[str]] = []
        try:
            for entry in folder.entries():
                if entry.is_dir(follow_symlinks=False):
                    names.append(entry.name)
                else:
                    others.append(entry)
        except OSError as fault:
            refused(inner, fault)
            return
        yield inner, names, others
        for name in names:
            below = f"{inner}/{name}" if inner else name
            try:
                within = folder.enter(name)
            except FileNotFoundError:
                continue
            except OSError as fault:
                refused(below, fault)
                continue
            yield from _walk(within, below, refused)


def compile_patterns(patterns: Sequence[str], name: str) -> GitIgnoreSpec | None:
    """The patterns of a .gitignore; None for no patterns. InvalidInput, which calls them `name`, for a wrong one."""
    if isinstance(patterns, str):
        patterns = (patterns,)
    if not patterns:
        return None
    import pathspec

    try:
        return pathspec.GitIgnoreSpec.from_lines(patterns)
    except (ValueError, TypeError, AttributeError) as fault:
        raise InvalidInput(f"{name} {shown(patterns)} has an invalid pattern: {fault}") from None


def printable(path: str) -> str:
    """A path with U+FFFD for bytes that are not UTF-8."""
    return path.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace")


def kind_of(mode: int) -> str:
    """Name the kind of something that is not a regular file."""
    kinds = ((stat.S_ISLNK, "a symbolic link"), (stat.S_ISFIFO, "a FIFO"), (stat.S_ISDIR, "a folder"),
             (stat.S_ISSOCK, "a socket"))  # fmt: skip
    return next((name for test, name in kinds if test(mode)), "a device")


def open_regular(path: str | os.PathLike[str]) -> io.BufferedReader:
    """A regular file that may be reached by symbolic links, open to be read.

    Raises OSError for what is none: a device has no end, and a FIFO waits for a writer. Neither is opened.
    """
    _refuse_irregular(path, os.stat(path))
    descriptor = os.open(path, _FILE & ~getattr(os, "O_NOFOLLOW", 0))
    try:
        _refuse_irregular(path, os.fstat(descriptor))  # it may be another by now
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: str | os.PathLike[str], most_bytes: int = SMALL_BYTES) -> bytes:
    """The bytes of a regular file. Raises OSError for what is none, and for more bytes than these."""
    with open_regular(path) as stream:
        data = stream.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes:,} bytes", os.fspath(path))
    return data


def _refuse_irregular(path: str | os.PathLike[str], status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, f"it is {kind_of(status.st_mode)}, not a file", os.fspath(path))


@contextmanager
def open_file(root: Path, path: str) -> Iterator[int]:
    """A descriptor of the file at a path below `root`, with forward slashes and without `..`. Raises OSError."""
    *folders, name = path.split("/")
    with ExitStack() as stack:
        folder = open_folder(root)
        stack.callback(folder.close)
        for segment in folders:
            folder = folder.enter(segment)
            stack.callback(folder.close)
        descriptor = folder.open(name)
        stack.callback(os.close, descriptor)
        yield descriptor


def read_steady(root: Path, path: str, check: Callable[[os.stat_result], None]) -> tuple[bytes, Stamp] | None:
    """The bytes of a file below `root` at one moment, and its stamp; None where it changes while it is read, each time.

    `check` raises for a file that is not to be read. Raises OSError.
    """
    for _ in range(_ATTEMPTS):
        with open_file(root, path) as descriptor:
            before = os.fstat(descriptor)
            check(before)
            blocks, left = [], before.st_size + 1
            while left > 0 and (block := os.read(descriptor, min(left, _BLOCK_BYTES))):
                blocks.append(block)
                left -= len(block)
            after = stamp_of(os.fstat(descriptor))
        data = b"".join(blocks)
        if stamp_of(before) == after and len(data) == after.size:
            return data, after
    return None


def _one_name(name: str) -> str:
    if name in ("", ".", "..") or "/" in name or os.sep in name or "\x00" in name:
        raise OSError(errno.EINVAL, "not the name of an entry", name)
    return name


_LINKS_BY_DESCRIPTOR = os.open in os.supports_dir_fd and os.link in os.supports_dir_fd


class WritableFolder:
    """A folder in which files are made and removed by their names, for `files.unfinished(prefix, ..., parent=)`."""

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
    if sys.platform == "win32" or not _LINKS_BY_DESCRIPTOR:
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


def _checked(path: Path, folders: Sequence[str]) -> Path:
    """Return the path of a folder, each of the names created if it is missing, and none of them a link."""
    for folder in folders:
        path = path / folder
        path.mkdir(exist_ok=True)
        if path.resolve() != path:
            raise is_a_link(path)
    return path
