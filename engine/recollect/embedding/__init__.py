"""Texts to vectors: the protocol, the ONNX embedder, the query cache."""

from __future__ import annotations

from recollect.embedding.documents import embed_documents
from recollect.embedding.load import load
from recollect.embedding.protocol import DocumentEmbedder, Embedded, Embedder, QueryTokens, TokenEmbedder

__all__ = [
    "DocumentEmbedder",
    "Embedded",
    "Embedder",
    "QueryTokens",
    "TokenEmbedder",
    "embed_documents",
    "load",
]
