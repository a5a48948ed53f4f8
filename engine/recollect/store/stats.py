"""Figures about a store, for `Memory.stats`."""

from __future__ import annotations

from typing import Any

import apsw

from recollect.store import feed
from recollect.store.connection import sqlite_vec_version
from recollect.store.rebuilding import bytes_on_disk
from recollect.store.schema import SCHEMA_VERSION
from recollect.store.vectors import active_embedder

__all__ = ["figures"]


def figures(connection: apsw.Connection, path: str) -> dict[str, Any]:
    """Counts and versions, as `Stats` names them."""
    embedder = active_embedder(connection)

    def count(sql: str) -> int:
        number: int = connection.execute(f"SELECT count(*) FROM {sql}").get
        return number

    return {
        "path": path,
        "records": count("record WHERE valid_to IS NULL"),
        "versions": count("record WHERE valid_to IS NOT NULL"),
        "pending": count("record WHERE embedding_state = 'pending'"),
        "vectors": count("vector"),
        "links": count("link"),
        "sources": count("source"),
        "terms": count("term"),
        "kinds": dict(connection.execute("SELECT kind, count(*) FROM record WHERE valid_to IS NULL GROUP BY kind")),
        "bytes_on_disk": bytes_on_disk(path),
        "schema_version": SCHEMA_VERSION,
        "sequence": feed.last_sequence(connection),
        "sqlite_version": apsw.sqlite_lib_version(),
        "sqlite_vec": sqlite_vec_version(connection),
        "embedder": None if embedder is None else embedder.name,
        "dimension": None if embedder is None else embedder.dimension,
    }
