"""Keeps what describes a store: identity and role, change feed and index snapshot, scopes and access tokens.

The index of a workspace is marked, so that no other file is used as one.
"""

from __future__ import annotations

import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, NewType

import msgspec

from recallite.errors import StoreError
from recallite.store.sql.repository import IN_ARRAY, WITHIN, Repository, SqlConnection, stored_json, within

INDEX_SNAPSHOT = "index_snapshot"
"""The row of `meta` with the token of the snapshot that was last written."""
COPY_MARK = "unfinished_copy"
"""The row of `meta` with the mark of an unfinished copy."""
_ROLE, _INDEX = "purpose", "workspace index"
# A file with rows in any of these holds data of its own.
_CONTENT = ("record", "document", "source", "session", "procedure_use", "tool_pattern", "working_state")


# The change feed, which an in-memory index follows.

Operation = Literal["insert", "text", "update", "delete", "link", "frames", "reload"]


Commit = NewType("Commit", str)
"""An opaque name of a commit: ask `Changes` what it means."""


class Change(NamedTuple):
    """The records `first_id` to `last_id` underwent `operation`."""

    first_id: int
    last_id: int
    operation: Operation


def runs_of(ids: Sequence[int]) -> list[tuple[int, int]]:
    """The runs of consecutive row ids, as the first and the last of each, ascending."""
    distinct = {*ids}
    if distinct and max(distinct) - min(distinct) == len(distinct) - 1:  # a bulk write is one run
        return [(min(distinct), max(distinct))]
    runs: list[tuple[int, int]] = []
    for row_id in sorted(distinct):
        first = runs.pop()[0] if runs and runs[-1][1] == row_id - 1 else row_id
        runs.append((first, row_id))
    return runs


class Changes(Repository):
    """The table `feed`; how its rows are ordered, and a commit named, is each database's own."""

    def append(self, operation: Operation, first_id: int, last_id: int | None = None) -> None:
        """Add a change of the records `first_id` to `last_id`."""
        self._append(operation, [(first_id, first_id if last_id is None else last_id)])

    def append_ids(self, operation: Operation, ids: list[int]) -> None:
        """Add one change per run of consecutive ids."""
        if runs := runs_of(ids):
            self._append(operation, runs)

    @abstractmethod
    def _append(self, operation: Operation, runs: list[tuple[int, int]]) -> None:
        """Add a row to the feed for each run of ids, its first and its last."""

    @abstractmethod
    def commit(self) -> Commit:
        """The commit that this transaction sees."""

    @abstractmethod
    def matches(self, commit: Commit) -> bool:
        """Whether this transaction sees what `commit` names, and nothing else."""

    @abstractmethod
    def contained_in(self, commit: Commit) -> bool:
        """Whether `commit` includes all that this transaction sees."""

    @abstractmethod
    def since(self, commit: Commit) -> list[Change] | None:
        """The changes after `commit`; None if they are unknown or everything has to be read again."""

    @abstractmethod
    def refresh(self) -> None:
        """Continue this read transaction at the newest commit."""

    @abstractmethod
    def last(self) -> int:
        """The newest sequence number; 0 for a store without changes."""


class CopyMark(NamedTuple):
    """The mark of an unfinished copy: its source, the part of it, and which run writes to it."""

    source: str
    scope: str
    access_tokens: bool
    run: str


class Meta(Repository):
    """Rows of the table `meta`."""

    def identity(self) -> str | None:
        """The id of this store; None before `put_identity`."""
        value: str | None = self._execute("SELECT value FROM meta WHERE key = 'identity'").get
        return value

    def put_identity(self, value: str) -> None:
        """Set the id of this store, once."""
        self._execute("INSERT INTO meta VALUES ('identity', ?) ON CONFLICT (key) DO NOTHING", (value,))

    def is_index(self) -> bool:
        """Whether the role of the store is the index of a workspace, and it holds nothing but chunks."""
        return is_index(self._connection)

    def claim_as_index(self) -> bool:
        """Make an empty store the index of a workspace; False if it has other content."""
        if self.is_index():
            return True
        if any(self._execute(f"SELECT EXISTS (SELECT 1 FROM {table})").get for table in _CONTENT):
            return False
        self._execute("INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = ?2", (_ROLE, _INDEX))
        return True

    def copy_mark(self) -> CopyMark | None:
        """The mark of a store that is an unfinished copy."""
        stored = self._execute("SELECT value FROM meta WHERE key = ?", (COPY_MARK,)).get
        return None if stored is None else stored_json(stored, f"the mark of a copy in {self._tx.path}", CopyMark)


def is_index(connection: SqlConnection) -> bool:
    """Whether a file has the role of an index and holds nothing but chunks."""
    marked: bool = connection.execute("SELECT value FROM meta WHERE key = ?", (_ROLE,)).get == _INDEX
    return marked and not connection.execute("SELECT EXISTS (SELECT 1 FROM kind WHERE name != 'chunk')").get


def unfinished_copy(path: str, mark: CopyMark) -> StoreError:
    """The error for an unfinished copy: what is written to it would be lost, and some of it is not there yet."""
    return StoreError(
        f"{path} is an unfinished copy of {mark.source}: finish it with recallite copy, or remove it and copy again"
    )


class SnapshotIdentity(NamedTuple):
    """The state that an index snapshot is of: token, lexicon epoch, the active embedder's fingerprint and id."""

    token: str
    lexicon_epoch: str
    fingerprint: str
    embedder_id: int | None


class IndexSnapshot(Repository):
    """The token of the snapshot; a store that keeps no files has none."""

    # Of `?`, the name of the row, and of the epoch.
    _values = "SELECT key, value FROM meta WHERE key IN (?, 'lexicon_epoch')"

    def identity(self) -> SnapshotIdentity:
        """The identity that the store expects of its index snapshot; an empty token if it has none."""
        values = dict(self._execute(self._values, (INDEX_SNAPSHOT,)))
        embedder = self._tx.vectors.active_embedder()
        fingerprint, embedder_id = ("", None) if embedder is None else (embedder.fingerprint, embedder.id)
        return SnapshotIdentity(
            values.get(INDEX_SNAPSHOT, ""), values.get("lexicon_epoch", ""), fingerprint, embedder_id
        )

    def publish(self, made_of: SnapshotIdentity, token: str, commit: Commit, move: Callable[[], None]) -> bool:
        """Let `move` put an index snapshot of `commit` in place, and keep its token.

        False, and nothing is done, if records were purged or replaced since: a snapshot must not outlive its records.
        """
        changes = self._tx.changes.since(commit)
        purged = changes is None or any(change.operation in ("delete", "text") for change in changes)
        if purged or self.identity()[1:] != made_of[1:]:
            return False
        move()
        self._keep(token)
        return True

    def new_token(self) -> str:
        """A token for the next snapshot; the identity's is its beginning."""
        return uuid.uuid4().hex

    def _keep(self, token: str) -> None:
        self._execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (INDEX_SNAPSHOT, token),
        )

    def discard(self) -> None:
        """Remove the snapshot, which may hold traces of what this transaction purges."""
        self._execute("DELETE FROM meta WHERE key = ?", (INDEX_SNAPSHOT,))


# Scopes, the sources within them, and what the services keep of a scope.

_TABLES = {
    "sessions": "session",
    "snapshots": "session_snapshot",
    "tool_patterns": "tool_pattern",
    "error_recoveries": "error_recovery",
    "consolidations": "consolidation",
    "working_memories": "working_state",
}


class Scopes(Repository):
    """The tables `scope` and `source`."""

    def intern(self, paths: set[str]) -> dict[str, int]:
        """The id of each scope, new ones added."""
        ids = self.ids(tuple(paths))
        if len(ids) < len(paths):
            new = [path for path in paths if path not in ids]
            self._tx.add_names("scope", "path", new)
            ids |= self.ids(new)
        return ids

    def intern_sources(self, keys: set[tuple[int, str]]) -> dict[tuple[int, str], int]:
        """The id of each (scope id, name), new ones added."""
        names_of: dict[int, list[str]] = {}
        for scope_id, name in keys:
            names_of.setdefault(scope_id, []).append(name)
        ids: dict[tuple[int, str], int] = {}
        for scope_id in sorted(names_of):
            names = sorted(names_of[scope_id])
            known = self._source_ids(scope_id, names)
            # To insert one that is there takes a number, and writes which was the last.
            if new := [name for name in names if name not in known]:
                self._execute(
                    "INSERT INTO source (scope_id, name) SELECT ?, value FROM carray(?) WHERE true "
                    "ON CONFLICT DO NOTHING",
                    (scope_id, self._array(new)),
                )
                known |= self._source_ids(scope_id, new)
            ids.update({(scope_id, name): source_id for name, source_id in known.items()})
        return ids

    def _source_ids(self, scope_id: int, names: Sequence[str]) -> dict[str, int]:
        return dict(
            self._execute(
                f"SELECT name, id FROM source WHERE scope_id = ? AND name {IN_ARRAY}", (scope_id, self._array(names))
            )
        )

    def sources_named(self, names: Sequence[str]) -> list[int]:
        """The ids of the sources with these names, of all scopes."""
        return self._column(f"SELECT id FROM source WHERE name {IN_ARRAY}", (self._array(names),))

    def tags_named(self, names: Sequence[str]) -> list[int]:
        """The ids of the tags with these names."""
        return self._column(f"SELECT id FROM tag WHERE name {IN_ARRAY}", (self._array(names),))

    def within(self, scopes: Sequence[str]) -> list[int]:
        """The ids of these scopes and their descendants, each once."""
        return self._column(f"SELECT DISTINCT s.id FROM {WITHIN} ORDER BY s.id", (self._array(scopes),))

    def inhabited(self, scopes: Sequence[str], limit: int) -> list[str]:
        """Paths of these scopes (empty: all) and their descendants that have open records, shallow ones first."""
        return self._column(
            f"SELECT s.path FROM scope s WHERE {'s.id ' + IN_ARRAY if scopes else 'true'} AND EXISTS "
            "(SELECT 1 FROM record r WHERE r.scope_id = s.id AND r.recorded_until IS NULL) "
            "ORDER BY length(s.path) - length(replace(s.path, '/', '')), s.path LIMIT ?",
            (*([self._id_array(self.within(scopes))] if scopes else []), limit),
        )

    def ids(self, paths: Sequence[str]) -> dict[str, int]:
        """The ids of the scopes that the store knows among these paths."""
        if len(paths) == 1:
            scope_id = self._tx.known(("scope", paths[0]), lambda: self._read_ids(paths).get(paths[0]))
            return {} if scope_id is None else {paths[0]: scope_id}
        return self._read_ids(paths)

    def _read_ids(self, paths: Sequence[str]) -> dict[str, int]:
        rows = self._rows(f"SELECT path, id FROM scope WHERE path {IN_ARRAY}", (self._array(paths),))
        return dict(rows)

    def drop_empty_sources(self, source_ids: Iterable[Any]) -> None:
        """Remove these sources where no record and no document is left of them."""
        self._execute_many(
            "DELETE FROM source WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM record WHERE source_id = ?1) "
            "AND NOT EXISTS (SELECT 1 FROM document WHERE source_id = ?1)",
            [(source_id,) for source_id in source_ids if source_id is not None],
        )

    def id_of(self, path: str) -> int:
        """The id of a scope, added if it is new."""
        return self.intern({path})[path]

    def service_counts(self, scope: str) -> dict[str, int]:
        """The number of rows that each service keeps in a scope and its descendants."""
        condition, bound = within(scope)
        seen = f"(SELECT id FROM scope WHERE {condition})"
        counts: dict[str, int] = {
            name: self._execute(f"SELECT count(*) FROM {table} WHERE scope_id IN {seen}", bound).get
            for name, table in _TABLES.items()
        }
        counts["session_messages"] = self._execute(
            f"SELECT count(*) FROM session_message m JOIN session s ON s.id = m.session_id WHERE s.scope_id IN {seen}",
            bound,
        ).get
        counts["documents"] = len(self._tx.documents.in_scope(scope))
        return counts

    def purge_services(self, scope: str) -> int:
        """Purge what every service keeps in a scope and its descendants; returns the rows, messages not counted."""
        condition, bound = within(scope)
        removed = 0
        sessions = self._tx.sessions.unused_since(scope, None)
        if sessions:
            self._tx.sessions.delete(sessions)
            removed += len(sessions)
        for table in _TABLES.values():
            self._execute(f"DELETE FROM {table} WHERE scope_id IN (SELECT id FROM scope WHERE {condition})", bound)
            removed += self._connection.changes()
        documents = self._tx.documents.in_scope(scope)
        self._tx.documents.delete(documents)
        return removed + len(documents)


# Access tokens.

_FIELDS = "public_id, name, scope, reads, read_only, authority, created_at, expires_at"


class AccessTokenRow(NamedTuple):
    """An access token, without its secret. Times are microseconds since 1970 UTC; `expires_at` None: never."""

    public_id: str
    name: str | None
    scope: str
    reads: str
    read_only: bool
    authority: int
    created_at: int
    expires_at: int | None


class AccessTokens(Repository):
    """The table `access_token`."""

    def with_hash(self, hash: bytes) -> AccessTokenRow | None:
        """The token with this hash."""
        rows = self._rows(f"SELECT {_FIELDS} FROM access_token WHERE hash = ?", (hash,))
        return AccessTokenRow(*rows[0]) if rows else None

    def all(self) -> list[AccessTokenRow]:
        """All tokens, oldest first."""
        return [AccessTokenRow(*row) for row in self._rows(f"SELECT {_FIELDS} FROM access_token ORDER BY id")]

    def add(self, row: AccessTokenRow, hash: bytes) -> None:
        """Add a token."""
        self._execute(f"INSERT INTO access_token ({_FIELDS}, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, hash))

    def remove(self, public_id: str) -> bool:
        """Remove a token; False if there is none with this id."""
        return bool(self._rows("DELETE FROM access_token WHERE public_id = ? RETURNING id", (public_id,)))


# State of what `sync` has exchanged with other devices.

_COLUMNS = "key, name, state, number, diverged"


class SyncedRow(NamedTuple):
    """A row of the table `synced`; `transfer/syncing` says what it means."""

    key: str
    name: str | None
    state: bytes
    number: int
    diverged: str | None = None


class Synced(Repository):
    """The table `synced`, and the place of this store among the devices."""

    def place(self) -> str | None:
        """The place of this store, as JSON; None before the first `sync`."""
        value: str | None = self._execute("SELECT value FROM meta WHERE key = 'sync'").get
        return value

    def put_place(self, value: str) -> None:
        """Set the place of this store."""
        self._execute("INSERT INTO meta VALUES ('sync', ?) ON CONFLICT (key) DO UPDATE SET value = ?1", (value,))

    def rows(self, keys: Sequence[str]) -> dict[str, SyncedRow]:
        """The rows with these keys; others are absent."""
        rows = self._execute(f"SELECT {_COLUMNS} FROM synced WHERE key {IN_ARRAY}", (self._array(keys),))
        return {row[0]: SyncedRow(*row) for row in rows}

    def all(self) -> Iterator[SyncedRow]:
        """Every row, streamed."""
        return (SyncedRow(*row) for row in self._execute(f"SELECT {_COLUMNS} FROM synced"))

    def keys_in(self, number: int) -> list[str]:
        """The keys of what is in a file of this device."""
        return self._column("SELECT key FROM synced WHERE number = ? ORDER BY key", (number,))

    def sent_keys(self) -> list[str]:
        """The keys of all that this device has sent."""
        return self._column("SELECT key FROM synced WHERE number > 0 ORDER BY number, key")

    def gone(self) -> list[int]:
        """The file of this device in which each thing is that it has said to be gone."""
        return self._column("SELECT number FROM synced WHERE number > 0 AND name IS NULL")

    def diverged(self) -> list[tuple[str, int, int]]:
        """The ids of memories that two devices changed, and when the text that lost and the current one were stored."""
        rows = self._rows("SELECT name, diverged FROM synced WHERE diverged IS NOT NULL AND name IS NOT NULL")
        return [(msgspec.json.decode(name)[1], *msgspec.json.decode(times)) for name, times in rows]

    def put(self, rows: Iterable[SyncedRow]) -> None:
        """Insert or replace rows."""
        self._execute_many(
            f"INSERT INTO synced ({_COLUMNS}) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET name = "
            "excluded.name, state = excluded.state, number = excluded.number, diverged = excluded.diverged",
            [*rows],
        )

    def number(self, keys: Sequence[str], number: int) -> None:
        """Set the file in which these are."""
        self._execute(f"UPDATE synced SET number = ? WHERE key {IN_ARRAY}", (number, self._array(keys)))

    def forget_names(self, public_ids: Iterable[str]) -> None:
        """Forget the names of memories that are erased, and of what belongs to them."""
        ids = {*public_ids}
        rows = self._execute("SELECT key, name FROM synced WHERE name IS NOT NULL") if ids else ()
        # After the kind come one or two ids, and then what may be equal to one: the type of a link.
        keys = [key for key, name in rows if not ids.isdisjoint(msgspec.json.decode(name)[1:3])]
        self._execute(f"UPDATE synced SET name = NULL WHERE key {IN_ARRAY}", (self._array(keys),))
