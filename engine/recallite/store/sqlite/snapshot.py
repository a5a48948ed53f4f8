"""The index snapshot that belongs to this store: `<database>-index`, a derived file beside the database.

The store keeps a random token of the snapshot that was last written. A store that has the token contains the snapshot's
commit, so the change feed leads from there to now; a copy or a restored backup that diverged has another token or none.
"""

from __future__ import annotations

import os
from contextlib import suppress

from recallite.store.sql.snapshot import IndexSnapshot
from recallite.store.sqlite.files import part_of_snapshot, snapshot_of


class SqliteIndexSnapshot(IndexSnapshot):
    """The token in `meta`, and the file beside the database."""

    @property
    def _filename(self) -> str:
        filename: str = self._tx.connection.filename  # type: ignore[attr-defined]
        return filename

    def discard(self) -> None:
        super().discard()
        if self._filename:
            for path in (snapshot_of(self._filename), part_of_snapshot(self._filename)):
                with suppress(OSError):
                    os.unlink(path)
