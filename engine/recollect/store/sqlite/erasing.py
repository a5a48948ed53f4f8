"""Proof of an erasure: what was stored of some records, and whether any of its bytes are left in the files.

Files are searched as bytes, not by queries: free pages, the slack of a page, a WAL and the index snapshot count too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING, Any

import apsw

from recollect.checks import now_us, to_datetime
from recollect.errors import InvalidInput, StoreError, StoreFull
from recollect.reports import ErasureReceipt
from recollect.store.byte_search import LEAST_BYTES, found_in
from recollect.store.sql.repository import INSIDE, Repository, within
from recollect.store.sqlite.arrays import id_array
from recollect.store.sqlite.files import RawDatabase, files_of, snapshot_of
from recollect.store.sqlite.rebuilding import drop_unused
from recollect.store.values import Erased

if TYPE_CHECKING:
    from recollect.store.sqlite.store import SqliteStore


# Pieces of a longer value, one every so many bytes.
_PIECE_BYTES = 32
_EVERY_BYTES = 2048
_TEXTS = "text, context, topic, metadata, public_id"
_VECTORS = (
    "SELECT value FROM vector WHERE record_id IN (SELECT value FROM carray(?1))",
    "SELECT p.value FROM vector v JOIN vector_packed p USING (id) WHERE v.record_id IN (SELECT value FROM carray(?1))",
    "SELECT c.codes FROM vector v JOIN token_code c ON c.vector_id = v.id "
    "WHERE v.record_id IN (SELECT value FROM carray(?1))",
)
_BESIDE = (
    "SELECT text FROM occurrence WHERE record_id IN (SELECT value FROM carray(?1))",
    *(
        f"SELECT reason FROM {table} WHERE {old} IN (SELECT value FROM carray(?1)) OR {new} IN "
        "(SELECT value FROM carray(?1))"
        for table, old, new in (
            ("link", "source_id", "target_id"), ("supersession", "old_id", "new_id"), ("judgement", "old_id", "new_id"),
        )
    ),
)  # fmt: skip
_NAMES = {
    ("term", "text"): "SELECT text FROM term WHERE id IN (SELECT value FROM carray(?))",
    ("tag", "name"): "SELECT name FROM tag WHERE id IN "
    "(SELECT tag_id FROM record_tag WHERE record_id IN (SELECT value FROM carray(?)))",
    ("source", "name"): "SELECT name FROM source WHERE id IN "
    "(SELECT source_id FROM record WHERE id IN (SELECT value FROM carray(?)))",
    ("scope", "path"): "SELECT path FROM scope WHERE id IN "
    "(SELECT scope_id FROM record WHERE id IN (SELECT value FROM carray(?)))",
}
# What the services keep of a scope, as columns by table.
_OF_SCOPES = {
    "session": ("name",),
    "session_snapshot": ("messages", "summary", "key_decisions"),
    "tool_pattern": ("task_type", "pattern"),
    "error_recovery": ("error_pattern", "error", "recovery"),
    "working_state": ("items",),
}
_IN_SCOPES = ("record", "source", "consolidation", *_OF_SCOPES)
# Internal tables of SQLite's modules.
_SHADOWS = ("session_fts_", "sqlite_")


class SqliteErasure(Repository):
    """Erasure of records in a write transaction; `prove` searches for what it collected."""

    def begin(self, record_ids: Sequence[int], scopes: Iterable[str]) -> Erased:
        if self._tx.began is not None:  # before anything is deleted
            raise InvalidInput(INSIDE)
        traces = self._traces(record_ids, scopes)
        path = self._connection.filename
        traces.ids = tuple(self._tx.records.public_ids(record_ids))
        traces.rows = self._rows_by_table()
        traces.had_snapshot = bool(path) and any(str(file) == snapshot_of(path) for file in files_of(path))
        self._execute(
            "DELETE FROM embedding_cache WHERE content_hash IN (SELECT content_hash FROM record "
            "WHERE id IN (SELECT value FROM carray(?)))",
            (id_array(self._with_versions(record_ids)),),
        )
        return traces

    def finish(self, erased: Erased) -> None:
        self._drop_unused_scopes()
        drop_unused(self._tx)
        self._add_names_gone(erased)
        now = self._rows_by_table()
        erased.rows = {table: rows - now[table] for table, rows in erased.rows.items() if rows != now[table]}

    def found_in_tables(self, pieces: Iterable[bytes]) -> tuple[dict[str, int], set[bytes]]:
        """In how many rows of which columns any of these byte sequences is, as {"table.column": rows}; and which."""
        columns = self._rows(
            "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_xinfo(t.name) c "
            "WHERE t.type = 'table' AND t.sql NOT LIKE 'CREATE VIRTUAL%' AND c.type IN ('TEXT', 'BLOB', '')"
        )
        rows: dict[str, int] = {}
        found: set[bytes] = set()
        sought = tuple(pieces)
        for table, column in columns:
            if not sought or table.startswith(_SHADOWS):
                continue
            holds = f'instr(CAST(t."{column}" AS BLOB), s.value)'
            here = self._rows(
                f'SELECT s.value FROM carray(?) s WHERE EXISTS (SELECT 1 FROM "{table}" t WHERE {holds})',
                (apsw.carray(sought),),
            )
            if here:
                values = tuple(value for (value,) in here)
                found.update(values)
                rows[f"{table}.{column}"] = self._execute(
                    f'SELECT count(*) FROM "{table}" t WHERE EXISTS (SELECT 1 FROM carray(?) s WHERE {holds})',
                    (apsw.carray(values),),
                ).get
        return rows, found

    def _traces(self, record_ids: Sequence[int], scopes: Iterable[str]) -> Erased:
        """What is stored of these open records with their closed versions, and of the services in `scopes`."""
        found = Erased()
        versions = self._with_versions(record_ids)
        rows = list(
            self._execute(
                f"SELECT {_TEXTS} FROM record WHERE id IN (SELECT value FROM carray(?))", (id_array(versions),)
            )
        )
        for statement in (*_VECTORS, *_BESIDE):
            rows += self._execute(statement, (id_array(versions),))
        for (table, column), statement in _NAMES.items():
            ids = self._terms(versions) if table == "term" else versions
            found.names[table, column] = {name for (name,) in self._execute(statement, (id_array(ids),))}
        for scope in scopes:
            condition, bound = within(scope)
            inside = f"scope_id IN (SELECT id FROM scope WHERE {condition})"
            statements = [
                f"SELECT {', '.join(names)} FROM {table} WHERE {inside}" for table, names in _OF_SCOPES.items()
            ]
            statements.append(
                "SELECT content, message FROM session_message WHERE session_id IN "
                f"(SELECT id FROM session WHERE {inside})"
            )
            statements.append(
                f"SELECT title, d.metadata, o.name FROM document d JOIN source o ON o.id = d.source_id WHERE o.{inside}"
            )
            for statement in statements:
                rows += self._execute(statement, bound)
        for row in rows:
            for value in row:
                _add(found, value)
        return found

    def _add_names_gone(self, erased: Erased) -> None:
        """Note the names that are gone by now; a word that is in a message of a session is not."""
        for (table, column), names in erased.names.items():
            kept: Any = self._execute(
                f"SELECT {column} FROM {table} WHERE {column} IN (SELECT value FROM carray(?))",
                (apsw.carray((*names, "")),),
            )
            for name in names - {row[0] for row in kept}:
                if len(name.encode()) >= LEAST_BYTES and not (table == "term" and self._in_a_message(name)):
                    _add(erased, name)

    def _in_a_message(self, word: str) -> bool:
        quoted = '"' + word.replace('"', '""') + '"'
        found = self._execute("SELECT 1 FROM session_fts WHERE session_fts MATCH ? LIMIT 1", (quoted,))
        return found.fetchone() is not None

    def _drop_unused_scopes(self) -> None:
        unused = " AND ".join(
            f"NOT EXISTS (SELECT 1 FROM {table} t WHERE t.scope_id = scope.id)" for table in _IN_SCOPES
        )
        self._execute(f"DELETE FROM scope WHERE path != '/' AND {unused}")
        if self._connection.changes():
            self._tx.changes.append("reload", 0)  # their numbers may be used again

    def _rows_by_table(self) -> dict[str, int]:
        tables = [
            name
            for (name,) in self._execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            if not name.startswith(_SHADOWS) and name not in ("session_fts", "feed", "meta")
        ]
        return {name: self._execute(f'SELECT count(*) FROM "{name}"').get for name in tables}

    def _terms(self, record_ids: Sequence[int]) -> list[int]:
        """The numbers of the words of these records."""
        terms: set[int] = set()
        for (blob,) in self._execute(
            "SELECT terms FROM record_terms WHERE record_id IN (SELECT value FROM carray(?))", (id_array(record_ids),)
        ):
            terms.update(memoryview(blob).cast("i"))
        return sorted(terms)

    def _with_versions(self, record_ids: Sequence[int]) -> list[int]:
        return [*record_ids, *self._tx.records.closed_versions(record_ids)]


def prove(store: SqliteStore, erased: Erased) -> ErasureReceipt:
    """Compact the file, empty its WAL, and look for the erased bytes in all of its files."""
    problems = []
    try:
        emptied = store.compact()
    except StoreError as fault:  # a full disk, say: the records are gone from the tables, and the caller has to know
        emptied = True
        reason = "there is no space" if isinstance(fault, StoreFull) else type(fault).__name__
        problems.append(
            f"what was forgotten is gone from the tables, but the file could not be compacted ({reason}): "
            "correct that, then run recollect vacuum"
        )
    if not emptied and not store.in_memory:
        problems.append(
            f"another connection reads an older state of {store.path}, so its WAL could not be emptied: end that "
            "reader, then run recollect vacuum"
        )
    sizes: dict[str, int] = {}
    found: set[bytes] = set()
    if not store.in_memory:
        sizes, found = _found_in_files(store, erased.pieces)
    with store.read() as reader:
        elsewhere, kept = reader.erasure.found_in_tables(found)
    if left := found - kept:
        problems.append(
            f"{len(left)} of {len(erased.pieces)} byte sequences of what was forgotten are left in "
            f"{', '.join(sizes)}, in no row: end the other processes that have {store.path} open, then run "
            "recollect vacuum"
        )
    return ErasureReceipt(
        complete=not problems, erased_at=to_datetime(now_us()), path=store.path, ids=erased.ids,
        removed=erased.rows, index_snapshot=erased.had_snapshot, searched=len(erased.pieces),
        too_short=erased.skipped, files=sizes, elsewhere=elsewhere, problems=tuple(problems),
    )  # fmt: skip


def _found_in_files(store: SqliteStore, pieces: set[bytes]) -> tuple[dict[str, int], set[bytes]]:
    """The size of each file in bytes, by name, and those sequences that are in any of them.

    Of an encrypted database the pages are searched as they read, free ones too; that takes its size in RAM.
    """
    sizes: dict[str, int] = {}
    found: set[bytes] = set()
    if store.encrypted:
        with store.exclusive() as connection:
            found |= found_in(BytesIO(connection.serialize("main")), pieces)
    else:
        with store.exclusive(), RawDatabase(store.path) as database:
            found |= found_in(database, pieces)
    for file in files_of(store.path):
        # Another process may remove a file, such as its index snapshot, at any time.
        with suppress(FileNotFoundError):
            sizes[file.name] = file.stat().st_size
            if str(file) != store.path:
                with file.open("rb") as stream:
                    found |= found_in(stream, pieces)
    return sizes, found


def _add(erased: Erased, value: object) -> None:
    """Note the beginning, the end and places between of a text or BLOB."""
    data = value.encode() if isinstance(value, str) else value
    if not isinstance(data, bytes) or not data:
        return
    if len(data) < LEAST_BYTES:
        erased.skipped += 1
        return
    for start in (*range(0, len(data), _EVERY_BYTES), max(0, len(data) - _PIECE_BYTES)):
        piece = data[start : start + _PIECE_BYTES]
        if len(piece) >= LEAST_BYTES and any(piece):
            erased.pieces.add(piece)
