"""A damaged file, and putting a backup in the place of a store."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import apsw

from recallite.errors import InvalidInput, NotADatabase, StoreCorrupt, StoreError, StoreUnavailable
from recallite.model.reports import Problem
from recallite.store.columns import Derive
from recallite.store.sql.maintenance import RESTORE
from recallite.store.sql.meta import is_index
from recallite.store.sqlite.connection import (
    BEFORE,
    RawDatabase,
    open_connection,
    open_unwritable,
    resolve,
    snapshot_of,
)
from recallite.store.sqlite.encryption import Key
from recallite.store.sqlite.faults import translated
from recallite.store.sqlite.held_files import HeldFiles, all_copied
from recallite.store.sqlite.maintenance import BESIDE, copy_pages, name_also
from recallite.store.sqlite.schema import APPLICATION_ID, SCHEMA_VERSION
from recallite.store.sqlite.store import SqliteStore
from recallite.store.store import Progress
from recallite.system.files import new_file_mode, sync_folder, unfinished

# Proof that the file of a derived index is damaged, as opposed to unreadable at the moment.

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
# SQLite's check reports pages that could not be read as well; only these result codes mean damage.
_CODE = re.compile(r"error code=(\d+)")
_DAMAGE = (apsw.SQLITE_CORRUPT, apsw.SQLITE_NOTADB)
_SHOWN = 3
_WAIT_MS = 1_000


def proven_damage(path: str, fault: StoreError) -> str | None:
    """The damage of the index in a file, which failed with `fault`; None if it is not proven to last.

    Proof is a header that is not SQLite's, a finding of `PRAGMA integrity_check`, a value that is not as it was stored,
    or a schema of another version. A file that cannot be read completely proves nothing, and one that can be read and
    does not have the role of an index is not ours. Nothing is written.
    """
    by_sqlite = isinstance(fault.__cause__, apsw.Error)
    if isinstance(fault, StoreCorrupt):
        if not by_sqlite:
            return str(fault)
    elif by_sqlite and not isinstance(fault, NotADatabase):
        return None
    try:
        with closing(RawDatabase(path)) as file:
            header, size = file.read(_HEADER_BYTES), file.size
    except apsw.Error:
        return None
    bytes_in_wal = 0
    with suppress(OSError):
        bytes_in_wal = os.path.getsize(f"{path}-wal")
    if size and (wrong := _wrong_header(header, size, in_wal=bytes_in_wal > 0)):
        return wrong
    connection = None
    try:
        connection = open_connection(path, busy_timeout_ms=_WAIT_MS, durability="normal", readonly=True)
        with translated(path, connection):
            if not is_index(connection) or not _whole(connection):
                return None
            version = connection.pragma("user_version")
            same = version == SCHEMA_VERSION
            return None if same else f"it has schema {version}, and this Recallite makes {SCHEMA_VERSION}"
    except StoreCorrupt as reason:
        # A read that ended too soon raises it too, although the file has the right length.
        return None if isinstance(reason.__cause__, apsw.IOError) else str(reason)
    except StoreError:
        return None
    finally:
        if connection is not None:
            with suppress(apsw.Error):
                connection.close(True)


def _wrong_header(header: bytes, size: int, *, in_wal: bool) -> str | None:
    """The fault in the first bytes of a file, by https://sqlite.org/fileformat.html#the_database_header.

    `in_wal`: pages may still be in a WAL, as a checkpoint writes the header before the pages that it counts.
    """
    if size < _HEADER_BYTES or header[: len(_MAGIC)] != _MAGIC:
        return "it does not begin as a SQLite database does"
    page_size = int.from_bytes(header[16:18], "big")
    page_size = 65536 if page_size == 1 else page_size
    if page_size < 512 or page_size & (page_size - 1) or header[21:24] != b"\x40\x20\x20" or max(header[18:20]) > 2:
        return "its header is not what SQLite writes"
    counted = header[24:28] == header[92:96]
    pages = int.from_bytes(header[28:32], "big")
    if counted and not in_wal and size < pages * page_size:
        return f"it has {size:,} bytes, and its header says {pages:,} pages of {page_size:,}"
    return None


def _whole(connection: apsw.Connection) -> bool:
    """Check every page; False if some cannot be read at the moment. Raises StoreCorrupt for damage."""
    lines = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(20)")]
    if lines == ["ok"]:
        return True
    for line in lines:
        code = _CODE.search(line)
        if code is not None and int(code[1]) & 0xFF not in _DAMAGE:
            return False
    raise StoreCorrupt("; ".join(lines[:_SHOWN]))


# A backup is put in the place of a store: all of it or nothing, while other processes may have the store open. It is
# copied beside the store and checked there. Then, while nobody can write, the copy takes the store's name in one step.
# Whoever has the old file open notices before its next transaction: see `held_files`.

_EXAMPLE_CHARS = 120


class PutBack(NamedTuple):
    """The number of records of a store now, what `rebuild` would mend in it, and the path of the file it replaced."""

    records: int
    problems: tuple[Problem, ...]
    old_path: str | None


def put_back(
    backup: str | os.PathLike[str],
    target: str | os.PathLike[str],
    key: str | None,
    *,
    busy_timeout_ms: int,
    derive: Derive,
    on_progress: Progress | None = None,
) -> PutBack:
    """Replace the store at `target`, if there is one, by a copy of a backup; the old file stays beside it.

    The copy is verified, for which `derive` derives what it should have of its texts.
    """
    source, path = resolve(backup), os.path.realpath(resolve(target))
    if not os.path.isfile(source):
        raise InvalidInput(f"there is no backup at {source}: give the file that recallite backup made")
    if os.path.exists(path) and os.path.samefile(source, path):
        raise InvalidInput(f"{source} is the store itself: give the file that recallite backup made")
    secret = None if key is None else Key(key)
    folder, name = os.path.split(path)
    try:
        with unfinished(f"{folder}{os.sep}", name, beside=BESIDE) as part:
            with (
                closing(open_unwritable(source, busy_timeout_ms=busy_timeout_ms, key=secret)) as connection,
                translated(source, connection, encrypted=secret is not None),
            ):
                copy_pages(connection, part.path, path, secret, on_progress)
            records, problems = _checked(part.path, source, key, derive)
            part.finish()
            part.give(stat.S_IMODE(os.stat(path).st_mode) if os.path.exists(path) else new_file_mode())
            with _locked(path, secret, busy_timeout_ms) as whole:
                old_path = _swap(part.path, path, secret, whole=whole)
    except OSError as fault:
        full = fault.errno in (errno.ENOSPC, errno.EDQUOT)
        raise StoreError(f"{path} was not replaced: {fault.strerror}", "full" if full else "failed") from fault
    with suppress(OSError):
        os.unlink(snapshot_of(path))
    try:
        with closing(SqliteStore(path, key=key)) as store:
            store.stats("/")
    except StoreError:  # the disk fails: the old file gets its name again
        for ending in () if old_path is None else ("-wal", ""):
            with suppress(FileNotFoundError):
                os.replace(f"{old_path}{ending}", f"{path}{ending}")
        raise
    return PutBack(records, problems, old_path)


def _checked(copy: str, source: str, key: str | None, derive: Derive) -> tuple[int, tuple[Problem, ...]]:
    """The records of a copy, and what `rebuild` mends; raises StoreError if it is no whole store."""
    try:
        with closing(SqliteStore(copy, key=key, derive=derive)) as store:
            report = store.verify()
    except StoreError as fault:
        fault.args = (str(fault).replace(copy, source),)
        raise
    broken = [problem for problem in report.problems if problem.remedy == RESTORE]
    if broken:
        example = " ".join(broken[0].examples[0].split())[:_EXAMPLE_CHARS]
        raise StoreCorrupt(
            f"the backup {source} is damaged ({broken[0].name}: {example}); nothing was changed. Give another backup"
        )
    return report.records, report.problems


@contextmanager
def _locked(path: str, key: Key | None, busy_timeout_ms: int) -> Iterator[bool]:
    """Keep others from writing to a store; yields whether the old file is whole without its WAL."""
    if not os.path.exists(path):
        yield True
        return
    with closing(apsw.Connection(path)) as writer, closing(apsw.Connection(path)) as copier:
        for connection in (writer, copier):
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.set_busy_timeout(busy_timeout_ms)
        whole = False
        try:
            for connection in (writer, copier):
                if key is not None:
                    key.unlock(connection)
                application_id = connection.pragma("application_id")
                if connection.execute("SELECT count(*) FROM sqlite_schema").get and application_id != APPLICATION_ID:
                    raise InvalidInput(f"{path} is a database of another program: give the path of a store with --db")
            writer.execute("BEGIN IMMEDIATE")
            if HeldFiles(path, key).opened(copier):
                copier.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            whole = all_copied(copier)
        except (apsw.BusyError, apsw.LockedError) as fault:
            raise StoreUnavailable(
                f"{path} is locked by another process; nothing was changed. End what writes to it, or try again"
            ) from fault
        except apsw.Error:  # it is damaged, or has another key: nobody can write to it
            pass
        yield whole


def _swap(copy: str, path: str, key: Key | None, *, whole: bool) -> str | None:
    """Give a copy the name of a store; returns the path of the old file, which keeps its WAL unless it is `whole`."""
    old_path = None
    held_files = HeldFiles(path, key)
    if os.path.exists(path):
        stem, number = f"{path}{BEFORE}{datetime.now(UTC):%Y%m%d-%H%M%S}", 1
        old_path = stem
        while os.path.lexists(old_path):
            number += 1
            old_path = f"{stem}-{number}"
        for ending in ("",) if whole else ("-wal", ""):
            with suppress(FileNotFoundError):
                name_also(f"{path}{ending}", f"{old_path}{ending}")
    os.replace(copy, path)
    held_files.take_wal_away(keep=False)
    sync_folder(os.path.dirname(path))
    return old_path


def discard(old_path: str) -> None:
    """Remove the file that was replaced, with its WAL."""
    for ending in ("", "-wal"):
        Path(f"{old_path}{ending}").unlink(missing_ok=True)
