"""What a store is, whatever it is made of: transactions that hold repositories, and maintenance.

`Store.read()` yields a `Reader` and `Store.atomic()` a `Writer`; the repositories are their attributes. Row ids grow
with time and are never reused, but need not be consecutive. `tests/store/contract/` holds what every store promises.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from recollect.reports import ErasureReceipt, Verification
from recollect.store.protocol.index import Blocks, Changes, ChangeWriter, IndexSnapshot, IndexSnapshotWriter, Lexicon
from recollect.store.protocol.records import (
    Links,
    LinkWriter,
    Records,
    RecordWriter,
    Scopes,
    ScopeWriter,
    Vectors,
    VectorWriter,
)
from recollect.store.protocol.services import (
    Consolidations,
    ConsolidationWriter,
    Documents,
    DocumentWriter,
    EmbeddingCache,
    EmbeddingCacheWriter,
    Erasure,
    Experience,
    ExperienceWriter,
    Meta,
    MetaWriter,
    Procedures,
    ProcedureWriter,
    Sessions,
    SessionWriter,
    Working,
    WorkingWriter,
)
from recollect.store.values import Erased

__all__ = ["Progress", "ReadOnlySql", "Reader", "Store", "Writer"]

Progress = Callable[[int, int | None], None]


class ReadOnlySql(Protocol):
    """SQL of a workspace's custom strategy, inside a read transaction."""

    def execute(self, statement: str, bindings: Any = ()) -> Any:
        """Run a statement; returns its rows as tuples, to be iterated once."""


class Reader(Protocol):
    """A read transaction: everything that is read in it is of the same commit."""

    records: Records
    scopes: Scopes
    links: Links
    vectors: Vectors
    blocks: Blocks
    changes: Changes
    snapshot: IndexSnapshot
    lexicon: Lexicon
    meta: Meta
    documents: Documents
    sessions: Sessions
    consolidations: Consolidations
    experience: Experience
    procedures: Procedures
    working: Working
    embedding_cache: EmbeddingCache

    def sql(self) -> ReadOnlySql:
        """A handle for SQL, over the documented views. Only a store that speaks SQL has one."""


class Writer(Reader, Protocol):
    """A write transaction: it reads what it wrote, and all of it is committed or nothing."""

    records: RecordWriter
    scopes: ScopeWriter
    links: LinkWriter
    vectors: VectorWriter
    changes: ChangeWriter
    snapshot: IndexSnapshotWriter
    meta: MetaWriter
    documents: DocumentWriter
    sessions: SessionWriter
    consolidations: ConsolidationWriter
    experience: ExperienceWriter
    procedures: ProcedureWriter
    working: WorkingWriter
    embedding_cache: EmbeddingCacheWriter
    erasure: Erasure


class Store(Protocol):
    """A store that is open in this process.

    `path` names it in messages; `snapshot_path` is where the snapshot of an in-memory index may be kept, if anywhere.
    """

    path: str
    snapshot_path: str | None

    @property
    def in_memory(self) -> bool:
        """True where nothing outlives the process."""

    @property
    def encrypted(self) -> bool:
        """True where what is on disk is encrypted with a key."""

    @property
    def closed(self) -> bool:
        """True after `close`, and in a forked child, where the store is not usable."""

    @property
    def nested(self) -> bool:
        """Inside `atomic()`: whether it is within another, which may have written what can be undone."""

    def read(self) -> AbstractContextManager[Reader]:
        """A read transaction. Readers wait for no writer."""

    def atomic(self, *, wait: bool = True) -> AbstractContextManager[Writer]:
        """A write transaction, one thread at a time. Within another of the same thread it is a savepoint.

        Without `wait`, another process's lock raises StoreLocked at once.
        """

    def check_usable(self) -> None:
        """Raise StoreClosed or ForkedProcess unless the store may be used."""

    def close(self) -> None:
        """Release everything. Again, or in a forked child, it does nothing."""

    def size(self) -> int:
        """About how many records there are, versions included."""

    def bytes_on_disk(self) -> int:
        """How many bytes the store takes on disk; 0 in memory."""

    def stats(self, scope: str) -> dict[str, Any]:
        """Counts and versions, as `Stats` names them; counts are those of `scope` and its descendants."""

    def verify(self, on_progress: Progress | None = None) -> Verification:
        """Every divergence between the records and what is derived from them. Changes nothing."""

    def rebuild(self, on_progress: Progress | None = None) -> None:
        """Derive everything from the records again, in one transaction. Unsound vectors go: their records wait."""

    def vacuum(self) -> int:
        """Drop what nothing refers to and give space back; returns how many bytes."""

    def backup(self, target: str | os.PathLike[str], on_progress: Progress | None = None) -> str:
        """Copy the store, as of one commit, to a new file; returns its path. It appears when all of it is there.

        Raises InvalidInput for a path that exists, also since the copy began, and StoreFull, StoreReadOnly or
        StoreError, which name the target, where that cannot be written.
        """

    def rekey(self, key: str | None) -> None:
        """Encrypt the store anew with `key`, or store it without encryption; all of it or nothing.

        Raises StoreLocked where anyone else has it open.
        """

    def prove_erasure(self, erased: Erased) -> ErasureReceipt:
        """Compact the store and look for the bytes of what was erased in every file of it."""
