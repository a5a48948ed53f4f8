"""A copy of the store as of one commit: complete or absent, never over another file, private while it is written."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from recallite.errors import InvalidInput, StoreError
from recallite.store.sqlite.connection import MEMORY, resolve
from recallite.store.sqlite.faults import as_store_error, reading_failed
from recallite.store.sqlite.held_files import mark_file
from recallite.store.sqlite.keys import Key
from recallite.store.store import Progress
from recallite.system.files import Part, sync_folder, unfinished

if TYPE_CHECKING:
    from recallite.store.sqlite.store import SqliteStore


_PAGES_A_STEP = 4096
_BESIDE = ("-journal", "-wal", "-shm")
_NOTHING_LEFT = "nothing was left of the backup"
_READING = (apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ)


def backup(store: SqliteStore, target: str | os.PathLike[str], on_progress: Progress | None = None) -> str:
    """Copy the store, as of one commit, to a new file; returns its path."""
    path = Path(resolve(target))
    if str(path) == MEMORY or os.path.lexists(path):
        raise InvalidInput(f"{path} exists: give the path of a new file")
    part: Part | None = None
    try:
        mode = 0o600 if store.in_memory else stat.S_IMODE(os.stat(store.path).st_mode)
        with unfinished(f"{path.parent}{os.sep}", path.name, beside=_BESIDE) as part:
            with store.exclusive() as source:
                copy_pages(source, part.path, str(path), store.key, on_progress)
            part.finish()
            part.give(mode)
            _put(part.path, path)
    except FileExistsError:
        raise InvalidInput(f"{path} was made while the store was copied: give the path of a new file") from None
    except StoreError as fault:
        fault.args = (str(fault).replace(_NOTHING_LEFT, _left(part)),)
        raise
    except OSError as fault:
        message = f"{path} cannot be written: {fault.strerror}; {_left(part)}"
        if fault.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(f"{message}; free some space there", "full") from fault
        refused = fault.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
        raise StoreError(message, "read_only" if refused else "failed") from fault
    return str(path)


def copy_pages(source: apsw.Connection, part: str, path: str, key: Key | None, on_progress: Progress | None) -> None:
    """Copy a database to a file, for `path` in messages.

    Raises apsw.Error for errors of the store, and StoreError for errors of the target.
    """
    copy = None
    try:
        copy = apsw.Connection(part)
        if key is not None:
            key.unlock(copy)
            copy.pragma("page_size", source.pragma("page_size"))  # encrypted files are copied page by page
        with copy.backup("main", source, "main") as steps:
            while not steps.done:
                steps.step(_PAGES_A_STEP)
                if on_progress is not None:
                    on_progress(steps.page_count - steps.remaining, steps.page_count)
        copy.pragma("journal_mode", "delete")
        mark_file(copy, copy=True)
        # As in a store: if the copy is written over one, processes that have it open need not let go of it first.
        copy.pragma("journal_mode", "wal")
    except (apsw.FullError, apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError, apsw.CorruptError) as fault:
        reading = isinstance(fault, apsw.CorruptError) or getattr(fault, "extendedresult", None) in _READING
        if reading and not (copy is not None and reading_failed(copy)):
            raise
        raise as_store_error(fault, path, copy, undone=_NOTHING_LEFT) from fault
    finally:
        if copy is not None:
            copy.close(True)


def _put(part: str, path: Path) -> None:
    """Give a complete file its name; FileExistsError if another file has it by now."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if path.exists():
            raise FileExistsError(path) from None
        os.rename(part, path)
    try:
        sync_folder(path.parent)
    except OSError as fault:
        try:
            os.unlink(path)
        except OSError:
            raise StoreError(f"{path} is there, but may not survive a power failure: {fault.strerror}", "io") from fault
        raise


def _left(part: Part | None) -> str:
    """Name the files that a failed backup left behind."""
    names = [] if part is None else [f"{part.path}{ending}" for ending in ("", *_BESIDE)]
    left = [name for name in names if os.path.lexists(name)]
    return f"{' and '.join(left)} could not be removed: a backup to the same path does" if left else _NOTHING_LEFT
