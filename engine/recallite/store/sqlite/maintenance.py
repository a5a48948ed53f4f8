"""Work on a whole file: checking it, deriving everything again, proving an erasure, and backing it up."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np

from recallite.errors import InvalidInput, StoreError
from recallite.model.reports import ErasureReceipt, Problem, Verification
from recallite.store.sql import maintenance
from recallite.store.sql.maintenance import REBUILD, RESTORE, Erased, Erasure, found, found_in, not_proven, receipt
from recallite.store.sqlite.connection import MEMORY, RawDatabase, files_of, replaced_files_of, resolve, snapshot_of
from recallite.store.sqlite.encryption import Key, is_encrypted
from recallite.store.sqlite.faults import as_store_error, reading_failed
from recallite.store.sqlite.held_files import mark_file
from recallite.store.sqlite.key_lists import TEXT_KEYS
from recallite.store.sqlite.schema import DERIVED
from recallite.store.sqlite.sql_search import SEARCH_TABLES, create_search, drop_search, has_table, search_problems
from recallite.store.store import Progress
from recallite.system.files import Part, sync_folder, unfinished

if TYPE_CHECKING:
    from recallite.store.sqlite.store import SqliteStore
    from recallite.store.sqlite.transaction import SqliteTransaction


# Checks of what SQLite alone keeps, and of the file itself.

_CHECKS = {
    "token codes that are no bytes": (
        "SELECT 'vector ' || vector_id FROM token_code WHERE typeof(codes) != 'blob' AND length(codes) % 8 = 0"
    ),
}


def verify(tx: SqliteTransaction, on_progress: Progress | None = None) -> Verification:
    """Compare everything derived with the records, and have SQLite check the file. Nothing is changed."""
    return maintenance.verify(
        tx,
        _CHECKS,
        (partial(_integrity, tx), partial(_texts, tx), partial(search_problems, tx.connection)),
        _problem_of,
        on_progress,
    )


def _problem_of(fault: Exception) -> Problem | None:
    if not isinstance(fault, apsw.SQLError | apsw.CorruptError):
        return None
    damaged = isinstance(fault, apsw.CorruptError)
    return Problem(
        name="damaged page" if damaged else "a table is missing or broken",
        count=1,
        examples=(str(fault),),
        remedy=RESTORE if damaged else REBUILD,
    )


def _integrity(tx: SqliteTransaction) -> Iterator[Problem]:
    findings: list[str] = []
    try:
        # extend keeps the rows before an error.
        findings.extend(str(row[0]) for row in tx.connection.execute("PRAGMA integrity_check(20)"))
    except apsw.CorruptError as fault:
        findings.append(str(fault))
    if findings != ["ok"]:
        yield from found("SQLite integrity_check", findings, RESTORE)
    broken = tx.connection.execute("PRAGMA foreign_key_check").fetchall()
    yield from found(
        "row that refers to a missing one",
        [f"{table} {rowid} -> {parent}" for table, rowid, parent, _ in broken],
        RESTORE if any(parent == "scope" for *_, parent, _ in broken) else REBUILD,
    )


def _texts(tx: SqliteTransaction) -> Iterator[Problem]:
    """Compare the list of texts with the records."""
    rows: list[Any] = tx.connection.execute(f"{TEXT_KEYS} ORDER BY id").fetchall()
    keys = np.frombuffer(b"".join(row[1] for row in rows), dtype="<i8").tolist()
    stored = set(zip([row[0] for row in rows], keys, strict=True))
    entries = list(zip(*(column.tolist() for column in tx.records.texts.all()), strict=True))
    wrong = {row_id for row_id, _ in stored.symmetric_difference(entries)}
    yield from found("record that is not found by its text", [f"record {column}" for column in sorted(wrong)])


# Deriving everything from the records again, in tables that are created anew: repair never asks a broken index.


def rebuild(tx: SqliteTransaction, on_progress: Progress | None = None, *, sql_search: bool = False) -> None:
    """Make words and hashes from the records anew, and with `sql_search` its tables. Unsound vectors are removed."""
    # The derived tables, whole or broken, are dropped and created as the schema has them.
    tx.connection.execute("REINDEX").fetchall()
    drop_search(tx.connection)
    for table, create in DERIVED.items():
        tx.connection.execute(f"DROP TABLE IF EXISTS {table}")
        tx.connection.execute(create).fetchall()
    tx.forget_known()
    tx.connection.execute("DELETE FROM token_code WHERE typeof(codes) != 'blob'")
    maintenance.rebuild(tx, on_progress)
    tx.records.list_texts()
    if sql_search:
        create_search(tx.connection)


def drop_unused(tx: SqliteTransaction) -> None:
    """Drop words and tags that no record has, and merge FTS5's segments, which keep what was deleted until then."""
    maintenance.drop_unused(tx)
    if has_table(tx.connection, "memories_fts"):
        tx.connection.execute("INSERT INTO memories_fts (memories_fts) VALUES ('optimize')")


# Proof of an erasure: what was stored of some records, and whether any of its bytes are left in the files. Files are
# searched as bytes, not by queries: free pages, the slack of a page, a WAL and the index snapshot count too.

# Internal tables of SQLite's modules, whose names begin with those of ours.
_SHADOWS = ("sqlite_", *SEARCH_TABLES)


class SqliteErasure(Erasure):
    """Erasure of records in a write transaction; `prove` searches for what it collected."""

    _tx: SqliteTransaction

    def _drop_unused(self) -> None:
        drop_unused(self._tx)

    def _has_snapshot(self) -> bool:
        path = self._tx.connection.filename
        return bool(path) and any(str(file) == snapshot_of(path) for file in files_of(path))

    def _tables(self) -> list[str]:
        return [
            name
            for name in self._column("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            if not name.startswith(_SHADOWS) and name not in ("feed", "meta")
        ]

    def _searched(self) -> Iterator[tuple[str, str, str]]:
        columns = self._rows(
            "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_xinfo(t.name) c "
            "WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL%' AND c.type IN ('TEXT', 'BLOB', '')"
        )
        for table, column in columns:
            if not table.startswith(_SHADOWS):
                yield table, column, f'instr(CAST(t."{column}" AS BLOB), s.value)'


def prove(store: SqliteStore, erased: Erased) -> ErasureReceipt:
    """Compact the file, empty its WAL, and look for the erased bytes in all of its files."""
    problems = []
    try:
        emptied = store.compact()
    except StoreError as fault:  # a full disk, say
        emptied = True
        problems.append(not_proven("the file could not be compacted", fault))
    if not emptied and not store.in_memory:
        problems.append(
            f"another connection reads an older state of {store.path}, so its WAL could not be emptied: end that "
            "reader, then run recallite vacuum"
        )
    sizes: dict[str, int] = {}
    present: set[bytes] = set()
    in_rows: set[bytes] = set()
    elsewhere: dict[str, int] = {}
    try:
        if not store.in_memory:
            sizes, present = _found_in_files(store, erased.pieces)
        with store.read() as reader:
            elsewhere, in_rows = reader.erasure.found_in_tables(present)
    except (StoreError, OSError) as fault:
        present = set()
        problems.append(not_proven("the files could not be searched", fault))
    if left := present - in_rows:
        problems.append(
            f"{len(left)} of {len(erased.pieces)} byte sequences of what was forgotten are left in {', '.join(sizes)}, "
            f"in no row: end the other processes that have {store.path} open, then run recallite vacuum"
        )
    if erased.pieces and not store.in_memory:
        problems += _replaced_that_hold(store, erased.pieces - in_rows)
    return receipt(erased, store.path, problems, elsewhere, sizes)


def _found_in_files(store: SqliteStore, pieces: set[bytes]) -> tuple[dict[str, int], set[bytes]]:
    """The size of each file in bytes, by name, and the sequences found in any of them.

    Of an encrypted database the pages are searched as they read, free ones too; that takes its size in RAM.
    """
    sizes: dict[str, int] = {}
    present: set[bytes] = set()
    if store.encrypted:
        with store.exclusive() as connection:
            present |= found_in(BytesIO(connection.serialize("main")).read, pieces)
    else:
        with store.exclusive(), closing(RawDatabase(store.path)) as database:
            present |= found_in(database.read, pieces)
    for file in files_of(store.path):
        # Another process may remove a file, for example its index snapshot, at any time.
        with suppress(FileNotFoundError):
            sizes[file.name] = file.stat().st_size
            if str(file) != store.path:
                with file.open("rb") as stream:
                    present |= found_in(stream.read, pieces)
    return sizes, present


def _replaced_that_hold(store: SqliteStore, pieces: set[bytes]) -> Iterator[str]:
    """A problem for each file that a backup replaced and that holds some of these sequences, or may hold them."""
    for file in replaced_files_of(store.path):
        database = Path(str(file).removesuffix("-wal"))
        try:
            with suppress(FileNotFoundError), file.open("rb") as stream:  # it may be removed meanwhile
                holds = "holds"
                # What is encrypted shows none of its bytes; the key may be another one by now, or none.
                if is_encrypted(database) if database.exists() else store.encrypted:
                    holds = "may hold"
                elif not found_in(stream.read, pieces):
                    continue
                yield f"{file}, which a backup replaced, {holds} some of what was forgotten: remove it"
        except OSError as fault:
            yield not_proven(f"{file} could not be searched", fault)


# A copy of the store as of one commit: complete or absent, never over another file, private while it is written.

_PAGES_A_STEP = 4096
BESIDE = ("-journal", "-wal", "-shm")
"""The endings of the files that SQLite makes beside a copy while it is written."""
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
        with unfinished(f"{path.parent}{os.sep}", path.name, beside=BESIDE) as part:
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


def name_also(path: str, other: str | Path) -> None:
    """Give a file another name, in place of its own where the file system has no hard links. Raises FileExistsError."""
    try:
        os.link(path, other)
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:
        if os.path.exists(other):
            raise FileExistsError(other) from None
        os.rename(path, other)


def _put(part: str, path: Path) -> None:
    """Give a complete file its name; FileExistsError if another file has it by now."""
    name_also(part, path)
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
    names = [] if part is None else [f"{part.path}{ending}" for ending in ("", *BESIDE)]
    left = [name for name in names if os.path.lexists(name)]
    return f"{' and '.join(left)} could not be removed: a backup to the same path does" if left else _NOTHING_LEFT
