"""The knowledge base: ingest, search, context, list, get, delete.

A context is Markdown for a prompt: passages quoted with their sources, within a token budget.
"""

from __future__ import annotations

import builtins
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Unpack

from msgspec import structs

from recallite.documents.document import DeletedDocument, Document, Ingested, IngestOptions, Limits, stored_metadata
from recallite.errors import InvalidInput, NotFound
from recallite.model import checks
from recallite.model.filters import CHUNK_KIND
from recallite.model.records import Hit, Hits
from recallite.model.settings import WritePolicy
from recallite.plugin import Service
from recallite.recall.request import RecallOptions
from recallite.remember.document_writing import delete_documents
from recallite.remember.write import check_policy
from recallite.store.sql.services import DocumentRow
from recallite.store.store import Progress
from recallite.system import plugins
from recallite.system.asynchrony import AsyncService, awaited
from recallite.system.messages import shown
from recallite.system.telemetry import traced
from recallite.text.quotes import NOTICE, visible

_HEAD = "# Knowledge\n\n" + NOTICE.replace("memory", "documents") + "\n"
_NARROW = 0.9
_SHORT_WORD = 2
_WINDOW_CHARS, _SOON_CHARS = 400, 100
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+|[。！？]")


class _Passage(NamedTuple):
    """Adjacent chunks of one document as one text."""

    first: Hit
    last: Hit
    text: str


def compose(hits: Hits, budget_tokens: int, count_tokens: Callable[[list[str]], list[int]]) -> str:
    """Return the passages of as many hits as fit, best first; "" if none fits.

    Chunks of a document that overlap or follow each other form one passage, in document order, ranked by its best hit.
    If the best hit alone exceeds the budget, the part with most of the query's words is shown.
    """
    if not hits:
        return ""
    head, *costs = count_tokens([_HEAD, *(_block(_Passage(hit, hit, hit.text)) for hit in hits)])
    fitting, left = [], budget_tokens - head
    if costs[0] <= left:
        for hit, cost in zip(hits, costs, strict=True):
            if cost <= left:
                fitting.append(hit)
                left -= cost
    # The whole may have more tokens than its parts together: the last passages are dropped until it fits.
    while fitting:
        by_document: dict[tuple[str, str], list[Hit]] = {}
        for hit in fitting:
            by_document.setdefault((hit.scope, "" if hit.source is None else hit.source.id), []).append(hit)
        passages = (passage for chunks in by_document.values() for passage in _passages(chunks))
        text = _HEAD + "".join(map(_block, passages))
        if count_tokens([text])[0] <= budget_tokens:
            return text
        fitting.pop()
    return _shortened(hits[0], hits.query, budget_tokens, count_tokens)


def _shortened(hit: Hit, query: str, budget_tokens: int, count_tokens: Callable[[list[str]], list[int]]) -> str:
    words = {word for word in re.findall(r"\w+", query.casefold()) if len(word) > _SHORT_WORD}
    begins = [0, *(match.end() for match in _SENTENCE_END.finditer(hit.text))]

    def matches(begin: int) -> tuple[int, int]:
        """Return how many of the words follow, and how many follow soon."""
        part = hit.text[begin : begin + _WINDOW_CHARS].casefold()
        return sum(word in part for word in words), sum(word in part[:_SOON_CHARS] for word in words)

    begin = max(begins, key=matches)
    length = len(hit.text) - begin
    while length > 1:
        part = ("… " if begin else "") + hit.text[begin : begin + length].rstrip()
        part += " …" if begin + length < len(hit.text) else ""
        text = _HEAD + _block(_Passage(hit, hit, part))
        if count_tokens([text])[0] <= budget_tokens:
            return text
        length = int(length * _NARROW)
    return ""


def _passages(hits: Sequence[Hit]) -> list[_Passage]:
    """Return chunks of one document in its order, adjacent ones joined."""
    passages: list[_Passage] = []
    for hit in sorted(hits, key=_span):
        before = passages[-1] if passages else None
        if before is None or not _follows(before.last, hit):
            passages.append(_Passage(hit, hit, hit.text))
            continue
        begin, end = _span(hit)
        # The headings of a table that it begins in are said in the chunk, and stand above it in the passage.
        text = hit.text[max(0, len(hit.text) - (end - begin)) :]
        repeated = _span(before.last)[1] - begin
        joined = text[repeated:] if repeated > 0 else f"\n\n{text}"
        passages[-1] = _Passage(before.first, hit, before.text + joined)
    return passages


def _follows(before: Hit, after: Hit) -> bool:
    """Whether only white space is between two chunks of a document."""
    if _span(before)[1] > _span(after)[0] >= 0:
        return True
    first, second = (hit.source.position if hit.source is not None else None for hit in (before, after))
    return first is not None and second == first + 1


def _block(passage: _Passage) -> str:
    """Return a heading with the source of the passage, and the passage, every line of it quoted.

    A quoted line can neither end the quotation nor be read as a heading or an instruction; invisible characters are
    escaped.
    """
    metadata = passage.first.metadata
    title = [str(metadata["title"])] if "title" in metadata else []
    heading = " > ".join(dict.fromkeys([*title, *map(str, metadata.get("headings", ()))]))
    lines = [_one_line(line) for line in passage.text.expandtabs(4).splitlines()]
    quoted = "\n".join(f"> {line}".rstrip() for line in lines)
    return f"\n## {_one_line(f'{heading} ({_location(passage)})').strip()}\n\n{quoted}\n"


def _location(passage: _Passage) -> str:
    source = passage.first.source
    name = "" if source is None else source.path or source.id
    if source is not None and source.lines is not None:
        last = passage.last.source
        end = source.lines[1] if last is None or last.lines is None else last.lines[1]
        return f"{name}:{source.lines[0]}-{end}"
    ends = passage.last.metadata
    first, last_page = passage.first.metadata.get("page"), ends.get("last_page", ends.get("page"))
    if first is None:
        return name
    return f"{name}, page {first}" if last_page in (None, first) else f"{name}, pages {first}-{last_page}"


def _one_line(text: str) -> str:
    """Return a text on one line; invisible characters and direction marks are escaped."""
    return visible(" ".join(text.splitlines()))


def _span(hit: Hit) -> tuple[int, int]:
    """Return the begin and end of a chunk in its document; -1 if they are unknown."""
    chars = hit.metadata.get("chars")
    return (chars[0], chars[1]) if isinstance(chars, list) and len(chars) == 2 else (-1, -1)


# The service.

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
        ingest = plugins.load("functions", "ingest")(self._engine, self._base, options, alone=not several)
        documents = ingest.run(sources, on_progress)
        return Ingested(documents=tuple(documents), skipped=tuple(ingest.skipped), seconds=perf_counter() - began)

    def search(self, /, query: str, limit: int = 5, **options: Unpack[RecallOptions]) -> Hits:
        """Return the chunks that answer `query`, best first; options are those of `recall`, `where` among them.

        Each hit's `source` has path and lines; its metadata has that of the document, its id as `document`, and
        `title`, `headings` (above what matches), `page` (and `last_page`) and `chars` (its position in the text).
        """
        hits = self._recall(None, CHUNK_KIND, query, limit, options)
        sources = {(hit.scope, hit.source.id) for hit in hits if hit.source is not None}
        with self._engine.store.read() as reader:
            rows = {}
            for scope, source in sources:
                within = scope[1:] if checks.is_shared(scope) else checks.join_scopes(self._base, scope) or "/"
                rows[scope, source] = reader.documents.find(within, source)
        for i, hit in enumerate(hits):
            row = None if hit.source is None else rows[hit.scope, hit.source.id]
            metadata = {**hit.metadata, **({} if row is None else {"document": row.public_id})}
            if "\n#" in hit.text and (headings := metadata.get("headings")):
                cited = plugins.load("functions", "cited_headings")(hit.text, headings, hits.query)
                metadata["headings"] = [*cited]
            hits[i] = structs.replace(hit, metadata=metadata)
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
        """Return the documents of a scope and the scopes below it, ordered by source."""
        within = checks.join_scopes(self._base, scope) or "/"
        count = None if limit is None else checks.check_count(limit, "limit")
        with self._engine.store.read() as reader:
            return [self._document(row) for row in reader.documents.in_scope(within, limit=count)]

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
