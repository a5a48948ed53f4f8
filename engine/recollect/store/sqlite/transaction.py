"""A transaction of SQLite: the repositories on one connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw

from recollect.store.protocol import Writer
from recollect.store.sqlite.access_tokens import SqliteAccessTokens
from recollect.store.sqlite.blocks import SqliteBlocks
from recollect.store.sqlite.changes import SqliteChanges
from recollect.store.sqlite.documents import SqliteDocuments
from recollect.store.sqlite.embedding_cache import SqliteEmbeddingCache
from recollect.store.sqlite.erasing import SqliteErasure
from recollect.store.sqlite.lexicon import SqliteLexicon, WordNumbers
from recollect.store.sqlite.links import SqliteLinks
from recollect.store.sqlite.meta import SqliteMeta
from recollect.store.sqlite.overview import SqliteOverview
from recollect.store.sqlite.records import SqliteRecords
from recollect.store.sqlite.scopes import SqliteScopes
from recollect.store.sqlite.sessions import SqliteSessions
from recollect.store.sqlite.snapshot import SqliteIndexSnapshot
from recollect.store.sqlite.standing import SqliteStanding
from recollect.store.sqlite.statements import SqliteJudgements, SqliteOccurrences, SqliteStatements
from recollect.store.sqlite.supersessions import SqliteSupersessions
from recollect.store.sqlite.tiers import SqliteConsolidations, SqliteExperience, SqliteProcedures, SqliteWorking
from recollect.store.sqlite.vectors import SqliteVectors

if TYPE_CHECKING:
    from recollect.store.protocol import ReadOnlySql
    from recollect.store.values import Commit


class SqliteTransaction(Writer):
    """Made once for a connection and used for one transaction after the other; `path` is the store's, for messages."""

    def __init__(self, connection: apsw.Connection, path: str, numbers: WordNumbers) -> None:
        self.connection = connection
        self.path = path
        self.numbers = numbers
        # The commit at which the transaction of a caller began, inside it.
        self.began: Commit | None = None
        self.records = SqliteRecords(self)
        self.scopes = SqliteScopes(self)
        self.links = SqliteLinks(self)
        self.supersessions = SqliteSupersessions(self)
        self.statements = SqliteStatements(self)
        self.occurrences = SqliteOccurrences(self)
        self.judgements = SqliteJudgements(self)
        self.vectors = SqliteVectors(self)
        self.blocks = SqliteBlocks(self)
        self.changes = SqliteChanges(self)
        self.snapshot = SqliteIndexSnapshot(self)
        self.lexicon = SqliteLexicon(self)
        self.overview = SqliteOverview(self)
        self.standing = SqliteStanding(self)
        self.meta = SqliteMeta(self)
        self.documents = SqliteDocuments(self)
        self.sessions = SqliteSessions(self)
        self.consolidations = SqliteConsolidations(self)
        self.experience = SqliteExperience(self)
        self.procedures = SqliteProcedures(self)
        self.working = SqliteWorking(self)
        self.embedding_cache = SqliteEmbeddingCache(self)
        self.access_tokens = SqliteAccessTokens(self)
        self.erasure = SqliteErasure(self)

    @property
    def uncommitted(self) -> bool:
        return self.began is not None and self.changes.commit() != self.began

    def sql(self) -> ReadOnlySql:
        return _Statements(self.connection)


class _Statements:
    """What a custom strategy gets of a connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, bindings: Any = ()) -> apsw.Cursor:
        return self._connection.execute(statement, bindings)
