"""Inserting rows in a transaction, and naming the embedder that their vectors come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.embedding.handle import Identity
from recollect.engine import Engine
from recollect.store import vectors, writing
from recollect.store.vectors import EmbedderRow
from recollect.store.writing import Row

if TYPE_CHECKING:
    import apsw

__all__ = ["embedder_of", "insert_rows"]


def insert_rows(
    engine: Engine, connection: apsw.Connection, rows: Sequence[Row], identity: Identity | None
) -> list[int]:
    """Insert rows in this transaction, their vectors under `identity`; returns their row ids."""
    return writing.insert(connection, engine.lexicon, rows, embedder_of(engine, connection, rows, identity))


def embedder_of(
    engine: Engine, connection: apsw.Connection, rows: Sequence[Row], identity: Identity | None
) -> EmbedderRow | None:
    """The stored embedder that made these rows' vectors or refused their texts; None where it did neither."""
    if identity is None or not any(row.vectors or row.refused for row in rows):
        return None
    return vectors.register(connection, engine.store.path, **identity._asdict())
