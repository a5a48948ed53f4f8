"""Tables of the services: documents and their chunks, sessions, consolidation, experience, working memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from recallite.model.filters import CHUNK_KIND, MESSAGE_KIND
from recallite.model.settings import Consolidation
from recallite.store.sql.repository import (
    IN_ARRAY,
    NO_LIMIT,
    TAGS_SQL,
    Moment,
    Repository,
    columns_sql,
    read_row,
    read_rows,
    within,
)
from recallite.store.sql.schema import columns_of


class DocumentRow(NamedTuple):
    """A document as it is stored; times are microseconds since 1970 UTC, `mtime_ns` is the file's, in nanoseconds."""

    id: int
    public_id: str
    source_id: int
    source: str
    scope: str
    title: str | None
    media_type: str
    content_hash: bytes
    chunking: str
    size_bytes: int
    mtime_ns: int | None
    inode: int | None
    read_at: int
    metadata: str | None
    caller_metadata: str | None
    problem: str | None
    chunks: int
    created_at: int
    updated_at: int


class Chunk(NamedTuple):
    """A stored chunk: its row id, its text, and the fields that can change without a new embedding."""

    id: int
    text: str
    context: str | None
    position: int
    metadata: str | None
    created_at: int
    tags: str
    embedding_state: str


_SELECT = (
    f"SELECT {columns_sql(DocumentRow._fields, of='d')} FROM document d JOIN source o ON o.id = d.source_id "
    "JOIN scope s ON s.id = o.scope_id"
)
_OWN = columns_of("document", without=("id", "public_id", "source_id", "created_at"))


class Documents(Repository):
    """The table `document`, and the records that are its chunks."""

    def find(self, scope: str, source: str) -> DocumentRow | None:
        """The document of a source in exactly this scope."""
        return _one(self._execute(f"{_SELECT} WHERE s.path = ? AND o.name = ?", (scope, source)))

    def find_many(self, scope: str) -> dict[str, DocumentRow]:
        """The documents of exactly this scope, by source."""
        rows = self._execute(f"{_SELECT} WHERE s.path = ?", (scope,))
        return {row[3]: read_row(row, DocumentRow, "document") for row in rows}

    def with_id(self, public_id: str, scope: str) -> DocumentRow | None:
        """The document with this id in a scope or its descendants; None if it is elsewhere."""
        seen, bound = within(scope)
        return _one(self._execute(f"{_SELECT} WHERE d.public_id = ? AND {seen}", (public_id, *bound)))

    def with_content(self, scope: str, content_hash: bytes) -> list[DocumentRow]:
        """The documents with these bytes in exactly this scope, oldest first."""
        rows = self._execute(f"{_SELECT} WHERE d.content_hash = ? AND s.path = ? ORDER BY d.id", (content_hash, scope))
        return read_rows(rows, DocumentRow, "document")

    def in_scope(self, scope: str, *, limit: int | None = None) -> list[DocumentRow]:
        """The documents of a scope and its descendants, by source."""
        seen, bound = within(scope)
        rows = self._execute(
            f"{_SELECT} WHERE {seen} ORDER BY o.name, d.id LIMIT ?", (*bound, NO_LIMIT if limit is None else limit)
        )
        return read_rows(rows, DocumentRow, "document")

    def chunks_of(self, source_id: int) -> list[Chunk]:
        """The chunks of a document, in order."""
        rows = self._execute(
            f"SELECT r.id, r.text, r.context, r.position, r.metadata, r.created_at, {TAGS_SQL}, r.embedding_state "
            "FROM record r "
            f"WHERE r.source_id = ? AND r.kind = '{CHUNK_KIND}' AND r.recorded_until IS NULL ORDER BY r.position, r.id",
            (source_id,),
        )
        return read_rows(rows, Chunk, "chunk")

    def put(self, scope: str, source: str, public_id: str, columns: dict[str, Any]) -> None:
        """Insert or replace the document of a source; `columns` are the fields of `DocumentRow` that are not keys."""
        scope_id = self._tx.scopes.id_of(scope)
        source_id = self._tx.scopes.intern_sources({(scope_id, source)})[scope_id, source]
        values = [columns[name] for name in _OWN]
        self._execute(
            f"INSERT INTO document (public_id, source_id, created_at, {', '.join(_OWN)}) "
            f"VALUES (?, ?, ?, {', '.join('?' * len(_OWN))}) ON CONFLICT (source_id) DO UPDATE SET "
            + ", ".join(f"{name} = excluded.{name}" for name in _OWN),
            (public_id, source_id, columns["updated_at"], *values),
        )

    def note_read(self, seen: Sequence[tuple[int | None, int, int, bytes]]) -> None:
        """Note (inode, time, row id, content hash) of files that were read, for documents that have this content."""
        self._execute_many("UPDATE document SET inode = ?, read_at = ? WHERE id = ? AND content_hash = ?", seen)

    def move_chunks(self, moved: Sequence[tuple[Chunk, int, str | None, int, Sequence[str]]]) -> None:
        """Change position, metadata, time of creation and tags of chunks with the same text."""
        changed, tagged = [], []
        for chunk, position, metadata, created_at, tags in moved:
            if (chunk.position, chunk.metadata, chunk.created_at) != (position, metadata, created_at):
                changed.append((position, metadata, created_at, chunk.id))
            if tuple(msgspec.json.decode(chunk.tags)) != tuple(tags):
                tagged.append((chunk.id, tuple(tags)))
        self._execute_many("UPDATE record SET position = ?, metadata = ?, created_at = ? WHERE id = ?", changed)
        reworded = self._tx.records.replace_tags(tagged)
        if reworded:
            self._tx.changes.append_ids("text", reworded)
        ids = sorted({row[3] for row in changed} | {row_id for row_id, _ in tagged})
        if ids:
            self._tx.changes.append_ids("update", ids)

    def rename_source(self, document: DocumentRow, source: str) -> None:
        """Rename the source of a document; no other source of the scope may have the name."""
        self._execute("UPDATE source SET name = ? WHERE id = ?", (source, document.source_id))
        moved = self._column("SELECT id FROM record WHERE source_id = ? ORDER BY id", (document.source_id,))
        self._tx.changes.append_ids("update", moved)

    def delete(self, rows: Iterable[DocumentRow]) -> int:
        """Purge documents with their chunks; returns how many chunks."""
        sources = [row.source_id for row in rows]
        self._execute(f"DELETE FROM document WHERE source_id {IN_ARRAY}", (self._id_array(sources),))
        chunks = self._column(
            f"SELECT id FROM record WHERE kind = '{CHUNK_KIND}' AND recorded_until IS NULL AND source_id {IN_ARRAY}",
            (self._id_array(sources),),
        )
        self._tx.records.delete(chunks)
        self._tx.scopes.drop_empty_sources(sources)
        return len(chunks)

    def sources_of(self, row_ids: Sequence[int]) -> list[int]:
        """The source ids of the documents that these records are chunks of."""
        return self._column(
            f"SELECT DISTINCT source_id FROM record WHERE kind = '{CHUNK_KIND}' AND source_id IS NOT NULL "
            f"AND id {IN_ARRAY}",
            (self._id_array(row_ids),),
        )

    def settle(self, source_ids: Sequence[int]) -> None:
        """Delete documents that lost all chunks; documents that lost some are chunked again at the next read."""
        left = f"(SELECT count(*) FROM record r WHERE r.source_id = document.source_id AND r.kind = '{CHUNK_KIND}')"
        self._execute(
            f"UPDATE document SET chunking = '', chunks = {left} WHERE source_id {IN_ARRAY} AND chunks > {left}",
            (self._id_array(source_ids),),
        )
        self._execute(
            f"DELETE FROM document WHERE source_id {IN_ARRAY} AND chunks = 0 AND chunking = ''",
            (self._id_array(source_ids),),
        )
        self._tx.scopes.drop_empty_sources(source_ids)


def _one(rows: Any) -> DocumentRow | None:
    row = rows.fetchone()
    return None if row is None else read_row(row, DocumentRow, "document")


# Sessions, their messages and snapshots.


class SessionRow(NamedTuple):
    """A session as it is listed; times in microseconds."""

    row_id: int
    name: str
    scope: str
    provider: str | None
    messages: int
    created_at: Moment
    updated_at: Moment


class SnapshotRow(NamedTuple):
    """A snapshot as it is stored: lists are JSON."""

    public_id: str
    scope: str
    session: str | None
    messages: str
    summary: str
    key_decisions: str
    task_ids: str
    started_at: Moment | None
    ended_at: Moment
    total_cost: float
    total_tokens: int


SESSION_UPDATED = (
    "coalesce((SELECT m.created_at FROM session_message m WHERE m.session_id = s.id ORDER BY m.position DESC LIMIT 1), "
    "s.created_at)"
)
"""The time when the session `s` was last used, as SQL."""

LOST_MESSAGES = (
    f"SELECT r.{{}} FROM record r WHERE r.kind = '{MESSAGE_KIND}' AND r.recorded_until IS NULL "
    "AND NOT EXISTS (SELECT 1 FROM session_message m WHERE m.record_id = r.id)"
)
"""Statement for a column of the records of messages that are missing."""

_SESSION = (
    "SELECT s.id, s.name, p.path, s.provider, (SELECT count(*) FROM session_message m WHERE m.session_id = s.id), "
    f"s.created_at, {SESSION_UPDATED} AS updated_at FROM session s JOIN scope p ON p.id = s.scope_id"
)

_SNAPSHOT = (
    f"SELECT {columns_sql(SnapshotRow._fields, {'scope': 'p.path'}, of='t')} "
    "FROM session_snapshot t JOIN scope p ON p.id = t.scope_id"
)


class Sessions(Repository):
    """The tables of sessions; the texts of their messages are records."""

    # SQL for the bytes of the text `m.message`.
    _message_bytes: str

    def find(self, scope: str, name: str) -> SessionRow | None:
        """The session of this name in exactly this scope."""
        row: Any = self._execute(f"{_SESSION} WHERE p.path = ? AND s.name = ?", (scope, name)).fetchone()
        return None if row is None else read_row(row, SessionRow, "session")

    def find_id(self, scope: str, name: str) -> int | None:
        """The row id of the session of this name in exactly this scope."""
        session_id: Any = self._execute(
            "SELECT s.id FROM session s JOIN scope p ON p.id = s.scope_id WHERE p.path = ? AND s.name = ?",
            (scope, name),
        ).get
        return None if session_id is None else int(session_id)

    def create(self, scope: str, name: str, provider: str | None, now: int) -> None:
        """Add an empty session."""
        self._execute(
            "INSERT INTO session (scope_id, name, provider, created_at) VALUES (?, ?, ?, ?)",
            (self._tx.scopes.id_of(scope), name, provider, now),
        )

    def set_provider(self, session_id: int, provider: str) -> None:
        """Set the provider of a session."""
        self._execute("UPDATE session SET provider = ? WHERE id = ?", (provider, session_id))

    def in_scope(self, scope: str, *, limit: int | None = None) -> list[SessionRow]:
        """The sessions of a scope and its descendants, last used first."""
        condition, bound = within(scope)
        rows = self._rows(
            f"{_SESSION} WHERE {condition} ORDER BY updated_at DESC, s.id DESC LIMIT ?",
            (*bound, NO_LIMIT if limit is None else limit),
        )
        return read_rows(rows, SessionRow, "session")

    def unused_since(self, scope: str, moment: int | None) -> list[int]:
        """Row ids of the sessions of a scope and its descendants that were not used since `moment` (None: all)."""
        condition, bound = within(scope)
        return self._column(
            f"SELECT s.id FROM session s JOIN scope p ON p.id = s.scope_id WHERE {condition} AND {SESSION_UPDATED} < ?",
            (*bound, NO_LIMIT if moment is None else moment),
        )

    def next_position(self, session_id: int) -> int:
        """The position of the message that is appended next."""
        return self._number(
            "SELECT coalesce(max(position) + 1, 0) FROM session_message WHERE session_id = ?", (session_id,)
        )

    def append(self, session_id: int, position: int, rows: Sequence[tuple[str, int | None]], created_at: int) -> None:
        """Append messages (JSON, the row id of the record of its text) from a position on."""
        self._insert_many(
            "session_message",
            "session_id, position, message, record_id, created_at",
            [(session_id, i, *row, created_at) for i, row in enumerate(rows, position)],
        )

    def remove_from(self, session_id: int, position: int) -> int:
        """Purge the messages of a session from this position on; returns how many."""
        condition, bound = "session_id = ? AND position >= ?", (session_id, position)
        removed = self._number(f"SELECT count(*) FROM session_message WHERE {condition}", bound)
        self._delete_messages(condition, bound)
        return removed

    def _delete_messages(self, condition: str, bound: tuple[Any, ...]) -> None:
        where = f"FROM session_message WHERE {condition}"
        self._tx.records.delete(self._column(f"SELECT record_id {where} AND record_id IS NOT NULL", bound))
        self._execute(f"DELETE {where}", bound)  # those without text; the others went with their records

    def messages(
        self, session_id: int, *, limit: int | None = None, before: int | None = None
    ) -> list[tuple[int, bytes]]:
        """Position and JSON of the messages of a session in order; with a limit, of the last ones.

        With `before`, of the messages before this position.

        JSON as bytes: one message that is not UTF-8 must not make the others unreadable.
        """
        rows = self._rows(
            f"SELECT CAST(m.position AS BIGINT), {self._message_bytes} FROM session_message m WHERE m.session_id = ? "
            "AND m.position < ? ORDER BY m.position DESC LIMIT ?",
            (session_id, NO_LIMIT if before is None else before, NO_LIMIT if limit is None else limit),
        )
        return list(reversed(rows))

    def delete(self, session_ids: Sequence[int]) -> None:
        """Purge sessions with their messages."""
        self._delete_messages(f"session_id {IN_ARRAY}", (self._id_array(session_ids),))
        self._execute(f"DELETE FROM session WHERE id {IN_ARRAY}", (self._id_array(session_ids),))

    def put_snapshot(self, row: SnapshotRow) -> None:
        """Store a snapshot."""
        columns = f"public_id, scope_id, {', '.join(row._fields[2:])}"
        self._insert_many("session_snapshot", columns, [(row.public_id, self._tx.scopes.id_of(row.scope), *row[2:])])

    def snapshots(self, scope: str, limit: int) -> list[SnapshotRow]:
        """The snapshots of a scope and its descendants, newest first."""
        condition, bound = within(scope)
        rows = self._rows(f"{_SNAPSHOT} WHERE {condition} ORDER BY t.ended_at DESC, t.id DESC LIMIT ?", (*bound, limit))
        return read_rows(rows, SnapshotRow, "snapshot")


# The tiers' own tables: consolidation cycles, experience, uses of procedures, working memories.


class CycleRow(NamedTuple):
    """The work of one cycle; time in microseconds."""

    row_id: int
    scope: str
    trigger_id: int
    replayed_id: int
    created_at: Moment
    compressed: int
    pruned: int
    replayed: int
    promoted: int
    error: str | None


_EPISODES = (
    "r.kind = 'episode' AND r.recorded_until IS NULL AND r.scope_id = (SELECT id FROM scope WHERE path = ?) "
    "AND r.id > ? AND r.id <= ?"
)

_CYCLE = (
    f"SELECT {columns_sql(CycleRow._fields, {'row_id': 'c.id', 'scope': 'p.path'}, of='c')} "
    "FROM consolidation c JOIN scope p ON p.id = c.scope_id"
)


_SUM = "CAST(sum(t.{}) AS BIGINT)"
_MEAN = "sum(CAST(t.total_{0} AS DOUBLE PRECISION)) / nullif(sum(t.{0}_measured), 0)"
_SUMS = ", ".join(
    f"{name} = tool_pattern.{name} + excluded.{name}"
    for name in (
        "total_count", "success_count", "total_steps", "steps_measured", "total_tokens", "tokens_measured",
    )
)  # fmt: skip


class ToolPattern(NamedTuple):
    """The record of one tool list for one type of task; an average is None if no run told its figure."""

    task_type: str
    pattern: str
    total_count: int
    success_count: int
    avg_steps: float | None
    avg_tokens: float | None


class Recovery(NamedTuple):
    """The recovery that helped against an error of a tool."""

    tool: str
    error_pattern: str
    error: str
    recovery: str
    total_count: int


class _Use(NamedTuple):
    public_id: str
    success_rate: float
    use_count: int
    success_count: int


class Tiers(Repository):
    """The tables `consolidation`, `tool_pattern`, `error_recovery`, `procedure_use` and `working_state`."""

    def last_episode(self, scope: str) -> int:
        """The row id of the newest episode of exactly this scope; 0 for none."""
        return self._number(
            "SELECT coalesce(max(r.id), 0) FROM record r WHERE r.kind = 'episode' AND r.recorded_until IS NULL "
            "AND r.scope_id = (SELECT id FROM scope WHERE path = ?)",
            (scope,),
        )

    def last_cycle(self, scope: str) -> CycleRow | None:
        """The newest cycle of exactly this scope."""
        return next(iter(self.cycles(scope, 1)), None)

    def cycles(self, scope: str, limit: int) -> list[CycleRow]:
        """The cycles of exactly this scope, newest first."""
        rows = self._rows(f"{_CYCLE} WHERE p.path = ? ORDER BY c.id DESC LIMIT ?", (scope, limit))
        return read_rows(rows, CycleRow, "consolidation")

    def new_episodes(self, scope: str, enough: int) -> int:
        """The number of episodes of exactly this scope that are newer than its last cycle, counted up to `enough`."""
        return self._number(
            "SELECT count(*) FROM (SELECT 1 FROM record r WHERE r.kind = 'episode' AND r.recorded_until IS NULL "
            "AND r.scope_id = (SELECT id FROM scope WHERE path = ?1) AND r.id > coalesce((SELECT max(c.trigger_id) "
            "FROM consolidation c JOIN scope p ON p.id = c.scope_id WHERE p.path = ?1), 0) LIMIT ?2)",
            (scope, enough),
        )

    def episodes_between(self, scope: str, after: int, last: int) -> list[int]:
        """The row ids of the episodes of exactly this scope after one and up to another, ascending."""
        return self._column(f"SELECT r.id FROM record r WHERE {_EPISODES} ORDER BY r.id", (scope, after, last))

    def compress(self, scope: str, last: int, policy: Consolidation) -> tuple[int, int]:
        """Multiply the importance of the episodes up to row id `last` that are not pinned; purge what falls too low.

        An episode is purged when its new importance is under prune_threshold * decay_factor ** (cycles_a_recall *
        accesses). Returns how many were multiplied, the purged among them, and how many were purged.
        """
        condition = f"{_EPISODES} AND NOT r.pinned"
        bound = (scope, 0, last)
        doomed = self._column(
            f"SELECT r.id FROM record r LEFT JOIN access a ON a.record_id = r.id WHERE {condition} "
            "AND r.importance * ? < ? * pow(?, coalesce(a.count, 0))",
            (*bound, policy.decay_factor, policy.prune_threshold, policy.decay_factor**policy.cycles_a_recall),
        )
        self._tx.records.delete(doomed)
        # Ranking uses base_importance: recency applies at query time, and would count twice.
        self._execute(
            "UPDATE record AS r SET base_importance = coalesce(r.base_importance, r.importance), "
            f"importance = r.importance * ? WHERE {condition}",
            (policy.decay_factor, *bound),
        )
        multiplied = self._connection.changes()
        # An index stays right but for the filters by importance that it caches.
        self._tx.changes.append("update", last)
        return multiplied + len(doomed), len(doomed)

    def change_cycle(self, row: CycleRow) -> None:
        """Update a cycle after its episodes were extracted."""
        self._execute(
            "UPDATE consolidation SET replayed_id = ?, replayed = ?, promoted = ?, error = ? WHERE id = ?",
            (row.replayed_id, row.replayed, row.promoted, row.error, row.row_id),
        )

    def add_cycle(self, row: CycleRow) -> None:
        """Add a cycle."""
        columns = f"scope_id, {', '.join(row._fields[2:])}"
        self._insert_many("consolidation", columns, [(self._tx.scopes.id_of(row.scope), *row[2:])])

    def add_run(
        self, key: tuple[str, str, str], *, success: bool, steps: int | None, tokens: int | None, now: int
    ) -> None:
        """Count one run under (scope, task type, pattern)."""
        figures = (steps or 0, int(steps is not None), tokens or 0, int(tokens is not None))
        self._execute(
            "INSERT INTO tool_pattern VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?) "
            f"ON CONFLICT (scope_id, task_type, pattern) DO UPDATE SET {_SUMS}, updated_at = excluded.updated_at",
            (self._tx.scopes.id_of(key[0]), *key[1:], int(success), *figures, now, now),
        )

    def patterns(self, scopes: Sequence[str], task_type: str | None) -> list[ToolPattern]:
        """The patterns of exactly these scopes, summed, by task type and pattern; None is all types."""
        rows = self._rows(
            f"SELECT t.task_type, t.pattern, {_SUM.format('total_count')}, {_SUM.format('success_count')}, "
            f"{_MEAN.format('steps')}, {_MEAN.format('tokens')} FROM tool_pattern t JOIN scope p ON p.id = t.scope_id "
            f"WHERE p.path {IN_ARRAY} {'' if task_type is None else 'AND t.task_type = ?'} GROUP BY t.task_type, "
            "t.pattern ORDER BY t.task_type, t.pattern",
            (self._array(scopes), *([] if task_type is None else [task_type])),
        )
        return read_rows(rows, ToolPattern, "tool_pattern")

    def add_recovery(self, key: tuple[str, str, str], *, error: str, recovery: str, now: int) -> None:
        """Count one recovery under (scope, tool, error pattern); only the latest is kept, with its own count."""
        self._execute(
            "INSERT INTO error_recovery VALUES (?, ?, ?, ?, ?, 1, ?, ?) ON CONFLICT "
            "(scope_id, tool, error_pattern) DO UPDATE SET total_count = "
            "CASE WHEN error_recovery.recovery = excluded.recovery THEN error_recovery.total_count + 1 ELSE 1 END, "
            "error = excluded.error, recovery = excluded.recovery, updated_at = excluded.updated_at",
            (self._tx.scopes.id_of(key[0]), *key[1:], error, recovery, now, now),
        )

    def recoveries(self, scopes: Sequence[str], tool: str) -> list[Recovery]:
        """The recoveries from errors of a tool in exactly these scopes, most frequent first."""
        rows = self._rows(
            "SELECT e.tool, e.error_pattern, e.error, e.recovery, e.total_count FROM error_recovery e "
            f"JOIN scope p ON p.id = e.scope_id WHERE p.path {IN_ARRAY} AND e.tool = ? "
            "ORDER BY e.total_count DESC, e.error_pattern, p.path",
            (self._array(scopes), tool),
        )
        return read_rows(rows, Recovery, "error_recovery")

    def procedure_named(self, scope: str, name: str) -> int | None:
        """The row id of the procedure of this name in exactly this scope; the last stored of several."""
        named = self._tx.conditions.of_metadata(["name"], "eq", name)
        row_id: int | None = self._execute(
            "SELECT max(r.id) FROM record r WHERE r.kind = 'procedure' AND r.recorded_until IS NULL "
            f"AND r.scope_id = (SELECT id FROM scope WHERE path = ?) AND {named.sql}",
            (scope, *named.values),
        ).get
        return row_id

    def procedure_with_id(self, scope: str, public_id: str) -> int | None:
        """The row id of the procedure with this public id in a scope or below it."""
        visible = self._tx.conditions.in_scopes([scope])
        row_id: int | None = self._execute(
            "SELECT r.id FROM record r WHERE r.kind = 'procedure' AND r.recorded_until IS NULL AND r.public_id = ? "
            f"AND {visible.sql}",
            (public_id, *visible.values),
        ).get
        return row_id

    def set_rate(self, row_id: int, success_rate: float) -> None:
        """Set the success rate; counts stay."""
        self._execute(
            "INSERT INTO procedure_use (record_id, success_rate) VALUES (?, ?) "
            "ON CONFLICT (record_id) DO UPDATE SET success_rate = excluded.success_rate",
            (row_id, success_rate),
        )

    def count_outcome(self, row_id: int, *, success: bool, first_rate: float, weight: float) -> None:
        """Count one use and move the rate by `weight` towards its outcome, from `first_rate` at the first use."""
        self._execute(
            "INSERT INTO procedure_use VALUES (?1, ?3, 1, ?2) ON CONFLICT (record_id) DO UPDATE SET "
            "success_rate = (1.0 - ?4) * procedure_use.success_rate + ?5, use_count = procedure_use.use_count + 1, "
            "success_count = procedure_use.success_count + ?2",
            (row_id, int(success), (1 - weight) * first_rate + weight * success, weight, weight * success),
        )

    def uses(self, public_ids: list[str]) -> dict[str, tuple[float, int, int]]:
        """(rate, uses, successes) of procedures by public id; a procedure never used is absent."""
        if not public_ids:
            return {}
        rows = self._rows(
            "SELECT r.public_id, u.success_rate, u.use_count, u.success_count FROM record r JOIN procedure_use u ON "
            f"u.record_id = r.id WHERE r.recorded_until IS NULL AND r.public_id {IN_ARRAY}",
            (self._array(public_ids),),
        )
        return {row.public_id: row[1:] for row in read_rows(rows, _Use, "procedure_use of")}

    def save_working(self, scope: str, items: str, now: int) -> None:
        """Replace the working memory of exactly this scope, as JSON."""
        self._execute(
            "INSERT INTO working_state VALUES (?, ?, ?) "
            "ON CONFLICT (scope_id) DO UPDATE SET items = excluded.items, updated_at = excluded.updated_at",
            (self._tx.scopes.id_of(scope), items, now),
        )

    def working(self, scope: str) -> str | None:
        """The working memory of exactly this scope, as JSON."""
        items: Any = self._execute(
            "SELECT w.items FROM working_state w JOIN scope p ON p.id = w.scope_id WHERE p.path = ?", (scope,)
        ).get
        return None if items is None else str(items)
