"""Inserting rows in a transaction, and naming the embedder that their vectors come from."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.embedding.handle import Identity
from recollect.engine import Engine
from recollect.store.protocol import Writer
from recollect.store.values import EmbedderRow, Row

__all__ = ["embedder_of", "insert_rows"]


def insert_rows(engine: Engine, writer: Writer, rows: Sequence[Row], identity: Identity | None) -> list[int]:
    """Insert rows in this transaction, their vectors under `identity`; returns their row ids."""
    return writer.records.insert(rows, embedder_of(engine, writer, rows, identity))


def embedder_of(engine: Engine, writer: Writer, rows: Sequence[Row], identity: Identity | None) -> EmbedderRow | None:
    """The stored embedder that made these rows' vectors or refused their texts; None where it did neither."""
    if identity is None or not any(row.vectors or row.refused for row in rows):
        return None
    return writer.vectors.register_embedder(**identity._asdict())
