"""Texts to vectors: the protocol of embedders, the local ones, a client of remote ones, the query cache."""

from __future__ import annotations

from recallite.embedding.load import load
from recallite.embedding.protocol import (
    DocumentEmbedder,
    Embedded,
    Embedder,
    QueryTokens,
    ScriptReader,
    TokenEmbedder,
    Unread,
    embed_documents,
)

__all__ = [
    "DocumentEmbedder", "Embedded", "Embedder", "QueryTokens", "ScriptReader", "TokenEmbedder", "Unread",
    "embed_documents", "load",
]  # fmt: skip
