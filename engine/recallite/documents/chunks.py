"""Cutting the text of a document into chunks."""

from __future__ import annotations

import re
import string
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from recallite.documents.loaded import Loaded
from recallite.embedding.handle import EmbedderHandle
from recallite.remember.document_writing import NewChunk
from recallite.text.chunking import Chunk, ChunkSize, chunk_markdown, chunk_plain, front_matter, page_starts
from recallite.text.chunking.bounds import context_of, short_name, short_values

_SIZE = ChunkSize(max_tokens=1000, target_tokens=500, overlap_tokens=100)
CHUNKING = f"knowledge 2: {_SIZE.max_tokens}/{_SIZE.target_tokens}/{_SIZE.overlap_tokens}"
"""The version of reading and cutting, stored with each document; one of another version is cut again when ingested."""

PLACE_KEYS = ("path", "title", "headings", "lines", "chars", "page", "last_page")
"""Keys of a chunk's metadata for its place in the document; a document's own metadata may not use them."""

_MOST_STATED_BYTES = 65_536
_TITLE = re.compile(r"\ufeff?\s*+# ++([^\n]*)")
# A row of headings, the line of dashes below it, and the rows of a Markdown table.
_TABLE = re.compile(
    r"^([ \t]*+[^\n|]*+\|[^\n]*+\n[ \t]*+\|?(?:[ \t]*+:?-++:?[ \t]*+\|?)++\r?\n)(?:[^\n|]*+\|[^\n]*+\n?)*+", re.M
)
_HAS_NUMBER = re.compile(r"(?<![^\t,;])[\d.]+(?![^\t,;\r\n])")
_SEPARATED = (".csv", ".tsv")
_MOST_HEADING_CHARS, _MOST_ROWS_CHARS = 1000, 600


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
        begin = front_matter(text)[1] if loaded.exact else 0
        pieces = chunk_markdown(text, lambda: embedder.token_starts([text])[0], _SIZE, begin=begin)
    else:
        if loaded.exact and not pages:
            pages = page_starts(text) if "\f" in text else []
        pieces = chunk_plain(text, lambda: embedder.token_starts([text])[0], _SIZE)
    shared = repeated(metadata)
    tables = _tables(text, path, markdown=loaded.markdown)
    begins = [table.begin for table in tables]
    chunks = []
    for chunk in _rows_apart(text, pieces, tables):
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
        context = context_of(title, headings)
        table = tables[around - 1] if (around := bisect_right(begins, chunk.start)) else None
        heading = table.heading if table is not None and chunk.start < table.end else ""
        chunks.append(NewChunk(text=heading + chunk.text, context=context, metadata={**shared, **place}))
    return chunks


class _Table(NamedTuple):
    """A table: its row of headings, and where its rows begin and end."""

    heading: str
    begin: int
    end: int


def _tables(text: str, path: str, *, markdown: bool) -> list[_Table]:
    """Return the tables of a document, whose headings are said in each chunk of their rows."""
    if markdown:
        tables = [_Table(match[1], match.end(1), match.end()) for match in _TABLE.finditer(text)]
    elif path.lower().endswith(_SEPARATED):
        begin = text.find("\n") + 1
        tables = [_Table(text[:begin], begin, len(text))] if begin and not _HAS_NUMBER.search(text[:begin]) else []
    else:
        tables = []
    return [table for table in tables if len(table.heading) <= _MOST_HEADING_CHARS]


def _rows_apart(text: str, chunks: Iterable[Chunk], tables: Sequence[_Table]) -> Iterator[Chunk]:
    """Yield the chunks, those of a long table cut again between rows: of a thousand tokens of cells none stands out."""
    done = 0
    begins = [table.begin for table in tables]
    for chunk in chunks:
        places = [chunk.start]
        for table in tables[max(bisect_right(begins, chunk.start) - 1, 0) :]:
            if table.begin >= chunk.end:
                break
            begin, end = max(table.begin, chunk.start, done), min(table.end, chunk.end)
            if end - begin <= _MOST_ROWS_CHARS:
                continue
            if table.begin < chunk.start:
                # Without the rows that the chunk before has at its end.
                begin = end - len(text[begin:end].lstrip("\r\n"))
                places = [begin]
            place = begin
            while (place := text.find("\n", place + _MOST_ROWS_CHARS, end) + 1) and place < end:
                places.append(place)
        for start, stop in pairwise([*places, chunk.end]):
            rows = text[start:stop].rstrip()
            first = chunk.lines[0] + text.count("\n", chunk.start, start)
            lines = (first, first + rows.count("\n"))
            yield (
                chunk
                if len(places) == 1 and start == chunk.start
                else structs.replace(chunk, text=rows, start=start, end=start + len(rows), lines=lines)
            )
        done = chunk.end


def repeated(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the document's metadata that each chunk carries for filters: short values, the last first."""
    # The caller's values come last and take precedence if not all fit.
    items = [(name, value) for name, value in metadata.items() if name not in PLACE_KEYS]
    return short_values(dict(reversed(items)))


def with_metadata(stored: Mapping[str, Any], shared: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return a stored chunk's metadata with other values of its document and its present path."""
    place = {name: stored[name] for name in PLACE_KEYS if name in stored}
    return {**shared, **place, "path": path}
