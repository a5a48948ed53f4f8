"""The repositories of documents, sessions, tiers and the embedding cache, and of the store itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from recallite.model.policies import Consolidation
from recallite.store.values import (
    AccessTokenRow,
    Chunk,
    CycleRow,
    DocumentRow,
    EmbedderRow,
    Erased,
    FoundMessage,
    Parts,
    Recovery,
    SessionRow,
    SnapshotRow,
    ToolPattern,
)


class Documents(Protocol):
    """Documents and their chunks."""

    def find(self, scope: str, source: str) -> DocumentRow | None:
        """The document of a source in exactly this scope."""

    def find_many(self, scope: str) -> dict[str, DocumentRow]:
        """The documents of exactly this scope, by source."""

    def with_id(self, public_id: str, scope: str) -> DocumentRow | None:
        """The document with this id in a scope or its descendants; None if it is elsewhere."""

    def with_content(self, scope: str, content_hash: bytes) -> list[DocumentRow]:
        """The documents with these bytes in exactly this scope, oldest first."""

    def listed(self, scope: str, *, limit: int | None = None) -> list[DocumentRow]:
        """The documents of a scope and its descendants, by source."""

    def chunks_of(self, source_id: int) -> list[Chunk]:
        """The chunks of a document, in order."""

    def sources_of(self, record_ids: Sequence[int]) -> list[int]:
        """The source ids of the documents of which these records are chunks."""


class DocumentWriter(Documents, Protocol):
    """The same in a write transaction."""

    def put(self, scope: str, source: str, public_id: str, columns: dict[str, Any]) -> None:
        """Insert or replace the document of a source; `columns` are the fields of `DocumentRow` that are not keys."""

    def note_read(self, seen: Sequence[tuple[int | None, int, int, bytes]]) -> None:
        """Note (inode, time, row id, content hash) of files that were read, for documents that have this content."""

    def move_chunks(self, moved: Sequence[tuple[Chunk, int, str | None, int, Sequence[str]]]) -> None:
        """Change position, metadata, time of creation and tags of chunks whose text is the same."""

    def rename_source(self, document: DocumentRow, source: str) -> None:
        """Rename the source of a document; no other source of the scope may have the name."""

    def delete(self, rows: Iterable[DocumentRow]) -> int:
        """Purge documents with their chunks; returns how many chunks."""

    def settle(self, source_ids: Sequence[int]) -> None:
        """After chunks were deleted: delete documents without any, and have others chunked again at the next read."""


class Sessions(Protocol):
    """Sessions, their messages and snapshots."""

    def find(self, scope: str, name: str) -> SessionRow | None:
        """The session of this name in exactly this scope."""

    def find_id(self, scope: str, name: str) -> int | None:
        """The row id of the session of this name in exactly this scope."""

    def listed(self, scope: str, *, limit: int | None = None) -> list[SessionRow]:
        """The sessions of a scope and its descendants, last used first."""

    def unused_since(self, scope: str, moment: int | None) -> list[int]:
        """Row ids of the sessions of a scope and its descendants that were not used since `moment` (None: all)."""

    def messages(
        self, session_id: int, *, limit: int | None = None, before: int | None = None
    ) -> list[tuple[int, bytes]]:
        """Position and JSON of the messages of a session in order; with a limit, of the last ones.

        With `before`, of those before this position.

        JSON as bytes: one message that is not UTF-8 must not make the others unreadable.
        """

    def search(self, scope: str, words: Sequence[str], limit: int) -> list[FoundMessage]:
        """The messages of a scope and its descendants with any of `words`, by BM25 within that scope, best first."""

    def snapshots(self, scope: str, limit: int) -> list[SnapshotRow]:
        """The snapshots of a scope and its descendants, newest first."""


class SessionWriter(Sessions, Protocol):
    """The same in a write transaction."""

    def create(self, scope: str, name: str, provider: str | None, now: int) -> None:
        """Add an empty session."""

    def set_provider(self, session_id: int, provider: str) -> None:
        """Set the provider of a session."""

    def append(
        self, session_id: int, rows: Sequence[tuple[str | None, str, str, Sequence[str]]], created_at: int
    ) -> int:
        """Append messages (role, content, message as JSON, words of the content); returns the first's position."""

    def remove_from(self, session_id: int, position: int) -> int:
        """Purge the messages of a session from this position on; returns how many."""

    def delete(self, session_ids: Sequence[int]) -> None:
        """Purge sessions with their messages and words."""

    def put_snapshot(self, row: SnapshotRow) -> None:
        """Store a snapshot."""


class Consolidations(Protocol):
    """Consolidation cycles over the episodes of one scope."""

    def last_episode(self, scope: str) -> int:
        """The row id of the newest episode of exactly this scope; 0 for none."""

    def last(self, scope: str) -> CycleRow | None:
        """The newest cycle of exactly this scope."""

    def listed(self, scope: str, limit: int) -> list[CycleRow]:
        """The cycles of exactly this scope, newest first."""

    def new_episodes(self, scope: str, enough: int) -> int:
        """How many episodes of exactly this scope are newer than its last cycle, counted up to `enough`."""

    def episodes_between(self, scope: str, after: int, last: int) -> list[int]:
        """The row ids of the episodes of exactly this scope after one and up to another, ascending."""


class ConsolidationWriter(Consolidations, Protocol):
    """The same in a write transaction."""

    def compress(self, scope: str, last: int, policy: Consolidation) -> tuple[int, int]:
        """Multiply the importance of the episodes up to row id `last` that are not pinned; purge what falls too low.

        An episode is purged when its new importance is under prune_threshold * decay_factor ** (cycles_a_recall *
        accesses). Returns how many were multiplied, the purged among them, and how many were purged.
        """

    def change(self, row: CycleRow) -> None:
        """Update a cycle after its episodes were extracted."""

    def add(self, row: CycleRow) -> None:
        """Add a cycle."""


class Experience(Protocol):
    """Tool patterns and error recoveries."""

    def patterns(self, scopes: Sequence[str], task_type: str | None) -> list[ToolPattern]:
        """The patterns of exactly these scopes, summed, by task type and pattern; None is all types."""

    def recoveries(self, scopes: Sequence[str], tool: str) -> list[Recovery]:
        """The recoveries from errors of a tool in exactly these scopes, most frequent first."""


class ExperienceWriter(Experience, Protocol):
    """The same in a write transaction."""

    def add_run(
        self, key: tuple[str, str, str], *, success: bool, steps: int | None, tokens: int | None, now: int
    ) -> None:
        """Count one run under (scope, task type, pattern)."""

    def add_recovery(self, key: tuple[str, str, str], *, error: str, recovery: str, now: int) -> None:
        """Count one recovery under (scope, tool, error pattern); only the latest is kept, with its own count."""


class Procedures(Protocol):
    """How often procedures were used, with what success."""

    def named(self, scope: str, name: str) -> int | None:
        """The row id of the procedure of this name in exactly this scope; the last stored of several."""

    def with_id(self, scope: str, public_id: str) -> int | None:
        """The row id of the procedure with this public id in a scope or below it."""

    def uses(self, public_ids: list[str]) -> dict[str, tuple[float, int, int]]:
        """(rate, uses, successes) of procedures by public id; those never used are absent."""


class ProcedureWriter(Procedures, Protocol):
    """The same in a write transaction."""

    def set_rate(self, record_id: int, success_rate: float) -> None:
        """Set the success rate; counts stay."""

    def count_outcome(self, record_id: int, *, success: bool, first_rate: float, weight: float) -> None:
        """Count one use and move the rate by `weight` towards its outcome, from `first_rate` at the first use."""


class Working(Protocol):
    """Working memories, one of each scope."""

    def load(self, scope: str) -> str | None:
        """The working memory of exactly this scope, as JSON."""


class WorkingWriter(Working, Protocol):
    """The same in a write transaction."""

    def save(self, scope: str, items: str, now: int) -> None:
        """Replace the working memory of exactly this scope, as JSON."""


class AccessTokens(Protocol):
    """The tokens that admit to the store over HTTP."""

    def with_hash(self, hash: bytes) -> AccessTokenRow | None:
        """The token with this hash."""

    def listed(self) -> list[AccessTokenRow]:
        """All tokens, oldest first."""


class AccessTokenWriter(AccessTokens, Protocol):
    """The same in a write transaction."""

    def add(self, row: AccessTokenRow, hash: bytes) -> None:
        """Add a token."""

    def remove(self, public_id: str) -> bool:
        """Remove a token; False if there is none with this id."""


class EmbeddingCache(Protocol):
    """Vectors by the hash of the text they were made from."""

    def look_up(self, embedder: EmbedderRow, hashes: Sequence[bytes]) -> dict[bytes, Parts]:
        """The vectors of this embedder by content hash, with token codes if they were kept."""

    def count(self) -> int:
        """How many entries there are."""


class EmbeddingCacheWriter(EmbeddingCache, Protocol):
    """The same in a write transaction."""

    def keep(self, embedder: EmbedderRow, made: Mapping[bytes, Parts], max_entries: int | None) -> None:
        """Add vectors; beyond `max_entries` the least recently used entries are removed."""

    def touch(self, embedder: EmbedderRow, hashes: Iterable[bytes], max_entries: int | None) -> None:
        """Mark entries as just used."""


class Meta(Protocol):
    """Identity and role of a store."""

    def identity(self) -> str | None:
        """The id of this store; None before `put_identity`."""

    def is_index(self) -> bool:
        """Whether the role of the store is the index of a workspace, and it holds nothing but chunks."""


class MetaWriter(Meta, Protocol):
    """The same in a write transaction."""

    def put_identity(self, value: str) -> None:
        """Set the id of this store, once."""

    def claim_as_index(self) -> bool:
        """Make an empty store the index of a workspace; False if it has other content."""


class Erasure(Protocol):
    """Erasure with proof: `begin` before the records are deleted, `finish` after, `Store.prove_erasure` at last."""

    def begin(self, record_ids: Sequence[int], scopes: Iterable[str]) -> Erased:
        """Note what is stored of these open records and, for whole scopes, of their services."""

    def finish(self, erased: Erased) -> None:
        """Remove what the deletion has left unused, and count what is gone."""
