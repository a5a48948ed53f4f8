"""The Markdown files of a workspace: found, and read at one moment. Nothing outside of it is ever opened.

Every *.md and *.markdown below the folder is one, except in hidden folders, in virtual environments and if
`skip_folders` or `exclude` says so; so is what `extra_paths` names. Symbolic links are reported, never followed.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from msgspec import Struct

from recallite.errors import InvalidInput
from recallite.model.checks import now_us
from recallite.model.records import Plain
from recallite.system.folders import (
    MOST,
    Stamp,
    clamped,
    compile_patterns,
    kind_of,
    open_file,
    printable,
    read_steady,
    stamp_of,
    walk,
)
from recallite_documents.written_dates import time_in_name
from recallite_notes.config import WorkspaceConfig

ENDINGS = (".md", ".markdown")
_DEEPEST = 64
_UNREAD = "it cannot be read"
_LINK = "it is a symbolic link, which is not followed: name its target in WorkspaceConfig.extra_paths"
_TOO_DEEP = f"it is nested deeper than {_DEEPEST} folders: left out"
_OTHER_ENDING = f"only files that end in {' or '.join(ENDINGS)} are indexed"
_VIRTUAL_ENVIRONMENT = "pyvenv.cfg"
# The name of a file that `extra_paths` names, in its own listing: no file is called so.
_ITSELF = "/"
# The names of OpenClaw's daily files; any other file below memory/ is kept for good.
_DAILY = re.compile(r"(?:^|/)\d{4}-\d{2}-\d{2}\.(?:md|markdown)$", re.ASCII | re.IGNORECASE)
_EVERGREEN = ("MEMORY.md", "memory.md")
_DAY_US = 86_400_000_000

EntryState = tuple[int, int, int, int, int] | str
"""Mode, size, times of change of content and of status in nanoseconds, and inode of a file, or why it is left out."""
Listing = dict[tuple[str, str], dict[str, EntryState] | str]
"""The entries of folders by name, or why they are not known, by a place in the workspace and a path below it."""


class FileProblem(Struct, frozen=True):
    """A fault of a file or folder.

    `indexed` says whether it is in the index nevertheless, `unread` whether searches may miss something because it
    could not be read.
    """

    path: str
    reason: str
    indexed: bool = False
    unread: bool = False


def problem_of(path: str, reason: object, *, indexed: bool = False, unread: bool = False) -> FileProblem:
    """A problem; the path is made printable."""
    return FileProblem(printable(path), str(reason), indexed, unread)


class FoundFile(NamedTuple):
    """A file that was found: `path` names it in the workspace, `inner` below `base`, the folder to open it from."""

    path: str
    base: Path
    inner: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class Scan(Struct):
    """The files of all folders. Below the paths of `unread`, which could not be read, there may be more."""

    files: dict[str, FoundFile]
    problems: list[FileProblem]
    unread: list[str]

    def hides(self, path: str) -> bool:
        """Whether a file may exist that was not found."""
        return any(path == unread or path.startswith(unread + "/") or not unread for unread in self.unread)


class Unreadable(Exception):
    """A file cannot be read; `lasting` if trying again will not help."""

    def __init__(self, reason: str, *, lasting: bool = False) -> None:
        super().__init__(reason)
        self.lasting = lasting


class Selection:
    """The files that a configuration selects. Raises InvalidInput for a wrong pattern in `exclude`."""

    def __init__(self, config: WorkspaceConfig) -> None:
        self._root = config.folder
        self._max_bytes = config.max_file_bytes
        self._extra = [Path(os.path.normpath(self._root / Path(extra).expanduser())) for extra in config.extra_paths]
        self._exclude = compile_patterns(config.exclude, "WorkspaceConfig.exclude")
        self._skipped = frozenset(config.skip_folders)

    def listing(self) -> Listing:
        """The state of every Markdown file, one `stat` each: for `scan`, and to compare with another listing."""
        listing: Listing = {}
        self._list(listing, self._root, "")
        for path in self._extra:
            if path == self._root:
                continue
            name = (path.relative_to(self._root) if path.is_relative_to(self._root) else path).as_posix()
            try:
                real = Path(os.path.realpath(path, strict=True))
                state = real.stat()
            except OSError as fault:
                listing[name, ""] = f"WorkspaceConfig.extra_paths names it, and {_why(fault)}"
                continue
            if stat.S_ISDIR(state.st_mode):
                self._list(listing, real, name)
            else:
                listing[name, ""] = {_ITSELF: _state(state)}
        return listing

    def _list(self, listing: Listing, base: Path, prefix: str) -> None:
        """Add what is below the folder `base`, which has the path `prefix` in the workspace."""

        def refused(inner: str, fault: OSError) -> None:
            listing[prefix, inner] = _why(fault)

        for inner, folders, entries in walk(base, refused):
            states: dict[str, EntryState] = {}
            listing[prefix, inner] = states
            if inner and self._skipped and any(entry.name == _VIRTUAL_ENVIRONMENT for entry in entries):
                folders.clear()
                continue
            for entry in entries:
                name = entry.name
                if name.startswith("."):
                    continue
                if not name.lower().endswith(ENDINGS):
                    if entry.is_symlink() and entry.is_dir():
                        states[name] = _LINK
                    continue
                try:
                    state = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                except OSError as fault:
                    states[name] = _why(fault)
                    continue
                if stat.S_ISREG(state.st_mode):
                    states[name] = _state(state)
                else:
                    states[name] = _LINK if stat.S_ISLNK(state.st_mode) else f"it is {kind_of(state.st_mode)}, no file"
            prefix_inside = f"{inner}/" if inner else ""
            folders[:] = [
                name for name in folders
                if not (name.startswith(".") or name in self._skipped or self._excludes(f"{prefix_inside}{name}/"))
            ]  # fmt: skip
            if folders and inner.count("/") + bool(inner) == _DEEPEST:
                listing.update({(prefix, f"{inner}/{name}"): _TOO_DEEP for name in folders})
                folders.clear()

    def scan(self, listing: Listing | None = None) -> Scan:
        """The files of a listing, by path, and what is wrong. Raises InvalidInput if the workspace's own folder
        cannot be opened.
        """
        scan = Scan({}, [], [])
        for (prefix, inner), states in (self.listing() if listing is None else listing).items():
            path = "/".join(filter(None, (prefix, inner)))
            if isinstance(states, str):
                if states != _TOO_DEEP:
                    scan.unread.append(path)
                scan.problems.append(problem_of(path or str(self._root), states, unread=states != _TOO_DEEP))
                continue
            base = self._root if not prefix else Path(os.path.realpath(self._root / prefix))
            for name, state in states.items():
                if name == _ITSELF:
                    self._add(scan, path, base.parent, base.name, state)
                    continue
                below = f"{inner}/{name}" if inner else name
                if not self._excludes(below):
                    self._add(scan, f"{prefix}/{below}" if prefix else below, base, below, state)
        if "" in scan.unread:
            raise InvalidInput(f"the workspace {self._root} cannot be read: {scan.problems[0].reason}")
        scan.files = dict(sorted(scan.files.items(), key=lambda item: item[0].split("/")))
        folded: dict[str, str] = {}  # two names that differ only in case cannot both exist in every file system
        for path in scan.files:
            if (other := folded.setdefault(path.casefold(), path)) != path:
                reason = f"its name and that of {other} differ only in case: on Windows and macOS they are one file"
                scan.problems.append(problem_of(path, reason, indexed=True))
        return scan

    def _excludes(self, path: str) -> bool:
        return self._exclude is not None and self._exclude.match_file(path)

    def _add(self, scan: Scan, path: str, base: Path, inner: str, state: EntryState) -> None:
        if isinstance(state, str):
            unread = state.startswith(_UNREAD)
            scan.problems.append(problem_of(path, state, unread=unread))
            if unread:
                scan.unread.append(path)
            return
        mode, size, mtime_ns, ctime_ns, inode = state
        try:
            if not path.lower().endswith(ENDINGS):
                raise Unreadable(_OTHER_ENDING, lasting=True)
            file = FoundFile(path, base, inner, size, clamped(mtime_ns), clamped(ctime_ns), inode & MOST)
            scan.files[path] = self._checked(file, mode)
        except Unreadable as reason:
            scan.problems.append(problem_of(path, reason))

    def find(self, path: str) -> FoundFile:
        """One file of the folder. Raises Unreadable, with the reason, for what a scan would leave out."""
        *folders, name = path.split("/")
        inside = ["/".join(folders[: i + 1]) for i in range(len(folders))]
        excluded = any(self._excludes(f"{folder}/") for folder in inside) or self._excludes(path)
        for applies, reason in (
            (any(folder.startswith(".") for folder in (*folders, name)), "hidden files and folders are left out"),
            (not self._skipped.isdisjoint(folders), "WorkspaceConfig.skip_folders names a folder of its path"),
            (not name.lower().endswith(ENDINGS), _OTHER_ENDING),
            (excluded, "WorkspaceConfig.exclude leaves it out"),
            (len(folders) > _DEEPEST, _TOO_DEEP),
        ):
            if applies:
                raise Unreadable(reason, lasting=True)
        try:
            with open_file(self._root, path) as descriptor:
                state = os.fstat(descriptor)
        except OSError as fault:
            raise Unreadable(_why(fault)) from None
        return self._checked(FoundFile(path, self._root, path, *stamp_of(state)), state.st_mode)

    def _checked(self, file: FoundFile, mode: int) -> FoundFile:
        if printable(file.path) != file.path:
            raise Unreadable("its name is not UTF-8: rename it", lasting=True)
        if not stat.S_ISREG(mode):
            raise Unreadable(f"it is {kind_of(mode)}, no file", lasting=True)
        if file.size > self._max_bytes:
            raise Unreadable(
                f"it has {file.size:,} bytes and WorkspaceConfig.max_file_bytes is {self._max_bytes:,}", lasting=True
            )
        return file


def read_file(file: FoundFile) -> tuple[bytes, Stamp]:
    """The bytes of a file at one moment, and its stamp. Raises Unreadable, also if it changes during each read."""

    def check(state: os.stat_result) -> None:
        if not stat.S_ISREG(state.st_mode):
            raise Unreadable(f"it is {kind_of(state.st_mode)}, no file", lasting=True)

    try:
        read = read_steady(file.base, file.inner, check)
    except OSError as fault:
        raise Unreadable(_why(fault)) from None
    if read is None:
        raise Unreadable("it changes while it is read: index again when its writer has finished")
    return read


def _state(status: os.stat_result) -> EntryState:
    return status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def _why(fault: OSError) -> str:
    return _LINK if fault.errno == errno.ELOOP else f"{_UNREAD}: {fault.strerror or fault}"


def source_label(path: str) -> str:
    """The first folder below `memory/`; "memory" for a file directly in it, "external" for any other."""
    parts = path.split("/")
    if parts[0] != "memory" or len(parts) < 2:
        return "external"
    return "memory" if len(parts) == 2 else parts[1]


def dated(path: str) -> date | None:
    """The day that the name of a file says, at any depth; None for other names."""
    moment = time_in_name(path.rpartition(".")[0])
    return None if moment is None else moment.date()


def is_evergreen(path: str, patterns: tuple[str, ...] = _EVERGREEN, *, as_memory: str | None = None) -> bool:
    """Whether a file never ages: it matches a pattern, or is below `memory/` and its name is not a day.

    A pattern without a slash is for the name of the file, any other for its path. `as_memory` is what
    `WorkspaceConfig.as_memory` makes of the path.
    """
    name = path.rpartition("/")[2]
    if any(fnmatchcase(path if "/" in pattern else name, pattern) for pattern in patterns):
        return True
    return (as_memory or path).startswith("memory/") and _DAILY.search(path) is None


def written_at(path: str, mtime_ns: int, timezone: str = "UTC") -> int:
    """The time of a file in microseconds since 1970: midnight of the day in its name, else its last change."""
    day = dated(path)
    if day is None:
        return mtime_ns // 1000
    try:
        midnight = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(timezone))
        return round(midnight.timestamp() * 1_000_000)
    except (OverflowError, ValueError):  # the first and the last day of the calendar, in some zones
        return round(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1_000_000)


def age_days(
    path: str,
    mtime_ns: int | None,
    *,
    patterns: tuple[str, ...] = _EVERGREEN,
    as_memory: str | None = None,
    timezone: str = "UTC",
    now: int | None = None,
) -> float | None:
    """The age in days of a file at `now` (microseconds since 1970), at least 0; None for an evergreen file.

    A dated file ages by whole days, any other from its last change, if that is known.
    """
    if is_evergreen(path, patterns, as_memory=as_memory):
        return None
    moment = now_us() if now is None else now
    day = dated(path)
    if day is None:
        return None if mtime_ns is None else max(0.0, (moment - mtime_ns // 1000) / _DAY_US)
    today = datetime.fromtimestamp(moment / 1_000_000, ZoneInfo(timezone)).date()
    return max(0.0, float((today - day).days))


class IndexResult(Plain, frozen=True, kw_only=True):
    """The result of an index run.

    - files_scanned: files found; files_indexed of them were new, changed or, with `force`, all; files_skipped were not
    - files_renamed: files that kept their chunks under another path
    - embeddings_cached: embeddings taken from the cache
    - pending: chunks that are not embedded yet; `embedder_problem` says why
    - complete: False if another run held the folder for too long
    """

    files_scanned: int = 0
    files_indexed: int = 0
    files_skipped: int = 0
    files_deleted: int = 0
    files_renamed: int = 0
    chunks_created: int = 0
    chunks_kept: int = 0
    embeddings_cached: int = 0
    embeddings_computed: int = 0
    pending: int = 0
    duration_ms: float = 0.0
    problems: tuple[FileProblem, ...] = ()
    embedder_problem: str | None = None
    complete: bool = True


class FileInfo(Plain, frozen=True, kw_only=True):
    """An indexed file: `size` in bytes, `hash` SHA-256 in hex, `mtime` in seconds since 1970, `source` its label."""

    path: str
    size: int
    hash: str
    mtime: float
    chunks: int
    is_evergreen: bool
    source: str


class StoreStatus(Plain, frozen=True, kw_only=True):
    """The state of a workspace and its index.

    - dirty: whether files have changed since they were indexed
    - search_mode: "hybrid", or "fts-only" if the query or all chunks have no vector of this embedder;
      `embedder_problem` says why
    - provider: "local", "remote", "custom" (an object given by the caller) or "none"
    - watcher_active: whether changes are indexed as they happen; interval_active: whether they are every few minutes
    - pending: chunks not embedded yet, for the reason in `embedder_problem`; refused: chunks that the embedder rejects,
      listed in `problems`
    - problems: of files; sync_problem: what stopped the last run of the watcher or the interval
    """

    files: int
    chunks: int
    dirty: bool
    workspace_dir: str
    db_path: str
    search_mode: str
    provider: str
    model: str | None
    fts_available: bool
    vector_available: bool
    cache_entries: int
    cache_max_entries: int | None
    watcher_active: bool
    interval_active: bool
    pending: int
    problems: tuple[FileProblem, ...]
    refused: int = 0
    embedder_problem: str | None = None
    sync_problem: str | None = None
