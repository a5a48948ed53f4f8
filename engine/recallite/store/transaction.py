"""Transactions: the repositories of a store on one connection.

`Store.read()` yields a `Reader` and `Store.atomic()` a `Writer`; the repositories are their attributes. The database
refuses to write on a reader's own connection. Row ids grow with time and are never reused, but need not be consecutive.
`tests/unit/core/store/contract/` holds the promises of every store.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from typing import Any, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray

from recallite.store.columns import Derive
from recallite.store.sql.blocks import Blocks
from recallite.store.sql.derived import Lexicon, Statements, WordNumbers
from recallite.store.sql.maintenance import Erasure
from recallite.store.sql.meta import AccessTokens, Changes, Commit, IndexSnapshot, Meta, Scopes, Synced
from recallite.store.sql.records import Records
from recallite.store.sql.relations import Comparisons, Links, Supersessions
from recallite.store.sql.repository import Conditions, Repository, SqlConnection
from recallite.store.sql.services import Documents, Sessions, Tiers
from recallite.store.sql.vectors import EmbeddingCache, Vectors

Known = TypeVar("Known")


class Reader(ABC):
    """A read transaction: all reads see the same commit."""

    access_tokens: AccessTokens
    blocks: Blocks
    changes: Changes
    comparisons: Comparisons
    documents: Documents
    embedding_cache: EmbeddingCache
    lexicon: Lexicon
    links: Links
    meta: Meta
    records: Records
    scopes: Scopes
    sessions: Sessions
    snapshot: IndexSnapshot
    statements: Statements
    supersessions: Supersessions
    synced: Synced
    tiers: Tiers
    vectors: Vectors

    @property
    @abstractmethod
    def sees_one_commit(self) -> bool:
        """Whether no other writer can commit what this transaction sees, until it asks for the newest commit."""

    connection: SqlConnection
    # The commit at which the transaction of a caller began, inside it.
    began: Commit | None = None

    @property
    def uncommitted(self) -> bool:
        """Whether it sees what was written in the `Store.transaction` that this thread is inside."""
        return self.began is not None and not self.changes.matches(self.began)

    def sql(self, statement: str, bindings: Any = ()) -> Iterable[Sequence[Any]]:
        """The rows of a statement over the documented views, to be read once."""
        return self.connection.execute(statement, bindings)


class Writer(Reader):
    """A write transaction: it sees its own writes, and commits all of them or none.

    It is made once for a connection and used for one transaction after the other; `path` is the store's, for messages.
    It has the repositories that its annotations name; a database names the ones that it implements itself.
    """

    erasure: Erasure

    def __init__(
        self, connection: SqlConnection, path: str, numbers: WordNumbers, conditions: Conditions, derive: Derive
    ) -> None:
        self.connection = connection
        self.path = path
        # The type of stored vectors of new embedders: float32 or float16.
        self.vector_type = "float32"
        self.numbers = numbers
        self.derive = derive
        self.conditions = conditions
        for name, repository in _repositories(type(self)).items():
            setattr(self, name, repository(self))

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
    def insert(self, table: str, columns: str, rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows of these columns, many at once if the database can; without a row nothing is prepared."""

    @abstractmethod
    def add_names(self, table: str, column: str, names: Sequence[str]) -> dict[str, int]:
        """Add the names that a table lacks; returns their numbers, or nothing if the database does not tell them."""


@cache
def _repositories(transaction: type[Writer]) -> dict[str, type[Repository]]:
    """The repositories that the annotations of a class of transactions name."""
    hints = get_type_hints(transaction).items()
    return {name: hint for name, hint in hints if isinstance(hint, type) and issubclass(hint, Repository)}
