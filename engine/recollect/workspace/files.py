"""The Markdown files of a workspace: found, and read as they stood at one moment. Nothing outside is ever opened.

Every *.md and *.markdown below the folder counts, save in hidden folders and `node_modules` and where `exclude` says
so, and what `extra_paths` names. Symbolic links are reported, never followed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from recollect.checks import shown
from recollect.errors import InvalidInput
from recollect.folders import Folder, open_file, open_folder, read_steady, stamp_of
from recollect.workspace.config import MemoryConfig

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = [
    "ENDINGS",
    "FileProblem",
    "FoundFile",
    "Reading",
    "Scan",
    "Selection",
    "Unreadable",
    "decode",
    "problem_of",
    "read_file",
]

ENDINGS = (".md", ".markdown")
_LEFT_OUT = frozenset({"node_modules"})
_DEEPEST = 64
_TOO_DEEP = f"it is nested deeper than {_DEEPEST} folders: left out"


class FileProblem(Struct, frozen=True):
    """What is wrong with a file or folder; `indexed` says whether it is in the index all the same."""

    path: str
    reason: str
    indexed: bool = False


def problem_of(path: str, reason: object, *, indexed: bool = False) -> FileProblem:
    """A problem with a path as it may be printed and stored."""
    return FileProblem(_printable(path), str(reason), indexed)


class FoundFile(NamedTuple):
    """A file that was found: `path` names it in the workspace, `inner` below `base`, the folder to open it from."""

    path: str
    base: Path
    inner: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class Reading(NamedTuple):
    """The bytes of a file, and what `stat` said of it both before and after they were read."""

    data: bytes
    size: int
    mtime_ns: int
    inode: int


class Scan(Struct):
    """What a look at all folders found. Files below `unread` may exist: they could not be looked at."""

    files: dict[str, FoundFile]
    problems: list[FileProblem]
    unread: list[str]

    def hides(self, path: str) -> bool:
        """Whether a file may exist that was not found."""
        return any(path == each or path.startswith(each + "/") or not each for each in self.unread)


class Unreadable(Exception):
    """A file cannot be read; `lasting` when it is none that could be."""

    def __init__(self, reason: str, *, lasting: bool = False) -> None:
        super().__init__(reason)
        self.lasting = lasting


class Selection:
    """Which files a configuration means. Raises InvalidInput for a pattern of `exclude` that is none."""

    def __init__(self, config: MemoryConfig) -> None:
        self._root = config.folder
        self._max_bytes = config.max_file_bytes
        self._extra = [Path(os.path.normpath(self._root / Path(each).expanduser())) for each in config.extra_paths]
        self._excludes = _patterns(config.exclude)

    def scan(self) -> Scan:
        """Look at every folder. Raises InvalidInput where the workspace's own cannot be opened."""
        found = Scan({}, [], [])
        self._walk(found, self._root, "")
        if "" in found.unread:
            raise InvalidInput(f"the workspace {self._root} cannot be read: {found.problems[-1].reason}")
        for path in self._extra:
            if path == self._root:
                continue
            self._look_at_extra(found, path)
        _report_cases(found)
        return found

    def find(self, path: str) -> FoundFile:
        """One file of the folder. Raises Unreadable for what a scan would leave out, and why."""
        *folders, name = path.split("/")
        inside = ["/".join(folders[: place + 1]) for place in range(len(folders))]
        if any(_hidden(each) for each in (*folders, name)):
            raise Unreadable("hidden files and folders are left out", lasting=True)
        if not name.lower().endswith(ENDINGS):
            raise Unreadable(f"only files that end in {' or '.join(ENDINGS)} are indexed", lasting=True)
        if any(self._excludes(f"{each}/") for each in inside) or self._excludes(path):
            raise Unreadable("MemoryConfig.exclude leaves it out", lasting=True)
        if len(folders) > _DEEPEST:
            raise Unreadable(_TOO_DEEP, lasting=True)
        try:
            with open_file(self._root, path) as descriptor:
                held = os.fstat(descriptor)
        except OSError as fault:
            raise Unreadable(_why(fault)) from None
        return self._checked(FoundFile(path, self._root, path, *stamp_of(held)), held.st_mode)

    def _walk(self, found: Scan, base: Path, prefix: str) -> None:
        """Add what is below a folder to be opened by its path."""
        try:
            folder = open_folder(base)
        except OSError as fault:
            found.problems.append(problem_of(prefix or str(base), _why(fault)))
            found.unread.append(prefix)
            return
        self._enter(found, folder, base, prefix, "", 0)

    def _enter(self, found: Scan, folder: Folder, base: Path, prefix: str, inner: str, depth: int) -> None:
        """Add what is in an open folder and below, and close it. `inner` is its path below `base`."""
        try:
            for entry in folder.entries():
                below = f"{inner}/{entry.name}" if inner else entry.name
                path = f"{prefix}/{below}" if prefix else below
                if not _hidden(entry.name):
                    self._add(found, folder, entry, base, prefix, path, below, depth)
        except OSError as fault:
            path = f"{prefix}/{inner}".strip("/") if inner else prefix
            found.problems.append(problem_of(path or str(base), _why(fault)))
            found.unread.append(path)
        finally:
            folder.close()

    def _add(
        self,
        found: Scan,
        folder: Folder,
        entry: os.DirEntry[str],
        base: Path,
        prefix: str,
        path: str,
        below: str,
        depth: int,
    ) -> None:
        if entry.is_dir(follow_symlinks=False):
            if self._excludes(f"{below}/"):
                return
            if depth == _DEEPEST:
                found.problems.append(problem_of(path, _TOO_DEEP))
                return
            try:
                inner = folder.enter(entry.name)
            except FileNotFoundError:  # gone since its parent was listed
                return
            except OSError as fault:
                found.problems.append(problem_of(path, _why(fault)))
                found.unread.append(path)
                return
            self._enter(found, inner, base, prefix, below, depth + 1)
            return
        markdown = entry.name.lower().endswith(ENDINGS)
        if not (markdown or entry.is_symlink()) or self._excludes(below):
            return
        if entry.is_symlink():
            if markdown or entry.is_dir():
                found.problems.append(problem_of(path, _LINK))
            return
        try:
            held = entry.stat(follow_symlinks=False)
            found.files[path] = self._checked(FoundFile(path, base, below, *stamp_of(held)), held.st_mode)
        except FileNotFoundError:
            return
        except OSError as fault:
            found.problems.append(problem_of(path, _why(fault)))
            found.unread.append(path)
        except Unreadable as reason:
            found.problems.append(problem_of(path, reason))

    def _look_at_extra(self, found: Scan, path: Path) -> None:
        """Add a file or folder that is named in the configuration, wherever it is."""
        name = _name_in(self._root, path)
        try:
            real = Path(os.path.realpath(path, strict=True))
            held = real.stat()
        except OSError as fault:
            found.problems.append(problem_of(name, f"MemoryConfig.extra_paths names it, and {_why(fault)}"))
            if fault.errno != errno.ENOENT:
                found.unread.append(name)
            return
        if stat.S_ISDIR(held.st_mode):
            self._walk(found, real, name)
            return
        if not name.lower().endswith(ENDINGS):
            found.problems.append(problem_of(name, f"only files that end in {' or '.join(ENDINGS)} are indexed"))
            return
        try:
            found.files[name] = self._checked(FoundFile(name, real.parent, real.name, *stamp_of(held)), held.st_mode)
        except Unreadable as reason:
            found.problems.append(problem_of(name, reason))

    def _checked(self, file: FoundFile, mode: int) -> FoundFile:
        if _printable(file.path) != file.path:
            raise Unreadable("its name is not UTF-8: rename it", lasting=True)
        if not stat.S_ISREG(mode):
            raise Unreadable(f"it is {_kind(mode)}, no file", lasting=True)
        if file.size > self._max_bytes:
            raise Unreadable(
                f"it has {file.size:,} bytes and MemoryConfig.max_file_bytes is {self._max_bytes:,}", lasting=True
            )
        return file


def read_file(file: FoundFile) -> Reading:
    """The file's bytes as they stood at one moment. Raises Unreadable; so does one that changes all the time."""

    def check(held: os.stat_result) -> None:
        if not stat.S_ISREG(held.st_mode):
            raise Unreadable(f"it is {_kind(held.st_mode)}, no file", lasting=True)

    try:
        read = read_steady(file.base, file.inner, check)
    except OSError as fault:
        raise Unreadable(_why(fault)) from None
    if read is None:
        raise Unreadable("it changes while it is read: index again when its writer has finished")
    data, stamp = read
    return Reading(data, stamp.size, stamp.mtime_ns, stamp.inode)


def decode(data: bytes) -> tuple[str, str | None]:
    """The text of a file, and what is wrong with it. What is no character stands as U+FFFD.

    UTF-8, with or without a byte order mark, and UTF-16 with one.
    """
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    problem = None
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as fault:
        text = data.decode(encoding, errors="replace")
        name = "UTF-16" if encoding == "utf-16" else "UTF-8"
        problem = f"byte {fault.start:,} is not {name}: indexed with � in its place; convert the file"
    if "\x00" in text:
        problem = problem or f"character {text.index(chr(0)):,} is NUL: indexed with � in its place"
        text = text.replace("\x00", "�")
    return text, problem


_LINK = "it is a symbolic link, which is not followed: name its target in MemoryConfig.extra_paths"


def _hidden(name: str) -> bool:
    return name.startswith(".") or name in _LEFT_OUT


def _name_in(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _printable(path: str) -> str:
    return path.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace")


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISLNK, "a symbolic link"), (stat.S_ISFIFO, "a FIFO"), (stat.S_ISDIR, "a folder"),
             (stat.S_ISSOCK, "a socket"))  # fmt: skip
    return next((name for test, name in kinds if test(mode)), "a device")


def _why(fault: OSError) -> str:
    if fault.errno == errno.ELOOP:
        return _LINK
    return f"it cannot be read: {fault.strerror or fault}"


def _patterns(exclude: tuple[str, ...]) -> Callable[[str], bool]:
    if not exclude:
        return lambda path: False
    import pathspec

    try:
        spec: GitIgnoreSpec = pathspec.GitIgnoreSpec.from_lines(exclude)
    except ValueError as fault:
        raise InvalidInput(f"MemoryConfig.exclude {shown(exclude)} holds what is no pattern: {fault}") from None
    return spec.match_file


def _report_cases(found: Scan) -> None:
    """Two names that differ only in case cannot both exist in every file system."""
    folded: dict[str, str] = {}
    for path in found.files:
        other = folded.setdefault(path.casefold(), path)
        if other != path:
            reason = f"its name and that of {other} differ only in case: on Windows and macOS they are one file"
            found.problems.append(problem_of(path, reason, indexed=True))
