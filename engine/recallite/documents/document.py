"""Documents as loaders return them, their limits, and the reports of the knowledge base about them."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any, Literal, Protocol, Self

from msgspec import Struct, field

from recallite.errors import DocumentError, DocumentReason

Kind = Literal["pdf", "docx", "html", "markdown", "text"]
BY_EXTENSION: dict[str, Kind] = {
    ".pdf": "pdf", ".docx": "docx", ".html": "html", ".htm": "html", ".xhtml": "html", ".md": "markdown",
    ".markdown": "markdown", ".mdown": "markdown", ".mkd": "markdown", ".mdx": "markdown", ".qmd": "markdown",
    ".rmd": "markdown",
}  # fmt: skip
"""The kind of a document by the extension of its name, in lower case."""


class Limits(Struct, frozen=True, kw_only=True):
    """Limits for one document: its bytes, the characters of its text, memory and time of the parser."""

    max_bytes: int = 100_000_000
    max_chars: int = 50_000_000
    memory_mb: int = 1024
    seconds: float = 60.0


class Loaded(Struct, frozen=True, kw_only=True, tag=True):
    """The text of a document.

    `pages` are the offsets at which pages begin, None without pages. With `markdown` the text is Markdown. With `exact`
    its lines are those of the file; otherwise it was converted. `metadata` is stated by the file (author, dates),
    `warnings` say what was left out or guessed.
    """

    text: str
    media_type: str
    markdown: bool
    exact: bool = False
    pages: list[int] | None = None
    title: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


class DocumentParser(Protocol):
    """Interface of the extension `document_parser`, which extracts the text of documents within `Limits`."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *fault: object) -> None: ...

    def load(
        self, data: bytes, name: str, *, media_type: str | None = None, charset: str | None = None,
        password: str | None = None,
    ) -> Loaded:  # fmt: skip
        """Return the text of a document with this name. Raises DocumentError."""


def too_long(max_chars: int) -> DocumentError:
    """Return the error for a text of more characters."""
    return DocumentError(f"its text is longer than {max_chars:,} characters", "too_large")


class Document(Struct, frozen=True, kw_only=True):
    """A document of the knowledge base. `source` is its path, URL or name; `content_hash` is the SHA-256 of its bytes.

    `metadata` is what it was ingested with, and what the file itself states (author, dates, front matter).
    """

    id: str
    source: str
    scope: str
    title: str | None
    media_type: str
    content_hash: str
    size_bytes: int
    chunks: int
    created_at: datetime
    updated_at: datetime
    metadata: dict[str, Any] = field(default_factory=dict)


class IngestedDocument(Struct, frozen=True, kw_only=True):
    """The outcome for one document.

    - "created": it is new. "updated": its text or metadata has changed. "unchanged": neither has.
    - "duplicate": the document with this `id`, whose source is `duplicate_of`, has the same bytes; no chunk was made.

    `chunks` counts its chunks, `chunks_created` the new ones, `pending` those that are not embedded yet.
    """

    id: str
    source: str
    outcome: Literal["created", "updated", "unchanged", "duplicate"]
    title: str | None = None
    chunks: int = 0
    chunks_created: int = 0
    chunks_deleted: int = 0
    pending: int = 0
    duplicate_of: str | None = None
    warnings: tuple[str, ...] = ()


class Skipped(Struct, frozen=True, kw_only=True):
    """A file, folder or URL that was not ingested, and why; `error` is the reason of the error that it raises alone."""

    source: str
    reason: str
    error: DocumentReason | None = None


class Ingested(Struct, frozen=True, kw_only=True):
    """The outcomes of an ingest, in the order in which documents were found."""

    documents: tuple[IngestedDocument, ...]
    skipped: tuple[Skipped, ...]
    seconds: float

    @property
    def counts(self) -> dict[str, int]:
        """The number of documents by outcome, skipped ones included."""
        outcomes: dict[str, int] = Counter(document.outcome for document in self.documents)
        return {**outcomes, "skipped": len(self.skipped)} if self.skipped else {**outcomes}

    @property
    def ids(self) -> list[str]:
        """The ids of the documents, each once."""
        return list(dict.fromkeys(document.id for document in self.documents))


class DeletedDocument(Struct, frozen=True, kw_only=True):
    """A deleted document, and the number of its chunks."""

    id: str
    source: str
    chunks: int
