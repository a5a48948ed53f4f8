"""A damaged index is moved aside, beside the one that takes its place; the newest few are kept."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from recollect.errors import StoreReadOnly

__all__ = ["move_aside", "moved_aside"]

_MARK = ".damaged-"
# A disk that damages one index after the other does not fill with them.
_KEPT = 3
_DERIVED = ("-shm", "-index")


def move_aside(path: Path) -> Path:
    """Give a database with its WAL another name, which it returns. Raises StoreReadOnly where that cannot be."""
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    aside = path.with_name(f"{path.name}{_MARK}{now}")
    try:
        # The WAL goes first: SQLite would play it into a file that takes the place of its own.
        with suppress(FileNotFoundError):
            os.rename(f"{path}-wal", f"{aside}-wal")
        with suppress(FileNotFoundError):
            os.rename(path, aside)
        for ending in _DERIVED:
            with suppress(FileNotFoundError):
                os.unlink(f"{path}{ending}")
    except OSError as fault:
        raise StoreReadOnly(f"{path} is damaged and cannot be moved aside: {fault.strerror}") from fault
    for old in moved_aside(path)[:-_KEPT]:
        for ending in ("", "-wal", "-shm"):
            with suppress(OSError):
                os.unlink(f"{old}{ending}")
    return aside


def moved_aside(path: Path) -> list[Path]:
    """The damaged files that `move_aside` has put beside this path, oldest first."""
    try:
        names = os.listdir(path.parent)
    except OSError:
        return []
    begin = path.name + _MARK
    return [path.with_name(name) for name in sorted(names) if name.startswith(begin) and name.endswith("Z")]
