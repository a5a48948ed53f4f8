"""Chunking of documents, by sections and blocks of Markdown or by paragraphs of plain text."""

from __future__ import annotations

from recallite.text.chunking.chunker import (
    LEAST_TOKENS,
    Chunk,
    TextKind,
    chunk_markdown,
    chunk_plain,
    with_columns,
    with_properties,
)
from recallite.text.chunking.front_matter import front_matter, properties_text
from recallite.text.chunking.line_numbers import page_starts
from recallite.text.chunking.packing import ChunkSize

__all__ = [
    "LEAST_TOKENS",
    "Chunk",
    "ChunkSize",
    "TextKind",
    "chunk_markdown",
    "chunk_plain",
    "front_matter",
    "page_starts",
    "properties_text",
    "with_columns",
    "with_properties",
]
