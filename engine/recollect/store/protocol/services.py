"""What the services keep beside the records, as every store keeps it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from recollect.policies import Consolidation
from recollect.store.values import (
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
        """The document of this source in this very scope."""

    def find_many(self, scope: str) -> dict[str, DocumentRow]:
        """Every document of this very scope, by source."""

    def with_id(self, public_id: str, scope: str) -> DocumentRow | None:
        """The document with this id, where it stands in a scope or below; a foreign id is absent like a missing one."""

    def with_content(self, scope: str, content_hash: bytes) -> list[DocumentRow]:
        """The documents of these bytes in this very scope, oldest first."""

    def listed(self, scope: str, *, limit: int | None = None) -> list[DocumentRow]:
        """The documents of a scope and those below it, in the order of their sources."""

    def chunks_of(self, source_id: int) -> list[Chunk]:
        """The chunks of a document, in order."""

    def sources_of(self, record_ids: Sequence[int]) -> list[int]:
        """The documents, by source id, of those of these records that are chunks."""


class DocumentWriter(Documents, Protocol):
    """Documents and their chunks, in a write transaction."""

    def put(self, scope: str, source: str, public_id: str, columns: dict[str, Any]) -> None:
        """Insert the document of a source, or change it; `columns` are all of `DocumentRow`'s own."""

    def note_read(self, seen: Sequence[tuple[int | None, int, int, bytes]]) -> None:
        """(inode, time, row id, content hash) of documents whose files were read at that time and had this content."""

    def move_chunks(self, moved: Sequence[tuple[Chunk, int, str | None, int, Sequence[str]]]) -> None:
        """Give kept chunks another position, metadata, time of creation or tags, where these differ."""

    def rename_source(self, document: DocumentRow, source: str) -> None:
        """Give a document's source another name, which no other source of its scope has."""

    def delete(self, rows: Iterable[DocumentRow]) -> int:
        """Purge documents with their chunks and all that belongs to these; returns how many chunks there were."""

    def settle(self, source_ids: Sequence[int]) -> None:
        """After chunks were forgotten by themselves: a document without any goes too, one that lacks some is cut anew
        when it is next read.
        """


class Sessions(Protocol):
    """Sessions, their messages and snapshots."""

    def find(self, scope: str, name: str) -> SessionRow | None:
        """The session of this name in exactly this scope."""

    def find_id(self, scope: str, name: str) -> int | None:
        """The row id of the session of this name in exactly this scope."""

    def listed(self, scope: str, *, limit: int | None = None) -> list[SessionRow]:
        """The sessions of a scope and its descendants, lately used first."""

    def unused_since(self, scope: str, moment: int | None) -> list[int]:
        """The row ids of the sessions of a scope and its descendants that were not used since; all of them for None."""

    def messages(self, session_id: int, *, limit: int | None = None) -> list[tuple[int, bytes]]:
        """Position and JSON text of a session's messages in order; with a limit, the last of them.

        The text is bytes, as one that is not UTF-8 would end the reading of all.
        """

    def search(self, scope: str, words: Sequence[str], limit: int) -> list[FoundMessage]:
        """The messages of a scope and its descendants that hold any of `words`, by their BM25 there, best first."""

    def snapshots(self, scope: str, limit: int) -> list[SnapshotRow]:
        """The snapshots of a scope and its descendants, the last first."""


class SessionWriter(Sessions, Protocol):
    """Sessions, their messages and snapshots, in a write transaction."""

    def create(self, scope_id: int, name: str, provider: str | None, now: int) -> None:
        """Add a session without messages."""

    def set_provider(self, session_id: int, provider: str) -> None:
        """Note who answers in a session from now on."""

    def append(self, session_id: int, rows: Sequence[tuple[str, str, str, Sequence[str]]], created_at: int) -> int:
        """Append messages (role, content, message as JSON, words of the content); returns the first's position."""

    def delete(self, session_ids: Sequence[int]) -> None:
        """Purge sessions with their messages and words."""

    def put_snapshot(self, scope_id: int, row: SnapshotRow) -> None:
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
        """How many episodes of this scope are newer than its last cycle; counts no further than `enough`."""

    def episodes_between(self, scope: str, after: int, last: int) -> list[int]:
        """The row ids of the episodes of exactly this scope after one and up to another, ascending."""


class ConsolidationWriter(Consolidations, Protocol):
    """Consolidation cycles over the episodes of one scope, in a write transaction."""

    def compress(self, scope: str, last: int, policy: Consolidation) -> tuple[int, int]:
        """Multiply the importance of the episodes up to row id `last` that are not pinned; purge what falls too low.

        An episode is purged when its new importance is under prune_threshold * decay_factor ** (cycles_a_recall *
        accesses). Returns how many were multiplied, the purged among them, and how many were purged.
        """

    def change(self, row: CycleRow) -> None:
        """Write down what an extractor made of episodes after their cycle."""

    def add(self, scope_id: int, row: CycleRow) -> None:
        """Write down what a cycle did."""


class Experience(Protocol):
    """Tool patterns and error recoveries."""

    def patterns(self, scopes: Sequence[str], task_type: str | None) -> list[ToolPattern]:
        """The patterns of exactly these scopes together, by task type and pattern; of all types for None."""

    def recoveries(self, scopes: Sequence[str], tool: str) -> list[Recovery]:
        """What is known of a tool's errors in exactly these scopes, the most frequent first."""


class ExperienceWriter(Experience, Protocol):
    """Tool patterns and error recoveries, in a write transaction."""

    def add_run(
        self, key: tuple[int, str, str], *, success: bool, steps: int | None, tokens: int | None, now: int
    ) -> None:
        """Count one run under (scope id, task type, pattern)."""

    def add_recovery(self, key: tuple[int, str, str], *, error: str, recovery: str, now: int) -> None:
        """Count one recovery under (scope id, tool, error pattern); only the latest is kept, with its own count."""


class Procedures(Protocol):
    """How often procedures were used, with what success."""

    def named(self, scope: str, name: str) -> int | None:
        """The row id of the procedure of this name in exactly this scope; the last stored of several."""

    def with_id(self, scope: str, public_id: str) -> int | None:
        """The row id of the procedure with this public id in a scope or below it."""

    def uses(self, public_ids: list[str]) -> dict[str, tuple[float, int, int]]:
        """Rate, uses and successes of procedures, by public id; those never counted are absent."""


class ProcedureWriter(Procedures, Protocol):
    """How often procedures were used, with what success, in a write transaction."""

    def set_rate(self, record_id: int, success_rate: float) -> None:
        """Begin to count, or set the rate again; counts stay."""

    def count_outcome(self, record_id: int, *, success: bool, first_rate: float, weight: float) -> None:
        """Count one use; the rate moves by `weight` towards its outcome. A procedure not counted yet starts at
        `first_rate`.
        """


class Working(Protocol):
    """Working memories, one of each scope."""

    def load(self, scope: str) -> str | None:
        """The working memory of a scope as it was kept."""


class WorkingWriter(Working, Protocol):
    """Working memories, one of each scope, in a write transaction."""

    def save(self, scope: int, items: str, now: int) -> None:
        """Keep the working memory of a scope, as JSON, in place of what was kept."""


class EmbeddingCache(Protocol):
    """Vectors by the hash of the text they were made from."""

    def look_up(self, embedder: EmbedderRow, hashes: Sequence[bytes]) -> dict[bytes, Parts]:
        """The vectors of each hash that this embedder has made, with codes where they were kept."""

    def count(self) -> int:
        """How many texts have their vectors here."""


class EmbeddingCacheWriter(EmbeddingCache, Protocol):
    """Vectors by the hash of the text they were made from, in a write transaction."""

    def keep(self, embedder: EmbedderRow, made: Mapping[bytes, Parts], max_entries: int | None) -> None:
        """Add vectors, as those used last; beyond `max_entries` those go that were used the longest time ago."""

    def touch(self, embedder: EmbedderRow, hashes: Iterable[bytes], max_entries: int | None) -> None:
        """Note that these were used just now."""


class Meta(Protocol):
    """Identity and role of a store."""

    def identity(self) -> str | None:
        """What tells this store from any other; None before `put_identity`."""

    def is_index(self) -> bool:
        """Whether the file is a workspace's index, and nobody has put memories into it."""


class MetaWriter(Meta, Protocol):
    """Identity and role of a store, in a write transaction."""

    def put_identity(self, value: str) -> None:
        """Give the store an identity, which it keeps."""

    def claim_as_index(self) -> bool:
        """Make a file that holds nothing a workspace's index; False for one that holds something and is none."""


class Erasure(Protocol):
    """Erasure with proof: `begin` before the records are deleted, `finish` after, `Store.prove_erasure` at last."""

    def begin(self, record_ids: Sequence[int], scopes: Iterable[str]) -> Erased:
        """Note what is stored of these open records and, where whole scopes go, of their services."""

    def finish(self, erased: Erased) -> None:
        """Drop what the deletion has left unused, and count what is gone."""
