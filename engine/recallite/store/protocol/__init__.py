"""What a store is, whatever it is made of: transactions that hold repositories, and maintenance.

`Store.read()` yields a `Reader` and `Store.atomic()` a `Writer`; the repositories are their attributes. Row ids grow
with time and are never reused, but need not be consecutive. What every store promises is held by
`tests/unit/store/contract/`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from recallite.errors import InvalidInput
from recallite.model.reports import ErasureReceipt, Verification
from recallite.store.protocol.candidates import CandidateSearch
from recallite.store.protocol.index import (
    Blocks,
    Changes,
    IndexSnapshot,
    IndexSnapshotWriter,
    Lexicon,
    Overview,
)
from recallite.store.protocol.records import (
    Links,
    LinkWriter,
    Records,
    RecordWriter,
    Scopes,
    ScopeWriter,
    Vectors,
    VectorWriter,
)
from recallite.store.protocol.services import (
    AccessTokens,
    AccessTokenWriter,
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
from recallite.store.protocol.supersessions import (
    Judgements,
    JudgementWriter,
    Occurrences,
    OccurrenceWriter,
    Statements,
    StatementWriter,
    Supersessions,
    SupersessionWriter,
    UncomparedRecords,
    UncomparedWriter,
)
from recallite.store.values import Erased, TenantRow

if TYPE_CHECKING:
    from recallite.store.sql.copying import SqlCopying

__all__ = ["Progress", "ReadOnlySql", "Reader", "Store", "Writer"]

Progress = Callable[[int, int | None], None]


class ReadOnlySql(Protocol):
    """SQL for the custom strategies of a workspace, inside a read transaction."""

    def execute(self, statement: str, bindings: Any = ()) -> Any:
        """Run a statement; returns its rows as tuples, to be iterated once."""


class Reader(Protocol):
    """A read transaction: all reads see the same commit.

    `candidates` is None for a store that has no indexes of its own to search.
    """

    records: Records
    scopes: Scopes
    links: Links
    supersessions: Supersessions
    statements: Statements
    uncompared: UncomparedRecords
    occurrences: Occurrences
    judgements: Judgements
    vectors: Vectors
    blocks: Blocks
    changes: Changes
    snapshot: IndexSnapshot
    lexicon: Lexicon
    overview: Overview
    meta: Meta
    documents: Documents
    sessions: Sessions
    consolidations: Consolidations
    experience: Experience
    procedures: Procedures
    working: Working
    embedding_cache: EmbeddingCache
    access_tokens: AccessTokens
    candidates: CandidateSearch | None
    copying: SqlCopying

    @property
    def sees_one_commit(self) -> bool:
        """Whether no other writer can commit what this transaction sees, until it asks for the newest commit."""

    @property
    def uncommitted(self) -> bool:
        """Whether it sees what was written in the `Store.transaction` that this thread is inside."""

    def sql(self) -> ReadOnlySql:
        """A handle for SQL over the documented views, of stores that have SQL."""


class Writer(Reader, Protocol):
    """A write transaction: it sees its own writes, and commits all of them or none."""

    records: RecordWriter
    scopes: ScopeWriter
    links: LinkWriter
    supersessions: SupersessionWriter
    statements: StatementWriter
    uncompared: UncomparedWriter
    occurrences: OccurrenceWriter
    judgements: JudgementWriter
    vectors: VectorWriter
    snapshot: IndexSnapshotWriter
    meta: MetaWriter
    documents: DocumentWriter
    sessions: SessionWriter
    consolidations: ConsolidationWriter
    experience: ExperienceWriter
    procedures: ProcedureWriter
    working: WorkingWriter
    embedding_cache: EmbeddingCacheWriter
    access_tokens: AccessTokenWriter
    erasure: Erasure


class Store(Protocol):
    """A store that is open in this process.

    `path` names it in messages; `snapshot_path` is where the snapshot of an in-memory index may be kept, if anywhere.
    """

    path: str
    snapshot_path: str | None
    confined_to: str | None = None
    """The scope to which a server confines the user of this store, who sees nothing else of it; None: to none."""

    @property
    def in_memory(self) -> bool:
        """True if the data is lost when the store is closed."""

    @property
    def reads_scopes(self) -> bool:
        """True if what an index of one scope needs can be read by itself."""

    @property
    def encrypted(self) -> bool:
        """True if the store is encrypted."""

    @property
    def closed(self) -> bool:
        """True after `close`, and in a forked child process."""

    @property
    def nested(self) -> bool:
        """Inside `atomic()`: whether an outer transaction may still roll it back."""

    def read(self) -> AbstractContextManager[Reader]:
        """A read transaction; it does not wait for writers."""

    def atomic(self, *, wait: bool = True, locks: Sequence[str] | None = None) -> AbstractContextManager[Writer]:
        """A write transaction; a savepoint inside another of the same thread.

        Who names what it reads and writes in `locks`, by scopes and ids, lets writers of others run at the same time,
        where a store can; else one thread writes at a time. Without `wait`, StoreLocked is raised at once if another
        process is writing.
        """

    def transaction(self) -> AbstractContextManager[None]:
        """A write transaction in which `read` of the same thread sees what was written."""

    def check_usable(self) -> None:
        """Raise StoreClosed or ForkedProcess unless the store may be used."""

    def close(self) -> None:
        """Release everything. A second call, or one in a forked child, does nothing."""

    def size(self) -> int:
        """About how many records there are, versions included."""

    def stats(self, scope: str) -> dict[str, Any]:
        """Counts and versions, as `Stats` names them; counts are those of `scope` and its descendants."""

    def verify(self, on_progress: Progress | None = None) -> Verification:
        """Compare everything derived with the records; nothing is changed."""

    def rebuild(self, on_progress: Progress | None = None) -> None:
        """Derive everything from the records again. Damaged vectors are removed; their records wait for others."""

    def make_candidate_indexes(self, on_progress: Progress | None = None) -> list[str]:
        """Make the indexes of `CandidateSearch` that are missing, while others read and write; returns their names."""
        return []

    def vacuum(self) -> int:
        """Remove what nothing refers to and free its space; returns how many bytes."""

    def backup(self, target: str | os.PathLike[str], on_progress: Progress | None = None) -> str:
        """Copy the store, as of one commit, to a new file; returns its path. The file appears only when it is complete.

        Raises InvalidInput if the path exists, even if it was made during the copy, and StoreFull, StoreReadOnly or
        StoreError, which name the target, if it cannot be written.
        """

    def rekey(self, key: str | None) -> None:
        """Encrypt the store with another key, or (None) decrypt it; all of it or nothing.

        Raises StoreLocked if another connection is open.
        """

    def tenants(self) -> list[TenantRow]:
        """The roles that are confined to a scope, by name. Raises InvalidInput where there are no roles."""
        raise InvalidInput(f"{self.path} is a file, which has no roles: tenants are of a PostgreSQL server")

    def grant_tenant(self, role: str, scope: str) -> TenantRow:
        """Let a role use a scope and what is below it, and nothing else; it replaces another scope of that role.

        Raises InvalidInput for a role that is not there, or that nothing confines.
        """
        raise InvalidInput(f"{self.path} is a file, which has no roles: tenants are of a PostgreSQL server")

    def revoke_tenant(self, role: str) -> None:
        """Take from a role all that it may do. Raises NotFound if it has no scope."""
        raise InvalidInput(f"{self.path} is a file, which has no roles: tenants are of a PostgreSQL server")

    def prove_erasure(self, erased: Erased) -> ErasureReceipt:
        """Compact the store and search all of its files for the bytes of what was erased."""
