"""Rows of the table `meta`: the identity of a store, its role, and the index snapshot that belongs to a commit.

The index of a workspace is marked, so that no other file is used as one.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from recallite.store.sql.repository import Repository, SqlConnection
from recallite.store.values import Commit, SnapshotIdentity

INDEX_SNAPSHOT = "index_snapshot"
"""The row of `meta` with the token of the snapshot that was last written."""
_ROLE, _INDEX = "purpose", "workspace index"
# A file with rows in any of these holds data of its own.
_CONTENT = ("record", "document", "source", "session", "procedure_use", "tool_pattern", "working_state")


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


def is_index(connection: SqlConnection) -> bool:
    """Whether a file has the role of an index and holds nothing but chunks."""
    marked: bool = connection.execute("SELECT value FROM meta WHERE key = ?", (_ROLE,)).get == _INDEX
    return marked and not connection.execute("SELECT EXISTS (SELECT 1 FROM kind WHERE name != 'chunk')").get


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
