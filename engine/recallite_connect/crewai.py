"""CrewAI: a `StorageBackend` for its unified memory, and the embedder of a Memory for it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from recallite.errors import InvalidInput, InvalidItem, NotFound
from recallite.memory import Memory
from recallite.model.authority import speaking_as
from recallite.model.checks import check_scope
from recallite.model.filters import Filter, FilterFields, metadata_field
from recallite.model.records import Hit, Record
from recallite.recall.request import MAX_LIMIT
from recallite_connect.common import RANKED_ALONE, OnMemory, as_given, blank_as_dash, needed, threaded
from recallite_connect.importers.reading import cleaned, cleaned_json

with needed("crewai"):
    from crewai.memory.storage.backend import EmbeddingDimensionMismatchError
    from crewai.memory.types import MemoryRecord, ScopeInfo

if TYPE_CHECKING:
    from recallite.embedding.protocol import Embedder

__all__ = ["RecalliteStorage"]

# The cosine alone: CrewAI weighs age and importance itself.
_NEAREST = {
    **RANKED_ALONE, "neighbor_boost": 0, "half_life_days": 0, "importance_weight": 0, "rerank_weight": 0,
    "learned_ranking": False,
}  # fmt: skip
# What a record has that no field of ours is for, beside its metadata.
_BESIDE = "_crewai"
_PLAIN_KEY = re.compile(r"[^\"\0\ud800-\udfff]*")


class RecalliteStorage(OnMemory):
    """A `StorageBackend` of CrewAI's memory: its records are memories of a Memory, all below `scope`.

    A record's id, content, scope, categories, importance, metadata and source are a memory's id, text, scope below
    `scope`, tags, importance, metadata and source. Give `embed` to CrewAI as its embedder; or, for one of CrewAI's own,
    open the storage on a path with `embedder="none"`: then the store takes vectors of the dimension of the first, until
    `reset` leaves none.

    Nothing else should be in `scope`: `reset` forgets all that is there.
    """

    def __init__(
        self,
        memory: Memory | str | os.PathLike[str],
        *,
        scope: str = "/crewai",
        embedder: Embedder | str | None = None,
    ) -> None:
        within = check_scope(scope)
        super().__init__(memory, embedder=embedder)
        self._records = self.memory.scoped(within)
        self._policy = as_given(self.memory)

    def __deepcopy__(self, memo: dict[int, Any]) -> RecalliteStorage:
        """Itself: the copy of a crew has the same memory."""
        return self

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of texts, by the embedder of the Memory: `crewai.Memory(storage=..., embedder=storage.embed)`."""
        vectors: list[list[float]] = self.memory.embed(texts).tolist()
        return vectors

    # ── write ──────────────────────────────────────────────────────────────────────────────────────────────────

    def save(self, records: list[MemoryRecord]) -> None:
        """Store records, all or none; one with the id of another takes its place.

        Raises TypeError, as CrewAI's own storage, if metadata is not JSON.
        """
        items = [_item(record) for record in records]
        try:
            with speaking_as("agent"):
                self._records.remember_many(
                    items, batch_size=max(1, len(items)), policy=self._policy, on_existing="replace"
                )
        except InvalidItem as fault:
            vectors = [item["vector"] for item in items if item["vector"] is not None]
            if fault.error.reason == "vector" and (mismatch := self._mismatch(vectors)):
                raise mismatch from fault
            json.dumps([record.metadata for record in records])
            raise

    def update(self, record: MemoryRecord) -> None:
        """Put a record in the place of the one with its id. Without a vector it keeps that of the same text."""
        if not _direction(record.embedding):
            old = self.get_record(record.id)
            if old is not None and old.content == record.content:
                record = record.model_copy(update={"embedding": old.embedding})
        self.save([record])

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Forget the records that meet every condition given, all if none is; returns how many."""
        fields = _fields(scope_prefix, categories, _where(metadata_filter, older_than))
        rest = _not_in_where(metadata_filter)
        if record_ids is None and not rest:
            return self._records.forget(**fields).records
        with self.memory.transaction():
            records = [record for record in self._records.list(**fields, limit=None) if _has(record, rest)]
            named = None if record_ids is None else {*record_ids}
            ids = [record.id for record in records if named is None or record.id in named]
            return self._records.forget(ids).records if ids else 0

    def reset(self, scope_prefix: str | None = None) -> None:
        """Forget everything in a scope."""
        self._records.forget(scope=_scope(scope_prefix))

    def touch_records(self, record_ids: list[str]) -> None:
        """Note that records were recalled now."""
        now = _naive(datetime.now(UTC)).isoformat()
        with self.memory.transaction():
            for record in self._records.get(record_ids).values():
                beside = {**record.metadata.get(_BESIDE, {}), "last_accessed": now}
                self._records.update(record.id, metadata={**record.metadata, _BESIDE: beside})

    # ── read ───────────────────────────────────────────────────────────────────────────────────────────────────

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """The records nearest to a vector, each with its cosine, 0 where it is negative; none for a vector of zeros.

        At most 10,000 of them.
        """
        if limit <= 0 or not _direction(query_embedding):
            return []
        fields = _fields(scope_prefix, categories, _where(metadata_filter))
        if rest := _not_in_where(metadata_filter):
            passed = [record.id for record in self._records.list(**fields, limit=None) if _has(record, rest)]
            fields = _fields(scope_prefix, None, {"id": {"in": passed}})
        try:
            hits = self._records.recall(
                "", vector=query_embedding, limit=min(limit, MAX_LIMIT), mode="vector", profile=_NEAREST,
                filter=Filter(**fields), purpose="inspect",
            )  # fmt: skip
        except InvalidInput as fault:
            if fault.reason != "vector":
                raise
            if not self._records.count():
                return []
            if mismatch := self._mismatch([query_embedding]):
                raise mismatch from fault
            raise
        scored = [(hit, min(max(hit.signals["cosine"], 0.0), 1.0)) for hit in hits]
        return [(_record(hit), score) for hit, score in scored if score >= min_score]

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """The record with this id, with its vector."""
        try:
            record = self._records.get(record_id)
        except NotFound:
            return None
        vectors = self._records.vectors([record_id])
        return _record(record, vectors[record_id][0].tolist() if record_id in vectors else None)

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """The records of a scope and below it, the latest `created_at` first."""
        if limit <= 0 or offset < 0:
            return []
        records = self._records.list(scope=_scope(scope_prefix), order="created", limit=limit, offset=offset)
        return [*map(_record, records)]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Describe a scope and those below it."""
        path = _scope(scope)
        count = self._records.count(scope=path)
        ends = [
            _naive(record.created_at)
            for offset in (0, count - 1)
            for record in self._records.list(scope=path, order="created", limit=1, offset=max(offset, 0))
        ]
        return ScopeInfo(
            path=path, record_count=count, categories=[*self.list_categories(path)],
            newest_record=ends[0] if ends else None, oldest_record=ends[-1] if ends else None,
            child_scopes=self.list_scopes(path),
        )  # fmt: skip

    def list_scopes(self, parent: str = "/") -> list[str]:
        """The scopes one level below another that have records in them or below."""
        path = _scope(parent)
        return [entry.scope for entry in self._records.scopes(path, depth=1) if entry.scope != path]

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """The categories of a scope and below it, each with how many records have it."""
        return {entry.tag: entry.memories for entry in self._records.tags(_scope(scope_prefix))}

    def count(self, scope_prefix: str | None = None) -> int:
        """Count the records of a scope and those below it."""
        return self._records.count(scope=_scope(scope_prefix))

    asave, asearch, adelete = threaded(save), threaded(search), threaded(delete)

    def _mismatch(self, vectors: Iterable[Sequence[float]]) -> EmbeddingDimensionMismatchError | None:
        """The error of CrewAI for vectors of another dimension than the stored ones, or than each other."""
        sizes = [len(vector) for vector in vectors]
        stored = self.memory.store.stats().dimension or sizes[0]
        other = next((size for size in sizes if size != stored), None)
        if other is None:
            return None
        mismatch = EmbeddingDimensionMismatchError(stored, other)
        mismatch.add_note(f"{self.memory.path} takes vectors of another dimension once none is left, in no scope of it")
        return mismatch


def _scope(prefix: str | None) -> str:
    return "/" + "/".join(part for part in (prefix or "").split("/") if part)


def _fields(scope: str | None, categories: list[str] | None, where: dict[str, Any]) -> FilterFields:
    return {"scope": _scope(scope), "tags": categories or None, "where": where or None}


def _where(metadata: dict[str, Any] | None, older_than: datetime | None = None) -> dict[str, Any]:
    """Conditions on the metadata that a filter can express, and on `created_at`."""
    rest = _not_in_where(metadata)
    where: dict[str, Any] = {metadata_field(key): value for key, value in (metadata or {}).items() if key not in rest}
    if older_than is not None:
        where["created_at"] = {"lt": _aware(older_than)}
    return where


def _not_in_where(metadata: dict[str, Any] | None) -> dict[str, Any]:
    """The conditions with a key or value that no filter can express: compared here."""
    return {
        key: value
        for key, value in (metadata or {}).items()
        if not isinstance(value, str | int | float) or not _PLAIN_KEY.fullmatch(key)
    }


def _has(record: Record, metadata: dict[str, Any]) -> bool:
    return all(record.metadata.get(key) == value for key, value in metadata.items())


def _direction(vector: Sequence[float] | None) -> bool:
    return vector is not None and any(vector)


def _aware(moment: datetime) -> datetime:
    """Times of CrewAI have no zone: they are UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _naive(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)


def _item(record: MemoryRecord) -> dict[str, Any]:
    beside = {"private": record.private, "last_accessed": _naive(_aware(record.last_accessed)).isoformat()}
    if not record.content.strip():
        beside["content"] = record.content
    return blank_as_dash({
        "id": record.id, "text": cleaned(record.content), "scope": _scope(record.scope), "tags": record.categories,
        "importance": record.importance, "metadata": {**cleaned_json(record.metadata), _BESIDE: beside},
        "created_at": _aware(record.created_at), "source": record.source or None,
        "vector": record.embedding if _direction(record.embedding) else None,
    })  # fmt: skip


def _record(memory: Record | Hit, embedding: list[float] | None = None) -> MemoryRecord:
    metadata = dict(memory.metadata)
    beside = metadata.pop(_BESIDE, {})
    created = _naive(memory.created_at)
    accessed = beside.get("last_accessed")
    source = memory.source if isinstance(memory, Record) else memory.source and memory.source.id
    return MemoryRecord(
        id=memory.id, content=beside.get("content", memory.text), scope=memory.scope, categories=[*memory.tags],
        metadata=metadata, importance=memory.importance, created_at=created, source=source,
        private=beside.get("private", False), embedding=embedding,
        last_accessed=datetime.fromisoformat(accessed) if accessed else created,
    )  # fmt: skip
