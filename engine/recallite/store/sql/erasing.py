"""Erasure with proof: what is stored of some records, removed with everything that only they had."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from recallite.errors import InvalidInput
from recallite.store.byte_search import LEAST_BYTES
from recallite.store.sql.rebuilding import drop_unused
from recallite.store.sql.repository import IN_ARRAY, INSIDE, Repository, within
from recallite.store.sql.schema import TABLES
from recallite.store.sql.term_lists import numbers_in
from recallite.store.values import Erased

# The size of the pieces of a longer value, and their distance.
_PIECE_BYTES = 32
_EVERY_BYTES = 2048
_TEXTS = "text, context, topic, metadata, public_id"
_VECTORS = (
    "SELECT value FROM vector WHERE record_id IN (SELECT value FROM carray(?1))",
    "SELECT c.codes FROM vector v JOIN token_code c ON c.vector_id = v.id "
    "WHERE v.record_id IN (SELECT value FROM carray(?1))",
)
_BESIDE = (
    "SELECT text FROM occurrence WHERE record_id IN (SELECT value FROM carray(?1))",
    *(
        f"SELECT reason FROM {table} WHERE {old} IN (SELECT value FROM carray(?1)) OR {new} IN "
        "(SELECT value FROM carray(?1))"
        for table, old, new in (
            ("link", "source_id", "target_id"), ("supersession", "old_id", "new_id"), ("judgement", "old_id", "new_id"),
        )
    ),
)  # fmt: skip
_NAMES = {
    ("term", "text"): f"SELECT text FROM term WHERE id {IN_ARRAY}",
    ("tag", "name"): f"SELECT name FROM tag WHERE id IN (SELECT tag_id FROM record_tag WHERE record_id {IN_ARRAY})",
    ("source", "name"): f"SELECT name FROM source WHERE id IN (SELECT source_id FROM record WHERE id {IN_ARRAY})",
    ("scope", "path"): f"SELECT path FROM scope WHERE id IN (SELECT scope_id FROM record WHERE id {IN_ARRAY})",
}
# What the services keep of a scope, as columns by table.
_OF_SCOPES = {
    "session": ("name",),
    "session_snapshot": ("messages", "summary", "key_decisions"),
    "tool_pattern": ("task_type", "pattern"),
    "error_recovery": ("error_pattern", "error", "recovery"),
    "working_state": ("items",),
}
_IN_SCOPES = [table.name for table in TABLES if "scope_id" in table.columns]


class Erasure(Repository):
    """Erasure of records in a write transaction; a database's proof searches for what it collected."""

    def begin(self, record_ids: Sequence[int], scopes: Iterable[str]) -> Erased:
        """Note what is stored of these open records and, for whole scopes, of their services."""
        if self._tx.began is not None:  # before anything is deleted
            raise InvalidInput(INSIDE)
        traces = self._traces(record_ids, scopes)
        traces.ids = tuple(self._tx.records.public_ids(record_ids))
        traces.rows = self._rows_by_table()
        traces.had_snapshot = self._has_snapshot()
        self._tx.synced.forget_names(traces.ids)
        self._execute(
            f"DELETE FROM embedding_cache WHERE content_hash IN (SELECT content_hash FROM record WHERE id {IN_ARRAY})",
            (self._id_array(self._with_versions(record_ids)),),
        )
        return traces

    def finish(self, erased: Erased) -> None:
        """Remove what the deletion has left unused, and count what is gone."""
        self._drop_unused_scopes()
        self._drop_unused()
        self._add_names_gone(erased)
        now = self._rows_by_table()
        erased.rows = {table: rows - now[table] for table, rows in erased.rows.items() if rows != now[table]}

    def found_in_tables(self, pieces: Iterable[bytes]) -> tuple[dict[str, int], set[bytes]]:
        """The rows that hold any of these bytes, as {"table.column": rows}, and the byte sequences that they hold."""
        rows: dict[str, int] = {}
        present: set[bytes] = set()
        sought = [*pieces]
        for table, column, holds in self._searched() if sought else ():
            here = self._column(
                f'SELECT s.value FROM carray(?) s WHERE EXISTS (SELECT 1 FROM "{table}" t WHERE {holds})',
                (self._byte_array(sought),),
            )
            if here:
                present.update(here)
                rows[f"{table}.{column}"] = self._number(
                    f'SELECT count(*) FROM "{table}" t WHERE EXISTS (SELECT 1 FROM carray(?) s WHERE {holds})',
                    (self._byte_array(here),),
                )
        return rows, present

    @abstractmethod
    def _searched(self) -> Iterator[tuple[str, str, str]]:
        """The tables and columns that may hold content, and for each the condition that a row `t` holds `s.value`."""

    def _traces(self, record_ids: Sequence[int], scopes: Iterable[str]) -> Erased:
        """The stored traces of these open records with their closed versions, and of the services in `scopes`."""
        erased = Erased()
        versions = self._with_versions(record_ids)
        rows = list(self._execute(f"SELECT {_TEXTS} FROM record WHERE id {IN_ARRAY}", (self._id_array(versions),)))
        for statement in (*_VECTORS, *_BESIDE):
            rows += self._execute(statement, (self._id_array(versions),))
        for (table, column), statement in _NAMES.items():
            ids = self._terms(versions) if table == "term" else versions
            erased.names[table, column] = {name for (name,) in self._execute(statement, (self._id_array(ids),))}
        for scope in scopes:
            condition, bound = within(scope)
            inside = f"scope_id IN (SELECT id FROM scope WHERE {condition})"
            statements = [
                f"SELECT {', '.join(names)} FROM {table} WHERE {inside}" for table, names in _OF_SCOPES.items()
            ]
            statements.append(
                "SELECT content, message FROM session_message WHERE session_id IN "
                f"(SELECT id FROM session WHERE {inside})"
            )
            statements.append(
                f"SELECT title, d.metadata, o.name FROM document d JOIN source o ON o.id = d.source_id WHERE o.{inside}"
            )
            for statement in statements:
                rows += self._execute(statement, bound)
        for row in rows:
            for value in row:
                _add(erased, value)
        return erased

    def _add_names_gone(self, erased: Erased) -> None:
        """Note the names that are gone by now; a word that is in a message of a session is not."""
        for (table, column), names in erased.names.items():
            rows: Any = self._execute(
                f"SELECT {column} FROM {table} WHERE {column} {IN_ARRAY}",
                (self._array([*names]),),
            )
            for name in names - {row[0] for row in rows}:
                if len(name.encode()) >= LEAST_BYTES and not (table == "term" and self._in_a_message(name)):
                    _add(erased, name)

    def _drop_unused_scopes(self) -> None:
        unused = " AND ".join(
            f"NOT EXISTS (SELECT 1 FROM {table} t WHERE t.scope_id = scope.id)" for table in _IN_SCOPES
        )
        self._execute(f"DELETE FROM scope WHERE path != '/' AND {unused}")
        if self._connection.changes():
            self._tx.changes.append("reload", 0)  # their numbers may be used again

    def _rows_by_table(self) -> dict[str, int]:
        return {name: self._execute(f'SELECT count(*) FROM "{name}"').get for name in self._tables()}

    def _terms(self, record_ids: Sequence[int]) -> list[int]:
        """The numbers of the words of these records."""
        lists = self._column(
            f"SELECT terms FROM record_terms WHERE record_id {IN_ARRAY}",
            (self._id_array(record_ids),),
        )
        numbers: list[int] = numbers_in(lists).tolist()
        return numbers

    def _with_versions(self, record_ids: Sequence[int]) -> list[int]:
        return [*record_ids, *self._tx.records.closed_versions(record_ids)]

    def _has_snapshot(self) -> bool:
        """Whether there is a snapshot of the index, which goes with the records."""
        return False

    def _drop_unused(self) -> None:
        """Remove the words and tags that nothing has."""
        drop_unused(self._tx)

    @abstractmethod
    def _tables(self) -> list[str]:
        """The tables whose rows are counted."""

    @abstractmethod
    def _in_a_message(self, word: str) -> bool:
        """Whether a message of a session has a word."""


def _add(erased: Erased, value: object) -> None:
    """Note the beginning, the end and places between of a text or BLOB."""
    data = value.encode() if isinstance(value, str) else value
    if not isinstance(data, bytes) or not data:
        return
    if len(data) < LEAST_BYTES:
        erased.skipped += 1
        return
    for start in (*range(0, len(data), _EVERY_BYTES), max(0, len(data) - _PIECE_BYTES)):
        piece = data[start : start + _PIECE_BYTES]
        if len(piece) >= LEAST_BYTES and any(piece):
            erased.pieces.add(piece)
