"""Files of folders: found by patterns and read consistently. Nothing outside the folder is opened."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from recallite.documents.detecting import BY_EXTENSION
from recallite.documents.outcomes import Skipped
from recallite.errors import DocumentError
from recallite.system.folders import Stamp, compile_patterns, kind_of, printable, read_steady, walk

_TEXT_EXTENSIONS = frozenset(
    (".txt", ".text", ".rst", ".adoc", ".asciidoc", ".org", ".tex", ".log", ".csv", ".tsv", ".srt", ".vtt")
)
_LEFT_OUT = frozenset(("node_modules", "__pycache__"))
_DEEPEST = 64
_NO_DOCUMENT = "its name is not that of a document: save it as one, or name it in include"
_HIDDEN, _EXCLUDED = "hidden and generated files and folders are left out", "exclude leaves it out"


class FoundFile(NamedTuple):
    """A file to read: `inner` is its path below `root`, with forward slashes; `source` names it in the store."""

    source: str
    root: Path
    inner: str
    warnings: tuple[str, ...] = ()


def find_file(path: Path, root: Path | None) -> FoundFile | Path:
    """Return the file, or the real path of a folder, at `path`; with `root` it must be in that folder, links aside."""
    try:
        if root is not None:
            base = Path(os.path.realpath(root, strict=True))
            path = path.relative_to(root) if path.is_absolute() and path.is_relative_to(root) else path
            inner = os.path.relpath(os.path.normpath(base / path), base)
            if inner.split(os.sep)[0] == os.pardir or os.path.isabs(inner):
                raise DocumentError(f"it is not in {root}", "refused")
            real = Path(os.path.realpath(base / inner, strict=True))
            if real != base / inner:
                raise DocumentError(
                    "it is, or is reached through, a symbolic link, which is not followed here", "refused"
                )
        else:
            real = Path(os.path.realpath(path, strict=True))
        mode = real.stat().st_mode
    except (OSError, ValueError) as fault:
        raise DocumentError(_why(fault)) from None
    if stat.S_ISDIR(mode):
        return real
    if not stat.S_ISREG(mode):
        raise DocumentError(f"it is {kind_of(mode)}, not a file")
    return FoundFile(printable(real.as_posix()), real.parent, real.name)


def read_file(file: FoundFile, max_bytes: int) -> tuple[bytes, Stamp]:
    """Return the bytes of one version of a file, and its stamp. Raises DocumentError."""

    def check(status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise DocumentError(f"it is {kind_of(status.st_mode)}, not a file")
        if status.st_size > max_bytes:
            raise DocumentError(f"it has {status.st_size:,} bytes; max_bytes is {max_bytes:,}", "too_large")

    try:
        read = read_steady(file.root, file.inner, check)
    except OSError as fault:
        raise DocumentError(_why(fault)) from None
    if read is None:
        raise DocumentError("it changes while it is read: ingest it again when its writer has finished")
    return read


class Walk:
    """A walk through a folder. Iterating yields its files in order; files that are left out are added to `skipped`.

    `include` and `exclude` are .gitignore patterns of paths below the folder. Without `include`, files with the
    extension of a document are taken. Raises InvalidInput for an invalid pattern.
    """

    def __init__(self, root: Path, include: Sequence[str], exclude: Sequence[str], *, recursive: bool) -> None:
        self.skipped: list[Skipped] = []
        self._root = root
        self._include = compile_patterns(include, "include")
        self._exclude = compile_patterns(exclude, "exclude")
        self._recursive = recursive
        self._folded: dict[str, str] = {}

    def __iter__(self) -> Iterator[FoundFile]:
        for inner, folders, entries in walk(self._root, self._refuse):
            below = f"{inner}/" if inner else ""
            folders[:] = [name for name in folders if self._enters(name, below + name)]
            for entry in entries:
                path = below + entry.name
                try:
                    mode = entry.stat(follow_symlinks=False).st_mode
                except OSError as fault:  # removed since the folder was listed
                    self._skip(path, _why(fault))
                    continue
                if entry.name.startswith(".") or entry.name in _LEFT_OUT:
                    self._skip(path, _HIDDEN)
                elif stat.S_ISLNK(mode):
                    self._skip(path, "it is a symbolic link, which is not followed: name its target")
                else:
                    yield from self._file(mode, path)

    def _refuse(self, inner: str, fault: OSError) -> None:
        if not inner:
            raise DocumentError(_why(fault))
        self._skip(inner, _why(fault))

    def _enters(self, name: str, path: str) -> bool:
        for applies, reason in (
            (name.startswith(".") or name in _LEFT_OUT, _HIDDEN),
            (not self._recursive, "subfolders are left out, as requested (not recursive)"),
            (self._exclude is not None and self._exclude.match_file(f"{path}/"), _EXCLUDED),
            (path.count("/") == _DEEPEST, f"it is nested deeper than {_DEEPEST} folders"),
        ):
            if applies:
                self._skip(path, reason)
                return False
        return True

    def _file(self, mode: int, path: str) -> Iterator[FoundFile]:
        if self._exclude is not None and self._exclude.match_file(path):
            self._skip(path, _EXCLUDED)
        elif self._include is not None and not self._include.match_file(path):
            return  # not reported: nothing asked for it
        elif not stat.S_ISREG(mode):
            self._skip(path, f"it is {kind_of(mode)}, not a file")
        elif self._include is None and not _is_document(path):
            self._skip(path, _NO_DOCUMENT)
        elif printable(path) != path:
            self._skip(path, "its name is not UTF-8: rename it")
        else:
            other = self._folded.setdefault(path.casefold(), path)
            clash = () if other == path else (f"its name and that of {other} differ only in case",)
            yield FoundFile((self._root / path).as_posix(), self._root, path, clash)

    def _skip(self, path: str, reason: str) -> None:
        self.skipped.append(Skipped(source=printable((self._root / path).as_posix()), reason=reason))


def _is_document(path: str) -> bool:
    extension = os.path.splitext(path)[1].lower()
    return extension in BY_EXTENSION or extension in _TEXT_EXTENSIONS


def _why(fault: Exception) -> str:
    if isinstance(fault, OSError) and fault.errno == errno.ENOENT:
        return "it is not there"
    return f"it cannot be read: {getattr(fault, 'strerror', None) or fault}"
