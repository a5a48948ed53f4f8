"""Proof of an erasure: what was stored of some records, and whether any of its bytes are left in the files.

Files are searched as bytes, not by queries: free pages, the slack of a page, a WAL and the index snapshot count too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING

from recallite.errors import StoreError
from recallite.model.checks import now_us, to_datetime
from recallite.model.reports import ErasureReceipt
from recallite.store.byte_search import found_in
from recallite.store.sql.erasing import Erasure
from recallite.store.sqlite import fts5
from recallite.store.sqlite.files import RawDatabase, files_of, snapshot_of
from recallite.store.sqlite.rebuilding import drop_unused
from recallite.store.values import Erased

if TYPE_CHECKING:
    from recallite.store.sqlite.store import SqliteStore


# Internal tables of SQLite's modules.
_SHADOWS = ("session_fts_", "sqlite_", *fts5.NAMES)


class SqliteErasure(Erasure):
    """Erasure of records in a write transaction; `prove` searches for what it collected."""

    def _drop_unused(self) -> None:
        drop_unused(self._tx)  # type: ignore[arg-type]

    def _has_snapshot(self) -> bool:
        path: str = self._tx.connection.filename  # type: ignore[attr-defined]
        return bool(path) and any(str(file) == snapshot_of(path) for file in files_of(path))

    def _tables(self) -> list[str]:
        return [
            name
            for name in self._column("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            if not name.startswith(_SHADOWS) and name not in ("session_fts", "feed", "meta")
        ]

    def _in_a_message(self, word: str) -> bool:
        quoted = '"' + word.replace('"', '""') + '"'
        rows = self._execute("SELECT 1 FROM session_fts WHERE session_fts MATCH ? LIMIT 1", (quoted,))
        return rows.fetchone() is not None

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
    except StoreError as fault:  # a full disk, say: the records are gone from the tables, and the caller has to know
        emptied = True
        problems.append(
            f"what was forgotten is gone from the tables, but the file could not be compacted ({_why(fault)}): "
            "correct that, then run recallite vacuum"
        )
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
        problems.append(
            f"what was forgotten is gone from the tables, but the files could not be searched ({_why(fault)}): "
            "correct that, then run recallite vacuum"
        )
    if left := present - in_rows:
        problems.append(
            f"{len(left)} of {len(erased.pieces)} byte sequences of what was forgotten are left in {', '.join(sizes)}, "
            f"in no row: end the other processes that have {store.path} open, then run recallite vacuum"
        )
    return ErasureReceipt(
        complete=not problems, erased_at=to_datetime(now_us()), path=store.path, ids=erased.ids,
        removed=erased.rows, index_snapshot=erased.had_snapshot, searched=len(erased.pieces),
        too_short=erased.skipped, files=sizes, elsewhere=elsewhere, problems=tuple(problems),
    )  # fmt: skip


def _why(fault: StoreError | OSError) -> str:
    if isinstance(fault, OSError):
        return fault.strerror or type(fault).__name__
    return "there is no space" if fault.reason == "full" else fault.reason or type(fault).__name__


def _found_in_files(store: SqliteStore, pieces: set[bytes]) -> tuple[dict[str, int], set[bytes]]:
    """The size of each file in bytes, by name, and those sequences that are in any of them.

    Of an encrypted database the pages are searched as they read, free ones too; that takes its size in RAM.
    """
    sizes: dict[str, int] = {}
    present: set[bytes] = set()
    if store.encrypted:
        with store.exclusive() as connection:
            present |= found_in(BytesIO(connection.serialize("main")).read, pieces)
    else:
        with store.exclusive(), RawDatabase(store.path) as database:
            present |= found_in(database.read, pieces)
    for file in files_of(store.path):
        # Another process may remove a file, such as its index snapshot, at any time.
        with suppress(FileNotFoundError):
            sizes[file.name] = file.stat().st_size
            if str(file) != store.path:
                with file.open("rb") as stream:
                    present |= found_in(stream.read, pieces)
    return sizes, present
