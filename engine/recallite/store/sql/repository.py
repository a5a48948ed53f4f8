"""The base of repositories: their transaction, short ways to ask its connection, and filters as SQL conditions.

Statements are written once, in the part of SQL that SQLite and PostgreSQL have in common, with `?` for a bound value
and `carray(?)` for an array of them, which PostgreSQL has as a function of the schema. `CROSS JOIN ... ON` and
`NOT INDEXED` tell SQLite's planner in which order to read; PostgreSQL plans without them.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar

import msgspec
from msgspec import Struct

from recallite.errors import StoreCorrupt
from recallite.model.checks import EARLIEST_US, LATEST_US
from recallite.model.filters import (
    CHUNK_KIND,
    MESSAGE_KIND,
    And,
    Comparison,
    Expression,
    Filter,
    Not,
    Versions,
    metadata_keys,
)
from recallite.system.messages import shown

if TYPE_CHECKING:
    from recallite.store.transaction import Writer


INSIDE = "this is not possible inside transaction(): call it before or after"
"""The message for what a database cannot do in a transaction, or what would end it."""
NEVER = NO_LIMIT = 2**63 - 1
"""The time that stands for none in arrays, and a LIMIT that both databases read as none."""
IN_ARRAY = "IN (SELECT value FROM carray(?))"
"""The condition that a column has one of the values of an array."""
# Microseconds since 1970 that a datetime can show.
Moment = Annotated[int, msgspec.Meta(ge=EARLIEST_US, le=LATEST_US)]
_PLACE = re.compile(r"`\$\[(\d+)\]")
Typed = TypeVar("Typed")


# Rows of any table, checked against their types: values of another program raise StoreCorrupt here instead of failing
# later.


def read_row(row: tuple[Any, ...], type: type[Typed], table: str) -> Typed:
    """A row as the NamedTuple `type`; StoreCorrupt, which names it by its first column, if a value has another type."""
    try:
        return msgspec.convert(row, type)
    except msgspec.ValidationError as fault:
        place = _PLACE.search(str(fault))
        column = "a column" if place is None else type._fields[int(place[1])]  # type: ignore[attr-defined]
        raise StoreCorrupt(
            f"{table} {shown(row[0])}: {column} is not what was stored ({fault}): another program changed it; "
            "correct or remove the row"
        ) from None


def read_rows(rows: Iterable[tuple[Any, ...]], type: type[Typed], table: str) -> list[Typed]:
    """`read_row` of each."""
    rows = [*rows]
    try:
        return msgspec.convert(rows, list[type])  # type: ignore[valid-type]
    except msgspec.ValidationError:  # which row it is takes longer to find
        return [read_row(row, type, table) for row in rows]


def stored_json(text: object, what: str, type: type[Typed]) -> Typed:
    """Stored JSON as `type`; StoreCorrupt if another program has changed it."""
    try:
        return msgspec.json.decode(text if isinstance(text, str) else b"", type=type)
    except (msgspec.DecodeError, RecursionError) as fault:
        raise StoreCorrupt(f"{what} is not what was stored ({fault}): another program changed it") from None


_first = itemgetter(0)


class Rows(Protocol):
    """The rows that a statement returned."""

    @property
    def get(self) -> Any:
        """The value of the first row, or the row where it has several; None without a row."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchone(self) -> Any:
        """The next row; None without one."""

    def fetchall(self) -> list[Any]:
        """The rows that are left."""


class SqlConnection(Protocol):
    """A connection to a database, as the repositories use it."""

    def execute(self, sql: str, bindings: Any = ()) -> Rows:
        """Run a statement."""

    def executemany(self, sql: str, rows: Iterable[Any]) -> Any:
        """Run a statement for each row of values."""

    def changes(self) -> int:
        """The number of rows that the last statement inserted, updated or deleted."""


class Repository:
    """Part of a transaction."""

    def __init__(self, transaction: Writer) -> None:
        self._tx = transaction
        self._connection = transaction.connection
        self._execute = transaction.connection.execute
        self._insert_many = transaction.insert
        self._id_array = transaction.id_array
        self._array = transaction.array
        self._byte_array = transaction.byte_array

    def _execute_many(self, sql: str, rows: Iterable[Any]) -> None:
        """Run a statement for each of some rows. Without a row it is not even prepared, which takes 3 to 10 us."""
        if not isinstance(rows, list) or rows:
            self._connection.executemany(sql, rows)

    def _rows(self, sql: str, bindings: Any = ()) -> list[Any]:
        return self._execute(sql, bindings).fetchall()

    def _column(self, sql: str, bindings: Any = ()) -> list[Any]:
        return [*map(_first, self._execute(sql, bindings))]

    def _number(self, sql: str, bindings: Any = ()) -> int:
        return int(self._execute(sql, bindings).get)


@cache
def insert_sql(table: str, columns: str) -> str:
    """The statement that inserts a row of these columns."""
    return f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * (columns.count(',') + 1))})"


def columns_sql(names: Sequence[str], sql: Mapping[str, str] | None = None, *, of: str = "r") -> str:
    """The columns of these names, of the table `of` unless `sql` says otherwise, with its scope `s` and source `o`."""
    elsewhere = {"scope": "s.path", "source": "o.name", **(sql or {})}
    return ", ".join(elsewhere.get(name, f"{of}.{name}") for name in names)


def within(scope: str) -> tuple[str, tuple[str, ...]]:
    """The condition on `path` that holds for a scope and its descendants, and what it binds."""
    if scope == "/":
        return "true", ()
    # '0' follows '/' in ASCII, so the range holds exactly what starts with scope + '/'.
    return "(path = ? OR (path >= ? AND path < ?))", (scope, scope + "/", scope + "0")


WITHIN = "carray(?) j JOIN scope s ON s.path = j.value OR (s.path >= j.value || '/' AND s.path < j.value || '0')"
"""Selects the scopes `s` of an array and their descendants: '/app' never matches '/apple'."""


def json_list(column: str, order: str, rows: str) -> str:
    """A subquery that lists a column of some rows as JSON, '[]' without rows."""
    return f"(SELECT json_group_array({column} ORDER BY {order}) FROM {rows})"


# The tags of a record in their order, as JSON.
TAGS_SQL = json_list("t.name", "p.place", "record_tag p JOIN tag t ON t.id = p.tag_id WHERE p.record_id = r.id")


# Filters compiled to conditions on `record r`. Values are always bound, never written into the statement.

_COLUMNS = {"id": "public_id", "scope": "scope_id", "source": "source_id"}
# What has its name in a table of its own is found by the id there, so that the index of the column serves.
_NAMED = {"scope": "SELECT id FROM scope WHERE path", "source": "SELECT id FROM source WHERE name"}
_NAMES = {
    "scope": "(SELECT path FROM scope WHERE id = r.scope_id)",
    "source": "(SELECT name FROM source WHERE id = r.source_id)",
}
_STANDING = "(SELECT name FROM standing WHERE record_id = r.id)"
_BEGINS = "coalesce(r.valid_from, r.created_at)"
# Versions whose record was superseded with certainty at one time, as the store knew it, by what has been undone since.
_UNDONE = (
    "r.public_id IN (SELECT o.public_id FROM supersession x JOIN record o ON o.id = x.old_id "
    "JOIN record n ON n.id = x.new_id WHERE x.known_until > ? AND x.known_from <= ? "
    "AND x.certain AND (n.expires_at IS NULL OR n.expires_at > ?) AND x.holds_from <= ?)"
)
ORDERS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
"""The operators that compare by order."""


class Condition(Struct, frozen=True):
    """An SQL condition and the values it binds."""

    sql: str
    values: tuple[Any, ...] = ()

    def __and__(self, other: Condition) -> Condition:
        return Condition(f"({self.sql}) AND ({other.sql})", self.values + other.values)


class Conditions(ABC):
    """Conditions as one database compares values; `array` binds a list of texts."""

    def __init__(self, array: Callable[[Sequence[str]], Any]) -> None:
        self._array = array

    def matching(self, filter: Filter, now: int, versions: Versions = "current") -> Condition:
        """The records that a filter admits, among these versions."""
        parts = [_of_versions(versions, now if filter.as_of is None else filter.as_of, known=filter.as_of is not None)]
        if filter.valid_at is not None:
            parts.append(Condition(f"{_BEGINS} <= ?", (filter.valid_at,)))
            over = "r.valid_until IS NULL OR r.valid_resolved OR r.valid_until > ?"
            parts.append(Condition(over, (filter.valid_at,)))
            parts += _held(filter.valid_at, now, filter.as_of)
        elif versions == "current" and not filter.include_superseded:
            parts += _held(now if filter.as_of is None else filter.as_of, now, filter.as_of)
        if filter.scopes:
            parts.append(self.in_scopes(filter.scopes))
        if filter.kinds:
            parts.append(self._compile(Comparison("kind", "in", filter.kinds), filter.base))
        elif not filter.sessions:
            parts.append(Condition(f"r.kind <> '{MESSAGE_KIND}'"))
        if filter.since is not None:
            parts.append(Condition("coalesce(r.valid_until - 1, r.valid_from, r.created_at) >= ?", (filter.since,)))
        if filter.until is not None:
            parts.append(Condition(f"{_BEGINS} <= ?", (filter.until,)))
        if filter.tags:
            parts.append(self._compile(Comparison("tags", "in", filter.tags), filter.base))
        if filter.where is not None:
            parts.append(self._compile(filter.where, filter.base))
        return _joined(parts, "AND")

    def exported(self, filter: Filter, *, chunks: bool = True) -> Condition:
        """The records that an export writes, expired ones too."""
        condition = self.matching(filter, 0, "open")
        return condition if chunks else condition & Condition("r.kind <> ?", (CHUNK_KIND,))

    def in_scopes(self, scopes: Sequence[str]) -> Condition:
        """Records of any of these scopes and their descendants."""
        if "/" in scopes:
            return Condition("true")
        return Condition(f"r.scope_id IN (SELECT s.id FROM {WITHIN})", (self._array(scopes),))

    def _compile(self, expression: Expression, base: str) -> Condition:
        if isinstance(expression, Comparison):
            return self._compare(expression, base)
        if isinstance(expression, Not):
            inner = self._compile(expression.part, base)
            return Condition(f"NOT coalesce(({inner.sql}), false)", inner.values)
        parts = [self._compile(part, base) for part in expression.parts]
        return _joined(parts, "AND" if isinstance(expression, And) else "OR")

    def _compare(self, compared: Comparison, base: str) -> Condition:
        field, operator, value = compared.field, compared.operator, compared.value
        if field == "tags":
            condition, bound = self._named(value)
            condition = (
                f"SELECT rt.record_id FROM record_tag rt JOIN tag t ON t.id = rt.tag_id WHERE t.name {condition}"
            )
            return Condition(f"r.id IN ({condition})", (bound,))
        if field.startswith("metadata."):
            return self.of_metadata(metadata_keys(field), operator, value)
        if field == "standing":
            if operator not in ("eq", "in") or value is None:
                return self.by_value(field, _STANDING, (), operator, value)
            condition, bound = self._named(value)
            return Condition(f"r.id IN (SELECT record_id FROM standing WHERE name {condition})", (bound,))
        column = f"r.{_COLUMNS.get(field, field)}"
        if field in _NAMED and operator in ("eq", "in") and value is not None:
            if field == "scope":
                value = (
                    tuple(_absolute(base, path) for path in value)
                    if isinstance(value, tuple)
                    else _absolute(base, value)
                )
            condition, bound = self._named(value)
            return Condition(f"{column} IN ({_NAMED[field]} {condition})", (bound,))
        if field == "scope" and base != "/":
            relative = (
                "(SELECT CASE WHEN path = ? THEN '/' WHEN path >= ? AND path < ? THEN substr(path, CAST(? AS INTEGER)) "
                "ELSE '/' || path END FROM scope WHERE id = r.scope_id)"
            )
            return self.by_value(field, relative, (base, f"{base}/", f"{base}0", len(base) + 1), operator, value)
        if value is None and operator == "eq":
            return Condition(f"{column} IS NULL")
        return self.by_value(field, _NAMES.get(field, column), (), operator, value)

    def _named(self, value: Any) -> tuple[str, Any]:
        """The condition that a name is this text, or one of these, and what it binds; what is no text names nothing."""
        if isinstance(value, str):
            return "= ?", value
        texts = [item for item in (value if isinstance(value, tuple) else ()) if isinstance(item, str)]
        return IN_ARRAY, self._array(texts)

    @abstractmethod
    def by_value(self, field: str, expression: str, bound: tuple[Any, ...], operator: str, value: Any) -> Condition:
        """An SQL expression, which has the value of a field, compared with a value."""

    @abstractmethod
    def of_metadata(self, keys: Sequence[str], operator: str, value: Any) -> Condition:
        """The value at these keys of the metadata compared with a value."""


def _of_versions(versions: Versions, moment: int, *, known: bool) -> Condition:
    unexpired = Condition("r.expires_at IS NULL OR r.expires_at > ?", (moment,))
    if versions == "current" and known:
        at_the_time = (
            "r.created_at <= ? AND r.recorded_from <= ? AND (r.recorded_until IS NULL OR r.recorded_until > ?)"
        )
        return Condition(at_the_time, (moment, moment, moment)) & unexpired
    if versions == "current":
        return Condition("r.recorded_until IS NULL") & unexpired
    if versions == "expired":
        return Condition("r.recorded_until IS NULL AND r.expires_at <= ?", (moment,))
    return Condition(
        {"open": "r.recorded_until IS NULL", "closed": "r.recorded_until IS NOT NULL", "any": "true"}[versions]
    )


def _held(moment: int, now: int, known_at: int | None) -> list[Condition]:
    """Records that nothing had superseded with certainty at a valid time, as it is known now or was at `known_at`.

    Successors may expire, and hide nothing before they hold.
    """
    if known_at is None:
        return [Condition("r.held_until IS NULL OR r.held_until > ? OR r.superseded_until <= ?", (moment, now))]
    standing = "r.held_until IS NULL OR r.held_until > ? OR r.superseded_at > ? OR r.superseded_until <= ?"
    return [
        Condition(standing, (moment, known_at, known_at)),
        Condition(f"NOT {_UNDONE}", (known_at, known_at, known_at, moment)),
    ]


def _joined(parts: Sequence[Condition], operator: str) -> Condition:
    """Conditions joined in pairs, and these in pairs: SQLite takes expressions of a depth of at most 1,000."""
    if len(parts) < 2:
        return parts[0] if parts else Condition("true")
    half = len(parts) // 2
    left, right = _joined(parts[:half], operator), _joined(parts[half:], operator)
    return Condition(f"({left.sql}) {operator} ({right.sql})", left.values + right.values)


def _absolute(base: str, scope: Any) -> Any:
    """The path of a scope that a handle bound to `base` names; what is no path stays, and is the name of none."""
    if base == "/" or not isinstance(scope, str) or not scope.startswith("/"):
        return scope
    return base if scope == "/" else base + scope
