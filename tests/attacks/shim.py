"""Calls of libc that fail, kill or are logged: shim.c, built where there is a C compiler, preloaded into a process.

An attack that needs it runs in a process of its own, which `preloaded` starts with the shim.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.attacks import process
from tests.attacks.outcome import Outcome

__all__ = ["KINDS", "Shim", "build", "missing", "preloaded"]

# "create" is an open that makes a file.
KINDS = {
    "write": 1, "sync": 2, "truncate": 4, "rename": 8, "unlink": 16, "open": 32, "read": 64, "map": 128, "create": 256,
}  # fmt: skip
CHANGES = ("write", "sync", "truncate", "rename", "unlink", "open")
_ACTIONS = {"count": 0, "kill before": 1, "kill after": 2, "kill midway": 3, "fail": 4, "shorten": 5}
_FOR_GOOD = 2**64 - 1


class _Control(ctypes.Structure):
    """`struct control` of shim.c."""

    _fields_ = (
        ("folder", ctypes.c_char * 512),
        ("armed", ctypes.c_uint32), ("kinds", ctypes.c_uint32), ("action", ctypes.c_uint32), ("error", ctypes.c_int32),
        ("first", ctypes.c_uint64), ("last", ctypes.c_uint64), ("calls", ctypes.c_uint64), ("hits", ctypes.c_uint64),
        ("hit_kind", ctypes.c_uint32), ("logging", ctypes.c_uint32), ("hit_path", ctypes.c_char * 512),
        ("used", ctypes.c_uint64), ("size", ctypes.c_uint64), ("overflow", ctypes.c_uint64),
        ("acknowledged", ctypes.c_int64), ("scratch", ctypes.c_int64),
    )  # fmt: skip


class Shim:
    """The control block of this process and of all that it forks."""

    def __init__(self, folder: Path) -> None:
        self._library = ctypes.CDLL(None)
        self._library.shim_control.restype = ctypes.POINTER(_Control)
        self._library.shim_log.restype = ctypes.c_void_p
        self._library.shim_log.argtypes = [ctypes.c_uint64]
        self._library.shim_mark.argtypes = [ctypes.c_uint64]
        self.control = self._library.shim_control().contents
        self.control.folder = os.fsencode(folder.resolve())

    def arm(
        self, action: str, *, at: int = 0, kinds: Sequence[str] = CHANGES, error: str = "EIO", for_good: bool = False
    ) -> None:
        """From now on count calls of `kinds`, and at the call `at` (from 0) act; `for_good`, at every one from it."""
        control = self.control
        control.armed = 0
        control.kinds = sum(KINDS[kind] for kind in kinds)
        control.action, control.error = _ACTIONS[action], getattr(errno, error)
        control.first, control.last = at, _FOR_GOOD if for_good else at
        control.calls = control.hits = 0
        control.armed = 1

    def disarm(self) -> int:
        """Let all calls pass; returns how many were hit."""
        self.control.armed = 0
        return int(self.control.hits)

    @property
    def hit(self) -> str:
        """Which call was hit last, and of which file."""
        kind = next((name for name, bit in KINDS.items() if bit & self.control.hit_kind), "no call")
        return f"{kind} {os.path.basename(self.control.hit_path).decode(errors='replace')}"

    @property
    def acknowledged(self) -> int:
        """What a child has told to be done, whatever became of it since."""
        return int(self.control.acknowledged)

    def acknowledge(self, number: int) -> None:
        """Tell the parent that work up to this number is done; it stands in the log, too."""
        self._library.shim_mark(number)
        self.control.acknowledged = number

    def log(self, size: int = 2**30) -> None:
        """From now on log what is written, synced, truncated, renamed and removed."""
        self._address = self._library.shim_log(size)
        self.control.used = self.control.overflow = 0
        self.control.logging = 1

    def logged(self) -> bytes:
        """End the log; what was logged."""
        self.control.logging = 0
        assert not self.control.overflow, "the log is too small"
        return ctypes.string_at(self._address, self.control.used)


def missing() -> str | None:
    """Why the shim cannot be used here; None where it can."""
    if sys.platform != "linux":
        return "calls are intercepted on Linux only"
    if _compiler() is None:
        return "no C compiler (cc or gcc) is here to build the shim"
    return None


def build(folder: Path) -> Path:
    """Compile the shim into a folder; the library, to be named in LD_PRELOAD."""
    library, compiler = folder / "shim.so", _compiler()
    assert compiler is not None, missing()
    source = Path(__file__).with_name("shim.c")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


def preloaded(module: str, tries: int, seed: int) -> Outcome:
    """`process.run` with the shim before libc."""
    with tempfile.TemporaryDirectory(prefix="recallite-shim-") as folder:
        return process.run(module, tries, seed, environment={"LD_PRELOAD": str(build(Path(folder)))})


def _compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc")
