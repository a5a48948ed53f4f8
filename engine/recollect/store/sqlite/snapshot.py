"""Which index snapshot belongs to this store: `<database>-index`, a derived file beside the database.

The store keeps a random token of the snapshot that was last written. A store that has the token contains the snapshot's
commit, so the change feed leads from there to now; a copy or a restored backup that diverged has another token or none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress

from recollect.store import map_file
from recollect.store.sqlite.files import map_of, part_of_map, part_of_snapshot, snapshot_of
from recollect.store.sqlite.repository import Repository
from recollect.store.values import Commit, SnapshotIdentity

_KEY = "index_snapshot"


class SqliteIndexSnapshot(Repository):
    """The token in `meta`, and the file beside the database."""

    def identity(self) -> SnapshotIdentity:
        found = dict(self._execute("SELECT key, value FROM meta WHERE key IN (?, 'lexicon_epoch')", (_KEY,)))
        embedder = self._tx.vectors.active_embedder()
        fingerprint, embedder_id = ("", None) if embedder is None else (embedder.fingerprint, embedder.id)
        return SnapshotIdentity(found.get(_KEY, ""), found.get("lexicon_epoch", ""), fingerprint, embedder_id)

    def publish(self, made_of: SnapshotIdentity, token: str, commit: Commit, move: Callable[[], None]) -> bool:
        if self.identity()[1:] != made_of[1:]:
            return False
        changes = self._tx.changes.since(commit)
        if changes is None or any(change.operation in ("delete", "text") for change in changes):
            return False
        move()
        self._execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (_KEY, token)
        )
        return True

    def discard(self) -> None:
        """Remove the snapshot, which may hold traces of what this transaction purges."""
        self._execute("DELETE FROM meta WHERE key = ?", (_KEY,))
        if self._connection.filename:
            for path in (snapshot_of(self._connection.filename), part_of_snapshot(self._connection.filename)):
                with suppress(OSError):
                    os.unlink(path)

    def erase_points(self, record_ids: Sequence[int] | None = None) -> None:
        """Overwrite the points of these records in the map, or (None) remove the map."""
        database = self._connection.filename
        if not database or (record_ids is not None and not len(record_ids)):
            return
        with suppress(OSError):
            if record_ids is None:
                os.unlink(map_of(database))
            else:
                map_file.erase(map_of(database), record_ids)
        with suppress(OSError):
            os.unlink(part_of_map(database))

    def publish_map(self, commit: Commit, move: Callable[[], None]) -> bool:
        changes = self._tx.changes.since(commit)
        if changes is None or any(change.operation in ("delete", "text") for change in changes):
            return False
        move()
        return True
