"""A store as the rows of its tables, read and written in the order of their keys: by this one store becomes another.

Rows keep their row ids, so that everything derived with them in it, and ties of recall, are the same in the copy.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from recallite.errors import StoreError
from recallite.store.rows import stored_json
from recallite.store.sql.rebuilding import open_epoch
from recallite.store.sql.repository import IN_ARRAY, Repository, within
from recallite.store.sql.schema import TABLES, Table
from recallite.store.sql.term_lists import numbers_in
from recallite.store.values import CopyMark

CopiedRow = tuple[Any, ...]
_MARK = "unfinished_copy"
# The rows of `meta` that a copy takes over; the others are each store's own.
_META = "key IN ('identity', 'purpose')"
# Rows that are read and written at a time; of tables whose rows may be large, fewer.
_ROWS = 4096
_LARGE_ROWS = 512
_LARGE = frozenset(
    {"record", "occurrence", "session_message", "session_snapshot", "working_state", "document", "embedding_cache"}
)
_PATH = "{path is within}"
_SCOPED = f"scope_id IN (SELECT id FROM scope WHERE {_PATH})"


def _of(column: str, *others: str) -> str:
    """The condition that columns, each with its table, name records of the scope."""
    condition = f"EXISTS (SELECT 1 FROM record r WHERE r.id = {column} AND r.{_SCOPED})"
    return " AND ".join([condition, *map(_of, others)])


def _scoped(table: Table) -> str | None:
    """The condition on the rows of a scope that follows from what rows belong to."""
    if "scope_id" in table.columns:
        return _SCOPED
    records = table.references_to("record")
    return _of(*(f"{table.name}.{column}" for column in records)) if records else _ELSEWHERE[table.name]


# The conditions for other tables; None: a copy of a scope leaves the table out.
_ELSEWHERE: dict[str, str | None] = {
    "meta": None,
    "scope": _PATH,
    "kind": f"EXISTS (SELECT 1 FROM record r WHERE r.kind = kind.name AND r.{_SCOPED})",
    "embedder": "true",
    # The words of a scope are in arrays.
    "term": f"id {IN_ARRAY}",
    "tag": f"EXISTS (SELECT 1 FROM record_tag p WHERE p.tag_id = tag.id AND {_of('p.record_id')})",
    "uncompared": "EXISTS (SELECT 1 FROM record r WHERE r.id BETWEEN uncompared.first_id AND uncompared.last_id "
    f"AND r.{_SCOPED})",
    "token_code": f"EXISTS (SELECT 1 FROM vector v WHERE v.id = token_code.vector_id AND {_of('v.record_id')})",
    "session_message": f"EXISTS (SELECT 1 FROM session s WHERE s.id = session_id AND s.{_SCOPED})",
    "document": f"EXISTS (SELECT 1 FROM source s WHERE s.id = source_id AND s.{_SCOPED})",
    "access_token": f"EXISTS (SELECT 1 FROM (SELECT access_token.scope AS path) own WHERE {_PATH})",
    # Of texts that may have been in any scope.
    "embedding_cache": None,
}
COPIED = {table.name: table for table in TABLES if table.name not in ("feed", "synced")}
"""The tables of a copy, each after those that its rows refer to."""
_CONDITIONS = {name: _scoped(table) for name, table in COPIED.items()}
# Rows that stay in a store when its content is forgotten.
_NO_CONTENT = frozenset({"meta", "scope", "kind", "embedder", "term", "tag", "uncompared", "embedding_cache"})


class Copying(Repository):
    """Every table that a copy takes over."""

    def tables(self, scope: str, *, access_tokens: bool) -> list[str]:
        """The tables of a copy of a scope, each after those that its rows refer to."""
        return [
            name
            for name, condition in _CONDITIONS.items()
            if (scope == "/" or condition is not None) and (name != "access_token" or access_tokens)
        ]

    def columns(self, table: str) -> list[str]:
        """The columns of a table."""
        return [*COPIED[table].columns]

    @abstractmethod
    def last_ids(self) -> dict[str, int]:
        """The last row id that each table has given to a row, present or not; tables that gave none are absent."""

    def lift_time_limits(self) -> None:
        """Let this transaction take as long as a copy takes."""

    def count(self, table: str, scope: str) -> int:
        """The number of rows that a table has of a scope."""
        condition, bound = self._condition(table, scope)
        return self._number(f"SELECT count(*) FROM {table} WHERE {condition}", bound)

    def blocks(
        self, table: str, columns: Sequence[str], scope: str, after: CopiedRow | None = None
    ) -> Iterator[list[CopiedRow]]:
        """The rows of a scope after one of them (None: all), block by block; the last block is empty.

        Raises StoreCorrupt for a row that is not what was stored.
        """
        condition, bound = self._condition(table, scope)
        key = COPIED[table].key
        key_places = [columns.index(name) for name in key.split(", ")]
        limit = _LARGE_ROWS if table in _LARGE else _ROWS
        select = f"SELECT {', '.join(columns)} FROM {table} WHERE"
        while True:
            follows = "true" if after is None else f"({key}) > ({', '.join('?' * len(key_places))})"
            last_key = () if after is None else tuple(after[place] for place in key_places)
            rows = self._rows(f"{select} {follows} AND {condition} ORDER BY {key} LIMIT ?", (*last_key, *bound, limit))
            self._check(table, columns, rows)
            yield rows
            if not rows:
                return
            after = rows[-1]

    def mark(self) -> CopyMark | None:
        """The mark of a store that is an unfinished copy."""
        stored = self._execute("SELECT value FROM meta WHERE key = ?", (_MARK,)).get
        return None if stored is None else stored_json(stored, f"the mark of a copy in {self._tx.path}", CopyMark)

    def set_mark(self, mark: CopyMark | None) -> None:
        """Mark the store as an unfinished copy, or (None) as finished."""
        self._execute("DELETE FROM meta WHERE key = ?", (_MARK,))
        if mark is not None:
            self._execute("INSERT INTO meta VALUES (?, ?)", (_MARK, msgspec.json.encode(mark).decode()))

    def content(self, *, access_tokens: bool) -> str | None:
        """A table with content that a copy would write to; None for an empty store."""
        for table in self.tables("/", access_tokens=access_tokens):
            if table not in _NO_CONTENT and self._execute(f"SELECT EXISTS (SELECT 1 FROM {table})").get:
                return table
        return None

    def clear(self, *, access_tokens: bool) -> None:
        """Remove all rows of the tables that a copy writes to."""
        self._tx.snapshot.discard()
        self._tx.sessions.drop_all_words()
        self._tx.statements.clear()
        for table in reversed(self.tables("/", access_tokens=access_tokens)):
            self._execute(f"DELETE FROM {table} WHERE {_META if table == 'meta' else 'true'}")
        self._tx.numbers.forget()
        self._tx.forget_known()

    def put(self, table: str, columns: Sequence[str], rows: Sequence[CopiedRow]) -> None:
        """Add rows as they are, and what this store alone derives from them."""
        if not rows:
            return
        self._insert_many(table, ", ".join(columns), rows)
        if table == "session_message":
            id, content = columns.index("id"), columns.index("content")
            self._tx.sessions.add_words([(row[id], row[content]) for row in rows])
        elif table == "statement":
            self._tx.statements.list_keys([row[columns.index("record_id")] for row in rows])

    def finish(self, last_ids: dict[str, int]) -> None:
        """Have new rows get ids after these, and whoever has the store open read everything again."""
        self._number_from({table: last for table, last in last_ids.items() if table in COPIED})
        open_epoch(self._tx)
        self._tx.numbers.forget()
        self._tx.changes.append("reload", 0)

    def _condition(self, table: str, scope: str) -> tuple[str, tuple[Any, ...]]:
        """The condition on the rows of a scope, and what it binds."""
        if table == "meta":
            return _META, ()
        if scope == "/":
            return "true", ()
        condition = _CONDITIONS[table]
        assert condition is not None
        if table == "term":
            return condition, (self._id_array(self._terms_of(scope)),)
        path, bound = within(scope)
        return condition.replace(_PATH, path), bound * condition.count(_PATH)

    def _terms_of(self, scope: str) -> list[int]:
        """The numbers of the words that records of a scope have."""
        numbers: set[int] = set()
        for rows in self.blocks("record_terms", ("record_id", "terms"), scope):
            numbers.update(numbers_in([terms for _, terms in rows]).tolist())
        return sorted(numbers)

    def _check(self, table: str, columns: Sequence[str], rows: list[Any]) -> None:
        """Refuse values that are not of their column's type, if the database does not."""

    @abstractmethod
    def _number_from(self, last_ids: dict[str, int]) -> None:
        """Have new rows of these tables get ids after these, and after those that are there."""


def unfinished(path: str, mark: CopyMark) -> StoreError:
    """The error for an unfinished copy: what is written to it would be lost, and some of it is not there yet."""
    return StoreError(
        f"{path} is an unfinished copy of {mark.source}: finish it with recallite copy, or remove it and copy again"
    )
