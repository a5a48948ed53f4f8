"""The tools of the services: session keeps conversations message by message, experience tells what worked before, and
knowledge searches documents by passage.
"""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct, field

from recallite.doors.tools.action import (
    Action,
    Agent,
    Call,
    Changed,
    DocumentId,
    DocumentSource,
    Limit,
    MessageText,
    Metadata,
    Provider,
    Query,
    Quotes,
    Recorded,
    Role,
    SessionId,
    Summary,
    TaskType,
    Tool,
    ToolFault,
    ToolName,
    Words,
    allowed_in,
)
from recallite.errors import DocumentError, NotFound
from recallite.text.quotes import NOTICE

if TYPE_CHECKING:
    from recallite.documents.document import Ingested


class OpenSession(Action, frozen=True, kw_only=True, tag="open"):
    """begin a session, or go on with one that has this id"""

    id: SessionId | None = None
    agent: Agent | None = None
    provider: Provider | None = None

    def __call__(self, call: Call) -> Recorded:
        session = call.memory.sessions.open(self.id, agent=self.agent, provider=self.provider)
        return Recorded(outcome="opened", id=session.id)


class AppendMessage(Action, frozen=True, kw_only=True, tag="append"):
    """store a message at the end of a session"""

    id: SessionId
    role: Role
    content: MessageText
    agent: Agent | None = None

    def __call__(self, call: Call) -> Recorded:
        position = call.memory.sessions.get(self.id, agent=self.agent).append(self.role, self.content)
        return Recorded(outcome="appended", id=self.id, position=position)


class EndSession(Action, frozen=True, kw_only=True, tag="end"):
    """remove a session; with a summary, a snapshot of it is kept"""

    id: SessionId
    summary: Summary | None = None
    agent: Agent | None = None

    def __call__(self, call: Call) -> Recorded:
        session = call.memory.sessions.get(self.id, agent=self.agent)
        session.end(snapshot=self.summary is not None, summary=self.summary or "")
        return Recorded(outcome="ended", id=self.id)


SESSION_TOOL = Tool("session", "Conversations, kept message by message.", (OpenSession, AppendMessage, EndSession))


# The tool experience.


class Tip(Struct, frozen=True, kw_only=True):
    """A sentence about what worked."""

    text: str


class Tips(Action, frozen=True, kw_only=True, tag="tips"):
    """find what worked before on tasks of this type; with tool and error, what helped against it"""

    task_type: TaskType | None = None
    tool: ToolName | None = None
    error: Words | None = None

    def __call__(self, call: Call) -> Quotes:
        if (self.tool is None) != (self.error is None):
            missing = "tool" if self.tool is None else "error"
            raise ToolFault(
                "missing_field", missing, f"{missing} is missing: tool and error go together", allowed_in(Tips, missing)
            )
        tips = call.memory.experience.tips(self.task_type, tool=self.tool, error=self.error)
        return Quotes(results=[Tip(text=str(tip)) for tip in tips])


EXPERIENCE_TOOL = Tool("experience", "What worked before: tools by type of task, and recoveries from errors.", (Tips,))


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


class IngestDocument(Action, frozen=True, kw_only=True, tag="ingest"):
    """read a document and keep it to search in, where the host allows it; again, it is brought up to date"""

    source: DocumentSource
    metadata: Metadata | None = None

    def __call__(self, call: Call) -> IngestedDocuments:
        allowed = [f"a path in {folder}" for folder in call.documents.folders]
        allowed += ["an http(s) URL"] * call.documents.urls
        try:
            ingested = self._ingest(call)
        except DocumentError as fault:
            raise ToolFault(
                "not_allowed" if fault.reason == "refused" else "unreadable", "source", str(fault), allowed
            ) from None
        results = [
            IngestedFile(
                outcome=document.outcome, document_id=document.id, source=_name(document.source),
                title=document.title, chunks=document.chunks,
            )
            for document in ingested.documents[:_MOST_SHOWN]
        ]  # fmt: skip
        skipped = [{"source": _name(entry.source), "reason": entry.reason} for entry in ingested.skipped[:_MOST_SHOWN]]
        return IngestedDocuments(results=results, counts=ingested.counts, skipped=skipped)

    def _ingest(self, call: Call) -> Ingested:
        """Read only what the host allows: otherwise a model could read any file or server."""
        ingest, access = call.memory.knowledge.ingest, call.documents
        if _is_url(self.source):
            if not access.urls:
                raise DocumentError("URLs are not read here: the host may allow them (document_urls)", "refused")
            return ingest(self.source, metadata=self.metadata, on_progress=call.report)
        if not access.folders:
            raise DocumentError("no files are read here: the host may name folders (document_folders)", "refused")
        refused: DocumentError | None = None
        for folder in access.folders:
            try:
                return ingest(self.source, metadata=self.metadata, root=folder, on_progress=call.report)
            except DocumentError as fault:
                if refused is None or fault.reason != "refused":
                    refused = fault
        assert refused is not None
        raise refused


class SearchKnowledge(Action, frozen=True, kw_only=True, tag="search"):
    """find passages of documents by meaning and words; fewer than limit if fewer answer, or what is missing"""

    query: Query
    limit: Limit = 5

    def __call__(self, call: Call) -> FoundPassages:
        hits = call.memory.knowledge.search(self.query, self.limit, relevant=True)
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


class ListDocuments(Action, frozen=True, kw_only=True, tag="list"):
    """show the documents"""

    limit: Limit = 100

    def __call__(self, call: Call) -> Quotes:
        results = [
            ListedDocument(
                document_id=document.id, source=_name(document.source), title=document.title, chunks=document.chunks,
                updated_at=document.updated_at, metadata=document.metadata, scope=call.scope_of(document.scope),
            )
            for document in call.memory.knowledge.list(limit=self.limit)
        ]  # fmt: skip
        return Quotes(results=results)


class DeleteDocument(Action, frozen=True, kw_only=True, tag="delete"):
    """remove a document with all its passages"""

    document_id: DocumentId = field(name="documentId")

    def __call__(self, call: Call) -> Changed:
        try:
            deleted = call.memory.knowledge.delete(self.document_id)
        except NotFound as fault:
            raise ToolFault("not_found", "documentId", str(fault), ["a documentId as results give it"]) from None
        return Changed(outcome="deleted", id=deleted.id)


def _is_url(source: str) -> bool:
    from recallite.documents.ingesting import is_url  # which loads the engine

    return is_url(source)


def _name(source: str) -> str:
    """A source as models see it: the name of a file, or a URL without query and fragment, which may hold secrets."""
    if _is_url(source):
        return urlsplit(source)._replace(query="", fragment="").geturl()
    return source.rsplit("/", 1)[-1] if source.startswith("/") or os.path.isabs(source) else source


KNOWLEDGE_TOOL = Tool(
    "knowledge",
    "Documents: PDF, Word, web pages, Markdown and text, searched by passage.",
    (IngestDocument, SearchKnowledge, ListDocuments, DeleteDocument),
)
