"""Texts to vectors: the protocol, the ONNX embedder, the query cache."""

from __future__ import annotations

from recollect.embedding.documents import embed_documents
from recollect.embedding.load import load
from recollect.embedding.protocol import DocumentEmbedder, Embedded, Embedder

__all__ = ["DocumentEmbedder", "Embedded", "Embedder", "embed_documents", "load"]
