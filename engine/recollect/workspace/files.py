"""The Markdown files of a workspace: found, and read as they stood at one moment. Nothing outside is ever opened.

Every *.md and *.markdown below the folder counts, save in hidden folders and virtual environments and where `left_out`
or `exclude` says so, and what `extra_paths` names. Symbolic links are reported, never followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from recollect.checks import shown
from recollect.errors import InvalidInput
from recollect.folders import MOST, clamped, open_file, read_steady, stamp_of
from recollect.workspace.config import WorkspaceConfig
from recollect.workspace.looking import (
    DEEPEST,
    ENDINGS,
    TOO_DEEP,
    UNREAD,
    Look,
    Seen,
    is_hidden,
    kind_of,
    look_at,
    why,
)

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = [
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

# The name under which a look has a file that `extra_paths` names: no file's own.
_ITSELF = "/"


class FileProblem(Struct, frozen=True):
    """What is wrong with a file or folder.

    `indexed` says whether it is in the index all the same, and `unread` whether there may be something that searches
    miss because it could not be looked at.
    """

    path: str
    reason: str
    indexed: bool = False
    unread: bool = False


def problem_of(path: str, reason: object, *, indexed: bool = False, unread: bool = False) -> FileProblem:
    """A problem with a path as it may be printed and stored."""
    return FileProblem(_printable(path), str(reason), indexed, unread)


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

    def __init__(self, config: WorkspaceConfig) -> None:
        self._root = config.folder
        self._max_bytes = config.max_file_bytes
        self._extra = [Path(os.path.normpath(self._root / Path(each).expanduser())) for each in config.extra_paths]
        self._excludes = _patterns(config.exclude)
        self._has_excludes = bool(config.exclude)
        self._left_out = frozenset(config.skip_folders)

    def look(self) -> Look:
        """What stands in every folder, for `scan`, and to compare with another look."""
        look: Look = {}
        excludes = self._excludes if self._has_excludes else None
        look_at(look, self._root, "", self._left_out, excludes)
        for path in self._extra:
            if path == self._root:
                continue
            name = _name_in(self._root, path)
            try:
                real = Path(os.path.realpath(path, strict=True))
                held = real.stat()
            except OSError as fault:
                look[name, ""] = f"WorkspaceConfig.extra_paths names it, and {why(fault)}"
                continue
            if stat.S_ISDIR(held.st_mode):
                look_at(look, real, name, self._left_out, excludes)
            else:
                stamp = (held.st_mode, held.st_size, held.st_mtime_ns, held.st_ctime_ns, held.st_ino)
                look[name, ""] = {_ITSELF: stamp}
        return look

    def scan(self, look: Look | None = None) -> Scan:
        """The files of a look, by path, and what is wrong. Raises InvalidInput where the workspace's own folder cannot
        be opened.
        """
        found = Scan({}, [], [])
        for (prefix, inner), seen in (self.look() if look is None else look).items():
            path = "/".join(filter(None, (prefix, inner)))
            if isinstance(seen, str):
                if seen != TOO_DEEP:
                    found.unread.append(path)
                found.problems.append(problem_of(path or str(self._root), seen, unread=seen != TOO_DEEP))
                continue
            base = self._base_of(prefix)
            for name, held in seen.items():
                if name == _ITSELF:
                    self._add(found, path, base.parent, base.name, held)
                    continue
                below = f"{inner}/{name}" if inner else name
                if not (self._has_excludes and self._excludes(below)):
                    self._add(found, f"{prefix}/{below}" if prefix else below, base, below, held)
        if "" in found.unread:
            raise InvalidInput(f"the workspace {self._root} cannot be read: {found.problems[0].reason}")
        found.files = dict(sorted(found.files.items(), key=lambda item: item[0].split("/")))
        _report_cases(found)
        return found

    def _base_of(self, prefix: str) -> Path:
        return self._root if not prefix else Path(os.path.realpath(self._root / prefix))

    def _add(self, found: Scan, path: str, base: Path, inner: str, held: Seen) -> None:
        if isinstance(held, str):
            unread = held.startswith(UNREAD)
            found.problems.append(problem_of(path, held, unread=unread))
            if unread:
                found.unread.append(path)
            return
        mode, size, mtime_ns, ctime_ns, inode = held
        try:
            if not path.lower().endswith(ENDINGS):
                raise Unreadable(f"only files that end in {' or '.join(ENDINGS)} are indexed", lasting=True)
            file = FoundFile(path, base, inner, size, clamped(mtime_ns), clamped(ctime_ns), inode & MOST)
            found.files[path] = self._checked(file, mode)
        except Unreadable as reason:
            found.problems.append(problem_of(path, reason))

    def find(self, path: str) -> FoundFile:
        """One file of the folder. Raises Unreadable for what a scan would leave out, and why."""
        *folders, name = path.split("/")
        inside = ["/".join(folders[: place + 1]) for place in range(len(folders))]
        if any(is_hidden(each) for each in (*folders, name)):
            raise Unreadable("hidden files and folders are left out", lasting=True)
        if not self._left_out.isdisjoint(folders):
            raise Unreadable("WorkspaceConfig.skip_folders names a folder of its path", lasting=True)
        if not name.lower().endswith(ENDINGS):
            raise Unreadable(f"only files that end in {' or '.join(ENDINGS)} are indexed", lasting=True)
        if any(self._excludes(f"{each}/") for each in inside) or self._excludes(path):
            raise Unreadable("WorkspaceConfig.exclude leaves it out", lasting=True)
        if len(folders) > DEEPEST:
            raise Unreadable(TOO_DEEP, lasting=True)
        try:
            with open_file(self._root, path) as descriptor:
                held = os.fstat(descriptor)
        except OSError as fault:
            raise Unreadable(why(fault)) from None
        return self._checked(FoundFile(path, self._root, path, *stamp_of(held)), held.st_mode)

    def _checked(self, file: FoundFile, mode: int) -> FoundFile:
        if _printable(file.path) != file.path:
            raise Unreadable("its name is not UTF-8: rename it", lasting=True)
        if not stat.S_ISREG(mode):
            raise Unreadable(f"it is {kind_of(mode)}, no file", lasting=True)
        if file.size > self._max_bytes:
            raise Unreadable(
                f"it has {file.size:,} bytes and WorkspaceConfig.max_file_bytes is {self._max_bytes:,}", lasting=True
            )
        return file


def read_file(file: FoundFile) -> Reading:
    """The file's bytes as they stood at one moment. Raises Unreadable; so does one that changes all the time."""

    def check(held: os.stat_result) -> None:
        if not stat.S_ISREG(held.st_mode):
            raise Unreadable(f"it is {kind_of(held.st_mode)}, no file", lasting=True)

    try:
        read = read_steady(file.base, file.inner, check)
    except OSError as fault:
        raise Unreadable(why(fault)) from None
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


def _name_in(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _printable(path: str) -> str:
    return path.encode("utf-8", errors="surrogateescape").decode("utf-8", errors="replace")


def _patterns(exclude: tuple[str, ...]) -> Callable[[str], bool]:
    if not exclude:
        return lambda path: False
    import pathspec

    try:
        spec: GitIgnoreSpec = pathspec.GitIgnoreSpec.from_lines(exclude)
    except ValueError as fault:
        raise InvalidInput(f"WorkspaceConfig.exclude {shown(exclude)} holds what is no pattern: {fault}") from None
    return spec.match_file


def _report_cases(found: Scan) -> None:
    """Two names that differ only in case cannot both exist in every file system."""
    folded: dict[str, str] = {}
    for path in found.files:
        other = folded.setdefault(path.casefold(), path)
        if other != path:
            reason = f"its name and that of {other} differ only in case: on Windows and macOS they are one file"
            found.problems.append(problem_of(path, reason, indexed=True))
