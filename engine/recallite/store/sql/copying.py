"""A store as the rows of its tables, read and written in the order of their keys: by this one store becomes another.

Rows keep their row ids, so that everything derived with them in it, and ties of recall, are the same in the copy.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from recallite.errors import StoreError
from recallite.store.rows import stored_json
from recallite.store.sql.rebuilding import open_epoch
from recallite.store.sql.repository import IN_ARRAY, Repository, within
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


class _Table(NamedTuple):
    """The key of a table, and the condition on the rows of a scope; None: a copy of a scope leaves the table out."""

    key: str
    scoped: str | None


# Each after those that its rows refer to.
TABLES = {
    "meta": _Table("key", None),
    "scope": _Table("id", _PATH),
    "kind": _Table("id", f"EXISTS (SELECT 1 FROM record r WHERE r.kind = kind.name AND r.{_SCOPED})"),
    "source": _Table("id", _SCOPED),
    "embedder": _Table("id", "true"),
    # The words of a scope are in arrays.
    "term": _Table("id", f"id {IN_ARRAY}"),
    "tag": _Table("id", f"EXISTS (SELECT 1 FROM record_tag p WHERE p.tag_id = tag.id AND {_of('p.record_id')})"),
    "record": _Table("id", _SCOPED),
    "record_tag": _Table("record_id, place", _of("record_tag.record_id")),
    "access": _Table("record_id", _of("access.record_id")),
    "record_terms": _Table("record_id", _of("record_terms.record_id")),
    "standing": _Table("record_id", _of("standing.record_id")),
    "statement": _Table("record_id", _of("statement.record_id")),
    "occurrence": _Table("id", _of("occurrence.record_id")),
    "link": _Table("source_id, target_id, type", _of("link.source_id", "link.target_id")),
    "supersession": _Table("id", _of("supersession.old_id", "supersession.new_id")),
    "judgement": _Table("old_id, new_id", _of("judgement.old_id", "judgement.new_id")),
    "uncompared": _Table(
        "first_id",
        "EXISTS (SELECT 1 FROM record r WHERE r.id BETWEEN uncompared.first_id AND uncompared.last_id "
        f"AND r.{_SCOPED})",
    ),
    "vector": _Table("id", _of("vector.record_id")),
    "token_code": _Table(
        "vector_id", f"EXISTS (SELECT 1 FROM vector v WHERE v.id = token_code.vector_id AND {_of('v.record_id')})"
    ),
    "refusal": _Table("record_id, embedder_id", _of("refusal.record_id")),
    "session": _Table("id", _SCOPED),
    "session_message": _Table("id", f"EXISTS (SELECT 1 FROM session s WHERE s.id = session_id AND s.{_SCOPED})"),
    "session_snapshot": _Table("id", _SCOPED),
    "procedure_use": _Table("record_id", _of("procedure_use.record_id")),
    "tool_pattern": _Table("scope_id, task_type, pattern", _SCOPED),
    "error_recovery": _Table("scope_id, tool, error_pattern", _SCOPED),
    "consolidation": _Table("id", _SCOPED),
    "working_state": _Table("scope_id", _SCOPED),
    "document": _Table("id", f"EXISTS (SELECT 1 FROM source s WHERE s.id = source_id AND s.{_SCOPED})"),
    "access_token": _Table("id", f"EXISTS (SELECT 1 FROM (SELECT access_token.scope AS path) own WHERE {_PATH})"),
    # Of texts that may have been in any scope.
    "embedding_cache": _Table("id", None),
}
# Rows that stay in a store when its content is forgotten.
_NO_CONTENT = frozenset({"meta", "scope", "kind", "embedder", "term", "tag", "uncompared", "embedding_cache"})


class Copying(Repository):
    """Every table that a copy takes over."""

    def tables(self, scope: str, *, access_tokens: bool) -> list[str]:
        """The tables of a copy of a scope, each after those that its rows refer to."""
        return [
            name
            for name, table in TABLES.items()
            if (scope == "/" or table.scoped is not None) and (name != "access_token" or access_tokens)
        ]

    @abstractmethod
    def columns(self, table: str) -> list[str]:
        """The columns of a table that are not derived from others of its row."""

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
        key = TABLES[table].key
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
        self._number_from({table: last for table, last in last_ids.items() if table in TABLES})
        open_epoch(self._tx)
        self._tx.numbers.forget()
        self._tx.changes.append("reload", 0)

    def _condition(self, table: str, scope: str) -> tuple[str, tuple[Any, ...]]:
        """The condition on the rows of a scope, and what it binds."""
        if table == "meta":
            return _META, ()
        if scope == "/":
            return "true", ()
        condition = TABLES[table].scoped
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
