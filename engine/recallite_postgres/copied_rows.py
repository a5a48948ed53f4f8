"""A store as the rows of its tables, read and written in the order of their keys: by this one store becomes another.

Rows keep their row ids, so that everything derived with them in it, and ties of recall, are the same in the copy.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from types import NoneType
from typing import Any

import msgspec

from recallite.errors import StoreCorrupt
from recallite.store.sql.derived import numbers_in
from recallite.store.sql.maintenance import open_epoch
from recallite.store.sql.meta import COPY_MARK, CopyMark
from recallite.store.sql.repository import IN_ARRAY, Repository, within
from recallite.store.sql.schema import TABLES, Table
from recallite.store.sqlite.transaction import SqliteTransaction
from recallite.store.transaction import Reader

CopiedRow = tuple[Any, ...]
# The rows of `meta` that a copy takes over; the others are each store's own.
_META = "key IN ('identity', 'purpose')"
# Rows that are read and written at a time; fewer in tables where a row may be large.
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
    if table.name in _ELSEWHERE:
        return _ELSEWHERE[table.name]
    return _of(*(f"{table.name}.{column}" for column in table.references_to("record")))


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
        """The tables of a copy of a scope, each after the tables that its rows refer to."""
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

    def place(self) -> None:
        """Move rows that this database has in another place than the one they were copied from."""

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
        key_indices = [columns.index(name) for name in key.split(", ")]
        limit = _LARGE_ROWS if table in _LARGE else _ROWS
        select = f"SELECT {', '.join(columns)} FROM {table} WHERE"
        while True:
            follows = "true" if after is None else f"({key}) > ({', '.join('?' * len(key_indices))})"
            last_key = () if after is None else tuple(after[i] for i in key_indices)
            rows = self._rows(f"{select} {follows} AND {condition} ORDER BY {key} LIMIT ?", (*last_key, *bound, limit))
            self._check(table, columns, rows)
            yield rows
            if not rows:
                return
            after = rows[-1]

    def set_mark(self, mark: CopyMark | None) -> None:
        """Mark the store as an unfinished copy, or (None) as finished."""
        self._execute("DELETE FROM meta WHERE key = ?", (COPY_MARK,))
        if mark is not None:
            self._execute("INSERT INTO meta VALUES (?, ?)", (COPY_MARK, msgspec.json.encode(mark).decode()))

    def content(self, *, access_tokens: bool) -> str | None:
        """A table with content that a copy would write to; None for an empty store."""
        for table in self.tables("/", access_tokens=access_tokens):
            if table not in _NO_CONTENT and self._execute(f"SELECT EXISTS (SELECT 1 FROM {table})").get:
                return table
        return None

    def clear(self, *, access_tokens: bool) -> None:
        """Remove all rows of the tables that a copy writes to."""
        self._tx.snapshot.discard()
        self._tx.statements.listed.clear()
        for table in reversed(self.tables("/", access_tokens=access_tokens)):
            self._execute(f"DELETE FROM {table} WHERE {_META if table == 'meta' else 'true'}")
        self._tx.numbers.forget()
        self._tx.forget_known()

    def put(self, table: str, columns: Sequence[str], rows: Sequence[CopiedRow]) -> None:
        """Add rows as they are, and what this store alone derives from them."""
        if not rows:
            return
        self._insert_many(table, ", ".join(columns), rows)
        if table == "statement":
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
            words: set[int] = set()
            for rows in self.blocks("record_terms", ("record_id", "terms"), scope):
                words.update(numbers_in([terms for _, terms in rows]).tolist())
            return condition, (self._id_array(sorted(words)),)
        path, bound = within(scope)
        return condition.replace(_PATH, path), bound * condition.count(_PATH)

    def _check(self, table: str, columns: Sequence[str], rows: list[Any]) -> None:
        """Refuse values that are not of their column's type, if the database does not."""

    @abstractmethod
    def _number_from(self, last_ids: dict[str, int]) -> None:
        """Have new rows of these tables get ids after these and after all stored ones."""


# Copies: the columns of SQLite's tables, whose values are checked, and the numbers from which it goes on.

_PYTHON_TYPES: dict[str, type] = {
    **dict.fromkeys(("SERIAL", "NEW_ID", "ID", "FLAG", "INTEGER"), int), "REAL": float, "TEXT": str, "BLOB": bytes,
}  # fmt: skip


class SqliteCopying(Copying):
    """Every table that a copy takes over, and the last row ids in `meta` and `sqlite_sequence`."""

    _tx: SqliteTransaction

    def _check(self, table: str, columns: Sequence[str], rows: list[Any]) -> None:
        for i, name in enumerate(columns):
            types = {_PYTHON_TYPES[COPIED[table].columns[name][0]]}
            if COPIED[table].may_be_null(name):
                types.add(NoneType)
            if not {type(row[i]) for row in rows} <= types:
                wrong = next(row for row in rows if type(row[i]) not in types)
                raise StoreCorrupt(
                    f"{self._tx.path}: {name} of {table} {wrong[0]!r:.60} is not what was stored: another program "
                    "changed it; correct or remove the row, or try: recallite rebuild"
                )

    def clear(self, *, access_tokens: bool) -> None:
        super().clear(access_tokens=access_tokens)
        self._tx.records.texts.clear()

    def put(self, table: str, columns: Sequence[str], rows: Sequence[CopiedRow]) -> None:
        super().put(table, columns, rows)
        if table == "record" and rows:
            id = columns.index("id")
            self._tx.records.list_texts(rows[0][id], rows[-1][id])

    def last_ids(self) -> dict[str, int]:
        """Return the last row numbers given, as `meta` and `sqlite_sequence` have them."""
        given = {name: last for name, last in self._tx.read_last_ids().items() if last}
        return dict(self._rows("SELECT name, seq FROM sqlite_sequence")) | given

    def _number_from(self, last_ids: dict[str, int]) -> None:
        for table, last in last_ids.items():
            self._tx.number_from(table, last)
            # Only tables that never use an id again have a row there, once they have had one.
            numbered = self._execute(
                "SELECT 1 FROM sqlite_schema WHERE name = ? AND sql LIKE '%AUTOINCREMENT%'", (table,)
            )
            if not numbered.fetchall():
                continue
            self._execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (last, table))
            if not self._connection.changes():
                self._execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, last))


# Copies: the tags of scopes that one brings, and the sequences that go on after it.

_NUMBERED = [name for name, table in COPIED.items() if table.key == "id"]


class PostgresCopying(Copying):
    """Every table that a copy takes over."""

    def lift_time_limits(self) -> None:
        """Set them for this transaction."""
        self._execute(
            "SELECT set_config('statement_timeout', '0', true), "
            "set_config('idle_in_transaction_session_timeout', '0', true)"
        )

    def clear(self, *, access_tokens: bool) -> None:
        self.lift_time_limits()
        super().clear(access_tokens=access_tokens)

    def put(self, table: str, columns: Sequence[str], rows: Sequence[CopiedRow]) -> None:
        flags = {name for name, (kind, _) in COPIED[table].columns.items() if kind == "FLAG"}
        if flags:
            flag_indices = {i for i, name in enumerate(columns) if name in flags}
            rows = [tuple(bool(it) if i in flag_indices else it for i, it in enumerate(row)) for row in rows]
        super().put(table, columns, rows)
        if table == "record_tag" and rows:
            self._execute("SELECT note_tags(?)", (self._id_array([row[columns.index("record_id")] for row in rows]),))

    def place(self) -> None:
        """Put the past of memories that moved where they are now: see `PostgresRecords._past_scope`."""
        rows = self._rows(
            "SELECT v.id, v.source_id, o.scope_id, o.source_id FROM record v JOIN record o "
            "ON o.public_id = v.public_id AND o.recorded_until IS NULL "
            "WHERE v.recorded_until IS NOT NULL AND v.scope_id != o.scope_id"
        )
        if rows:
            self._execute_many(
                "UPDATE record SET scope_id = ?, source_id = ? WHERE id = ?",
                [(scope_id, source_id, row_id) for row_id, _, scope_id, source_id in rows],
            )
            self._execute("SELECT note_tags(?)", (self._id_array([row[0] for row in rows]),))
            self._tx.scopes.drop_empty_sources({row[1] for row in rows})
            self._tx.changes.append("reload", 0)

    def last_ids(self) -> dict[str, int]:
        """Return the last row numbers given, as the sequences have them."""
        rows = self._rows(
            "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = current_schema() "
            "AND last_value IS NOT NULL"
        )
        last_values = dict(rows)
        return {table: last_values[f"{table}_id_seq"] for table in _NUMBERED if f"{table}_id_seq" in last_values}

    def _number_from(self, last_ids: dict[str, int]) -> None:
        for table in _NUMBERED:
            last = max(last_ids.get(table, 0), self._number(f"SELECT coalesce(max(id), 0) FROM {table}"))
            if last:
                self._execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), ?)", (last,))


def rows_of(transaction: Reader) -> Copying:
    """The tables of a transaction, to be copied from and to."""
    kind = SqliteCopying if isinstance(transaction, SqliteTransaction) else PostgresCopying
    return kind(transaction)  # type: ignore[arg-type]
