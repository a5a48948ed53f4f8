"""Which sidecar of the in-memory index belongs to this store: `<database>-index`, a derived file beside the database.

The store remembers a random token of the sidecar that was last written. A store that has the token has all that the
sidecar's commit had, so the change feed leads from there to now; a copy or a restored backup that went another way
has another token or none.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import apsw

from recollect.store import feed
from recollect.store.vectors import active_embedder

__all__ = ["Identity", "discard", "identity", "part_of", "path_of", "publish"]

_KEY = "index_sidecar"


class Identity(NamedTuple):
    """What a sidecar must have been made from: token, lexicon epoch, the active embedder's fingerprint and its id."""

    token: str
    lexicon_epoch: str
    fingerprint: str
    embedder_id: int | None


def path_of(database: str) -> str:
    """The sidecar's path."""
    return f"{database}-index"


def part_of(database: str) -> str:
    """The path of a sidecar that is being written."""
    return f"{database}-index-part"


def identity(connection: apsw.Connection) -> Identity:
    """What the store expects of its sidecar; an empty token when it has none."""
    found = dict(connection.execute("SELECT key, value FROM meta WHERE key IN (?, 'lexicon_epoch')", (_KEY,)))
    embedder = active_embedder(connection)
    fingerprint, embedder_id = ("", None) if embedder is None else (embedder.fingerprint, embedder.id)
    return Identity(found.get(_KEY, ""), found.get("lexicon_epoch", ""), fingerprint, embedder_id)


def publish(
    connection: apsw.Connection, made_of: Identity, token: str, sequence: int, move: Callable[[], None]
) -> bool:
    """In a write transaction, let `move` put a sidecar of the commit `sequence` in place and remember its token.

    False, and nothing is done, where something was purged or replaced since: a sidecar never outlives what it was
    made from. No purge can come between, because a purge is a write transaction too.
    """
    if identity(connection)[1:] != made_of[1:]:
        return False
    changes = feed.changes_since(connection, sequence)
    if changes is None or any(change.operation in ("delete", "text") for change in changes):
        return False
    move()
    connection.execute(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (_KEY, token)
    )
    return True


def discard(connection: apsw.Connection) -> None:
    """In the write transaction that purges something, remove the sidecar, which may hold traces of it."""
    connection.execute("DELETE FROM meta WHERE key = ?", (_KEY,))
    if connection.filename:
        for path in (path_of(connection.filename), part_of(connection.filename)):
            with suppress(OSError):
                os.unlink(path)
