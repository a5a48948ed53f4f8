"""The actions of the tool knowledge."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from recollect.checks import check_path, shown
from recollect.errors import DocumentError, DocumentRefused, InvalidInput, NotFound
from recollect.knowledge.documents import Ingested
from recollect.knowledge.ingesting import is_url
from recollect.memory import Memory
from recollect.tools import arguments as asked
from recollect.tools.failures import ToolFault
from recollect.tools.results import (
    Changed,
    FoundPassage,
    IngestedDocuments,
    IngestedFile,
    ListedDocument,
    Quotes,
)

__all__ = ["DocumentAccess", "answer"]

_MOST_SHOWN = 50
_LEFT_OUT = ("chars", "document")


class DocumentAccess(Struct, frozen=True):
    """From where a model may ingest: folders, and whether URLs of public addresses. By default from nowhere."""

    folders: tuple[Path, ...] = ()
    urls: bool = False

    @classmethod
    def of(cls, folders: object, urls: object) -> DocumentAccess:
        """The arguments of `tools.call`, checked."""
        if isinstance(folders, str | os.PathLike):
            folders = (folders,)
        if not isinstance(folders, Sequence) or not all(isinstance(each, str | os.PathLike) for each in folders):
            raise InvalidInput(f"document_folders is {shown(folders)}: give a list of folders")
        if not isinstance(urls, bool):
            raise InvalidInput(f"document_urls is {shown(urls)}: True or False")
        return cls(tuple(check_path(each, "document_folders") for each in folders), urls)


def answer(action: asked.Action, memory: Memory, within: str, access: DocumentAccess) -> Struct:
    """Carry out an action; `within` is the scope of the handle, as its holder calls it."""
    knowledge = memory.knowledge
    match action:
        case asked.IngestDocument():
            return _told(_ingest(action, memory, access))
        case asked.SearchKnowledge():
            return Quotes.of(
                FoundPassage(
                    content=hit.text, source="" if hit.source is None else _name(hit.source.id), score=hit.score,
                    metadata={name: value for name, value in hit.metadata.items() if name not in _LEFT_OUT},
                    document_id=hit.metadata.get("document"), scope=_joined(within, hit.scope),
                )
                for hit in knowledge.search(action.query, action.limit)
            )  # fmt: skip
        case asked.ListDocuments():
            return Quotes.of(
                ListedDocument(
                    document_id=each.id, source=_name(each.source), title=each.title, chunks=each.chunks,
                    updated_at=each.updated_at, metadata=each.metadata, scope=_joined(within, each.scope),
                )
                for each in knowledge.list(limit=action.limit)
            )  # fmt: skip
        case asked.DeleteDocument():
            try:
                deleted = knowledge.delete(action.document_id)
            except NotFound as fault:
                raise ToolFault("not_found", "documentId", str(fault), ["a documentId as results give it"]) from None
            return Changed(outcome="deleted", id=deleted.id)
        case _:
            raise AssertionError(action)


def _ingest(action: asked.IngestDocument, memory: Memory, access: DocumentAccess) -> Ingested:
    """Read what a model names, where its host lets it: else it could have any file and any server read to it."""
    allowed = [f"a path in {folder}" for folder in access.folders] + ["an http(s) URL"] * access.urls
    try:
        if is_url(action.source):
            if not access.urls:
                raise DocumentRefused("URLs are not read here: the host may allow them (document_urls)")
            return memory.knowledge.ingest(action.source, metadata=action.metadata)
        if not access.folders:
            raise DocumentRefused("no files are read here: the host may name folders (document_folders)")
        refused: DocumentError | None = None
        for folder in access.folders:
            try:
                return memory.knowledge.ingest(action.source, metadata=action.metadata, root=folder)
            except DocumentRefused as fault:
                refused = refused or fault
            except DocumentError as fault:
                refused = fault
        assert refused is not None
        raise refused
    except DocumentRefused as fault:
        raise ToolFault("not_allowed", "source", str(fault), allowed) from None
    except DocumentError as fault:
        raise ToolFault("unreadable", "source", str(fault), allowed) from None


def _told(ingested: Ingested) -> IngestedDocuments:
    return IngestedDocuments(
        results=[
            IngestedFile(
                outcome=each.outcome, document_id=each.id, source=_name(each.source), title=each.title,
                chunks=each.chunks,
            )
            for each in ingested.documents[:_MOST_SHOWN]
        ],
        counts=ingested.counts,
        skipped=[{"source": _name(each.source), "reason": each.reason} for each in ingested.skipped[:_MOST_SHOWN]],
    )  # fmt: skip


def _name(source: str) -> str:
    """A source as a model is shown it: the name of a file, or the URL without what may be a secret."""
    if is_url(source):
        return urlsplit(source)._replace(query="", fragment="").geturl()
    return source.rsplit("/", 1)[-1] if source.startswith("/") or os.path.isabs(source) else source


def _joined(within: str, scope: str) -> str:
    if within == "/":
        return scope
    return within if scope == "/" else within + scope
