"""Where compiled kernels are kept: the user's own directory, mode 0700, one folder per source, numba and machine.

Numba's own cache does not see changes in other files and can only be moved for the whole process; this one is ours
alone. Its folder is named by a hash of everything the machine code depends on, so a changed file, another numba or
another CPU finds no cache rather than a stale one. A cached kernel is a pickle: a directory that somebody else
could write to is not read.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import sys
from pathlib import Path

import numpy as np

_COMPLETE = "complete"
_NUMBA_SETTINGS = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT", "NUMBA_SLP_VECTORIZE", "NUMBA_LOOP_VECTORIZE")


class Cache:
    """One folder of compiled kernels; every failure to read or write means "not cached", never an error."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, name: str) -> bytes | None:
        try:
            return (self.folder / f"{name}.kernel").read_bytes()
        except OSError:
            return None

    def write(self, name: str, content: bytes) -> None:
        self._replace(f"{name}.kernel", content)

    def complete(self) -> bool:
        """Every kernel has been written."""
        return (self.folder / _COMPLETE).exists()

    def mark_complete(self) -> None:
        self._replace(_COMPLETE, b"")

    def _replace(self, name: str, content: bytes) -> None:
        # Written aside and renamed: another process sees the whole file or none.
        aside = self.folder / f".{name}.{os.getpid()}"
        try:
            with open(aside, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(content)
            aside.replace(self.folder / name)
        except OSError:
            with contextlib.suppress(OSError):
                aside.unlink()


def root() -> Path | None:
    """RECOLLECT_CACHE_DIR, else the platform's cache directory for this user; None if there is no home."""
    if chosen := os.environ.get("RECOLLECT_CACHE_DIR"):
        return Path(chosen).absolute()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(base):  # the standard says to ignore a relative one
            base = os.path.expanduser("~/.cache")
    return Path(base, "recollect") if os.path.isabs(base) else None


def existing() -> Cache | None:
    """The cache of these kernels on this machine, if its folder exists and is ours alone."""
    folder = _folder()
    return Cache(folder) if folder is not None and _private(folder) else None


def create() -> tuple[Cache | None, str]:
    """The cache, made if need be, or None and the reason why nothing can be kept."""
    folder = _folder()
    if folder is None:
        return None, "no home directory to keep them in"
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        if os.name == "posix" and folder.stat().st_uid == os.geteuid():
            folder.chmod(0o700)
        # A folder on a read-only file system, or one of another user, opens but takes no file.
        probe = folder / f".probe.{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        return None, f"{folder} cannot be written ({error.strerror})"
    if not _private(folder):
        return None, f"{folder} is not owned by this user alone"
    return Cache(folder), ""


def _private(folder: Path) -> bool:
    try:
        found = folder.stat()
    except OSError:
        return False
    if os.name != "posix":
        return True
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _folder() -> Path | None:
    base = root()
    return None if base is None else base / f"kernels-{_key()}"


def _key() -> str:
    """What the machine code depends on, found without importing numba."""
    import hashlib  # 4 ms that the import of this package need not wait for

    digest = hashlib.sha256()
    for file in sorted((Path(__file__).parent / "numba_backend").glob("*.py")):
        digest.update(file.read_bytes())
    for name in ("numba", "llvmlite"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin:
            try:
                digest.update(Path(spec.origin).with_name("_version.py").read_bytes())
            except OSError:
                digest.update(spec.origin.encode())
    parts = [sys.implementation.cache_tag or "", np.__version__, platform.machine(), _processor()]
    parts += [f"{name}={os.environ.get(name, '')}" for name in _NUMBA_SETTINGS]
    digest.update("\0".join(parts).encode())
    return digest.hexdigest()[:16]


def _processor() -> str:
    # The first processor's lines; the machine code's own record of the CPU is checked again when it is loaded.
    try:
        with open("/proc/cpuinfo", "rb") as file:
            text = file.read(8192).decode(errors="replace").split("\n\n")[0]
    except OSError:
        return platform.processor()
    return "\n".join(line for line in text.split("\n") if line.startswith(("model name", "flags", "Features")))
