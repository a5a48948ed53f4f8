"""A damaged index is renamed and kept beside the new one; of these the newest few are kept."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from recollect.errors import StoreReadOnly
from recollect.store.opening import remove_database, rename_database

__all__ = ["move_aside", "moved_aside"]

_MARK = ".damaged-"
# A disk that damages every index does not fill up with them.
_KEPT = 3


def move_aside(path: Path) -> Path:
    """Rename a database and its WAL; returns the new path. Raises StoreReadOnly where it cannot."""
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    aside = path.with_name(f"{path.name}{_MARK}{now}")
    try:
        rename_database(path, aside)
    except OSError as fault:
        raise StoreReadOnly(f"{path} is damaged and cannot be moved aside: {fault.strerror}") from fault
    for old in moved_aside(path)[:-_KEPT]:
        remove_database(old)
    return aside


def moved_aside(path: Path) -> list[Path]:
    """The files that `move_aside` has renamed, oldest first."""
    try:
        names = os.listdir(path.parent)
    except OSError:
        return []
    begin = path.name + _MARK
    return [path.with_name(name) for name in sorted(names) if name.startswith(begin) and name.endswith("Z")]
