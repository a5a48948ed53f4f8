"""A transaction: the repositories on one connection."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from recallite.store.protocol import Writer
from recallite.store.sql.access_tokens import SqlAccessTokens
from recallite.store.sql.conditions import Conditions
from recallite.store.sql.documents import SqlDocuments
from recallite.store.sql.embedding_cache import SqlEmbeddingCache
from recallite.store.sql.lexicon import SqlLexicon, WordNumbers
from recallite.store.sql.links import SqlLinks
from recallite.store.sql.meta import SqlMeta
from recallite.store.sql.overview import SqlOverview
from recallite.store.sql.repository import SqlConnection
from recallite.store.sql.scopes import SqlScopes
from recallite.store.sql.standing import SqlStanding
from recallite.store.sql.statements import SqlJudgements, SqlOccurrences, SqlStatements, SqlUncompared
from recallite.store.sql.supersessions import SqlSupersessions
from recallite.store.sql.tiers import SqlConsolidations, SqlExperience, SqlProcedures, SqlWorking
from recallite.store.sql.vectors import SqlVectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recallite.store.protocol import ReadOnlySql
    from recallite.store.protocol.candidates import CandidateSearch
    from recallite.store.sql.changes import SqlChanges
    from recallite.store.sql.copying import SqlCopying
    from recallite.store.sql.records import SqlRecords
    from recallite.store.sql.sessions import SqlSessions
    from recallite.store.sql.snapshot import SqlIndexSnapshot
    from recallite.store.values import Commit


Known = TypeVar("Known")


class SqlTransaction(Writer):
    """Made once for a connection and used for one transaction after the other; `path` is the store's, for messages.

    A database adds records, sessions, blocks, changes, copying, snapshot and erasure, which it keeps in its own way.
    """

    records: SqlRecords
    sessions: SqlSessions
    changes: SqlChanges
    copying: SqlCopying
    snapshot: SqlIndexSnapshot
    candidates: CandidateSearch | None = None

    def __init__(self, connection: SqlConnection, path: str, numbers: WordNumbers, conditions: Conditions) -> None:
        self.connection = connection
        self.path = path
        # The type of stored vectors of new embedders: float32 or float16.
        self.vector_type = "float32"
        self.numbers = numbers
        self.conditions = conditions
        # The commit at which the transaction of a caller began, inside it.
        self.began: Commit | None = None
        self.scopes = SqlScopes(self)
        self.links = SqlLinks(self)
        self.supersessions = SqlSupersessions(self)
        self.statements = SqlStatements(self)
        self.uncompared = SqlUncompared(self)
        self.occurrences = SqlOccurrences(self)
        self.judgements = SqlJudgements(self)
        self.vectors = SqlVectors(self)
        self.lexicon = SqlLexicon(self)
        self.overview = SqlOverview(self)
        self.standing = SqlStanding(self)
        self.meta = SqlMeta(self)
        self.documents = SqlDocuments(self)
        self.consolidations = SqlConsolidations(self)
        self.experience = SqlExperience(self)
        self.procedures = SqlProcedures(self)
        self.working = SqlWorking(self)
        self.embedding_cache = SqlEmbeddingCache(self)
        self.access_tokens = SqlAccessTokens(self)

    @property
    def uncommitted(self) -> bool:
        return self.began is not None and not self.changes.matches(self.began)

    def sql(self) -> ReadOnlySql:
        return _Statements(self.connection)

    @staticmethod
    @abstractmethod
    def id_array(ids: Sequence[int] | NDArray[np.int64]) -> Any:
        """Row ids for `carray(?)`."""

    @staticmethod
    @abstractmethod
    def array(values: Sequence[str]) -> Any:
        """Texts for `carray(?)`."""

    @staticmethod
    @abstractmethod
    def byte_array(values: Sequence[bytes]) -> Any:
        """Byte sequences for `carray(?)`."""

    def known(self, key: Hashable, read: Callable[[], Known]) -> Known:
        """Return what `read` returns; a database that knows whether others have written may keep it for later writes.

        It must not change before a `reload` is appended to the feed.
        """
        return read()

    def forget_known(self) -> None:
        """Have what is `known` read again."""

    @abstractmethod
    def new_ids(self, table: str, count: int) -> list[int]:
        """Row ids, ascending, for new rows of a table; no row ever had one of them."""

    @abstractmethod
    def add_names(self, table: str, column: str, names: Sequence[str]) -> None:
        """Add those of these names that a table lacks."""


class _Statements:
    """What a custom strategy gets of a connection."""

    def __init__(self, connection: SqlConnection) -> None:
        self._connection = connection

    def execute(self, statement: str, bindings: Any = ()) -> Any:
        return self._connection.execute(statement, bindings)
