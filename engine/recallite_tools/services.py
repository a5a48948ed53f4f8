"""What the actions of the services do: session keeps conversations message by message, experience tells what worked
before, and knowledge searches documents by passage.
"""

from __future__ import annotations

import os
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct, field

from recallite.documents.document import is_url
from recallite.errors import DocumentError, NotFound
from recallite.text.quotes import NOTICE
from recallite_tools.action import FIELDS, Call, Changed, FailureType, Quotes, Recorded, ToolFault, allowed_in

if TYPE_CHECKING:
    from recallite.documents.document import Ingested


def open_session(call: Call, id: str | None = None, **options: str) -> Recorded:
    """Begin a session, or go on with one that has this id."""
    return Recorded(outcome="opened", id=call.memory.sessions.open(id, **options).id)


def append(call: Call, id: str, role: str, content: str, agent: str | None = None) -> Recorded:
    """Store a message at the end of a session."""
    position = call.memory.sessions.get(id, agent=agent).append(role, content)
    return Recorded(outcome="appended", id=id, position=position)


def end_session(call: Call, id: str, summary: str = "", agent: str | None = None) -> Recorded:
    """Remove a session; with a summary, a snapshot of it is kept."""
    call.memory.sessions.get(id, agent=agent).end(snapshot=bool(summary), summary=summary)
    return Recorded(outcome="ended", id=id)


# The tool experience.


class Tip(Struct, frozen=True, kw_only=True):
    """A sentence about what worked."""

    text: str


def tips(call: Call, task_type: str | None = None, tool: str | None = None, error: str | None = None) -> Quotes:
    """Find what worked before on tasks of this type; with tool and error, what helped against it."""
    if (tool is None) != (error is None):
        missing = "tool" if tool is None else "error"
        problem = f"{missing} is missing: tool and error go together"
        raise ToolFault("missing_field", missing, problem, allowed_in(FIELDS[missing]))
    found = call.memory.experience.tips(task_type, tool=tool, error=error)
    return Quotes(results=[Tip(text=str(tip)) for tip in found])


# The tool knowledge.

_MOST_SHOWN = 50
_LEFT_OUT = ("chars", "document")


class FoundPassage(Struct, frozen=True, kw_only=True):
    """A passage of a document; `metadata` has that of the document, and title, headings, path, and lines or page.

    `score` orders the results of one question, `confidence` is the chance that the passage answers it.
    """

    id: str
    text: str
    source: str
    score: float
    confidence: float
    metadata: dict[str, Any]
    document_id: str | None = field(name="documentId")
    scope: str


class FoundPassages(Struct, frozen=True, kw_only=True):
    """Passages, best first; `left_out` counts those that did not fit into the budget of tokens.

    `evidence_gaps` say what the documents seem not to tell.
    """

    results: list[FoundPassage]
    left_out: int = 0
    evidence_gaps: list[str] = []
    notice: str = NOTICE


class ListedDocument(Struct, frozen=True, kw_only=True):
    """A document of a list."""

    document_id: str = field(name="documentId")
    source: str
    title: str | None
    chunks: int
    updated_at: datetime
    metadata: dict[str, Any]
    scope: str


class IngestedFile(Struct, frozen=True, kw_only=True):
    """The outcome for a document: created, updated, unchanged or duplicate."""

    outcome: str
    document_id: str = field(name="documentId")
    source: str
    title: str | None
    chunks: int


class IngestedDocuments(Struct, frozen=True, kw_only=True):
    """The result of an ingest: the first documents, and `counts` of all."""

    results: list[IngestedFile]
    counts: dict[str, int]
    skipped: list[dict[str, str]]
    notice: str = NOTICE


def ingest(call: Call, source: str, metadata: dict[str, Any] | None = None) -> IngestedDocuments:
    """Read a document and keep it to search in, where the host allows it; again, it is brought up to date."""
    try:
        ingested = _ingested(call, source, metadata)
    except DocumentError as fault:
        allowed = [f"a path in {folder}" for folder in call.documents.folders]
        allowed += ["an http(s) URL"] * call.documents.urls
        kind: FailureType = "not_allowed" if fault.reason == "refused" else "unreadable"
        raise ToolFault(kind, "source", str(fault), allowed) from None
    results = [
        IngestedFile(
            outcome=document.outcome, document_id=document.id, source=_name(document.source), title=document.title,
            chunks=document.chunks,
        )
        for document in ingested.documents[:_MOST_SHOWN]
    ]  # fmt: skip
    skipped = [{"source": _name(entry.source), "reason": entry.reason} for entry in ingested.skipped[:_MOST_SHOWN]]
    return IngestedDocuments(results=results, counts=ingested.counts, skipped=skipped)


def _ingested(call: Call, source: str, metadata: dict[str, Any] | None) -> Ingested:
    """Read only what the host allows: otherwise a model could read any file or server."""
    read, access = partial(call.memory.knowledge.ingest, source, metadata=metadata), call.documents
    if is_url(source):
        if not access.urls:
            raise DocumentError("URLs are not read here: the host may allow them (document_urls)", "refused")
        return read(on_progress=call.report)
    if not access.folders:
        raise DocumentError("no files are read here: the host may name folders (document_folders)", "refused")
    refused: DocumentError | None = None
    for folder in access.folders:
        try:
            return read(root=folder, on_progress=call.report)
        except DocumentError as fault:
            if refused is None or fault.reason != "refused":
                refused = fault
    assert refused is not None
    raise refused


def search(call: Call, query: str, limit: int) -> FoundPassages:
    """Find passages of documents by meaning and words; fewer than limit if fewer answer, or what is missing."""
    hits = call.memory.knowledge.search(query, limit, relevant=True)
    results = [
        FoundPassage(
            id=hit.id, text=hit.text, source="" if hit.source is None else _name(hit.source.id), score=hit.score,
            confidence=hit.confidence,
            metadata={
                name: _name(value) if name == "path" else value
                for name, value in hit.metadata.items()
                if name not in _LEFT_OUT
            },
            document_id=hit.metadata.get("document"), scope=call.scope_of(hit.scope),
        )
        for hit in hits
    ]  # fmt: skip
    return FoundPassages(results=results, evidence_gaps=list(hits.evidence_gaps))


def list_documents(call: Call, limit: int) -> Quotes:
    """Show the documents."""
    return Quotes(results=[
        ListedDocument(
            document_id=document.id, source=_name(document.source), title=document.title, chunks=document.chunks,
            updated_at=document.updated_at, metadata=document.metadata, scope=call.scope_of(document.scope),
        )
        for document in call.memory.knowledge.list(limit=limit)
    ])  # fmt: skip


def delete(call: Call, documentId: str) -> Changed:  # noqa: N803
    """Remove a document with all its passages."""
    try:
        return Changed(outcome="deleted", id=call.memory.knowledge.delete(documentId).id)
    except NotFound as fault:
        raise ToolFault("not_found", "documentId", str(fault), ["a documentId as results give it"]) from None


def _name(source: str) -> str:
    """A source as models see it: the name of a file, or a URL without query and fragment, which may hold secrets."""
    if is_url(source):
        return urlsplit(source)._replace(query="", fragment="").geturl()
    return source.rsplit("/", 1)[-1] if source.startswith("/") or os.path.isabs(source) else source
