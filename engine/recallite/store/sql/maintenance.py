"""Work on a whole store: deriving everything again, comparing it with the records, and erasing with proof.

Repair never asks a broken index, and checks change nothing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from recallite.errors import InvalidInput, StoreCorrupt, StoreError
from recallite.model.checks import now_us, to_datetime
from recallite.model.filters import MESSAGE_KIND
from recallite.model.reports import ErasureReceipt, Problem, Verification
from recallite.store.sql.derived import (
    STORED_TEXT,
    Stored,
    StoredText,
    key_array,
    numbers_in,
    packed_lists,
    statement_row,
)
from recallite.store.sql.relations import DERIVED_SQL
from recallite.store.sql.repository import IN_ARRAY, INSIDE, Repository, within
from recallite.store.sql.schema import TABLES
from recallite.store.sql.services import LOST_MESSAGES
from recallite.store.sql.vectors import VECTOR_BYTES
from recallite.store.store import Progress

if TYPE_CHECKING:
    from recallite.store.transaction import Writer


_BATCH = 2000


def rebuild(tx: Writer, on_progress: Progress | None = None) -> None:
    """Make words and hashes from the records anew. Unsound vectors are removed, the others kept as the settings say.

    So are messages whose record is missing, and records of messages that are missing.

    The database has emptied the derived tables before, and filled the tables that it alone has.
    """
    tx.connection.execute("INSERT INTO kind (name) SELECT DISTINCT kind FROM record")
    tx.connection.execute("UPDATE session_message SET record_id = NULL WHERE record_id NOT IN (SELECT id FROM record)")
    tx.records.delete([row[0] for row in tx.connection.execute(LOST_MESSAGES.format("id")).fetchall()])
    tx.supersessions.rebuild()
    tx.comparisons.mend()
    open_epoch(tx)
    tx.numbers.forget()
    total = tx.connection.execute("SELECT count(*) FROM record").get
    done, last = 0, 0
    following = "SELECT id FROM record WHERE id > ? ORDER BY id LIMIT ?"
    while ids := [row[0] for row in tx.connection.execute(following, (last, _BATCH))]:
        texts = tx.statements.stored(ids, indexed=False).texts
        tx.connection.executemany(
            "UPDATE record SET content_hash = ?1 WHERE id = ?2 AND content_hash IS DISTINCT FROM ?1",
            [*zip(tx.derive(texts).hashes, ids, strict=True)],
        )
        tx.records.derive(ids)
        last = ids[-1]
        done += len(ids)
        if on_progress is not None:
            on_progress(done, total)
    _mend_vectors(tx)
    tx.vectors.convert()
    tx.changes.append("reload", 0)


def drop_unused(tx: Writer) -> None:
    """Drop words and tags that no record has."""
    used: set[int] = set()
    rows = iter(tx.connection.execute("SELECT terms FROM record_terms"))
    while lists := [row[0] for row in islice(rows, _BATCH)]:
        used.update(numbers_in(lists).tolist())
    unused = [row[0] for row in tx.connection.execute("SELECT id FROM term") if row[0] not in used]
    if unused:
        open_epoch(tx)
        tx.connection.execute(f"DELETE FROM term WHERE id {IN_ARRAY}", (tx.id_array(unused),))
        tx.changes.append("reload", 0)
    tx.connection.execute("DELETE FROM tag WHERE NOT EXISTS (SELECT 1 FROM record_tag r WHERE r.tag_id = tag.id)")


def open_epoch(tx: Writer) -> None:
    """Begin another epoch of the numbers of words: processes look up again the ones that they keep."""
    tx.connection.execute(
        "INSERT INTO meta VALUES ('lexicon_epoch', '1') "
        "ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(meta.value AS BIGINT) + 1 AS TEXT)"
    )
    tx.forget_known()


def _mend_vectors(tx: Writer) -> None:
    """Leave only whole sets of sound vectors of one embedder; records without go back to pending.

    Token codes that cannot be right go too; `reembed` makes them again.
    """
    tx.connection.execute(
        "UPDATE embedder SET active = false WHERE id != (SELECT e.id FROM embedder e WHERE e.active "
        "ORDER BY (SELECT count(*) FROM vector v WHERE v.embedder_id = e.id) DESC, e.id LIMIT 1)"
    )
    tx.forget_known()
    tx.connection.execute(
        "DELETE FROM vector WHERE record_id NOT IN (SELECT id FROM record) OR embedder_id NOT IN (SELECT id "
        f"FROM embedder) OR length(value) != (SELECT {VECTOR_BYTES} FROM embedder e WHERE e.id = embedder_id)"
    )
    tx.connection.execute(
        "DELETE FROM token_code WHERE vector_id NOT IN (SELECT id FROM vector) OR length(codes) % 8 != 0"
    )
    bad = tx.vectors.unsound()
    tx.connection.execute(f"DELETE FROM vector WHERE record_id {IN_ARRAY}", (tx.id_array(bad),))
    tx.connection.execute(
        "DELETE FROM vector WHERE (record_id, embedder_id) IN (SELECT record_id, embedder_id FROM vector "
        "GROUP BY record_id, embedder_id HAVING max(part) + 1 != count(*))"
    )
    for state, other, exists in (("pending", "embedding_state = 'embedded'", "NOT EXISTS"),
                                 ("embedded", "embedding_state != 'embedded'", "EXISTS")):  # fmt: skip
        tx.connection.execute(
            f"UPDATE record SET embedding_state = '{state}' WHERE {other} AND {exists} (SELECT 1 FROM vector v "
            "JOIN embedder e ON e.id = v.embedder_id AND e.active WHERE v.record_id = record.id)"
        )


# Searching a stream for many byte sequences at once.

# What is compared at every place of the file.
LEAST_BYTES = 8
_CHUNK_BYTES = 1 << 22
# Fibonacci hashing: the highest 20 bits of a product are well mixed.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(44)


def found_in(read: Callable[[int], bytes], sought: Collection[bytes]) -> set[bytes]:
    """The sequences, each of at least LEAST_BYTES bytes, that occur in the stream that `read` reads.

    The last eight bytes of each are looked for at every place, through a table of 2^20 bits, and what has them is
    compared in full. The first eight of ids are a time, which many share.
    """
    if not sought:
        return set()
    by_end: dict[int, set[bytes]] = defaultdict(set)
    for sequence in sought:
        by_end[int.from_bytes(sequence[-LEAST_BYTES:], "little")].add(sequence)
    ends = np.array(sorted(by_end), dtype=np.uint64)
    slots = np.zeros(1 << 20, dtype=np.bool_)
    slots[ends * _FACTOR >> _SHIFT] = True
    overlap = max(map(len, sought)) - 1
    data = b""
    while chunk := read(_CHUNK_BYTES):
        data = data[-overlap:] + chunk
        for offset in range(min(LEAST_BYTES, len(data) - LEAST_BYTES + 1)):
            words = np.frombuffer(data, dtype="<u8", offset=offset, count=(len(data) - offset) // LEAST_BYTES)
            near = np.flatnonzero(slots[words * _FACTOR >> _SHIFT])
            for i in near[np.isin(words[near], ends)].tolist():
                left = by_end[int(words[i])]
                if left:
                    stop = offset + LEAST_BYTES * (i + 1)
                    left -= {sequence for sequence in left if data.endswith(sequence, 0, stop)}
    return set(sought).difference(*by_end.values())


# Erasure with proof: what is stored of some records, removed with everything that only they had.

# The size of the pieces of a longer value, and their distance.
_PIECE_BYTES = 32
_EVERY_BYTES = 2048
_TEXTS = "text, context, topic, metadata, public_id"
_VECTORS = (
    "SELECT value FROM vector WHERE record_id IN (SELECT value FROM carray(?1))",
    "SELECT c.codes FROM vector v JOIN token_code c ON c.vector_id = v.id "
    "WHERE v.record_id IN (SELECT value FROM carray(?1))",
)
_BESIDE = (
    "SELECT text FROM occurrence WHERE record_id IN (SELECT value FROM carray(?1))",
    "SELECT message FROM session_message WHERE record_id IN (SELECT value FROM carray(?1))",
    # What rules say of two memories is a phrase that any others may have too. Links tell the reasons of supersessions.
    *(
        f"SELECT reason FROM {table} WHERE ({old} IN (SELECT value FROM carray(?1)) OR {new} IN "
        f"(SELECT value FROM carray(?1))) AND {stated}"
        for table, old, new, stated in (
            ("link", "source_id", "target_id", "type NOT IN ('contradicts', 'supersedes')"),
            ("supersession", "old_id", "new_id", "NOT by_rule"),
        )
    ),
)  # fmt: skip
_NAMES = {
    ("term", "text"): f"SELECT text FROM term WHERE id {IN_ARRAY}",
    ("tag", "name"): f"SELECT name FROM tag WHERE id IN (SELECT tag_id FROM record_tag WHERE record_id {IN_ARRAY})",
    ("source", "name"): f"SELECT name FROM source WHERE id IN (SELECT source_id FROM record WHERE id {IN_ARRAY})",
    ("scope", "path"): f"SELECT path FROM scope WHERE id IN (SELECT scope_id FROM record WHERE id {IN_ARRAY})",
}
# What the services keep of a scope, as columns by table.
_OF_SCOPES = {
    "session": ("name",),
    "session_snapshot": ("messages", "summary", "key_decisions"),
    "tool_pattern": ("task_type", "pattern"),
    "error_recovery": ("error_pattern", "error", "recovery"),
    "working_state": ("items",),
}
_IN_SCOPES = [table.name for table in TABLES if "scope_id" in table.columns]


class Erased:
    """Traces that an erasure removes. `skipped` counts values too short to be searched for: they occur by chance."""

    def __init__(self) -> None:
        self.ids: tuple[str, ...] = ()
        self.pieces: set[bytes] = set()
        self.skipped = 0
        # Words, tags, sources and scopes, which are removed only if no other record has them, by table and column.
        self.names: dict[tuple[str, str], set[str]] = {}
        self.rows: dict[str, int] = {}
        self.had_snapshot = False


class Erasure(Repository):
    """Erasure of records in a write transaction; a database's proof searches for what it collected."""

    def begin(self, row_ids: Sequence[int], scopes: Iterable[str]) -> Erased:
        """Note what is stored of these open records and, for whole scopes, of their services."""
        if self._tx.began is not None:  # before anything is deleted
            raise InvalidInput(INSIDE)
        ids = tuple(self._tx.records.public_ids(row_ids))
        for condition, bound in map(within, scopes):  # and the messages of their sessions
            messages = self._column(
                f"SELECT id FROM record WHERE kind = '{MESSAGE_KIND}' AND recorded_until IS NULL AND scope_id IN "
                f"(SELECT id FROM scope WHERE {condition})",
                bound,
            )
            row_ids = [*row_ids, *messages]
        traces = self._traces(row_ids, scopes)
        traces.ids = ids
        traces.rows = self._rows_by_table()
        traces.had_snapshot = self._has_snapshot()
        self._tx.synced.forget_names(traces.ids)
        self._execute(
            f"DELETE FROM embedding_cache WHERE content_hash IN (SELECT content_hash FROM record WHERE id {IN_ARRAY})",
            (self._id_array(self._with_versions(row_ids)),),
        )
        return traces

    def finish(self, erased: Erased) -> None:
        """Remove what the deletion has left unused, and count what is gone."""
        unused = " AND ".join(
            f"NOT EXISTS (SELECT 1 FROM {table} t WHERE t.scope_id = scope.id)" for table in _IN_SCOPES
        )
        self._execute(f"DELETE FROM scope WHERE path != '/' AND {unused}")
        if self._connection.changes():
            self._tx.changes.append("reload", 0)  # their numbers may be used again
        self._drop_unused()
        for (table, column), names in erased.names.items():
            left = self._column(f"SELECT {column} FROM {table} WHERE {column} {IN_ARRAY}", (self._array([*names]),))
            for name in names.difference(left):
                if len(name.encode()) >= LEAST_BYTES:
                    _add(erased, name)
        now = self._rows_by_table()
        # A table can also have gained rows, for what holds again.
        erased.rows = {table: rows - now[table] for table, rows in erased.rows.items() if rows > now[table]}

    def found_in_tables(self, pieces: Iterable[bytes]) -> tuple[dict[str, int], set[bytes]]:
        """The rows that hold any of these bytes, as {"table.column": rows}, and the byte sequences that they hold."""
        rows: dict[str, int] = {}
        present: set[bytes] = set()
        sought = [*pieces]
        for table, column, holds in self._searched() if sought else ():
            here = self._column(
                f'SELECT s.value FROM carray(?) s WHERE EXISTS (SELECT 1 FROM "{table}" t WHERE {holds})',
                (self._byte_array(sought),),
            )
            if here:
                present.update(here)
                rows[f"{table}.{column}"] = self._number(
                    f'SELECT count(*) FROM "{table}" t WHERE EXISTS (SELECT 1 FROM carray(?) s WHERE {holds})',
                    (self._byte_array(here),),
                )
        return rows, present

    @abstractmethod
    def _searched(self) -> Iterator[tuple[str, str, str]]:
        """The tables and columns that may hold content, and for each the condition that a row `t` holds `s.value`."""

    def _traces(self, row_ids: Sequence[int], scopes: Iterable[str]) -> Erased:
        """The stored traces of these open records with their closed versions, and of the services in `scopes`."""
        erased = Erased()
        versions = self._with_versions(row_ids)
        rows = list(self._execute(f"SELECT {_TEXTS} FROM record WHERE id {IN_ARRAY}", (self._id_array(versions),)))
        for statement in (*_VECTORS, *_BESIDE):
            rows += self._execute(statement, (self._id_array(versions),))
        lists = self._column(f"SELECT terms FROM record_terms WHERE record_id {IN_ARRAY}", (self._id_array(versions),))
        for (table, column), statement in _NAMES.items():
            ids = numbers_in(lists).tolist() if table == "term" else versions
            erased.names[table, column] = {name for (name,) in self._execute(statement, (self._id_array(ids),))}
        for scope in scopes:
            condition, bound = within(scope)
            inside = f"scope_id IN (SELECT id FROM scope WHERE {condition})"
            statements = [
                f"SELECT {', '.join(names)} FROM {table} WHERE {inside}" for table, names in _OF_SCOPES.items()
            ]
            statements.append(
                f"SELECT message FROM session_message WHERE session_id IN (SELECT id FROM session WHERE {inside})"
            )
            statements.append(
                f"SELECT title, d.metadata, o.name FROM document d JOIN source o ON o.id = d.source_id WHERE o.{inside}"
            )
            for statement in statements:
                rows += self._execute(statement, bound)
        for value in chain.from_iterable(rows):
            _add(erased, value)
        return erased

    def _rows_by_table(self) -> dict[str, int]:
        return {name: self._execute(f'SELECT count(*) FROM "{name}"').get for name in self._tables()}

    def _with_versions(self, row_ids: Sequence[int]) -> list[int]:
        return [*row_ids, *self._tx.records.closed_versions(row_ids)]

    def _has_snapshot(self) -> bool:
        """Whether there is a snapshot of the index, which goes with the records."""
        return False

    def _drop_unused(self) -> None:
        """Remove the words and tags that nothing has."""
        drop_unused(self._tx)

    @abstractmethod
    def _tables(self) -> list[str]:
        """The tables in which rows are counted."""


def receipt(
    erased: Erased, path: str, problems: Sequence[str], elsewhere: dict[str, int], files: dict[str, int] | None = None
) -> ErasureReceipt:
    """The receipt for an erasure; it is complete without a problem."""
    return ErasureReceipt(
        complete=not problems, erased_at=to_datetime(now_us()), path=path, ids=erased.ids, removed=erased.rows,
        index_snapshot=erased.had_snapshot, searched=len(erased.pieces), too_short=erased.skipped, files=files or {},
        elsewhere=elsewhere, problems=tuple(problems),
    )  # fmt: skip


def not_proven(what: str, fault: StoreError | OSError) -> str:
    """The problem where a step of the proof fails: the records are gone by then, and the caller has to know."""
    why = (fault.strerror if isinstance(fault, OSError)
           else "there is no space" if fault.reason == "full" else fault.reason)  # fmt: skip
    return (
        f"what was forgotten is gone from the tables, but {what} ({why or type(fault).__name__}): correct that, then "
        "run recallite vacuum"
    )


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


# Comparing everything derived with the records, without changing anything; and figures about a store.

_SHOWN = 5
_BLOCK = 1000
REBUILD = "recallite rebuild"
_OTHER_REMEDIES = {"more than one active embedder": "recallite reembed"}
RESTORE = "recallite restore BACKUP, or export what can be read and import it into a new file"


# Names of problems, and statements that find examples of them.
_CHECKS = {
    "record without vector": (
        "SELECT r.public_id FROM record r WHERE r.embedding_state = 'embedded' AND NOT EXISTS (SELECT 1 FROM vector v "
        "JOIN embedder e ON e.id = v.embedder_id AND e.active WHERE v.record_id = r.id)"
    ),
    "more than one active embedder": (
        "SELECT name FROM embedder WHERE active AND (SELECT count(*) FROM embedder WHERE active) > 1"
    ),
    "gap in a record's parts": (
        "SELECT 'record ' || record_id FROM vector GROUP BY record_id, embedder_id HAVING max(part) + 1 != count(*)"
    ),
    "vector of the wrong size": (
        "SELECT 'vector ' || v.id FROM vector v JOIN embedder e ON e.id = v.embedder_id "
        f"WHERE length(v.value) != {VECTOR_BYTES}"
    ),
    "token codes of the wrong size": (
        "SELECT 'vector ' || c.vector_id FROM token_code c JOIN vector v ON v.id = c.vector_id "
        "WHERE length(c.codes) % 8 != 0"
    ),
    "record whose succession is not that of its supersessions": (
        "SELECT v.public_id FROM record v LEFT JOIN record r ON r.public_id = v.public_id AND r.recorded_until IS NULL "
        f"LEFT JOIN ({DERIVED_SQL} GROUP BY x.old_id) d ON d.record_id = r.id WHERE (v.superseded_at, "
        "v.superseded_until, v.held_until) IS DISTINCT FROM (d.superseded_at, d.superseded_until, d.held_until)"
    ),
    "supersession without link, or link without supersession": (
        "SELECT 'record ' || x.new_id FROM supersession x WHERE x.known_until IS NULL AND NOT EXISTS (SELECT 1 "
        "FROM link l WHERE l.source_id = x.new_id AND l.target_id = x.old_id AND l.type = 'supersedes') "
        "UNION ALL SELECT 'record ' || l.source_id FROM link l WHERE l.type = 'supersedes' AND NOT EXISTS (SELECT 1 "
        "FROM supersession x WHERE x.new_id = l.source_id AND x.old_id = l.target_id AND x.known_until IS NULL)"
    ),
    "text of a message that is missing": LOST_MESSAGES.format("public_id"),
    "record whose kind has no number": "SELECT public_id FROM record WHERE kind NOT IN (SELECT name FROM kind)",
}


def verify(
    tx: Writer,
    checks: Mapping[str, str],
    others: Sequence[Callable[[], Iterator[Problem]]],
    fault_of: Callable[[Exception], Problem | None],
    on_progress: Progress | None = None,
) -> Verification:
    """Compare everything derived with the records. Nothing is changed.

    A database adds `checks`, which are statements by the names of problems, and `others` of its own; `fault_of` says
    which problem an exception of it is.
    """
    problems: list[Problem] = []
    counts = {"record": 0, "vector": 0}

    @contextmanager
    def reported() -> Iterator[None]:
        """Turn an error of the database into a problem: a check that fails is a finding."""
        try:
            yield
        except StoreCorrupt as fault:
            problems.append(Problem(name="value that was not stored so", count=1, examples=(str(fault),)))
        except Exception as fault:
            problem = fault_of(fault)
            if problem is None:
                raise
            if problem not in problems:
                problems.append(problem)

    def examples(name: str, statement: str) -> Iterator[Problem]:
        rows = [row[0] for row in tx.connection.execute(statement)]
        return found(name, rows, _OTHER_REMEDIES.get(name, REBUILD))

    for table in counts:
        with reported():
            counts[table] = tx.connection.execute(f"SELECT count(*) FROM {table}").get
    every: tuple[Callable[[], Iterator[Problem]], ...] = (
        *others,
        *(partial(examples, name, statement) for name, statement in {**_CHECKS, **checks}.items()),
        lambda: found("vector that is not of unit length", [f"record {row_id}" for row_id in tx.vectors.unsound()]),
        partial(_statements, tx),
        partial(_words, tx, counts["record"], on_progress),
    )
    for check in every:
        with reported():
            problems.extend(check())
    return Verification(records=counts["record"], vectors=counts["vector"], problems=tuple(problems))


def found(name: str, examples: Sequence[object], remedy: str = REBUILD) -> Iterator[Problem]:
    """A problem with the first examples, if there are any."""
    if examples:
        yield Problem(name=name, count=len(examples), examples=tuple(map(str, examples[:_SHOWN])), remedy=remedy)


def _statements(tx: Writer) -> Iterator[Problem]:
    """Compare keys and frames with the texts, and the listed keys with the keys."""
    wrong = []
    # Before there are rows: what these raise would keep them open, and a rebuild could drop no table.
    waiting = tx.comparisons.ranges()
    unreadable = [f"records {entry.first_id} to {entry.last_id}" for entry in tx.comparisons.unreadable()]
    owners, entries = tx.statements.listed.all()
    rows = tx.connection.execute(
        f"SELECT r.public_id, r.indexed, q.keys, q.frames, q.outline, {STORED_TEXT} FROM record r "
        "LEFT JOIN statement q ON q.record_id = r.id ORDER BY r.id"
    )
    for block, stored, _ in _blocks(rows, 5):
        derivation = tx.derive(stored.texts)
        for i, (public_id, indexed, *row) in enumerate(block):
            row_id = stored.ids[i]
            if row[0] is None and any(first <= row_id <= last for first, last in waiting):
                continue
            form = derivation.statement(i) if indexed else None
            made = (None, None, None) if form is None else statement_row(stored, i, form)[1:]
            expected = b"" if made[0] is None or stored.superseded_at[i] is not None else made[0]
            start, stop = np.searchsorted(owners, (row_id, row_id + 1))
            if tuple(row[:3]) != made or not np.array_equal(entries[start:stop], key_array(expected)):
                wrong.append(public_id)
    yield from found("policy of records that wait to be compared is unreadable", unreadable)
    yield from found("record whose statement is not that of its text", wrong)
    stated_ids = np.fromiter((row[0] for row in tx.connection.execute("SELECT record_id FROM statement")), np.int64)
    yield from found("key of no statement", [f"record {version}" for version in np.setdiff1d(owners, stated_ids)])


def _blocks(rows: Any, width: int) -> Iterator[tuple[list[Any], Stored, list[Any]]]:
    """Yield rows with readable texts, the versions that they have after their first `width` columns, and other rows."""
    stream = iter(rows)
    while block := list(islice(stream, _BLOCK)):
        readable: list[Any] = []
        others: list[Any] = []
        for row in block:
            text, context = row[-3:-1]
            sound = isinstance(text, str) and isinstance(context, str | None)
            (readable if sound else others).append(row)
        yield readable, Stored.of([StoredText(*row[width:]) for row in readable]), others


def _words(tx: Writer, total: int, on_progress: Progress | None) -> Iterator[Problem]:
    numbers = dict(tx.connection.execute("SELECT text, id FROM term WHERE id > 0"))
    unknown = max(numbers.values(), default=0) + 1  # for words without a number: one that no word has
    missing: list[str] = []
    wrong: list[str] = []
    edited: list[str] = []
    misjudged: list[str] = []
    rows = tx.connection.execute(
        f"SELECT r.public_id, r.content_hash, t.terms, t.counts, s.name, r.indexed, {STORED_TEXT} FROM record r "
        "LEFT JOIN record_terms t ON t.record_id = r.id LEFT JOIN standing s ON s.record_id = r.id ORDER BY r.id"
    )
    done = 0
    for block, stored, unreadable in _blocks(rows, 6):
        edited += [row[0] for row in unreadable]
        derivation = tx.derive(stored.texts)
        words = derivation.words
        known = np.array([numbers.get(word, unknown + i) for i, word in enumerate(words.vocabulary)], np.int32)
        lists = packed_lists(known[words.indices], words.counts, words.offsets)
        columns = zip(block, derivation.hashes, derivation.standing, lists, strict=True)
        for (public_id, stored_hash, terms, counts, standing, indexed, *_), digest, judged, expected in columns:
            if digest != stored_hash:
                edited.append(public_id)
            if (judged if indexed else None) != standing:
                misjudged.append(public_id)
            if not indexed:
                wrong += [public_id] * (terms is not None)
            elif terms is None:
                missing.append(public_id)
            elif (terms, counts) != expected:
                wrong.append(public_id)
        done += len(block) + len(unreadable)
        if on_progress is not None:
            on_progress(done, total)
    for name, examples in (
        ("record without words", missing),
        ("record whose words are not those of its text", wrong),
        ("record whose standing is not that of its text", misjudged),
        ("record whose text was changed outside Recallite", edited),
    ):
        yield from found(name, examples)


def figures(tx: Writer, scope: str) -> dict[str, Any]:
    """Counts, as `Stats` names them, of `scope` and its descendants; what a database tells of itself it adds."""
    embedder = tx.vectors.active_embedder()
    visible = tx.conditions.in_scopes([scope])
    seen = f"(SELECT r.id FROM record r WHERE {visible.sql})"

    def count(sql: str, *values: Any) -> int:
        number: int = tx.connection.execute(f"SELECT count(*) FROM {sql}", values).get
        return number

    def within(column: str) -> str:
        return f"WHERE {column} IN {seen}" if visible.values else ""

    # In the order of an index: grouped by kind alone, ten million rows are sorted.
    kinds: Counter[str] = Counter()
    records = superseded = closed = 0
    for kind, opened, replaced, every in tx.connection.execute(
        "SELECT r.kind, count(*) FILTER (WHERE r.recorded_until IS NULL), "
        "count(*) FILTER (WHERE r.recorded_until IS NULL AND r.held_until IS NOT NULL), count(*) "
        f"FROM record r WHERE {visible.sql} GROUP BY r.scope_id, r.kind",
        visible.values,
    ):
        kinds[kind] += opened
        records, superseded, closed = records + opened, superseded + replaced, closed + every - opened
    of_scope = f" JOIN vector v ON v.id = c.vector_id WHERE v.record_id IN {seen}" if visible.values else ""
    codes, bytes_of_codes = tx.connection.execute(
        f"SELECT count(*), sum(length(c.codes)) FROM token_code c{of_scope}", visible.values
    ).fetchone()
    return {
        "path": tx.path if scope == "/" else None,
        "records": records,
        "superseded": superseded,
        "versions": closed,
        "to_compare": tx.comparisons.count() if scope == "/" else None,
        "pending": count(
            f"record r WHERE r.embedding_state != 'embedded' AND r.embedding_state = 'pending' AND {visible.sql}",
            *visible.values,
        ),
        "refused": tx.vectors.count_refused(scope),
        "vectors": count(f"vector {within('record_id')}", *visible.values),
        "token_codes": codes,
        "token_code_bytes": int(bytes_of_codes or 0),
        "links": count(f"link {within('source_id')}", *visible.values),
        "sources": count(
            f"(SELECT DISTINCT r.source_id FROM record r WHERE r.source_id IS NOT NULL AND {visible.sql})",
            *visible.values,
        ),
        "terms": tx.lexicon.size() if scope == "/" else None,
        "kinds": {kind: number for kind, number in sorted(kinds.items(), key=str) if number},
        "services": tx.scopes.service_counts(scope),
        "sequence": tx.changes.last() if scope == "/" else None,
        "embedder": None if embedder is None else embedder.name,
        "dimension": None if embedder is None else embedder.dimension,
        "vector_type": None if embedder is None else embedder.vector_type,
    }
