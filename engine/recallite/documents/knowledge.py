"""The knowledge base: ingest, search, context, list, get, delete."""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Unpack

from msgspec import structs

from recallite.agents.service_base import Service
from recallite.documents.context import compose
from recallite.documents.ingesting import Ingest, IngestOptions, Progress, stored_metadata
from recallite.documents.loaded import Limits
from recallite.documents.outcomes import DeletedDocument, Document, Ingested
from recallite.errors import InvalidInput, NotFound
from recallite.model import checks
from recallite.model.records import Hits
from recallite.model.settings import WritePolicy
from recallite.recall.request import RecallOptions
from recallite.remember.document_writing import delete_documents
from recallite.remember.write import check_policy
from recallite.store.values import CHUNK_KIND, DocumentRow
from recallite.system.asynchrony import AsyncService, awaited
from recallite.system.messages import shown
from recallite.system.telemetry import traced

_CONTEXT_HITS = 20


def _counted(done: Ingested) -> dict[str, int]:
    chunks = sum(document.chunks_created for document in done.documents)
    return {"documents": len(done.documents), "chunks": chunks, "skipped": len(done.skipped)}


class Knowledge(Service):
    """Documents, cut into chunks: records of kind "chunk", which `recall` finds like any other.

    A document is identified by its source within a scope: the absolute path of its file, its URL, or a name.
    """

    @traced("ingest", _counted)
    def ingest(
        self,
        source: str | os.PathLike[str] | bytes | Iterable[str | os.PathLike[str] | bytes],
        *,
        metadata: Mapping[str, Any] | None = None,
        name: str | None = None,
        scope: str = "/",
        title: str | None = None,
        policy: WritePolicy | None = None,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        password: str | None = None,
        recursive: bool = True,
        allow_private_addresses: bool = False,
        root: str | os.PathLike[str] | None = None,
        max_bytes: int = 100_000_000,
        max_chars: int = 50_000_000,
        memory_mb: int = 1024,
        seconds: float = 60.0,
        on_progress: Progress | None = None,
    ) -> Ingested:
        """Read PDF, DOCX, HTML, Markdown and text, and store new and changed documents.

        `source` is a path, a folder, an http(s) URL, the bytes of a document, or a list of these. `name` and `title`
        are for a single document; the name of bytes also tells their format. `metadata` is added to the document's.
        Chunks carry its short values (2,000 bytes each, 4,000 together, yours first), by which `search(where=...)`
        filters; `get` returns all of them. What `policy` redacts is replaced, as in `remember`.

        Ingesting the same bytes under the same source changes only metadata. The same bytes under another source of
        the scope are a "duplicate": no chunk is made, and the result has the id of the document with these bytes. If
        the file of that document is gone, it was moved and keeps its id and chunks. Other bytes under the same source
        replace its chunks in one transaction.

        In a folder, `include` and `exclude` are .gitignore patterns; without `include`, files with the extension of a
        document are read. Hidden files and folders and symbolic links are left out. With `root` only paths in that
        folder are read, and not through links. URLs at private addresses are refused unless `allow_private_addresses`
        is set. `on_progress(done, total)` is called
        for each document.

        A document of more than `max_bytes` bytes, or of more than `max_chars` characters of text, is not ingested.
        `memory_mb` and `seconds` limit the process that parses a PDF, DOCX or HTML document.

        A single document that cannot be ingested raises DocumentError; in a folder or a list it
        is reported in `skipped`, and the others are ingested.
        """
        began = perf_counter()
        several = isinstance(source, Iterable) and not isinstance(source, str | bytes | bytearray | memoryview)
        sources: builtins.list[object] = checks.check_list(source, "source") if several else [source]
        if several and len(sources) != 1 and (name is not None or title is not None):
            raise InvalidInput("name and title are for one document: ingest them one by one")
        if password is not None and not isinstance(password, str):
            raise InvalidInput("password is not a str")
        options = IngestOptions(
            scope=checks.check_scope(scope), metadata=None if metadata is None else checks.check_metadata(metadata),
            name=None if name is None else checks.check_name(name, "name"),
            title=None if title is None else checks.check_name(title, "title"),
            policy=check_policy(self._engine, policy), include=include, exclude=exclude,
            password=password, recursive=recursive,
            allow_private_addresses=allow_private_addresses,
            root=None if root is None else checks.check_path(root, "root"),
            limits=Limits(
                max_bytes=checks.check_count(max_bytes, "max_bytes"),
                max_chars=checks.check_count(max_chars, "max_chars"),
                memory_mb=checks.check_count(memory_mb, "memory_mb"),
                seconds=checks.check_finite(seconds, "seconds", minimum=0.001),
            ),
        )  # fmt: skip
        ingest = Ingest(self._engine, self._base, options, alone=not several)
        documents = ingest.run(sources, on_progress)
        return Ingested(documents=tuple(documents), skipped=tuple(ingest.skipped), seconds=perf_counter() - began)

    def search(self, /, query: str, limit: int = 5, **options: Unpack[RecallOptions]) -> Hits:
        """Return the chunks that answer `query`, best first; options are those of `recall`, `where` among them.

        Each hit's `source` has path and lines; its metadata has that of the document, its id as `document`, and
        `title`, `headings`, `page` (and `last_page`) and `chars` (the position of the chunk in the text).
        """
        hits = self._recall(None, CHUNK_KIND, query, limit, options)
        sources = {(hit.scope, hit.source.id) for hit in hits if hit.source is not None}
        with self._engine.store.read() as reader:
            rows = {
                (scope, source): reader.documents.find(checks.join_scopes(self._base, scope) or "/", source)
                for scope, source in sources
            }
        for place, hit in enumerate(hits):
            row = None if hit.source is None else rows[hit.scope, hit.source.id]
            if row is not None:
                hits[place] = structs.replace(hit, metadata={**hit.metadata, "document": row.public_id})
        return hits

    def context(
        self, /, query: str, budget_tokens: int = 2000, *, limit: int = _CONTEXT_HITS, **options: Unpack[RecallOptions]
    ) -> str:
        """Return passages that answer `query`, as Markdown for a prompt, within a budget of the embedder's tokens.

        Each passage has a heading with title, headings, and path:lines or page, and is quoted line by line. Adjacent
        chunks form one passage, without their overlap. "" if nothing is found or nothing fits.
        """
        budget = checks.check_count(budget_tokens, "budget_tokens")
        return compose(self.search(query, limit, **options), budget, self._token_counter())

    def list(self, *, scope: str | None = None, limit: int | None = None) -> builtins.list[Document]:
        """Return the documents of a scope and of those below it, in the order of their sources."""
        within = checks.join_scopes(self._base, scope) or "/"
        count = None if limit is None else checks.check_count(limit, "limit")
        with self._engine.store.read() as reader:
            return [self._document(row) for row in reader.documents.listed(within, limit=count)]

    def get(self, id: str, *, scope: str = "/") -> Document:
        """Return the document with this id, or with this source in a scope; NotFound if there is none here."""
        return self._document(self._row(id, scope))

    def delete(self, id: str, *, scope: str = "/") -> DeletedDocument:
        """Delete the document with this id, or with this source in a scope: with its chunks and their links."""
        row = self._row(id, scope)
        chunks = delete_documents(self._engine, row.scope, [row.source])
        return DeletedDocument(id=row.public_id, source=row.source, chunks=chunks)

    def _row(self, id: str, scope: str) -> DocumentRow:
        if not isinstance(id, str):
            raise InvalidInput(f"id is {shown(id)}: give the id of a document, or its source")
        within = checks.join_scopes(self._base, checks.check_scope(scope)) or "/"
        checks.encodable(id, "id")
        with self._engine.store.read() as reader:
            row = reader.documents.with_id(id, self._base) or reader.documents.find(within, id)
            if row is None:
                row = reader.documents.find(within, Path(os.path.realpath(os.path.expanduser(id))).as_posix())
        if row is None:
            raise NotFound(f"no document has the id or the source {shown(id, 200)}: list shows them")
        return row

    def _document(self, row: DocumentRow) -> Document:
        metadata = stored_metadata(row.metadata)
        return self._to_public(Document, row, id=row.public_id, content_hash=row.content_hash.hex(), metadata=metadata)


class AsyncKnowledge(AsyncService[Knowledge]):
    """`Knowledge`, awaited."""

    ingest = awaited(Knowledge.ingest)
    search = awaited(Knowledge.search)
    context = awaited(Knowledge.context)
    list = awaited(Knowledge.list)
    get = awaited(Knowledge.get)
    delete = awaited(Knowledge.delete)
