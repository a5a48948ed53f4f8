"""A store as the rows of its tables, read and written in the order of their keys."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from recallite.errors import StoreCorrupt, StoreError
from recallite.store.protocol.copying import CopiedPart, CopiedRow, CopyMark
from recallite.store.rows import stored_json
from recallite.store.sql.copied_tables import MESSAGE, META_KEYS, OWN_CONTENT, STATEMENT, TABLES, TERM, CopiedTable
from recallite.store.sql.rebuilding import open_epoch
from recallite.store.sql.repository import Repository
from recallite.store.sql.term_lists import numbers_in

if TYPE_CHECKING:
    from recallite.store.sql.transaction import SqlTransaction

_MARK = "unfinished_copy"
_BY_NAME = {table.name: table for table in TABLES}
_META = f"key IN ({', '.join(map(repr, META_KEYS))})"


class SqlPart(Repository):
    """The rows of a part of a store; of a whole one for `scope` '/'."""

    def __init__(self, transaction: SqlTransaction, part: CopiedPart, scope: str) -> None:
        super().__init__(transaction)
        self.tables = tuple(table.name for table in tables_of(part))
        self._scope = scope
        self._terms: Any = None

    def count(self, table: str) -> int:
        chosen, bound = self._chosen(_BY_NAME[table])
        return self._number(f"SELECT count(*) FROM {table} WHERE {chosen}", bound)

    def rows(self, table: str, after: CopiedRow | None) -> list[CopiedRow]:
        each = _BY_NAME[table]
        chosen, bound = self._chosen(each)
        key = ", ".join(each.key)
        if after is not None:
            places = [each.names.index(name) for name in each.key]
            chosen = f"({key}) > ({', '.join('?' * len(places))}) AND {chosen}"
            bound = (*(after[place] for place in places), *bound)
        read = self._rows(
            f"SELECT {', '.join(each.names)} FROM {table} WHERE {chosen} ORDER BY {key} LIMIT ?",
            (*bound, each.rows_a_block),
        )
        return self._checked(each, read)

    def _chosen(self, table: CopiedTable) -> tuple[str, tuple[Any, ...]]:
        """The condition on the rows of a table, and what it binds."""
        if table.name == "meta":
            return _META, ()
        if self._scope == "/":
            return "true", ()
        if table.name == TERM:
            if self._terms is None:
                self._terms = self._id_array(self._used_terms())
            return table.condition(self._scope)[0], (self._terms,)
        return table.condition(self._scope)

    def _used_terms(self) -> list[int]:
        """The numbers of the words that records of the scope have."""
        table = _BY_NAME["record_terms"]
        chosen, bound = table.condition(self._scope)
        used: set[int] = set()
        last = 0
        while rows := self._rows(
            f"SELECT record_id, terms FROM record_terms WHERE record_id > ? AND {chosen} ORDER BY record_id LIMIT ?",
            (last, *bound, table.rows_a_block),
        ):
            last = rows[-1][0]
            used.update(numbers_in([terms for _, terms in rows]).tolist())
        return sorted(used)

    def _checked(self, table: CopiedTable, rows: list[Any]) -> list[CopiedRow]:
        """Rows whose values have the types of their columns; SQLite's flags become those of Python."""
        flags = [place for place, (_, type, _) in enumerate(table.columns) if type == "b"]
        if flags:
            rows = [_with_flags(row, flags) for row in rows]
        for place, (name, _, _) in enumerate(table.columns):
            allowed = table.types[place]
            if not {type(row[place]) for row in rows} <= allowed:
                wrong = next(row for row in rows if type(row[place]) not in allowed)
                raise StoreCorrupt(
                    f"{self._tx.path}: {name} of {table.name} {wrong[0]!r:.60} is not what was stored: another program "
                    "changed it; correct or remove the row, or try: recallite rebuild"
                )
        return rows


class SqlCopying(Repository):
    """All tables that a copy takes over."""

    def of(self, part: CopiedPart, *, everything: bool = False) -> SqlPart:
        return SqlPart(self._tx, part, "/" if everything else part.scope)

    def mark(self) -> CopyMark | None:
        found = self._execute("SELECT value FROM meta WHERE key = ?", (_MARK,)).get
        return None if found is None else stored_json(found, f"the mark of a copy in {self._tx.path}", CopyMark)

    def holds(self, part: CopiedPart) -> str | None:
        for table in OWN_CONTENT:
            ours = table != "access_token" or part.access_tokens
            if ours and self._execute(f"SELECT EXISTS (SELECT 1 FROM {table})").get:
                return table
        return None

    def put(self, table: str, rows: Sequence[CopiedRow]) -> None:
        if not rows:
            return
        each = _BY_NAME[table]
        self._insert(each, rows)
        if table == MESSAGE:
            content = each.names.index("content")
            self._tx.sessions.add_words([(row[0], row[content]) for row in rows])
        elif table == STATEMENT:
            self._tx.statements.list_keys([row[0] for row in rows])

    def clear(self, part: CopiedPart) -> None:
        self._tx.snapshot.discard()
        self._tx.snapshot.erase_points()
        self._tx.sessions.drop_all_words()
        self._tx.statements.clear()
        for table in reversed(TABLES):
            if table.name == "meta":
                self._execute(f"DELETE FROM meta WHERE {_META}")
            elif table.name != "access_token" or part.access_tokens:
                self._execute(f"DELETE FROM {table.name}")
        self._tx.numbers.forget()
        self._tx.forget_known()

    def set_mark(self, mark: CopyMark | None) -> None:
        if mark is None:
            self._execute("DELETE FROM meta WHERE key = ?", (_MARK,))
            return
        self._execute(
            "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (_MARK, msgspec.json.encode(mark).decode()),
        )

    def finish(self, last_ids: dict[str, int]) -> None:
        self._number_from({table: last for table, last in last_ids.items() if table in _BY_NAME})
        open_epoch(self._tx)
        self._tx.numbers.forget()
        self._tx.changes.append("reload", 0)

    def _insert(self, table: CopiedTable, rows: Sequence[CopiedRow]) -> None:
        """Add rows to a table."""
        places = ", ".join("?" * len(table.columns))
        self._execute_many(f"INSERT INTO {table.name} ({', '.join(table.names)}) VALUES ({places})", rows)

    @abstractmethod
    def last_ids(self) -> dict[str, int]: ...

    @abstractmethod
    def _number_from(self, last_ids: dict[str, int]) -> None:
        """Have new rows of these tables get ids after these, and after those that are there."""


def tables_of(part: CopiedPart) -> list[CopiedTable]:
    """The tables of a part."""
    return [
        table
        for table in TABLES
        if (part.scope == "/" or table.chosen is not None) and (table.name != "access_token" or part.access_tokens)
    ]


def _with_flags(row: Any, places: Sequence[int]) -> CopiedRow:
    values = list(row)
    for place in places:
        if values[place] in (0, 1) and isinstance(values[place], int):
            values[place] = bool(values[place])
    return tuple(values)


def unfinished(path: str, mark: CopyMark) -> StoreError:
    """The error for an unfinished copy: what is written to it would be lost, and some of it is not there yet."""
    return StoreError(
        f"{path} is an unfinished copy of {mark.source}: finish it with recallite copy, or remove it and copy again"
    )
