"""The options of an ingest, and the reports of the knowledge base about documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec
from msgspec import Struct, field

from recallite.errors import DocumentReason

if TYPE_CHECKING:
    from recallite.model.settings import WritePolicy


class Limits(Struct, frozen=True, kw_only=True):
    """Limits for one document: its bytes, the characters of its text, memory and time of the parser."""

    max_bytes: int = 100_000_000
    max_chars: int = 50_000_000
    memory_mb: int = 1024
    seconds: float = 60.0


class IngestOptions(NamedTuple):
    """The options of one ingest."""

    scope: str
    metadata: dict[str, Any] | None
    name: str | None
    title: str | None
    policy: WritePolicy
    include: Sequence[str]
    exclude: Sequence[str]
    password: str | None
    recursive: bool
    allow_private_addresses: bool
    root: Path | None
    limits: Limits


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


def stored_metadata(text: str | None) -> dict[str, Any]:
    """Return metadata from a column of the store."""
    return dict(msgspec.json.decode(text)) if text else {}


def is_url(source: str) -> bool:
    """Whether a source is a URL of http or https."""
    return source.lower().startswith(("http://", "https://"))
