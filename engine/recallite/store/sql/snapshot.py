"""The index snapshot that belongs to a commit; a store that keeps no files has none."""

from __future__ import annotations

from collections.abc import Callable

from recallite.store.sql.repository import Repository
from recallite.store.values import Commit, SnapshotIdentity

INDEX_SNAPSHOT = "index_snapshot"
"""The row of `meta` with the token of the snapshot that was last written."""


class IndexSnapshot(Repository):
    """The token in `meta`."""

    def identity(self) -> SnapshotIdentity:
        """The identity that the store expects of its index snapshot; an empty token if it has none."""
        values = dict(self._execute("SELECT key, value FROM meta WHERE key IN (?, 'lexicon_epoch')", (INDEX_SNAPSHOT,)))
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
        self._execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (INDEX_SNAPSHOT, token),
        )
        return True

    def discard(self) -> None:
        """Remove the snapshot, which may hold traces of what this transaction purges."""
        self._execute("DELETE FROM meta WHERE key = ?", (INDEX_SNAPSHOT,))
