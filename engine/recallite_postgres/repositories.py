"""Repositories that PostgreSQL keeps in its own way, and how it compares values.

Those of a tenant have nothing that belongs to no scope.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import psycopg
from numpy.typing import NDArray

from recallite.errors import Conflict, StoreError
from recallite.model.reports import ErasureReceipt
from recallite.store.columns import Parts, RowColumns
from recallite.store.sql.blocks import (
    COLUMNS,
    ROWS_A_BLOCK,
    Blocks,
    Columns,
    LinkBlock,
    Table,
    TermBlock,
    TokenBlock,
    term_block,
)
from recallite.store.sql.derived import Lexicon
from recallite.store.sql.maintenance import Erased, Erasure, not_proven, receipt
from recallite.store.sql.meta import Change, Changes, Commit, IndexSnapshot, Operation
from recallite.store.sql.records import Records
from recallite.store.sql.relations import Comparisons
from recallite.store.sql.repository import IN_ARRAY, ORDERS, Condition, Conditions
from recallite.store.sql.schema import TABLES
from recallite.store.sql.services import Sessions
from recallite.store.sql.vectors import EmbedderRow, EmbeddingCache, PackedVectors, Vectors, pack
from recallite.system.folders import is_of_user
from recallite.system.messages import shown

if TYPE_CHECKING:
    from recallite_postgres.store import PostgresStore, PostgresTransaction


# Conditions as PostgreSQL compares values: by the type of each column, and in metadata as JSON.

_NEVER = Condition("false")
# The types of the columns that hold no text.
_TYPES = {
    name: kind
    for table in TABLES if table.name == "record"
    for name, (kind, _) in table.columns.items() if kind in ("FLAG", "INTEGER", "REAL")
}  # fmt: skip


class PostgresConditions(Conditions):
    """A value of another type than its column's matches nothing."""

    def by_value(self, field: str, expression: str, bound: tuple[Any, ...], operator: str, value: Any) -> Condition:
        if operator == "in":
            typed = [_as_column(field, item) for item in value]
            values = [item for item in typed if item is not None]
            if not values:
                return _NEVER
            if field in _TYPES:
                either = " OR ".join(f"{expression} = ?" for _ in values)
                return Condition(f"({either})", tuple(part for item in values for part in (*bound, item)))
            return Condition(f"{expression} {IN_ARRAY}", (*bound, self._array(values)))
        if value is None:
            return Condition(f"{expression} IS NULL", bound)
        if operator == "contains":
            if not isinstance(value, str) or field in _TYPES:
                return _NEVER
            return Condition(f"strpos({expression}, ?) > 0", (*bound, value))
        typed = _as_column(field, value)
        if typed is None or (operator != "eq" and isinstance(value, str) != isinstance(typed, str)):
            return _NEVER
        return Condition(f"{expression} {ORDERS.get(operator, '=')} ?", (*bound, typed))

    def of_metadata(self, keys: Sequence[str], operator: str, value: Any) -> Condition:
        field = "(r.metadata::json #> ?)"
        path = (list(keys),)
        if operator == "contains":
            element = _json_is("j.value", value)
            text = value if isinstance(value, str) else None
            return Condition(
                f"CASE json_typeof{field} WHEN 'array' THEN EXISTS (SELECT 1 FROM json_array_elements{field} j(value) "
                f"WHERE {element.sql}) WHEN 'string' THEN coalesce(strpos({field} #>> '{{}}', ?::text) > 0, false) "
                "ELSE false END",
                (*path, *path, *element.values, *path, text),
            )
        if operator == "in":
            parts = [_json_is(field, item, path) for item in value if item is not None]
            if not parts:
                return _NEVER
            return Condition(
                "(" + " OR ".join(part.sql for part in parts) + ")",
                tuple(item for part in parts for item in part.values),
            )
        if value is None:
            return Condition(f"coalesce(json_typeof{field}, 'null') = 'null'", path)
        if operator == "eq":
            return _json_is(field, value, path)
        if isinstance(value, str):
            return Condition(
                f"json_typeof{field} = 'string' AND ({field} #>> '{{}}') COLLATE \"C\" {ORDERS[operator]} ?",
                (*path, *path, value),
            )
        return Condition(f"{_number(field)} {ORDERS[operator]} ?::float8", (*path * 3, value))


def _as_column(field: str, value: Any) -> Any:
    """A value in the type of its column, as SQLite converts it; None where it has none."""
    if value is None:
        return None
    if _TYPES.get(field) == "FLAG":
        return bool(value) if value in (0, 1) else None
    if field in _TYPES:
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                return None
        return float(value)
    return value if isinstance(value, str) else str(int(value) if isinstance(value, bool) else value)


def _number(field: str) -> str:
    """A number or, as SQLite has it, a bool of JSON as a number; NULL for anything else."""
    return (
        f"(CASE json_typeof{field} WHEN 'number' THEN ({field} #>> '{{}}')::float8 "
        f"WHEN 'boolean' THEN ({field} #>> '{{}}')::boolean::int::float8 END)"
    )


def _json_is(field: str, value: Any, path: tuple[Any, ...] = ()) -> Condition:
    """The condition that a JSON value is this str or number."""
    wrapped = field if field.startswith("(") else f"({field})"
    if value is None:
        return Condition(f"json_typeof{wrapped} = 'null'", path)
    if isinstance(value, str):
        return Condition(f"(json_typeof{wrapped} = 'string' AND {wrapped} #>> '{{}}' = ?)", (*path, *path, value))
    return Condition(f"({_number(wrapped)} = ?::float8)", (*path * 3, float(value)))


# Records, messages, words of records, vectors.

# As a join with the array, a table without statistics was read whole.
BY_TEXT = "SELECT id, text_key FROM record WHERE text_key = ANY (?) AND recorded_until IS NULL"


class PostgresRecords(Records):
    """The table `record`."""

    def _insert_rows(
        self, ids: Sequence[int], rows: RowColumns, scopes: Sequence[int], sources: Sequence[int | None]
    ) -> None:
        try:
            super()._insert_rows(ids, rows, scopes, sources)
        except psycopg.errors.UniqueViolation as fault:
            if fault.diag.constraint_name != "record_public_id":
                raise
            # Of a memory that a tenant does not see. Which one the server tells to nobody but the owner.
            named = shown(rows.public_id[0]) if len(rows) == 1 else "of a memory"
            raise Conflict(f"the id {named} is taken by a memory outside this scope: give another") from None

    def put_tags(self, tagged: Sequence[tuple[int, tuple[str, ...]]]) -> None:
        super().put_tags(tagged)
        self._note_tags([row_id for row_id, tags in tagged if tags])

    def _note_tags(self, row_ids: Sequence[int]) -> None:
        """Note of the scopes of records which tags are in them."""
        if row_ids:
            self._execute("SELECT note_tags(?)", (self._id_array(row_ids),))

    def ids_by_text(self, keys: Sequence[bytes]) -> dict[int, bytes]:
        return {row_id: bytes(key) for row_id, key in self._rows(BY_TEXT, (self._byte_array(keys),))}

    def change_columns(self, row_id: int, columns: dict[str, Any], tags: tuple[str, ...] | None) -> None:
        super().change_columns(row_id, columns, tags)
        if "scope" in columns:
            self._note_tags([row_id])

    def _past_scope(self, was: str, now: str) -> str:
        return now  # a tenant that forgets a record has to reach its past


class PostgresSessions(Sessions):
    """The tables of sessions."""

    _message_bytes = "convert_to(m.message, 'UTF8')"


class ConfinedLexicon(Lexicon):
    """Words, of which a tenant learns the numbers and cannot list them."""

    def size(self) -> int | None:
        return None

    def lookup(self, words: Sequence[str]) -> dict[str, int]:
        return dict(self._execute("SELECT text, id FROM numbered_words(?)", (self._array(words),))) if words else {}


class PostgresVectors(Vectors):
    """The tables of vectors; a writer that brings the first embedder waits for another that does so too."""

    _tx: PostgresTransaction

    def register_embedder(self, *, fingerprint: str, name: str, dimension: int) -> EmbedderRow:
        if self.active_embedder() is None:
            self._tx.lock(["the first embedder"], wait=True)
            if self._tx.confined:  # a tenant may name the first, and no other
                self._execute(
                    "SELECT name_first_embedder(?, ?, ?, ?)", (fingerprint, name, dimension, self._tx.vector_type)
                )
        return super().register_embedder(fingerprint=fingerprint, name=name, dimension=dimension)

    def none_left(self) -> bool:
        return not self._tx.confined and super().none_left()  # a tenant does not see the vectors of others


class ConfinedCache(EmbeddingCache):
    """No cache: a vector that is there would tell that another has its text, and one could be put there for others."""

    def look_up(self, embedder: EmbedderRow, hashes: Sequence[bytes]) -> dict[bytes, Parts]:
        return {}

    def keep(self, embedder: EmbedderRow, made: Mapping[bytes, Parts], max_entries: int | None) -> None:
        pass

    def touch(self, embedder: EmbedderRow, hashes: Iterable[bytes], max_entries: int | None) -> None:
        pass

    def count(self) -> int:
        return 0


# Bulk reads for the in-memory index: the rows of a block in one value, which NumPy reads as it is. COPY would send a
# message for each row: psycopg takes 1.5 times as long for these.

# The columns of a block, as SQL and in PostgreSQL's binary format.
_BINARY_TYPES = {"importance": ">f8", "scopes": ">i4", "kinds": ">i4", "resolved": "u1"}
_COLUMNS = {
    name: (f"({sql})::int4" if _BINARY_TYPES.get(name) == ">i4" else sql, _BINARY_TYPES.get(name, ">i8"))
    for name, sql in {**COLUMNS, "kinds": "k.id"}.items()
}
# `record_send` makes of a row the number of its fields, and before each field its type and its size.
_ROW = np.dtype(
    [
        ("fields", ">i4"),
        *(
            field
            for name, (_, type) in _COLUMNS.items()
            for field in ((f"{name} type", ">i4"), (f"{name} size", ">i4"), (name, type))
        ),
    ]
)
_SELECT = (
    f"SELECT ROW({', '.join(sql for sql, _ in _COLUMNS.values())}) AS row FROM record r "
    "JOIN kind k ON k.name = r.kind WHERE r.indexed AND"
)
_IMPORTANCE_UNIT = 1e-15


class PostgresBlocks(Blocks):
    """Whole columns of the tables, of all records or of those in a scope and its descendants."""

    _scope = "/"

    def within(self, scope: str) -> PostgresBlocks:
        made = type(self)(self._tx)
        made._scope = scope
        return made

    def _inside(self) -> str:
        """The condition that a record `r` is in the scope; a path is quoted, for COPY takes no values."""
        if self._scope == "/":
            return "true"
        path = self._scope.replace("'", "''")
        return f"r.scope_id IN (SELECT id FROM scope WHERE path = '{path}' OR (path >= '{path}/' AND path < '{path}0'))"

    def columns(self, ids: Sequence[int]) -> Columns:
        return self._columns(f"= ANY('{{{','.join(map(str, ids))}}}'::bigint[])")

    def column_range(self, bounds: tuple[int, int]) -> Columns:
        return self._columns(f"BETWEEN {bounds[0] + 1} AND {bounds[1]}")

    def _columns(self, chosen: str) -> Columns:
        """The columns of the records that a condition on their ids chooses."""
        packed_rows: bytes | None = self._execute(
            "SELECT string_agg(record_send(found.row), ''::bytea) FROM "
            f"({_SELECT} r.id {chosen} AND {self._inside()} ORDER BY r.id) found"
        ).get
        rows = np.frombuffer(packed_rows or b"", dtype=_ROW)
        fields: dict[str, NDArray[Any]] = {
            name: rows[name].astype(rows[name].dtype.newbyteorder("=")) for name in _COLUMNS
        }
        # Rounded as in SQLite.
        packed = (fields["importance"] / _IMPORTANCE_UNIT + 0.5).astype(np.int64)
        fields["importance"] = (packed * _IMPORTANCE_UNIT).astype(np.float32)
        tagged: bytes | None = self._execute(
            "SELECT string_agg(int8send(found.record_id) || int8send(found.tag_id), ''::bytea) FROM "
            f"(SELECT t.record_id, t.tag_id FROM record_tag t WHERE t.record_id {chosen} ORDER BY t.record_id) found"
        ).get
        owners, tags = np.frombuffer(tagged or b"", dtype=">i8").astype(np.int64).reshape(-1, 2).T
        kinds = dict(self._execute("SELECT name, id FROM kind"))
        return Columns(**fields, kind_numbers=kinds, tagged=owners, tags=tags.astype(np.int32))

    def ranges(self, table: Table) -> list[tuple[int, int]]:
        source = {"columns": "record t", "terms": "record_terms t", "vectors": "vector t"}[table]
        key = "t.record_id" if table == "terms" else "t.id"
        rows = f"SELECT {key} AS id FROM {source} {self._of_record(table)}"
        # By count, not by number: ids have gaps.
        ends = self._column(
            f"SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM ({rows}) found) numbered "
            "WHERE place % ? = 0 ORDER BY 1",
            (ROWS_A_BLOCK[table],),
        )
        last: int = self._execute(f"SELECT coalesce(max(id), 0) FROM ({rows}) found").get
        return [*pairwise([0, *ends, *([last] if last > ([0, *ends])[-1] else [])])]

    def vector_range(self, embedder: EmbedderRow, bounds: tuple[int, int]) -> PackedVectors:
        numbers, values = self._execute(
            "SELECT string_agg(int8send(id) || int8send(record_id), ''::bytea), string_agg(value, ''::bytea) "
            f"FROM (SELECT t.id, t.record_id, t.value FROM vector t {self._of_record('vectors')} AND t.id > ? "
            "AND t.id <= ? AND t.embedder_id = ? AND length(t.value) = ? ORDER BY t.id) found",
            (*bounds, embedder.id, embedder.vector_bytes),
        ).fetchone()
        ids, owners = np.frombuffer(numbers or b"", dtype=">i8").astype(np.int64).reshape(-1, 2).T
        stored = np.frombuffer(values or b"", dtype=embedder.dtype).reshape(-1, embedder.dimension)
        return pack(ids, owners, stored.astype(np.float32, copy=False))

    def token_code_range(self, bounds: tuple[int, int]) -> TokenBlock:
        ids, sizes, codes = self._execute(
            "SELECT string_agg(int8send(vector_id), ''::bytea), string_agg(int4send(length(codes)), ''::bytea), "
            "string_agg(codes, ''::bytea) FROM (SELECT vector_id, codes FROM token_code WHERE vector_id > ? "
            "AND vector_id <= ? AND length(codes) % 8 = 0 ORDER BY vector_id) found",
            bounds,
        ).fetchone()
        return TokenBlock(
            np.frombuffer(ids or b"", dtype=">i8").astype(np.int64),
            np.frombuffer(sizes or b"", dtype=">i4").astype(np.int64) // 8,
            np.frombuffer(codes or b"", dtype="<u8"),
        )

    def term_range(self, bounds: tuple[int, int]) -> TermBlock:
        # A count is never 0, so a zero byte ends each record's counts.
        numbers, counts, ids = self._execute(
            "SELECT string_agg(terms, ''::bytea), string_agg(counts || '\\x00'::bytea, ''::bytea), "
            "string_agg(int8send(record_id), ''::bytea) FROM (SELECT t.record_id, t.terms, t.counts "
            f"FROM record_terms t {self._of_record('terms')} AND t.record_id > ? AND t.record_id <= ? "
            "ORDER BY t.record_id) found",
            bounds,
        ).fetchone()
        return term_block(np.frombuffer(ids or b"", dtype=">i8").astype(np.int64), numbers or b"", counts or b"")

    def links(self, ids: Sequence[int] | None = None) -> LinkBlock:
        if ids is None and self._scope != "/":
            ids = self._column(f"SELECT r.id FROM record r WHERE {self._inside()}")
        return super().links(ids)

    def _of_record(self, table: Table) -> str:
        """The records that rows `t` of a table belong to, and the condition that these are in the scope."""
        if self._scope == "/":
            return "WHERE true"
        key = "id" if table == "columns" else "record_id"
        return f"JOIN record r ON r.id = t.{key} WHERE {self._inside()}"


# The change feed under concurrent writers. Sequence numbers have gaps and are committed out of order, so a commit is
# named by a whole snapshot: it tells of every transaction whether it was visible. What a reader has to catch up with is
# what is visible now and was not then: nothing twice, nothing missed, however long a writer takes. A snapshot of a
# server that has been started again since, or has recovered from a crash, or of another one after a failover, says
# nothing: who holds one loads everything again.

KEPT_ROWS = 100_000
_TRIMMED_EVERY = 1024
_TRIMMED = "feed_trimmed"
_TRIMMING = 17
# A server of which one process was killed recovers without being started again, and gives numbers of transactions
# that it had lost to others; its statistics begin anew then.
_VISIBLE = (
    "SELECT pg_current_snapshot()::text, concat_ws('-', CAST(extract(epoch FROM pg_postmaster_start_time()) * 1000000 "
    "AS BIGINT), CAST(extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()) * 1000000 AS BIGINT))"
)
_SEEN = (
    f"{_VISIBLE}, coalesce(pg_current_xact_id_if_assigned()::text, ''), coalesce((SELECT max(sequence) FROM feed "
    "WHERE xid = pg_current_xact_id_if_assigned()), 0)"
)
# Who only reads has no changes of its own; to plan for them would take longer than the answer.
SEEN_BY_READERS = f"{_VISIBLE}, '', 0"
# What is visible here and not in a snapshot, nor written by a transaction up to one of its own changes.
_UNSEEN = (
    "FROM feed WHERE xid >= pg_snapshot_xmin(?1::text::pg_snapshot) "
    "AND NOT pg_visible_in_snapshot(xid, ?1::text::pg_snapshot) AND NOT (xid::text = ?2 AND sequence <= ?3)"
)


class _Seen(NamedTuple):
    """The state that a commit names: a snapshot, when its server began to run, and a writer's own changes so far."""

    snapshot: str
    server: str
    xid: str
    sequence: int

    @classmethod
    def of(cls, commit: Commit) -> _Seen | None:
        """The state that a commit names; None for a commit of another store."""
        parts = commit.split("/")
        try:
            seen = cls(parts[0], parts[1], parts[2], int(parts[3]))
        except (IndexError, ValueError):
            return None
        return seen if seen.name == commit else None

    @property
    def name(self) -> Commit:
        return Commit(f"{self.snapshot}/{self.server}/{self.xid}/{self.sequence}")

    def within(self, other: _Seen) -> bool:
        """Whether `other` sees every transaction that this one sees."""
        _, last, running = _parsed(self.snapshot)
        _, other_last, other_running = _parsed(other.snapshot)
        writing = int(self.xid) if self.xid and self.sequence else None
        if writing is not None and self.xid != other.xid and (writing >= other_last or writing in other_running):
            return False
        return last <= other_last and all(xid >= last or xid in running for xid in other_running)


def _parsed(snapshot: str) -> tuple[int, int, frozenset[int]]:
    """The least running transaction, the first that had not begun, and all that ran."""
    first, last, running = snapshot.split(":")
    return int(first), int(last), frozenset(map(int, filter(None, running.split(","))))


# Further times that writers who run at once may have numbered before others that are committed first.
_NUMBERED_AHEAD = 10_000


class PostgresComparisons(Comparisons):
    """The waiting lists of a store that several write at once."""

    def said_after(self, occurrence: int) -> list[int]:
        """The records with further times after the one of this number, and with those that may be committed late."""
        return super().said_after(occurrence - _NUMBERED_AHEAD)


class PostgresChanges(Changes):
    """The table `feed`."""

    _tx: PostgresTransaction
    # What this read transaction sees, which does not change in it; None in a write transaction.
    _fixed: _Seen | None = None
    # The last row that this transaction wrote; 0 for none.
    last_written = 0

    def _append(self, operation: Operation, runs: list[tuple[int, int]]) -> None:
        self._insert_many("feed", "first_id, last_id, operation", [(*run, operation) for run in runs])
        self.last_written = self._execute("SELECT currval(pg_get_serial_sequence('feed', 'sequence'))").get
        if self.last_written % _TRIMMED_EVERY < len(runs):
            self._trim(self.last_written - KEPT_ROWS)

    def _trim(self, up_to: int) -> None:
        if self._tx.confined:  # old rows of others, which a function of the schema may remove
            self._execute("SELECT trim_feed()")
            return
        # One transaction at a time: two would wait for each other's rows.
        if not self._execute("SELECT pg_try_advisory_xact_lock('feed'::regclass::oid::int, ?::int)", (_TRIMMING,)).get:
            return
        newest = self._execute(
            "WITH gone AS (DELETE FROM feed WHERE sequence <= ? RETURNING xid) SELECT max(xid::text::bigint) FROM gone",
            (up_to,),
        ).get
        if newest is not None:
            # What is trimmed later may be older: a row is seen when its transaction ends.
            self._execute(
                "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE "
                "SET value = greatest(meta.value::bigint, excluded.value::bigint)::text",
                (_TRIMMED, str(newest)),
            )

    def begin(self, seen: Sequence[Any] | None = None) -> None:
        """Note that a transaction begins, and of a reader what it sees: the answer to `SEEN_BY_READERS`."""
        self._fixed = None if seen is None else _Seen(*seen)
        self.last_written = 0

    def own_mark(self) -> tuple[int | None, int]:
        """The number of this transaction, None if it wrote nothing, and a row of the feed that it wrote.

        A transaction that changed no record writes a row that means nothing: by it can be found out whether it is done.
        """
        number = self._execute("SELECT pg_current_xact_id_if_assigned()::text").get
        if number is None:
            return None, 0
        if not self.last_written:
            self._append("update", [(0, 0)])
        return int(number), self.last_written

    def _seen(self) -> _Seen:
        return _Seen(*self._execute(_SEEN).fetchone()) if self._fixed is None else self._fixed

    def commit(self) -> Commit:
        return self._seen().name

    def matches(self, commit: Commit) -> bool:
        seen, named = self._seen(), _Seen.of(commit)
        if seen == named:
            return True
        return named is not None and self._continues(named) and named.within(seen) and not self._unseen(named)

    def contained_in(self, commit: Commit) -> bool:
        named = _Seen.of(commit)
        return named is not None and self._continues(named) and not self._unseen(named)

    def since(self, commit: Commit) -> list[Change] | None:
        named = _Seen.of(commit)
        if named is None or not self._continues(named):
            return None
        trimmed: str | None = self._execute("SELECT value FROM meta WHERE key = ?", (_TRIMMED,)).get
        if trimmed is not None and int(trimmed) >= _parsed(named.snapshot)[0]:
            return None
        rows = self._rows(f"SELECT first_id, last_id, operation {_UNSEEN} ORDER BY sequence", _bound(named))
        changes = [Change(*row) for row in rows]
        return None if any(change.operation == "reload" for change in changes) else changes

    def _continues(self, named: _Seen) -> bool:
        """Whether the server is the one that the snapshot is of."""
        return named.server == self._seen().server

    def _unseen(self, named: _Seen) -> bool:
        return bool(self._execute(f"SELECT EXISTS (SELECT 1 {_UNSEEN})", _bound(named)).get)

    def refresh(self) -> None:
        self._tx.restart()

    def last(self) -> int:
        return self._number("SELECT coalesce(max(sequence), 0) FROM feed")


def _bound(named: _Seen) -> tuple[str, str, int]:
    return named.snapshot, named.xid, named.sequence


# The index snapshot of a memory on a server: a file in the cache folder of the user. The server does not know of it.
# Its token names the tables that it was made of, and its commit the server and what was visible there: a server that
# was started again, a restored database, or a feed that was trimmed makes it useless. Who learns that a record was
# purged removes the file, at the latest when the memory is opened the next time.

_MOST_BYTES = 8 << 30
"""The most bytes of all snapshots of a user; the newest is kept in any case."""
_MOST_SECONDS = 30 * 86_400


class PostgresSnapshot(IndexSnapshot):
    """The file at `path`, if any. Its token begins with the numbers of the database and of the table of records."""

    path: str | None = None
    _values = (
        "SELECT key, value FROM meta WHERE key = 'lexicon_epoch' UNION ALL SELECT ?, concat_ws('-', "
        "(SELECT oid FROM pg_database WHERE datname = current_database()), 'record'::regclass::oid, '')"
    )

    def new_token(self) -> str:
        return self.identity().token + super().new_token()

    def discard(self) -> None:
        remove_snapshot(self.path)

    def _keep(self, token: str) -> None:
        pass


def remove_snapshot(path: str | None) -> None:
    """Remove a snapshot, and one that is being written."""
    for name in () if path is None else (path, f"{path}-part"):
        with suppress(OSError):
            os.unlink(name)


def snapshot_path(address: str) -> str | None:
    """The path for the snapshot of a memory; None if the user has no cache folder. Snapshots that are old go."""
    folder = _folder()
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        if not is_of_user(folder):
            return None
        _trim(folder)
    except OSError:
        return None
    return os.path.join(folder, blake2b(address.encode(), digest_size=16).hexdigest())


def _folder() -> str:
    from platformdirs import user_cache_dir

    return os.path.join(user_cache_dir("recallite", appauthor=False), "index")


def _trim(folder: str) -> None:
    """Remove what is older than a month, and the oldest files above the bytes of all."""
    with os.scandir(folder) as entries:
        files = sorted(((entry.stat(), entry.path) for entry in entries), key=lambda file: -file[0].st_mtime)
    total = 0
    for i, (status, path) in enumerate(files):
        total += status.st_size
        if status.st_mtime < time.time() - _MOST_SECONDS or (i and total > _MOST_BYTES):
            remove_snapshot(path)


# Erasure: what was stored of some records is searched for in every row of the memory. What PostgreSQL keeps outside of
# its rows cannot be searched from here: the WAL, its archive, backups and standbys. A receipt says so.

_OUTSIDE = (
    "PostgreSQL keeps what was deleted in its WAL, in archives and backups, and on standbys, which cannot be searched "
    "from here: let them expire"
)


class PostgresErasure(Erasure):
    """Erasure in a write transaction."""

    _tx: PostgresTransaction

    def _tables(self) -> list[str]:
        return self._column(
            "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() "
            "AND tablename NOT IN ('feed', 'meta', 'scope_tag', 'tenant') ORDER BY 1"
        )

    def _has_snapshot(self) -> bool:
        path = self._tx.snapshot.path
        return path is not None and os.path.exists(path)

    def _searched(self) -> Iterator[tuple[str, str, str]]:
        columns = self._rows(
            "SELECT c.table_name::text, c.column_name::text, c.data_type::text FROM information_schema.columns c "
            "JOIN pg_tables t ON t.schemaname = c.table_schema AND t.tablename = c.table_name "
            "WHERE c.table_schema = current_schema() AND c.data_type IN ('text', 'bytea', 'ARRAY')"
        )
        for table, column, type in columns:
            text = f"array_to_string(t.{column}, ' ')" if type == "ARRAY" else f"t.{column}"
            data = text if type == "bytea" else f"convert_to({text}, 'UTF8')"
            yield table, column, f"position(s.value IN {data}) > 0"


def prove(store: PostgresStore, erased: Erased) -> ErasureReceipt:
    """Free the space of what was deleted, and look for the erased bytes in all rows."""
    problems, elsewhere = [_OUTSIDE], dict[str, int]()
    try:
        store.compact()
    except StoreError as fault:
        problems.append(not_proven("their space could not be freed", fault))
    try:
        with store.read() as reader:
            elsewhere, _ = reader.erasure.found_in_tables(erased.pieces)
    except StoreError as fault:
        problems.append(not_proven("the rows could not be searched", fault))
    return receipt(erased, store.path, problems, elsewhere)
