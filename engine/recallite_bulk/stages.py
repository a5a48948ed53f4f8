"""The stages of bulk work, loaded once and called with batches: embed, write, recall.

A batch that comes twice is stored once. The ids that a store has take 16 bytes each: every worker gets them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence, Set
from datetime import datetime
from typing import Any, Self, Unpack

import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from recallite.embedding.handle import EmbedderHandle, Identity
from recallite.embedding.protocol import Embedder
from recallite.errors import EmbedderError, InvalidInput, InvalidItem, RecalliteError
from recallite.memory import Memory
from recallite.model.checks import check_time, join_scopes, now_us
from recallite.model.environment import named_embedder
from recallite.model.filters import Filter
from recallite.model.records import Hits, NewRecord
from recallite.model.reports import Remembered
from recallite.model.settings import Settings, WritePolicy
from recallite.plugin import engine_of
from recallite.recall.pipeline import recall_queries
from recallite.recall.request import RecallOptions, build_request, recall_arguments
from recallite.remember.embed import EmbeddedText, embed_rows
from recallite.remember.prepare import as_new_record, content_id, prepare
from recallite.remember.write import is_skipped
from recallite.store.columns import Row
from recallite.store.opening import shown_path, store_exists
from recallite.system.numerics import kernel_errors
from recallite_bulk.arrow import Table, hits_table, new_records, new_records_table, questions

_BYTES = 16
_ROWS = 10_000


class KnownIds:
    """A set of ids by their hashes; two ids of a billion share one with a chance of about 1e-21."""

    def __init__(self, hashes: NDArray[np.bytes_]) -> None:
        self._hashes = np.sort(hashes)

    @classmethod
    def of(cls, memory: Memory) -> KnownIds:
        """The ids of all memories that a handle sees, superseded ones too, as of now."""
        filter = Filter(include_superseded=True).within(memory.scope)
        parts = [np.empty(0, f"S{_BYTES}")]
        with engine_of(memory).read() as reader:
            row_ids = reader.records.matching_ids(filter, now_us())
            for begin in range(0, len(row_ids), _ROWS):
                rows = reader.records.fetch(row_ids[begin : begin + _ROWS])
                parts.append(_hashed([row.public_id for row in rows.values()]))
        return cls(np.concatenate(parts))

    def __len__(self) -> int:
        return len(self._hashes)

    def __call__(self, ids: list[str]) -> set[str]:
        """Return those of these ids that are known."""
        if not ids or not len(self._hashes):
            return set()
        hashes = _hashed(ids)
        nearest = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        return {name for name, known in zip(ids, self._hashes[nearest] == hashes, strict=True) if known}


def _hashed(ids: list[str]) -> NDArray[np.bytes_]:
    digests = [hashlib.blake2b(name.encode(), digest_size=_BYTES).digest() for name in ids]
    return np.array(digests, f"S{_BYTES}")


class Embed:
    """Embeds batches of records for a store with these settings; loads the model once.

    - embedder: as for `Memory`; None takes that of the settings
    - policy: the write policy; None takes that of the settings. What it redacts is gone from what is returned
    - base: the scope of the handle by which the records will be written
    - known: returns those of some ids that are stored already; their records are left out
    """

    def __init__(
        self,
        *,
        settings: Settings | None = None,
        embedder: Embedder | str | None = None,
        policy: WritePolicy | None = None,
        base: str = "/",
        known: Callable[[list[str]], Set[str]] | None = None,
    ) -> None:
        self._known = known
        self._settings = settings or Settings()
        self._policy = policy or self._settings.write_policy
        self._base = join_scopes("/", base) or "/"
        spec: object = self._settings.embedder_spec if embedder is None else embedder
        if isinstance(spec, str):
            spec = named_embedder(spec)
        self._embedder = EmbedderHandle(spec, query_cache_size=0, token_codes=self._settings.token_codes)

    def __call__(self, batch: object) -> Table:
        """New records as Arrow data, with ids and vectors: what `recallite_bulk.arrow.new_records_table` gives.

        `batch` is what `recallite_bulk.arrow.new_records` takes. Raises InvalidInput, with the number of the row.
        """
        try:
            return new_records_table(self.records(new_records(batch)))
        except InvalidItem as refused:
            raise InvalidInput(f"row {refused.position + 1}: {refused.error}") from refused.error

    def records(self, items: Iterable[object]) -> list[NewRecord]:
        """Items as `remember_many` takes them, as records with an id and an `EmbeddedText` for a vector.

        An item without an id gets its `content_id`. A text that the policy skips as junk stays as it is, and one that
        the embedder fails for has no vector: the store will leave it out, or embed it. Raises InvalidItem.
        """
        records, rows = [], []
        limit = self._settings.max_text_chars
        for position, item in enumerate(items):
            try:
                record = _plain(as_new_record(item))
                vector = None if isinstance(record.vector, EmbeddedText) else record.vector
                # The row that the store will make, for the text that it will embed.
                unembedded = structs.replace(record, vector=vector)
                rows.append(prepare(unembedded, base=self._base, max_text_chars=limit, policy=self._policy))
            except RecalliteError as reason:
                raise InvalidItem(position, 0, reason) from reason
            records.append(record)
        records = [self._named(record, row) for record, row in zip(records, rows, strict=True)]
        if self._known is not None:
            known = self._known([record.id for record in records if record.id is not None])
            fresh = [i for i, record in enumerate(records) if record.id not in known]
            records, rows = [records[i] for i in fresh], [rows[i] for i in fresh]
        to_embed = [row for record, row in zip(records, rows, strict=True) if record.vector is None and row.indexed]
        identity = self._embed([row for row in to_embed if row.named or not is_skipped(row, self._policy)])
        return [_embedded(record, row, identity) for record, row in zip(records, rows, strict=True)]

    def _embed(self, rows: list[Row]) -> Identity | None:
        if not rows or not self._embedder.enabled:
            return None
        try:
            identity = self._embedder.identity()
        except EmbedderError:
            return None
        embed_rows(self._embedder, rows, [None] * len(rows), identity)
        return identity

    def _named(self, record: NewRecord, row: Row) -> NewRecord:
        """The record as it may leave this process: with an id, unless it is junk, and without what is redacted."""
        if self._policy.redact is not None:
            metadata = None if row.metadata is None else msgspec.json.decode(row.metadata)
            record = structs.replace(record, text=row.text, context=row.context, metadata=metadata)
        if record.id is not None or is_skipped(row, self._policy):
            return record
        return structs.replace(record, id=content_id(record, self._base))


def _embedded(record: NewRecord, row: Row, identity: Identity | None) -> NewRecord:
    if identity is None or record.vector is not None or not (row.vectors or row.refused is not None):
        return record
    return structs.replace(record, vector=EmbeddedText(identity, row.vectors, row.codes, row.refused))


def _plain(record: NewRecord) -> NewRecord:
    """The record without what a subclass has besides."""
    if type(record) is NewRecord:
        return record
    life = getattr(record, "expires_after", None)
    fields = {name: getattr(record, name) for name in NewRecord.__struct_fields__}
    return NewRecord(**fields | ({"expires_at": life} if life else {}))


def known_ids(memory: Memory, ids: Iterable[str]) -> set[str]:
    """Return those of these ids that are memories which this handle sees."""
    names = list(ids)
    engine = engine_of(memory)
    with engine.read() as reader:
        return {*reader.records.find_ids(names, engine.scope)} if names else set()


def write(records: Sequence[NewRecord], memory: Memory, *, policy: WritePolicy | None = None) -> Remembered:
    """Store records in one transaction, in order; those whose id is stored already are passed over.

    Several processes may do this with the same records: each is stored once. Raises what `Memory.remember_many` raises.
    """
    first: dict[str, int] = {}
    for i, record in enumerate(records):
        if record.id is not None:
            first.setdefault(record.id, i)
    fresh = [i for i, record in enumerate(records) if record.id is None or first[record.id] == i]
    while True:
        known = known_ids(memory, [id for i in fresh if (id := records[i].id) is not None])
        fresh = [i for i in fresh if records[i].id not in known]
        if not fresh:
            return Remembered(known=len(records))
        try:
            ids = memory.remember_many([records[i] for i in fresh], batch_size=len(fresh), policy=policy)
        except InvalidItem as refused:
            # Another process has stored one of them meanwhile, and this batch is rolled back: try without that one.
            if refused.error.reason == "exists" and known_ids(memory, [id for i in fresh if (id := records[i].id)]):
                continue
            raise InvalidItem(fresh[refused.position], 0, refused.error) from refused.error
        stored = sum(map(bool, ids))
        return Remembered(records=stored, known=len(records) - len(fresh), junk=len(fresh) - stored)


class OpenedStore:
    """The base of what opens the store at `path` once, for one batch after another, and writes or reads in `base`."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        settings: Settings | None,
        embedder: Embedder | str | None,
        base: str,
        key: str | None = None,
    ) -> None:
        self._opened = Memory(path, embedder=embedder, settings=settings, key=key)
        self.memory = self._opened if base == "/" else self._opened.scoped(base)

    def close(self) -> None:
        """Close the store."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Write(OpenedStore):
    """Stores batches in the store at `path`, which it opens once. Of a SQLite file let one process write at a time."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        settings: Settings | None = None,
        embedder: Embedder | str | None = None,
        policy: WritePolicy | None = None,
        base: str = "/",
        key: str | None = None,
    ) -> None:
        super().__init__(path, settings, embedder, base, key)
        self._policy = policy

    def __call__(self, batch: object) -> Table:
        """Store Arrow data as `Embed` gives it; return a row that counts what was done."""
        import pyarrow as pa

        done = write([*new_records(batch)], self.memory, policy=self._policy)
        return pa.table({name: [value] for name, value in done.to_dict().items()})


def recall_texts(
    memory: Memory,
    queries: Sequence[str],
    *,
    vectors: Sequence[object] | None = None,
    limit: int | None = None,
    now: datetime | str | None = None,
    **options: Unpack[RecallOptions],
) -> list[Hits]:
    """`Memory.recall_many` as of the moment `now`, from which ages are measured; hits count as accessed on request."""
    arguments = recall_arguments({"purpose": "inspect", **options})
    request = build_request(memory.scope, memory.settings.profile, limit=limit, **arguments)
    moment = check_time(now, "now")
    if moment is not None:
        request = structs.replace(request, now=moment)
    with kernel_errors():
        answers = recall_queries(engine_of(memory).core, list(queries), vectors, request)
    if memory.scope != "/":
        for hits in answers:
            hits[:] = map(memory._seen, hits)
    return answers


def recall(
    batch: object,
    store: Memory,
    *,
    limit: int | None = None,
    now: datetime | str | None = None,
    **options: Unpack[RecallOptions],
) -> Table:
    """The hits of a batch of questions as a table of `recallite_bulk.arrow.hit_schema`.

    `batch` is Arrow data with the column `query`, and if there are any the columns `vector`, the query's own, and
    `question`, an int or text that names the question in the hits; without it they have its place in the batch. Other
    columns are passed over. Options are those of `Memory.recall`; the hits do not count as accessed. Two calls with the
    same `now` give the same hits, wherever they run.
    """
    names, queries, vectors = questions(batch)
    if not queries:
        return hits_table([], questions=names)
    return hits_table(recall_texts(store, queries, vectors=vectors, limit=limit, now=now, **options), questions=names)


class Recall(OpenedStore):
    """Answers batches of questions from the store at `path`; loads model and index once.

    The arguments are those of `Memory` and `recall`. The store may be a copy that nobody writes to. Raises InvalidInput
    if there is no such file: a mistyped path is no empty store.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        settings: Settings | None = None,
        embedder: Embedder | str | None = None,
        base: str = "/",
        key: str | None = None,
        limit: int | None = None,
        now: datetime | str | None = None,
        options: RecallOptions | None = None,
    ) -> None:
        if path is not None and not store_exists(path):
            raise InvalidInput(f"there is no store at {shown_path(path)}")
        super().__init__(path, settings, embedder, base, key)
        # Kernels that are not loaded yet would be stood in for, with the same hits to the last bits but a few.
        self._opened.store.warmup()
        self._options: dict[str, Any] = {"limit": limit, "now": now, **(options or {})}

    def __call__(self, batch: object) -> Table:
        """The hits of a batch of questions: `recall`."""
        return recall(batch, self.memory, **self._options)

    def texts(self, queries: Sequence[str]) -> list[Hits]:
        """The hits of each query."""
        return recall_texts(self.memory, queries, **self._options) if queries else []
