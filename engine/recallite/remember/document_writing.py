"""Writing documents: only chunks that are not stored yet are embedded; one transaction per document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from msgspec import Struct, field, structs

from recallite.embedding.handle import Identity
from recallite.engine import Engine
from recallite.errors import InvalidInput
from recallite.model.checks import check_metadata, check_name, join_scopes, now_us, to_datetime
from recallite.model.filters import CHUNK_KIND
from recallite.model.records import DEFAULT_IMPORTANCE, NewRecord
from recallite.model.settings import WritePolicy
from recallite.remember.embed import embed_rows, identity_for, insert_rows
from recallite.remember.prepare import Arguments, metadata_json, prepare_all, uuid7
from recallite.remember.write import embed_some_pending
from recallite.store.columns import Parts, Row
from recallite.store.sql.services import Chunk, DocumentRow
from recallite.store.transaction import Reader

# How many new chunks are embedded together: an interruption loses at most these, and 64 are no faster. A model over
# HTTP gets as many as it takes per request.
EMBEDDED_TOGETHER = 32
# After this many failed batches in a row the embedder is taken to be down.
_FAILED_WHEN_DOWN = 2


class NewChunk(Struct, kw_only=True):
    """A chunk to store: an exact span of its document, its heading path as context, and its position as metadata."""

    text: str
    context: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


class NewDocument(Struct, kw_only=True):
    """A document to store, replacing the stored document of the same source.

    `content_hash` is the SHA-256 of its bytes, and `chunking` names the way they were cut. `created_at` is the time of
    its chunks in microseconds since 1970 UTC. `caller_metadata` is what a caller gave. If `renamed_from` is
    stored as a source and `source` is not, that document is renamed and keeps its id and chunks.
    """

    scope: str = "/"
    source: str
    title: str | None = None
    media_type: str
    content_hash: bytes
    chunking: str = ""
    size_bytes: int
    mtime_ns: int | None = None
    inode: int | None = None
    read_at: int | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    caller_metadata: dict[str, Any] = field(default_factory=dict)
    problem: str | None = None
    chunks: list[NewChunk]
    created_at: int
    importance: float = DEFAULT_IMPORTANCE
    tags: tuple[str, ...] = ()
    renamed_from: str | None = None


class CachePolicy(Struct, frozen=True):
    """Use of the embedding cache, with at most this many texts; None: no limit."""

    max_entries: int | None = None


class DocumentOutcome(Struct, frozen=True, kw_only=True):
    """The outcome for one document.

    "failed" changed nothing, and `problem` says why. `embeddings_cached` counts chunks with vectors from the cache,
    `pending` those not embedded yet; `embedder_problem` says why the embedder failed.
    """

    source: str
    id: str = ""
    outcome: Literal["created", "updated", "unchanged", "failed"]
    chunks_created: int = 0
    chunks_kept: int = 0
    chunks_deleted: int = 0
    embeddings_computed: int = 0
    embeddings_cached: int = 0
    pending: int = 0
    problem: str | None = None
    embedder_problem: str | None = None


_REDACTED_BEFORE = WritePolicy()


class _Attempts(Struct):
    """Counts failures of the embedder in this stream.

    An embedder that is down is not asked again for every batch, as each attempt may take until its timeout. A refused
    text does not count.
    """

    failed: int = 0
    problem: str | None = None

    @property
    def over(self) -> bool:
        """Whether the embedder is not asked any more."""
        return self.failed >= _FAILED_WHEN_DOWN


class _Pending(Struct):
    """A document being written, and the rows of its chunks that are not stored yet."""

    document: NewDocument
    scope: str
    rows: dict[int, Row] = field(default_factory=dict)
    cached: set[int] = field(default_factory=set)
    problem: str | None = None


def write_documents(
    engine: Engine,
    stream: Iterable[NewDocument],
    *,
    base: str = "/",
    policy: WritePolicy | None = None,
    cache: CachePolicy | None = None,
    embed: bool = True,
) -> Iterator[DocumentOutcome]:
    """Store a stream of documents; yields the outcome of each, in order, once it is committed.

    New chunks of several documents are embedded together. A chunk with the text and context of a stored chunk of the
    document keeps its record, id and vectors. If the embedder fails, or is not used (`embed`), chunks are pending
    and found by keyword. A chunk that cannot be stored (a NUL) fails only its document.
    `policy` (None: the one in the settings) only decides what is redacted.
    """
    batch: list[_Pending] = []
    waiting, attempts = 0, _Attempts(0 if embed else _FAILED_WHEN_DOWN)
    together = max(engine.embedder.batch_size or 0, EMBEDDED_TOGETHER)
    for incoming in stream:
        document = _redacted(incoming, policy or engine.write_policy)
        item = _Pending(document, join_scopes(base, document.scope) or "/")
        _prepare(engine, item)
        batch.append(item)
        waiting += len(item.rows)
        if waiting >= together or len(batch) >= together:
            yield from _write(engine, batch, cache, attempts)
            batch, waiting = [], 0
    yield from _write(engine, batch, cache, attempts)


def delete_documents(engine: Engine, scope: str, sources: Sequence[str]) -> int:
    """Purge the documents with these sources in one scope of the file; returns how many chunks they had.

    Unknown sources are ignored.
    """
    with engine.atomic() as writer:
        documents = [writer.documents.find(scope, source) for source in dict.fromkeys(sources)]
        return writer.documents.delete([row for row in documents if row is not None])


def _write(
    engine: Engine, batch: list[_Pending], cache: CachePolicy | None, attempts: _Attempts
) -> Iterator[DocumentOutcome]:
    identity = _embed(engine, [(item, i) for item in batch for i in item.rows], cache, attempts)
    for item in batch:
        written = None
        while item.problem is None and (written := _commit(engine, item, identity)) is None:
            # Another process has changed the document since it was compared.
            more = [(item, i) for i in _prepare(engine, item) if i in item.rows]
            # If nothing was left to embed, the identity of the vectors made before still holds.
            identity = _embed(engine, more, cache, attempts) or identity
        if written is None:
            yield DocumentOutcome(source=item.document.source, outcome="failed", problem=item.problem)
            continue
        if not attempts.failed:
            rows = item.rows.values()
            embed_some_pending(engine, [row.pending for row in rows], [row.vectors for row in rows])
        yield structs.replace(written, embedder_problem=attempts.problem)


def _redacted(document: NewDocument, policy: WritePolicy) -> NewDocument:
    """The document, redacted as the policy says: chunks are compared as they are stored."""
    if policy.redact is None:
        return document
    chunks = [
        structs.replace(
            chunk, text=policy.clean(chunk.text), metadata=policy.clean_json(chunk.metadata),
            context=None if chunk.context is None else policy.clean(chunk.context),
        )
        for chunk in document.chunks
    ]  # fmt: skip
    return structs.replace(document, chunks=chunks, metadata=policy.clean_json(document.metadata),
        caller_metadata=policy.clean_json(document.caller_metadata),
        title=None if document.title is None else policy.clean(document.title),
    )  # fmt: skip


def _prepare(engine: Engine, item: _Pending) -> list[int]:
    """Make the rows of the chunks that have neither a row nor an equal stored chunk; returns their indices."""
    document = item.document
    with engine.store.read() as reader:
        _, new_indices, _ = _compare(_stored(reader, item), document.chunks)
    indices = [i for i in new_indices if i not in item.rows]
    try:
        check_name(document.source, "source")
        check_metadata(document.metadata)
        created_at = to_datetime(document.created_at)
        new = [
            NewRecord(
                text=document.chunks[i].text, context=document.chunks[i].context, kind=CHUNK_KIND,
                source=document.source, position=i, importance=document.importance, tags=document.tags,
                created_at=created_at,
            )
            for i in indices
        ]  # fmt: skip
        rows = prepare_all(
            Arguments(new), base=item.scope, max_text_chars=engine.settings.max_text_chars, policy=_REDACTED_BEFORE
        )
        for i, row in zip(indices, rows, strict=True):
            # A chunk adds only its position and headings to the metadata of its document, which were checked.
            row.metadata = metadata_json(document.chunks[i].metadata)
            item.rows[i] = row
    except InvalidInput as reason:
        item.rows, item.problem = {}, str(reason)
    return indices


def _embed(
    engine: Engine, chunks: Sequence[tuple[_Pending, int]], cache: CachePolicy | None, attempts: _Attempts
) -> Identity | None:
    """Fill the vectors of rows, from the cache where it has them; returns the identity of their embedder."""
    if attempts.over:
        for item, i in chunks:
            item.rows[i].pending = engine.embedder.enabled
    if not chunks or attempts.over:
        return None
    identity = identity_for(engine, None)
    left = list(chunks)
    embedder = None
    if cache is not None and identity is not None and engine.embedder.enabled:
        with engine.atomic() as writer:
            embedder = writer.vectors.register_embedder(**identity._asdict())
            known = writer.embedding_cache.look_up(embedder, [item.rows[i].content_hash for item, i in chunks])
            writer.embedding_cache.touch(embedder, known, cache.max_entries)
        left = []
        for item, i in chunks:
            row = item.rows[i]
            if row.content_hash in known:
                row.vectors, row.codes, *_ = known[row.content_hash]
                item.cached.add(i)
            else:
                left.append((item, i))
    together = engine.embedder.batch_size or EMBEDDED_TOGETHER
    for begin in range(0, len(left), together):
        rows = [item.rows[i] for item, i in left[begin : begin + together]]
        if attempts.over:
            for row in rows:
                row.pending = True
            continue
        problem = embed_rows(engine.embedder, rows, [None] * len(rows), identity)
        is_down = problem is not None and all(row.pending for row in rows)
        attempts.failed = attempts.failed + 1 if is_down else 0
        attempts.problem = problem or attempts.problem
        made = {row.content_hash: Parts(row.vectors, row.codes) for row in rows if row.vectors}
        if cache is not None and embedder is not None and made:
            # Before the document is complete: an interrupted index run loses none of these.
            with engine.atomic() as writer:
                writer.embedding_cache.keep(embedder, made, cache.max_entries)
    return identity


def _commit(engine: Engine, item: _Pending, identity: Identity | None) -> DocumentOutcome | None:
    """Replace the stored document of this source; None where it has changed since it was compared."""
    document = item.document
    with engine.atomic() as writer:
        stored = _stored(writer, item)
        kept, new, gone = _compare(stored, document.chunks)
        if not item.rows.keys() >= set(new):
            return None
        if stored is not None and stored[0].source != document.source:
            writer.documents.rename_source(stored[0], document.source)
        writer.records.delete([chunk.id for chunk in gone])
        public_id = "doc_" + uuid7() if stored is None else stored[0].public_id
        now = now_us()
        same = ("title", "media_type", "content_hash", "chunking", "size_bytes", "mtime_ns", "inode", "problem")
        columns = {name: getattr(document, name) for name in same} | {
            "read_at": now if document.read_at is None else document.read_at,
            "metadata": metadata_json(document.metadata),
            "caller_metadata": metadata_json(document.caller_metadata),
            "chunks": len(document.chunks),
            "updated_at": now,
        }
        writer.documents.put(item.scope, document.source, public_id, columns)
        writer.documents.move_chunks(
            [
                (chunk, i, metadata_json(document.chunks[i].metadata), document.created_at, document.tags)
                for i, chunk in kept.items()
            ]
        )
        rows = [item.rows[i] for i in new]
        insert_rows(writer, rows, identity)
    changed = bool(new or gone)
    return DocumentOutcome(
        source=document.source,
        id=public_id,
        outcome="created" if stored is None else "updated" if changed else "unchanged",
        chunks_created=len(rows),
        chunks_kept=len(kept),
        chunks_deleted=len(gone),
        embeddings_cached=len(item.cached.intersection(new)),
        embeddings_computed=sum(bool(item.rows[i].vectors) for i in new if i not in item.cached),
        pending=sum(row.pending for row in rows) + sum(chunk.embedding_state == "pending" for chunk in kept.values()),
    )


def _stored(reader: Reader, item: _Pending) -> tuple[DocumentRow, list[Chunk]] | None:
    """The stored document of this source, or the one that it was renamed from."""
    document = item.document
    row = reader.documents.find(item.scope, document.source)
    if row is None and document.renamed_from is not None:
        row = reader.documents.find(item.scope, document.renamed_from)
    return None if row is None else (row, reader.documents.chunks_of(row.source_id))


def _compare(
    stored: tuple[DocumentRow, list[Chunk]] | None, chunks: Sequence[NewChunk]
) -> tuple[dict[int, Chunk], list[int], list[Chunk]]:
    """Return stored chunks by the index of their equal new chunk, the indices of others, and the other stored ones.

    Equal ones have the same text and context, and are matched in order.
    """
    by_text: dict[tuple[str, str | None], list[Chunk]] = {}
    for old in [] if stored is None else reversed(stored[1]):
        by_text.setdefault((old.text, old.context), []).append(old)
    unchanged, new = {}, []
    for i, chunk in enumerate(chunks):
        same = by_text.get((chunk.text, chunk.context or None))
        if same:
            unchanged[i] = same.pop()
        else:
            new.append(i)
    return unchanged, new, [old for left in by_text.values() for old in left]
