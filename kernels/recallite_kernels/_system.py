"""The services that kernels need of the system, as POSIX has it and as Windows does: private files, forks, priority."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def cache_home() -> str:
    """The folder in which this user's programs keep caches; no absolute path where there is no home."""
    if sys.platform == "win32":
        return os.environ.get("LOCALAPPDATA", "")
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches")
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The standard says to ignore a relative one.
    return base if os.path.isabs(base) else os.path.expanduser("~/.cache")


def owned(status: os.stat_result) -> bool:
    """Whether a file belongs to this user. On Windows what is in the user's folders does."""
    return sys.platform == "win32" or status.st_uid == os.geteuid()


def private(status: os.stat_result) -> bool:
    """Whether a file belongs to this user and no other may write to it; on Windows its folder sees to that."""
    return sys.platform == "win32" or (owned(status) and not status.st_mode & 0o022)


def without_links(path: str, flags: int) -> int:
    """Open a file, as `opener` of `open`; OSError for a symbolic link in its place. A FIFO there does not block."""
    if sys.platform != "win32":
        return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    return _checked(path, flags, 0o777)


def owners_only(path: str, flags: int) -> int:
    """The same for a file to be written, which is made for its owner alone."""
    if sys.platform != "win32":
        return os.open(path, flags | os.O_NOFOLLOW, 0o600)
    return _checked(path, flags, 0o600)


def _checked(path: str, flags: int, mode: int) -> int:
    """Open a file that is no link before, and is what was opened after."""
    refusal = OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    if os.path.islink(path):
        raise refusal
    descriptor = os.open(path, flags, mode)
    try:
        if not os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False)):
            raise refusal
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to the disk, as far as its file system can. Windows writes them with the files."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def processor() -> str:
    """The name and the features of the first processor; where the system does not list them, what Python says."""
    try:
        with open("/proc/cpuinfo", "rb") as file:
            text = file.read(8192).decode(errors="replace").split("\n\n")[0]
    except OSError:
        return platform.processor()
    return "\n".join(line for line in text.split("\n") if line.startswith(("model name", "flags", "Features")))


def background_options() -> dict[str, Any]:
    """Arguments of Popen for a process that works behind this one: Ctrl-C is not for it, and no window opens."""
    if sys.platform == "win32":
        import subprocess

        return {"creationflags": subprocess.CREATE_NO_WINDOW | subprocess.BELOW_NORMAL_PRIORITY_CLASS}
    return {"start_new_session": True}


def lower_priority(niceness: int) -> None:
    """Let others go first where cores are few. On Windows `background_options` have seen to it."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            os.nice(niceness)


def around_fork(before: Callable[[], object], after: Callable[[], object], in_child: Callable[[], object]) -> None:
    """Have these called around each fork of this process, `after` in the parent. Windows does not fork."""
    if sys.platform != "win32":
        os.register_at_fork(before=before, after_in_parent=after, after_in_child=in_child)
