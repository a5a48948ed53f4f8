"""A transaction of SQLite: the repositories on one connection, those first that SQLite keeps in its own way."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
import msgspec
import numpy as np

from recallite.store.columns import Derive, Row, RowColumns
from recallite.store.sql.blocks import COLUMNS, ROWS_A_BLOCK, Blocks, Columns, Table, TermBlock, packed_rows, term_block
from recallite.store.sql.derived import KEY_BYTES, KeysOf, Statements, WordNumbers
from recallite.store.sql.meta import Change, Changes, Commit, IndexSnapshot, Operation
from recallite.store.sql.records import Records
from recallite.store.sql.repository import IN_ARRAY, NO_LIMIT, ORDERS, Condition, Conditions, insert_sql, read_rows
from recallite.store.sql.schema import TABLES
from recallite.store.sql.services import Sessions
from recallite.store.sql.vectors import EmbedderRow, PackedVectors, Vectors
from recallite.store.sqlite.connection import CACHE_KIB, part_of_snapshot, snapshot_of, sqlite_vec_version
from recallite.store.sqlite.faults import raise_translated
from recallite.store.sqlite.key_lists import TEXT_KEYS, KeptRuns, KeyLists
from recallite.store.sqlite.maintenance import SqliteErasure
from recallite.store.sqlite.sql_search import follow_embedder
from recallite.store.transaction import Known, Writer
from recallite.system.turnstile import note_begin, note_end

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import NDArray

    from recallite.store.sqlite.store import SqliteStore


# Conditions as SQLite compares values: by the type of each value, and in metadata by JSON pointers.


class SqliteConditions(Conditions):
    """A value may be of any type in any column."""

    def by_value(self, field: str, expression: str, bound: tuple[Any, ...], operator: str, value: Any) -> Condition:
        if operator == "in":
            listed = msgspec.json.encode(value).decode()
            return Condition(f"{expression} IN (SELECT value FROM json_each(?))", (*bound, listed))
        if value is None:
            return Condition(f"{expression} IS NULL", bound)
        if operator == "eq":  # an index serves `=`, and not `IS ?`
            return Condition(f"{expression} = ?", (*bound, value))
        if operator == "contains":
            return Condition(f"instr({expression}, ?) > 0", (*bound, value))
        # SQLite orders any text above any number, so the types are compared first.
        types = "'text'" if isinstance(value, str) else "'integer', 'real'"
        return Condition(
            f"typeof({expression}) IN ({types}) AND {expression} {ORDERS[operator]} ?", (*bound, *bound, value)
        )

    def of_metadata(self, keys: Sequence[str], operator: str, value: Any) -> Condition:
        pointer = "$" + "".join(f'."{key}"' for key in keys)
        if operator != "contains":
            return self.by_value("metadata", "json_extract(r.metadata, ?)", (pointer,), operator, value)
        return Condition(
            "CASE json_type(r.metadata, ?) WHEN 'array' THEN EXISTS (SELECT 1 FROM json_each(r.metadata, ?) j "
            "WHERE j.value IS ?) WHEN 'text' THEN coalesce(instr(json_extract(r.metadata, ?), ?) > 0, 0) ELSE 0 END",
            (pointer, pointer, value, pointer, value if isinstance(value, str) else None),
        )


# Records, which SQLite lists by their texts.

# Texts that are listed together.
_AT_ONCE = 65_536
_ALL = 2**40


class SqliteRecords(Records):
    """The table `record`, and the list of its texts."""

    _tx: SqliteTransaction

    def __init__(self, transaction: SqliteTransaction) -> None:
        super().__init__(transaction)
        self.texts = KeyLists(transaction, "text", f"{TEXT_KEYS} AND id > ?")

    def ids_by_text(self, keys: Sequence[bytes]) -> dict[int, bytes]:
        by_number = {int.from_bytes(key, "little", signed=True): key for key in keys}
        by_key = self.texts.newest(by_number, _ALL) if by_number else {}
        return {row_id: by_number[number] for number, ids in by_key.items() for row_id in ids}

    def _put_text(
        self, row_id: int, row: Row, embedder: EmbedderRow | None, recorded_from: int, *, keep_version: bool
    ) -> None:
        self.texts.remove(self._text_keys("id = ?", row_id), erase=True)
        super()._put_text(row_id, row, embedder, recorded_from, keep_version=keep_version)
        self.texts.add(self._text_keys("id = ?", row_id), self._tx.last_record_id)

    def list_texts(self, first_id: int = 0, last_id: int = NO_LIMIT) -> None:
        """List the texts of all records, or of a range of them; none of these may be listed yet."""
        while rows := self._text_keys("id BETWEEN ? AND ? ORDER BY id LIMIT ?", first_id, last_id, _AT_ONCE):
            self.texts.add(rows)
            first_id = rows[-1][0] + 1

    def _purge(self, row_ids: Sequence[int]) -> None:
        self.texts.remove(self._text_keys(f"id {IN_ARRAY}", self._id_array(row_ids)), erase=True)
        super()._purge(row_ids)

    def _text_keys(self, condition: str, *bound: Any) -> list[KeysOf]:
        """The keys of the texts of open records."""
        return self._rows(f"{TEXT_KEYS} AND {condition}", bound)

    def _insert_rows(
        self, ids: Sequence[int], rows: RowColumns, scopes: Sequence[int], sources: Sequence[int | None]
    ) -> None:
        columns = zip(ids, rows.content_hash, rows.recorded_until, strict=True)
        self.texts.add([(row_id, key[:KEY_BYTES]) for row_id, key, recorded_until in columns if recorded_until is None])
        super()._insert_rows(ids, rows, scopes, sources)


# Keys of statements, messages, vectors, the index snapshot.


class SqliteStatements(Statements):
    """The table `statement` and the lists of its keys."""

    def _lists(self, transaction: SqliteTransaction) -> KeyLists:
        return KeyLists(
            transaction, "statement",
            "SELECT s.record_id, s.keys FROM statement s CROSS JOIN record r ON r.id = s.record_id "
            "WHERE length(s.keys) > 0 AND r.superseded_at IS NULL AND s.record_id > ?",
        )  # fmt: skip


class SqliteSessions(Sessions):
    """The tables of sessions."""

    _message_bytes = "CAST(m.message AS BLOB)"


# Whether a vector is of this many bytes, finite and of unit length: its distance from the origin. The CASE: sqlite-vec
# takes values of other sizes and types for errors.
_SOUND = (
    "CASE WHEN typeof(v.value) = 'blob' AND length(v.value) = {bytes} "
    "THEN abs(vec_distance_L2(v.value, zeroblob({bytes})) - 1) < 5e-4 END"
)


class SqliteVectors(Vectors):
    """The tables of vectors on a connection with sqlite-vec; without it, or for float16, Vectors does the work."""

    _tx: SqliteTransaction

    def _activate(self, embedder: EmbedderRow) -> None:
        super()._activate(embedder)
        follow_embedder(self._tx.connection)

    def cosines(self, embedder: EmbedderRow, query: NDArray[np.float32], ids: Sequence[int]) -> NDArray[np.float32]:
        if embedder.vector_type != "float32":  # sqlite-vec reads no other
            return super().cosines(embedder, query, ids)
        # Of unit vectors 1 - d * d / 2 is the cosine: at 0.9 and above to 6e-8, where vec_distance_cosine, which adds
        # up in float32, is out by 1.2e-6. In the order of the array: joined and grouped, SQLite would sort the rows.
        distances = self._rows(
            f"SELECT (SELECT min(iif({_SOUND.format(bytes='length(?1)')}, vec_distance_L2(v.value, ?1), NULL)) "
            "FROM vector v WHERE v.record_id = c.value AND v.embedder_id = ?2) FROM carray(?3) c",
            (query.tobytes(), embedder.id, self._id_array(ids)),
        )
        nearest = [0.0 if distance is None else max(-1.0, 1.0 - distance * distance / 2) for (distance,) in distances]
        return np.array(nearest[: len(ids)], dtype=np.float32)

    def unsound(self) -> list[int]:
        active = self.active_embedder()
        if active is None or active.vector_type != "float32":
            return super().unsound()
        return self._column(
            "SELECT DISTINCT v.record_id FROM vector v JOIN embedder e ON e.id = v.embedder_id AND e.active "
            f"WHERE length(v.value) = 4 * e.dimension AND ({_SOUND.format(bytes='4 * e.dimension')}) IS NOT TRUE "
            "ORDER BY v.record_id"
        )


class SqliteIndexSnapshot(IndexSnapshot):
    """The token in `meta`, and the file beside the database, `<database>-index`.

    The store keeps a random token of the snapshot that was last written. A store that has the token contains the
    snapshot's commit, so the change feed leads from there to now; a copy or a restored backup that diverged has another
    token or none.
    """

    _tx: SqliteTransaction

    def discard(self) -> None:
        super().discard()
        if filename := self._tx.connection.filename:
            for path in (snapshot_of(filename), part_of_snapshot(filename)):
                with suppress(OSError):
                    os.unlink(path)


# Bulk reads for the in-memory index: whole columns at a time, in row-id order. Small blobs are concatenated by SQLite
# (`group_concat` is byte-exact for blobs) without the GIL.

# Of pages that are read once: with the cache that recall uses, reading a million vectors took 1.25 times as long, and
# left 64 MB behind.
_PASSING_CACHE_KIB = 512

_IMPORTANCE_UNIT = 1e-15
_COLUMNS = {**COLUMNS, "importance": f"CAST(round({COLUMNS['importance']} * 1e15) AS INTEGER)"}
_TYPES = {"scopes": np.int32, "kinds": np.int32, "resolved": np.uint8, "authorities": np.uint8}
_ColumnsOfOne = NamedTuple("_ColumnsOfOne", [(name, int) for name in _COLUMNS])  # type: ignore[misc]
_numbers = msgspec.json.Decoder(list[int])


class _Kind(NamedTuple):
    name: str
    id: int


class _Tagged(NamedTuple):
    record_id: int
    tag_id: int


class SqliteBlocks(Blocks):
    """Whole columns of the tables, concatenated by SQLite."""

    _tx: SqliteTransaction

    @contextmanager
    def reading_all(self) -> Iterator[None]:
        connection = self._tx.connection
        connection.pragma("cache_size", -_PASSING_CACHE_KIB)
        try:
            yield
        finally:
            connection.pragma("cache_size", -CACHE_KIB)

    def columns(self, ids: Sequence[int]) -> Columns:
        rows = self._rows(
            f"SELECT {', '.join(_COLUMNS.values())} FROM record r WHERE r.indexed AND r.id {IN_ARRAY} ORDER BY r.id",
            (self._id_array(ids),),
        )
        columns = [*zip(*read_rows(rows, _ColumnsOfOne, "record"), strict=True)] or [()] * len(_COLUMNS)
        tagged = self._rows(
            f"SELECT record_id, tag_id FROM record_tag WHERE record_id {IN_ARRAY} ORDER BY record_id",
            (self._id_array(ids),),
        )
        return self._columns(columns, [*zip(*read_rows(tagged, _Tagged, "tag"), strict=True)] or [(), ()])

    def column_range(self, bounds: tuple[int, int]) -> Columns:
        # A range of row ids is walked in their order. As JSON, without the GIL: rows take 1.6 times as long.
        lists = ", ".join(f"json_group_array({sql})" for sql in _COLUMNS.values())
        row: Any = self._execute(
            f"SELECT {lists} FROM record r WHERE r.indexed AND r.id > ? AND r.id <= ?", bounds
        ).fetchone()
        tagged: Any = self._execute(
            "SELECT json_group_array(record_id), json_group_array(tag_id) FROM record_tag "
            "WHERE record_id > ? AND record_id <= ?",
            bounds,
        ).fetchone()
        try:
            return self._columns([*map(_numbers.decode, row)], [*map(_numbers.decode, tagged)])
        except msgspec.ValidationError:  # row by row, which names the record
            return self.columns(self._column("SELECT id FROM record WHERE id > ? AND id <= ?", bounds))

    def _columns(self, lists: Sequence[Sequence[int]], tagged: Sequence[Sequence[int]]) -> Columns:
        fields: dict[str, Any] = {
            name: np.array(numbers, dtype=np.int64).astype(_TYPES.get(name, np.int64), copy=False)
            for name, numbers in zip(_COLUMNS, lists, strict=True)
        }
        fields["importance"] = (fields["importance"] * _IMPORTANCE_UNIT).astype(np.float32)
        kinds = read_rows(self._execute("SELECT name, id FROM kind"), _Kind, "kind")
        owners, tags = np.array(tagged[0], dtype=np.int64), np.array(tagged[1], dtype=np.int64).astype(np.int32)
        return Columns(**fields, kind_numbers=dict(kinds), tagged=owners, tags=tags)

    def ranges(self, table: Table) -> list[tuple[int, int]]:
        name = {"columns": "record", "terms": "record_terms", "vectors": "vector"}[table]
        key = "record_id" if table == "terms" else "id"
        last: int = self._execute(f"SELECT coalesce(max({key}), 0) FROM {name}").get
        chunk = ROWS_A_BLOCK[table]
        return [(start, start + chunk) for start in range(0, last, chunk)]

    def vector_range(self, embedder: EmbedderRow, bounds: tuple[int, int]) -> PackedVectors:
        # A range of row ids is walked in their order. Concatenating values and ids in SQLite takes as long.
        return packed_rows(
            self._rows(
                "SELECT id, record_id, value FROM vector WHERE id > ? AND id <= ? AND embedder_id = ? ORDER BY id",
                (*bounds, embedder.id),
            ),
            embedder.dimension,
        )

    def term_range(self, bounds: tuple[int, int]) -> TermBlock:
        rows_of = "FROM record_terms WHERE record_id > ? AND record_id <= ?"
        # A count is never 0, so a zero byte ends each record's counts.
        row: Any = self._execute(
            f"SELECT CAST(group_concat(terms, '') AS BLOB), CAST(group_concat(counts || x'00', '') AS BLOB) {rows_of}",
            bounds,
        ).fetchone()
        numbers, counts = row[0] or b"", row[1] or b""
        ends: Any = self._execute(
            "SELECT (SELECT min(record_id) FROM record_terms WHERE record_id > ?), "
            "(SELECT max(record_id) FROM record_terms WHERE record_id <= ?)",
            bounds,
        ).fetchone()
        count = counts.count(b"\0")
        if count and ends[1] - ends[0] + 1 == count:
            ids = np.arange(ends[0], ends[1] + 1, dtype=np.int64)
        else:
            rows = self._rows(f"SELECT record_id {rows_of} ORDER BY record_id", bounds)
            ids = np.array(rows, dtype=np.int64).ravel()
        return term_block(ids, numbers, counts)


# The change feed: which records an in-memory index has to read again. A commit is named by the sequence number of its
# last change and by a random number, which the feed has too: another file, such as an older copy that went on by
# itself, never has both. The feed is trimmed: an index that is further behind than it reaches is loaded again.

KEPT_ROWS = 20_000

# The feed is trimmed by a few rows at a time: trimming a thousand overwrites thirty pages, and made one write in a
# thousand take ten times as long.
_TRIMMED_EVERY = 32


class SqliteChanges(Changes):
    """The table `feed`."""

    _tx: SqliteTransaction
    # The last row that a read transaction sees, read once; None in one that writes, or before it is read.
    _seen: tuple[int, int] | None = None
    _reads = False

    def begin_reading(self) -> None:
        """Prepare for a read transaction, which sees one commit."""
        self._reads, self._seen = True, None

    def _append(self, operation: Operation, runs: list[tuple[int, int]]) -> None:
        name = self._tx.commit_name
        self._insert_many(
            "feed", "first_id, last_id, operation, commit_name", [(*run, operation, name) for run in runs]
        )
        if operation == "reload":
            self._tx.forget_known()
        sequence = self._tx.connection.last_insert_rowid()
        self._tx.fed = sequence, name
        if sequence % _TRIMMED_EVERY < len(runs):
            self._execute("DELETE FROM feed WHERE sequence <= ?", (sequence - KEPT_ROWS,))

    def commit(self) -> Commit:
        sequence, name = self._last()
        return Commit(f"{self._tx.opened} {name} {sequence}")

    def last(self) -> int:
        return self._last()[0]

    def _last(self) -> tuple[int, int]:
        if self._seen is not None:
            return self._seen
        last = self._execute("SELECT sequence, commit_name FROM feed ORDER BY sequence DESC LIMIT 1").get or (0, 0)
        if self._reads:
            self._seen = last
        return last

    def matches(self, commit: Commit) -> bool:
        return self._last() == _parts(commit)[1:]

    def contained_in(self, commit: Commit) -> bool:
        opened, sequence, name = _parts(commit)
        last = self._last()
        return last == (sequence, name) or (last[0] < sequence and opened == self._tx.opened)

    def since(self, commit: Commit) -> list[Change] | None:
        _, sequence, name = _parts(commit)
        rows = self._rows(
            "SELECT sequence, commit_name, first_id, last_id, operation FROM feed WHERE sequence >= ? "
            "ORDER BY sequence",
            (sequence,),
        )
        if not sequence:
            if rows and rows[0][0] != 1:
                return None
        elif not rows or rows.pop(0)[:2] != (sequence, name):
            return None
        return None if "reload" in map(itemgetter(4), rows) else [Change(*row[2:]) for row in rows]

    def refresh(self) -> None:
        if self._tx.connection.in_transaction:
            self._execute("COMMIT")
            self._execute("BEGIN")
            self._seen = None


@lru_cache(maxsize=16)
def _parts(commit: Commit) -> tuple[int, int, int]:
    opened, name, sequence = map(int, commit.split(" "))
    return opened, sequence, name


# The transaction.

# Scopes are among them, and a store may have very many.
_MOST_KNOWN = 1024
_NUMBERED = tuple(table.name for table in TABLES if ("NEW_ID", "") in table.columns.values())
_LAST_IDS = ", ".join(f"('last_{name}', CAST(:{name} AS TEXT))" for name in _NUMBERED)
_PUT_LAST_IDS = f"INSERT INTO meta VALUES {_LAST_IDS} ON CONFLICT (key) DO UPDATE SET value = excluded.value"


class SqliteTransaction(Writer):
    """The repositories that all databases share, and SQLite's own."""

    connection: apsw.Connection
    blocks: SqliteBlocks
    changes: SqliteChanges
    erasure: SqliteErasure
    records: SqliteRecords
    sessions: SqliteSessions
    snapshot: SqliteIndexSnapshot
    statements: SqliteStatements

    def __init__(
        self,
        connection: apsw.Connection,
        path: str,
        numbers: WordNumbers,
        derive: Derive,
        vector_type: str = "float32",
        beside: SqliteTransaction | None = None,
    ) -> None:
        """`beside` is the writer that is open when a reader is opened."""
        self.beside = beside
        # A random number for the connections that were opened together, and see a file go on, never back.
        self.opened: int = _random() if beside is None else beside.opened
        self.runs: dict[str, KeptRuns] = {} if beside is None else beside.runs
        super().__init__(connection, path, numbers, SqliteConditions(self.array), derive)
        self.vector_type = vector_type
        if sqlite_vec_version(connection) is not None:
            self.vectors = SqliteVectors(self)
        # What was read in this transaction, or in an earlier one if nobody else has written since; None outside one.
        self._known: dict[Hashable, Any] | None = None
        self._known_before: dict[Hashable, Any] = {}
        self._version_before: int | None = None
        # The last number that `new_ids` has given in each table, and whether this transaction has given any.
        self._last_ids: dict[str, int] = {}
        self._gave_ids = False
        # The name of the commit that a write transaction becomes, a random number, and what had changed before it.
        self.commit_name = 0
        # The last row that it has added to the feed: its number and that name.
        self.fed: tuple[int, int] | None = None
        self._changes_before = 0

    def begin_writing(self) -> None:
        """Prepare for a write transaction: what earlier ones read holds if no other connection has written since."""
        if self.connection.data_version() != self._version_before:
            self._known_before, self._last_ids = {}, {}
        self._known, self._gave_ids = self._known_before, False
        self.commit_name, self.fed = _random(), None
        self._changes_before = self.connection.total_changes()

    @property
    def wrote(self) -> bool:
        """Whether this write transaction has changed anything."""
        return self.connection.total_changes() != self._changes_before

    def before_commit(self) -> None:
        """Store the last numbers that a write transaction has given."""
        if self._gave_ids:
            self.connection.execute(_PUT_LAST_IDS, self._last_ids)

    def end_writing(self) -> None:
        """Note the end of the write transaction; what was rolled back has been forgotten."""
        self._known, self._version_before = None, self.connection.data_version()

    def forget_known(self) -> None:
        self._known_before.clear()

    def known(self, key: Hashable, read: Callable[[], Known]) -> Known:
        if self._known is None:
            return read()
        if key in self._known:
            return self._known[key]  # type: ignore[no-any-return]
        value = read()
        if value is not None:  # what is not there may be added
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[key] = value
        return value

    @staticmethod
    def id_array(ids: Sequence[int] | NDArray[np.int64]) -> apsw.CArrayBinding:
        """Row ids, without a Python object each. SQLite refuses an empty array: an impossible id fills it."""
        array = np.ascontiguousarray(ids, dtype=np.int64)
        return apsw.carray(array if array.size else np.array([-1], dtype=np.int64), flags=apsw.SQLITE_CARRAY_INT64)

    @staticmethod
    def array(values: Sequence[str] | Sequence[bytes]) -> apsw.CArrayBinding:
        """Texts or bytes; an empty array is filled by what is no value of a column that is searched."""
        return apsw.carray(tuple(values) or (b"",))

    byte_array = array

    @property
    def sees_one_commit(self) -> bool:
        return True

    def new_ids(self, table: str, count: int) -> list[int]:
        # What is rolled back gives its numbers to nobody: `_last_ids` only grows until others have written.
        self._last_ids = self._last_ids or self.read_last_ids()
        last = self._last_ids[table]
        self._last_ids[table] = last + count
        self._gave_ids = True
        return list(range(last + 1, last + 1 + count))

    @property
    def last_record_id(self) -> int:
        """The last row id that a record was given, as far as this connection knows; 0 if it has given none."""
        return self._last_ids.get("record", 0)

    def number_from(self, table: str, last: int) -> None:
        """Have `new_ids` give numbers above this one, and above those of all rows, in a table that it numbers."""
        if table in _NUMBERED:
            self._last_ids = self._last_ids or self.read_last_ids()
            self._last_ids[table] = max(last, self.read_last_ids()[table])
            self._gave_ids = True

    def read_last_ids(self) -> dict[str, int]:
        """The last number that was given in each table that `new_ids` numbers; 0 where none was."""
        return {
            name: self.connection.execute(
                f"SELECT max(coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'last_{name}'), 0), "
                f"coalesce((SELECT max(id) FROM {name}), 0))"
            ).get
            for name in _NUMBERED
        }

    def insert(self, table: str, columns: str, rows: Iterable[Sequence[Any]]) -> None:
        if not isinstance(rows, list) or rows:
            self.connection.executemany(insert_sql(table, columns), rows)

    def add_names(self, table: str, column: str, names: Sequence[str]) -> dict[str, int]:
        return dict(
            self.connection.execute(
                f"INSERT INTO {table} ({column}) SELECT value FROM carray(?) WHERE true ON CONFLICT DO NOTHING "
                f"RETURNING {column}, id",
                (self.array(names),),
            )
        )


def _random() -> int:
    return int.from_bytes(os.urandom(8), "big") >> 1


class Reading:
    """A read transaction, on a connection that nobody else reads from.

    A class, since recalls are short and a generator takes three times as long.
    """

    __slots__ = ("_reader", "_store", "_thread")

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def __enter__(self) -> SqliteTransaction:
        reader = self._reader = self._store.take_reader()
        self._thread = note_begin()
        try:
            reader.connection.execute("BEGIN")
            reader.changes.begin_reading()
        except BaseException as fault:
            self.__exit__(type(fault), fault, None)
            raise
        return reader

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        store, reader = self._store, self._reader
        note_end(self._thread)
        try:
            if fault is not None:
                raise_translated(fault, store.path, store.failed(reader), encrypted=store.key is not None)
        finally:
            store.give_back(reader, sound=fault is None)
