"""Texts to vectors: the protocol, the local embedders, a client of remote ones, the query cache."""

from __future__ import annotations

from recollect.embedding.documents import embed_documents
from recollect.embedding.load import load
from recollect.embedding.protocol import DocumentEmbedder, Embedded, Embedder, QueryTokens, TokenEmbedder
from recollect.embedding.remote import RemoteEmbedder

__all__ = [
    "DocumentEmbedder",
    "Embedded",
    "Embedder",
    "QueryTokens",
    "RemoteEmbedder",
    "TokenEmbedder",
    "embed_documents",
    "load",
]
