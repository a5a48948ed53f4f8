"""One look at the folders of a workspace: what `stat` says of every Markdown file, ready to compare with the last look.

Each folder is held open while it is looked at, so that no link leads out, and each file costs one `stat`.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

from recollect.folders import Folder, open_folder

__all__ = ["DEEPEST", "ENDINGS", "LINK", "TOO_DEEP", "UNREAD", "Look", "Seen", "is_hidden", "kind_of", "look_at", "why"]

ENDINGS = (".md", ".markdown")
DEEPEST = 64
UNREAD = "it cannot be read"
"""How every reason begins that may pass."""
LINK = "it is a symbolic link, which is not followed: name its target in WorkspaceConfig.extra_paths"
TOO_DEEP = f"it is nested deeper than {DEEPEST} folders: left out"
_VENV = "pyvenv.cfg"

Seen = tuple[int, int, int, int, int] | str
"""Of a file: mode, size, times of change of content and of status in nanoseconds, inode. Of what is none: why."""
Look = dict[tuple[str, str], dict[str, Seen] | str]
"""By a place in the workspace and a path below it: what is in the folder by name, or why that is not known."""


def look_at(
    look: Look, base: Path, prefix: str, left_out: frozenset[str], excludes: Callable[[str], bool] | None
) -> None:
    """Add what is below the folder `base`, which has the path `prefix` in the workspace."""
    try:
        folder = open_folder(base)
    except OSError as fault:
        look[prefix, ""] = why(fault)
        return
    _enter(look, folder, prefix, "", 0, left_out, excludes)


def is_hidden(name: str) -> bool:
    """Whether a file or folder is left out for its name."""
    return name.startswith(".")


def why(fault: OSError) -> str:
    """Why the system refused."""
    if fault.errno == errno.ELOOP:
        return LINK
    return f"{UNREAD}: {fault.strerror or fault}"


def _enter(
    look: Look,
    folder: Folder,
    prefix: str,
    inner: str,
    depth: int,
    left_out: frozenset[str],
    excludes: Callable[[str], bool] | None,
) -> None:
    """Add what is in an open folder and below, and close it. `inner` is its path below `prefix`."""
    seen: dict[str, Seen] = {}
    look[prefix, inner] = seen
    try:
        entries = folder.entries()
        if inner and left_out and any(entry.name == _VENV for entry in entries):
            return
        for entry in entries:
            name = entry.name
            if name.startswith("."):
                continue
            if name.lower().endswith(ENDINGS) and entry.is_file(follow_symlinks=False):
                try:
                    held = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                except OSError as fault:
                    seen[name] = why(fault)
                    continue
                seen[name] = (held.st_mode, held.st_size, held.st_mtime_ns, held.st_ctime_ns, held.st_ino)
            elif entry.is_dir(follow_symlinks=False):
                below = f"{inner}/{name}" if inner else name
                if name in left_out or (excludes is not None and excludes(f"{below}/")):
                    continue
                if depth == DEEPEST:
                    look[prefix, below] = TOO_DEEP
                    continue
                try:
                    within = folder.enter(name)
                except FileNotFoundError:  # gone since its parent was listed
                    continue
                except OSError as fault:
                    look[prefix, below] = why(fault)
                    continue
                _enter(look, within, prefix, below, depth + 1, left_out, excludes)
            elif other := _other(entry):
                seen[name] = other
    except OSError as fault:
        look[prefix, inner] = why(fault)
    finally:
        folder.close()


def _other(entry: os.DirEntry[str]) -> Seen | None:
    """Of what is neither a folder nor a file: what is told of it; None for nothing."""
    markdown = entry.name.lower().endswith(ENDINGS)
    if entry.is_symlink():
        return LINK if markdown or entry.is_dir() else None
    if not markdown:
        return None
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return None
    return f"it is {kind_of(mode)}, no file"


def kind_of(mode: int) -> str:
    """What something is that is no regular file."""
    kinds = ((stat.S_ISLNK, "a symbolic link"), (stat.S_ISFIFO, "a FIFO"), (stat.S_ISDIR, "a folder"),
             (stat.S_ISSOCK, "a socket"))  # fmt: skip
    return next((name for test, name in kinds if test(mode)), "a device")
