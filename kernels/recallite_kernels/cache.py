"""The store of compiled kernels: the user's own directory, mode 0700, one folder per source, numba and machine.

Numba's own cache does not see changes in other files and can only be moved for the whole process; this one is ours
alone. Its folder is named by a hash of everything the machine code depends on, so a changed file, another numba or
another CPU finds no cache rather than a stale one.

A cached kernel is machine code: a flipped bit in it ends the process or changes an answer. So a file is
a digest of what it should hold, then the content, and one that does not match is as good as none: it is compiled
again and replaced. A folder or a file that another user owns or could write to, or a link, is not read either.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from recallite_kernels import _system

_COMPLETE = "complete"
_NUMBA_SETTINGS = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT", "NUMBA_SLP_VECTORIZE", "NUMBA_LOOP_VECTORIZE")
# The format of a cached file: 3 has an object file behind the digest.
_FORMAT = 3
_DIGEST_BYTES = 32
# Writing a kernel takes milliseconds: an unfinished file this old is from a killed process.
_ABANDONED_SECONDS = 60


class Cache:
    """One folder of compiled kernels; every failure to read or write means "not cached", never an error."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._all_written = True

    def read(self, name: str) -> bytes | None:
        """The content that was written under `name`; None if the file is missing, not private, or damaged."""
        try:
            with open(self.folder / f"{name}.kernel", "rb", opener=_system.without_links) as file:
                if not _private(os.fstat(file.fileno()), stat.S_ISREG):
                    return None
                digest, content = file.read(_DIGEST_BYTES), file.read()
        except OSError:
            return None
        return content if digest == self._digest(name, content) else None

    def write(self, name: str, content: bytes) -> None:
        """Keep `content` under `name`."""
        if not self._replace(f"{name}.kernel", self._digest(name, content) + content):
            self._all_written = False

    def complete(self) -> bool:
        """Whether every kernel has been written."""
        return (self.folder / _COMPLETE).exists()

    def mark_complete(self) -> None:
        """Mark the cache complete, unless a kernel could not be written."""
        if self._all_written:
            self._replace(_COMPLETE, b"")

    def remove_abandoned(self) -> None:
        """Remove the unfinished files of killed processes."""
        with contextlib.suppress(OSError):
            for aside in self.folder.glob(".*"):
                with contextlib.suppress(OSError):
                    if time.time() - aside.lstat().st_mtime > _ABANDONED_SECONDS:
                        aside.unlink()

    def _digest(self, name: str, content: bytes) -> bytes:
        # Includes the name and the folder's: an intact kernel under another name, or of another source, is refused too.
        import hashlib

        digest = hashlib.sha256(f"{self.folder.name}/{name}/{len(content)}\0".encode())
        digest.update(content)
        return digest.digest()

    def _replace(self, name: str, content: bytes) -> bool:
        # Written to another name, synced, then renamed: other processes see all or nothing, also after a power loss.
        aside = self.folder / f".{name}.{os.getpid()}"
        try:
            with open(aside, "wb", opener=_system.owners_only) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            aside.replace(self.folder / name)
        except OSError:
            with contextlib.suppress(OSError):
                aside.unlink()
            return False
        _system.sync_folder(self.folder)
        return True


def root() -> Path | None:
    """RECALLITE_CACHE_DIR, else the platform's cache directory for this user; None if there is no home."""
    if folder := os.environ.get("RECALLITE_CACHE_DIR"):
        return Path(folder).absolute()
    base = _system.cache_home()
    return Path(base, "recallite") if os.path.isabs(base) else None


def existing() -> Cache | None:
    """The cache of these kernels on this machine, if its folder exists and is ours alone."""
    folder = _folder()
    return Cache(folder) if folder is not None and _private_folder(folder) else None


def create() -> tuple[Cache | None, str]:
    """The cache, created if needed, or None and the reason why it cannot be."""
    folder = _folder()
    if folder is None:
        return None, "no home directory to keep them in"
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        if not folder.is_symlink() and _system.owned(folder.stat()):
            folder.chmod(0o700)
        # A folder on a read-only file system, or one of another user, exists but takes no file.
        probe = folder / f".probe.{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        return None, f"{folder} cannot be written ({error.strerror})"
    if not _private_folder(folder):
        return None, f"{folder} is not owned by this user alone"
    return Cache(folder), ""


def _private_folder(folder: Path) -> bool:
    try:
        return _private(folder.lstat(), stat.S_ISDIR)
    except OSError:
        return False


def _private(status: os.stat_result, of_type: Callable[[int], bool]) -> bool:
    """Whether it is of that type, and this user's alone."""
    return of_type(status.st_mode) and _system.private(status)


def _folder() -> Path | None:
    base = root()
    return None if base is None else base / f"kernels-{_key()}"


def _key() -> str:
    """A hash of all that the machine code depends on, found without importing numba."""
    import hashlib  # 4 ms that the import of this package need not wait for

    digest = hashlib.sha256()
    here = Path(__file__).parent
    for file in sorted(here.rglob("*.py")):  # constants of any module may be compiled in
        digest.update(file.read_bytes())
    for name in ("numba", "llvmlite"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin:
            try:
                digest.update(Path(spec.origin).with_name("_version.py").read_bytes())
            except OSError:
                digest.update(spec.origin.encode())
    parts = [f"format {_FORMAT}", sys.implementation.cache_tag or "", np.__version__, platform.machine()]
    # The offset of an array's data depends on the head of a Python object, larger without the interpreter's lock.
    parts.append(f"head {object.__basicsize__}")
    # The machine code's own record of the CPU is checked again when it is loaded.
    parts += [_system.processor()]
    parts += [f"{name}={os.environ.get(name, '')}" for name in _NUMBA_SETTINGS]
    digest.update("\0".join(parts).encode())
    return digest.hexdigest()[:16]
