"""SQLite's errors in the engine's words: what happened, to which file, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from recollect.errors import (
    NotADatabase,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
)

__all__ = ["translated"]


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Raise errors of `recollect.errors` for those of SQLite; `path` names the store in them."""
    try:
        yield
    except apsw.Error as fault:
        raise _translate(fault, path) from fault
    except UnicodeDecodeError as fault:  # apsw's, for a TEXT that another program wrote
        raise StoreCorrupt(
            f"{path} holds a text that is not UTF-8 ({fault}): another program changed it; mend or remove its row"
        ) from None


def _translate(fault: apsw.Error, path: str) -> StoreError:
    match fault:
        case apsw.BusyError() | apsw.LockedError():
            return StoreLocked(
                f"{path} is locked by another process; nothing was written. "
                "Try again, or raise Settings(busy_timeout_ms=...)"
            )
        case apsw.FullError():
            return StoreFull(f"the disk that holds {path} is full; the write was rolled back. Free some space")
        case apsw.ReadOnlyError():
            return StoreReadOnly(f"{path} cannot be written: check the permissions of the file and its folder")
        case apsw.NotADBError():
            return NotADatabase(f"{path} is not a SQLite database: give another path; the file was left as it is")
        case apsw.CorruptError() | apsw.IOError() if _is_damage(fault):
            return StoreCorrupt(
                f"{path} is damaged ({fault}). Copy the file away, then try: recollect --db {path} verify, "
                f"recollect --db {path} rebuild, or restore a backup"
            )
        case apsw.CantOpenError():
            return StoreError(f"{path} cannot be opened: check that its folder exists and may be entered")
        case apsw.ConnectionClosedError() | apsw.CursorClosedError():
            return StoreClosed(f"{path} was closed: open a new Memory")
        case _:
            return StoreError(f"{path}: {type(fault).__name__}: {fault}")


def _is_damage(fault: apsw.Error) -> bool:
    """Whether the file is not what SQLite wrote: a page of it is wrong, or it or its WAL ends too soon."""
    extended = getattr(fault, "extendedresult", None)
    return isinstance(fault, apsw.CorruptError) or extended == apsw.SQLITE_IOERR_SHORT_READ
