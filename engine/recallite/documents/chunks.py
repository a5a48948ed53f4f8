"""Cutting the text of a document into chunks."""

from __future__ import annotations

import re
import string
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import msgspec

from recallite.documents.loaded import Loaded
from recallite.embedding.handle import EmbedderHandle
from recallite.remember.document_writing import NewChunk
from recallite.text.chunking import (
    LEAST_TOKENS,
    ChunkSize,
    TextKind,
    chunk_markdown,
    chunk_plain,
    with_columns,
    with_properties,
)
from recallite.text.front_matter import context_of, front_matter, properties_text, short_name, short_values
from recallite.text.markdown_sections import page_starts

_SIZE = ChunkSize(max_tokens=1000, target_tokens=500, overlap_tokens=100, least_tokens=LEAST_TOKENS)
CHUNKING = f"knowledge 3: {_SIZE.max_tokens}/{_SIZE.target_tokens}/{_SIZE.overlap_tokens}"
"""The version of reading and cutting, stored with each document; one of another version is cut again when ingested."""

PLACE_KEYS = ("path", "title", "headings", "lines", "chars", "page", "last_page")
"""Keys of a chunk's metadata for its place in the document; a document's own metadata may not use them."""

_MOST_STATED_BYTES = 65_536
_TITLE = re.compile(r"\ufeff?\s*+# ++([^\n]*)")
_SEPARATED = (".csv", ".tsv")


def stated_by(loaded: Loaded) -> tuple[dict[str, Any], str | None]:
    """Return the metadata and title that a document states, front matter included.

    Values longer than 65,536 bytes as JSON are left out.
    """
    metadata, title = loaded.metadata, loaded.title
    if loaded.markdown and loaded.exact:
        metadata, begin = front_matter(loaded.text)
        heading = _TITLE.match(loaded.text, begin)
        stated = metadata.get("title")
        title = None if heading is None else heading[1].strip().rstrip("#" + string.whitespace) or None
        if isinstance(stated, str) and stated.strip():
            title = stated
    short = {name: value for name, value in metadata.items() if len(msgspec.json.encode(value)) <= _MOST_STATED_BYTES}
    return short, None if title is None else short_name(title)


def cut(
    loaded: Loaded, embedder: EmbedderHandle, *, title: str | None, path: str, metadata: Mapping[str, Any]
) -> list[NewChunk]:
    """Return the chunks of a document; raises EmbedderError if its tokens cannot be counted."""
    text = loaded.text
    pages = loaded.pages or []
    if loaded.markdown:
        values, begin = front_matter(text) if loaded.exact else ({}, 0)
        pieces = chunk_markdown(text, lambda: embedder.token_starts([text])[0], _SIZE, begin=begin)
        pieces = with_properties(pieces, text, properties_text(values, without={"title"}), _SIZE)
    else:
        if loaded.exact and not pages:
            pages = page_starts(text) if "\f" in text else []
        pieces = chunk_plain(text, lambda: embedder.token_starts([text])[0], _SIZE)
    shared = repeated(metadata)
    kind: TextKind = "markdown" if loaded.markdown else "separated" if path.lower().endswith(_SEPARATED) else "plain"
    chunks = []
    for chunk in with_columns(pieces, text, kind):
        headings = [short_name(heading) for heading in chunk.headings]
        place: dict[str, Any] = {"path": path, "headings": headings}
        if title is not None:
            place["title"] = title
        if loaded.exact:
            place["lines"] = list(chunk.lines)
        place["chars"] = [chunk.start, chunk.end]
        if pages:
            place["page"] = max(bisect_right(pages, chunk.start), 1)
            if (last := bisect_right(pages, chunk.end - 1)) > place["page"]:
                place["last_page"] = last
        context = context_of(title, headings, chunk.properties)
        chunks.append(NewChunk(text=chunk.columns + chunk.text, context=context, metadata={**shared, **place}))
    return chunks


def repeated(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the document's metadata that each chunk carries for filters: short values, the last first."""
    # The caller's values come last and take precedence if not all fit.
    items = [(name, value) for name, value in metadata.items() if name not in PLACE_KEYS]
    return short_values(dict(reversed(items)))


def with_metadata(stored: Mapping[str, Any], shared: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return a stored chunk's metadata with other values of its document and its present path."""
    place = {name: stored[name] for name in PLACE_KEYS if name in stored}
    return {**shared, **place, "path": path}
