"""Changing the key of a file by replacing it with a copy.

`PRAGMA rekey` changes pages in place: if the process is killed, the file has pages of two keys and neither opens it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw

from recallite.errors import StoreCorrupt, StoreError
from recallite.store.sqlite.keys import Key, remove_key
from recallite.system.files import create_private, open_to_overwrite, sync_file, sync_folder

_WIPED_BYTES = 1 << 20


@contextmanager
def replace_file(writer: apsw.Connection, old: Key | None, new: Key | None) -> Iterator[None]:
    """Replace the file by a copy with the key `new`; the body runs when that is done. Closes `writer`.

    `writer` is the only connection, not in WAL mode. The old file is overwritten afterwards: no trace is left in free
    space, and a process that has just opened it finds no database instead of one that no other process sees.
    """
    path = writer.filename
    part = _part_of(path)
    remove_unfinished(path)
    # Closing a descriptor of the file drops SQLite's locks, so it is kept open until the connection is closed.
    descriptor = open_to_overwrite(path)
    try:
        os.close(create_private(part))
        _copy(writer, part, old, new)
        os.chmod(part, os.fstat(descriptor).st_mode & 0o777)
        os.replace(part, path)
        yield
        sync_folder(os.path.dirname(path))
        _wipe(descriptor)
    except OSError as fault:
        raise StoreError(
            f"the key of {path} was not changed, or what it was not overwritten: {fault.strerror}. Open it to see",
            "full" if fault.errno in (errno.ENOSPC, errno.EDQUOT) else "failed",
        ) from fault
    finally:
        remove_unfinished(path)
        writer.close(True)
        os.close(descriptor)


def remove_unfinished(path: str) -> None:
    """Remove what a killed rekeying left beside `path`; call it with the file open or locked."""
    with suppress(OSError):
        os.unlink(_part_of(path))


def _part_of(path: str) -> str:
    return f"{path}-rekey"


def _copy(writer: apsw.Connection, part: str, old: Key | None, new: Key | None) -> None:
    """A complete copy with the new key, synced. It needs no journal: an incomplete copy is thrown away."""
    copy = apsw.Connection(part, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        if old is not None:
            old.unlock(copy)
        copy.pragma("page_size", writer.pragma("page_size"))
        copy.pragma("journal_mode", "memory")
        copy.pragma("temp_store", "memory")
        with copy.backup("main", writer, "main") as steps:
            while not steps.done:
                steps.step(-1)
        if new is None:
            remove_key(copy)
        else:
            new.replace_that_of(copy)
    finally:
        copy.close(True)
    copy = apsw.Connection(part, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        if new is not None:
            new.unlock(copy)
        finding = copy.execute("PRAGMA quick_check(1)").get
    finally:
        copy.close(True)
    if finding != "ok":
        raise StoreCorrupt(f"{writer.filename} keeps its key: a copy with another is damaged ({finding}). Run verify")
    sync_file(part)


def _wipe(descriptor: int) -> None:
    left = os.fstat(descriptor).st_size
    os.lseek(descriptor, 0, os.SEEK_SET)
    while left > 0:
        left -= os.write(descriptor, bytes(min(left, _WIPED_BYTES)))
    os.fsync(descriptor)
