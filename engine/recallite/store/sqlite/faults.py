"""SQLite's errors as errors of `recallite.errors`: what happened, to which file, and what to do."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType

import apsw

from recallite.errors import NotADatabase, StoreClosed, StoreCorrupt, StoreError, StoreUnavailable, WrongKey
from recallite.system.folders import why_closed

# SQLite reports these as a malformed file.
_UNREADABLE = (errno.EIO, errno.ENXIO)
# `xFileControl` in `sqlite3_io_methods`, counted in pointers.
_FILE_CONTROL = 10
_CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_UNDONE = "the write was rolled back"
_SHORT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_SHORT_READ = apsw.SQLITE_IOERR_SHORT_READ
_WRITING = (
    apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC, apsw.SQLITE_IOERR_TRUNCATE,
    apsw.SQLITE_IOERR_DELETE, apsw.SQLITE_IOERR_SHMSIZE,
)  # fmt: skip


class translated:  # noqa: N801 - used as a context manager is
    """Raises errors of `recallite.errors` for SQLite's errors; `path` names the store in them.

    With `connection` they include the error of the system. For an `encrypted` store "not a database" means a wrong key.
    """

    __slots__ = ("_connection", "_encrypted", "_path")

    def __init__(self, path: str, connection: apsw.Connection | None = None, *, encrypted: bool = False) -> None:
        self._path, self._connection, self._encrypted = path, connection, encrypted

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if fault is not None:
            raise_translated(fault, self._path, self._connection, encrypted=self._encrypted)


def raise_translated(
    fault: BaseException, path: str, connection: apsw.Connection | None, *, encrypted: bool = False
) -> None:
    """Raise the error of `recallite.errors` for one of SQLite; return for any other."""
    if isinstance(fault, apsw.Error):
        if encrypted and isinstance(fault, apsw.NotADBError):
            raise WrongKey(
                f"{path} cannot be read with this key: give the one it was encrypted with; the file was left as it is. "
                f"Where the key is right, the beginning of the file is damaged: {restoring(path)}"
            ) from None
        raise as_store_error(fault, path, connection) from fault
    if isinstance(fault, UnicodeDecodeError):  # apsw's, for a TEXT that another program wrote
        raise StoreCorrupt(
            f"{path} holds a text that is not UTF-8 ({fault}): another program changed it; mend or remove its row"
        ) from None


def as_store_error(
    fault: apsw.Error, path: str, connection: apsw.Connection | None, *, undone: str = _UNDONE
) -> StoreError:
    """The error for an error of SQLite; `undone` describes what happened to a write."""
    extended = getattr(fault, "extendedresult", None)
    match fault:
        case apsw.BusyError() | apsw.LockedError():
            return StoreUnavailable(
                f"{path} is locked by another process; nothing was written. "
                "Try again, or raise Settings(busy_timeout_ms=...)"
            )
        case apsw.FullError():
            return _refused(errno.ENOSPC, path, doing="written", after=undone)
        case apsw.ReadOnlyError():
            return _read_only(path)
        case apsw.NotADBError():
            return NotADatabase(
                f"{path} is not a SQLite database: give another path; the file was left as it is. If it was a store, "
                f"it is damaged: {restoring(path)}"
            )
        case apsw.CorruptError() if connection is not None and reading_failed(connection):
            # SQLite reports "malformed" also if the disk cannot be read; the error of the system tells these apart.
            return _refused(errno.EIO, path, doing="read", after="nothing was changed")
        case apsw.CorruptError() | apsw.IOError() if isinstance(fault, apsw.CorruptError) or extended == _SHORT_READ:
            # A wrong page, or a database or WAL that ends too soon.
            return StoreCorrupt(
                f"{path} is damaged ({fault}). Copy the file away, then try: recallite --db {path} verify, "
                f"recallite --db {path} rebuild, or put a backup back: {restoring(path)}"
            )
        case apsw.IOError():
            doing, after = ("written", undone) if extended in _WRITING else ("read", "nothing was changed")
            if extended == apsw.SQLITE_IOERR_FSYNC and undone == _UNDONE:
                # The commit is in the WAL, and comes back if a crash or a failed close follows.
                after = "the write was undone, but may be there when the file is opened again after a crash"
            number = 0
            with suppress(apsw.ConnectionClosedError):
                if connection is not None:
                    number = connection.system_errno or next(filter(None, _last_errors(connection)), 0)
            return _refused(number, path, doing=doing, after=after)
        case apsw.CantOpenError():
            # SQLite does not keep the errno of the file.
            if (number := why_closed(os.path.dirname(path) or ".")) in (*_SHORT, errno.EIO, errno.ENOSPC):
                return _refused(number, path, doing="opened", after="nothing was changed")
            if os.path.isfile(path) and _writable(path):
                return not_writable(path)  # several descriptors may be wanting where one could be had
            return StoreError(
                f"{path} cannot be opened: its folder cannot be written or entered, or the file cannot be read. "
                "Give another path, or change the permissions"
            )
        case apsw.ConnectionClosedError() | apsw.CursorClosedError():
            return StoreClosed(f"{path} was closed: open a new Memory")
        case apsw.SQLError() if "no such module: vec0" in str(fault):
            return StoreError(
                f"{path} has a table for search in SQL that needs sqlite-vec: install sqlite-vec, or remove the table "
                f"with recallite --db {path} rebuild, without sql_search; nothing was changed"
            )
        case _:
            return StoreError(f"{path}: {type(fault).__name__}: {fault}")


def removed(path: str) -> StoreError:
    """The error for a file that is no longer where it was opened."""
    return StoreError(
        f"{path} is not there any more: it was removed or renamed while it was open, and nothing was written. Put it "
        f"back, or a backup: {restoring(path)}",
        "removed",
    )


def unreadable(path: str, fault: OSError) -> StoreError:
    """The error for a file about which the system does not even tell what it is."""
    return _refused(fault.errno or 0, path, doing="opened", after="nothing was changed")


def restoring(path: str) -> str:
    """The command that puts a backup back."""
    return f"recallite --db {path} restore BACKUP"


def reading_failed(connection: apsw.Connection) -> bool:
    """Whether the last error of the connection was that the disk could not be read."""
    return any(number in _UNREADABLE for number in _last_errors(connection))


def _refused(number: int, path: str, *, doing: str, after: str) -> StoreError:
    """The error for an errno: "full" if no more can be written, else "io".

    `doing` is "read", "written" or "opened"; `after` describes what happened to the work.
    """
    if number == errno.ENOSPC:
        return StoreError(f"the disk that holds {path} is full; {after}. Free some space", "full")
    if number == errno.EDQUOT:
        return StoreError(
            f"the quota of the disk that holds {path} is used up; {after}. Delete files, or have the quota raised",
            "full",
        )
    if number == errno.EFBIG:
        return StoreError(
            f"{path} may not be larger: its file system or a limit of this process (ulimit -f) allows no more; "
            f"{after}. Raise the limit, or move the file",
            "full",
        )
    if number in _SHORT:
        remedy = "Free some memory" if number == errno.ENOMEM else "Close some, or raise the limit (ulimit -n)"
        return StoreError(f"{path} cannot be {doing}: {os.strerror(number).lower()}; {after}. {remedy}", "io")
    if number == errno.EINTR:
        return StoreError(f"{path} cannot be {doing}: a signal interrupted it; {after}. Try again", "io")
    reason = f" ({os.strerror(number)})" if number else ""
    return StoreError(
        f"{path} cannot be {doing}: the disk or the connection to it failed{reason}; {after}. Check the disk and the "
        f"system's log; the file may be intact: once the disk works, run recallite --db {path} verify",
        "io",
    )


def not_writable(path: str) -> StoreError:
    """The error for a file that SQLite could only open for reading."""
    if _writable(path):
        # SQLite opens a file for reading only, whatever the reason.
        return StoreError(
            f"{path} cannot be opened for writing just now, though its permissions allow it: the system may be short "
            "of open files (ulimit -n), or the disk failed. Try again",
            "io",
        )
    return _read_only(path)


def _read_only(path: str) -> StoreError:
    return StoreError(f"{path} cannot be written: check the permissions of the file and its folder", "read_only")


def is_unwritable(path: str, fault: StoreError) -> bool:
    """Whether a file could not be opened as it, or its folder, cannot be written, though it is there."""
    if fault.reason != "read_only" and not isinstance(fault.__cause__, apsw.CantOpenError):
        return False
    return os.path.isfile(path) and not _writable(path)


def only_readable(path: str) -> StoreError:
    """The error for a write to a file that was opened for reading only."""
    return StoreError(
        f"{path} was opened for reading only, as the file, its folder or their file system cannot be written; nothing "
        "was written. Check their permissions, or copy it to where it can be written",
        "read_only",
    )


def _writable(path: str) -> bool:
    """Whether a file and its folder may be written."""
    # By the effective user: a process that dropped its rights keeps its real user.
    effective = os.access in os.supports_effective_ids
    return all(os.access(each, os.W_OK, effective_ids=effective) for each in (path, os.path.dirname(path) or "."))


def _last_errors(connection: apsw.Connection) -> Iterator[int]:
    """The last errno of the database file and of its WAL; 0 without an error."""
    number, file = ctypes.c_int(0), ctypes.c_void_p()
    with suppress(apsw.Error):
        connection.file_control("main", apsw.SQLITE_FCNTL_LAST_ERRNO, ctypes.addressof(number))
        yield number.value
        connection.file_control("main", apsw.SQLITE_FCNTL_JOURNAL_POINTER, ctypes.addressof(file))
        methods = ctypes.cast(file, ctypes.POINTER(ctypes.c_void_p))[0] if file else None
        if methods:
            # `sqlite3_file_control` asks only the database file; this is the same call on the WAL.
            address = ctypes.cast(methods, ctypes.POINTER(ctypes.c_void_p))[_FILE_CONTROL]
            number.value = 0
            _CALL(address)(file, apsw.SQLITE_FCNTL_LAST_ERRNO, ctypes.addressof(number))
            yield number.value
