"""Make a document of the bytes of a Markdown file: front matter, title, chunks and their positions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recallite.embedding.places import measure_of
from recallite.embedding.remote import RemoteEmbedder
from recallite.engine import Engine
from recallite.errors import EmbedderError
from recallite.model.model_address import ModelAddress
from recallite.remember.document_writing import NewChunk, NewDocument
from recallite.text.chunking import (
    LEAST_TOKENS,
    ChunkSize,
    chunk_markdown,
    front_matter,
    properties_text,
    with_columns,
    with_properties,
)
from recallite.text.chunking.bounds import context_of, short_name, short_values
from recallite.text.decoding import decode
from recallite_notes.config import WorkspaceConfig
from recallite_notes.editable.markdown import is_memory_file, searchable_text
from recallite_notes.rules import source_label, written_at

MEDIA_TYPE = "text/markdown"
# The version of the chunking rules: to be raised when they change.
_RULES = 2


def chunking_name(config: WorkspaceConfig, spec: object) -> str:
    """Name all that chunks and vectors depend on besides the file's bytes; if it differs, the file is indexed again."""
    return f"{_RULES}:{config.chunking.tokens}:{config.chunking.overlap}:{config.timezone}:{_spec_name(spec)}"


def to_document(
    engine: Engine, config: WorkspaceConfig, path: str, data: bytes, mtime_ns: int, **columns: Any
) -> NewDocument:
    """The document of a file; `columns` identify its bytes."""
    text, problem = decode(data)
    metadata, begin = front_matter(text)
    memories = is_memory_file(text)
    # Each section of a file of memories is one.
    size = ChunkSize(config.chunking.tokens, config.chunking.overlap, least_tokens=0 if memories else LEAST_TOKENS)
    chunks = chunk_markdown(text, lambda: _token_starts(engine, text), size, begin=begin)
    if not memories:
        chunks = with_properties(chunks, text, properties_text(metadata, without={"title"}), size)
        chunks = [*with_columns(chunks, text, "markdown")]
    stated_title = metadata.get("title")
    own_title = short_name(stated_title) if isinstance(stated_title, str) and stated_title.strip() else None
    first = next((short_name(chunk.headings[0]) for chunk in chunks if chunk.headings), None)
    title = own_title or first
    shared = short_values(metadata)
    return NewDocument(
        source=path,
        title=title,
        media_type=MEDIA_TYPE,
        mtime_ns=mtime_ns,
        metadata=metadata,
        problem=problem,
        # For `source_filter` of a search: a bitmap before the scan.
        tags=(source_label(path),),
        created_at=written_at(path, mtime_ns, config.timezone),
        chunks=[
            NewChunk(
                text=searchable_text(chunk.text) if memories else chunk.columns + chunk.text,
                # Without the file name, so that a renamed file keeps its vectors.
                context=context_of(own_title, headings, chunk.properties),
                metadata={
                    **shared,
                    "path": path,
                    **({} if title is None else {"title": title}),
                    "headings": headings,
                    "lines": list(chunk.lines),
                    "chars": [chunk.start, chunk.end],
                },
            )
            for chunk in chunks
            for headings in [[short_name(heading) for heading in chunk.headings]]
        ],
        **columns,
    )


def _token_starts(engine: Engine, text: str) -> NDArray[np.int64]:
    """The starts of the tokens of a text, by the bundled tokenizer if the embedder's is not available."""
    try:
        return engine.embedder.token_starts([text])[0]
    except EmbedderError:
        return measure_of("none")([text])[0]


def _spec_name(spec: object) -> str:
    """The configured embedder by name, without loading it or calling an endpoint."""
    if isinstance(spec, str):
        # Chunks made while the folder of the model was missing are made again with its tokenizer.
        return f"{spec}{'+' if (Path(spec).expanduser() / 'tokenizer.json').is_file() else ''}"
    if isinstance(spec, ModelAddress | RemoteEmbedder):
        return f"remote:{spec.model if isinstance(spec, ModelAddress) else spec.name}"
    return str(getattr(spec, "fingerprint", type(spec).__name__))
