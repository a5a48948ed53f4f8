"""Filters as SQL conditions on `record r`. Values are always bound, never written into the statement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, structs

from recollect.checks import check_time, shown
from recollect.errors import InvalidFilter, InvalidInput
from recollect.store.arrays import id_array

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "Condition",
    "Filter",
    "closed_versions",
    "everything",
    "expired",
    "one_record",
    "open_versions",
    "records_in",
    "restriction",
    "same_text",
    "scope_condition",
    "where_condition",
    "without_vector",
]

_MAX_DEPTH = 20
_MOST_SHOWN = 60
# Of the 32,766 that SQLite binds, with room for the scopes.
_MOST_VALUES = 10_000
_OPERATORS = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "contains")
_COMPARISONS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_TIMES = ("created_at", "event_at", "updated_at", "expires_at")
_FIELDS = {
    "id": "r.public_id",
    "kind": "r.kind",
    "scope": "(SELECT path FROM scope WHERE id = r.scope_id)",
    "text": "r.text",
    "context": "r.context",
    "importance": "r.importance",
    "pinned": "r.pinned",
    "topic": "r.topic",
    "source": "(SELECT name FROM source WHERE id = r.source_id)",
    "position": "r.position",
    "embedding_state": "r.embedding_state",
    **{name: f"r.{name}" for name in _TIMES},
}


class Filter(Struct, frozen=True, kw_only=True):
    """What a read may see. Times are microseconds since 1970 UTC; `now` is the clock or the `as_of` moment."""

    # Records of any of these and their descendants; none: of all.
    scopes: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    where: dict[str, Any] | None = None
    since: int | None = None
    until: int | None = None
    as_of: int | None = None
    # Scopes in `where` are as a handle bound to this scope sees them.
    base: str = "/"

    @property
    def unrestricted(self) -> bool:
        """True when only expiry and validity restrict."""
        return structs.replace(self, base="/") == _NONE


_NONE = Filter()


class Condition(Struct, frozen=True):
    """An SQL condition and the values it binds."""

    sql: str
    values: tuple[Any, ...] = ()

    def __and__(self, other: Condition) -> Condition:
        return Condition(f"({self.sql}) AND ({other.sql})", self.values + other.values)


_TRUE = Condition("1")


def everything(chosen: Filter, now: int) -> Condition:
    """The whole filter, with validity and expiry, as one condition."""
    moment = now if chosen.as_of is None else chosen.as_of
    if chosen.as_of is None:
        condition = Condition("r.valid_to IS NULL")
    else:
        condition = Condition(
            "r.created_at <= ? AND r.valid_from <= ? AND (r.valid_to IS NULL OR r.valid_to > ?)",
            (moment, moment, moment),
        )
    return condition & Condition("r.expires_at IS NULL OR r.expires_at > ?", (moment,)) & restriction(chosen)


def restriction(chosen: Filter) -> Condition:
    """What the filter itself asks for, without validity and expiry."""
    condition = _TRUE
    if chosen.scopes:
        condition &= _joined([scope_condition(scope) for scope in chosen.scopes], "OR")
    if chosen.kinds:
        condition &= Condition("r.kind IN (SELECT value FROM json_each(?))", (_json(chosen.kinds),))
    if chosen.since is not None:
        condition &= Condition("coalesce(r.event_at, r.created_at) >= ?", (chosen.since,))
    if chosen.until is not None:
        condition &= Condition("coalesce(r.event_at, r.created_at) <= ?", (chosen.until,))
    return condition & where_condition(chosen)


def where_condition(chosen: Filter) -> Condition:
    """The part of the filter that only SQL can answer: `tags` and `where`."""
    condition = _TRUE
    if chosen.tags:
        condition &= _any_tag(list(chosen.tags))
    if chosen.where is not None:
        condition &= _compile(chosen.where, "where", 0, chosen.base)
    if len(condition.values) > _MOST_VALUES:
        raise InvalidFilter(
            f"where compares {len(condition.values):,} values: at most {_MOST_VALUES:,}; put alternatives into "
            "one list (in)"
        )
    return condition


def _joined(parts: Sequence[Condition], operator: str) -> Condition:
    """Conditions joined in pairs, and these in pairs: SQLite takes expressions of a depth of at most 1,000."""
    if len(parts) < 2:
        return parts[0] if parts else _TRUE
    half = len(parts) // 2
    left, right = _joined(parts[:half], operator), _joined(parts[half:], operator)
    return Condition(f"({left.sql}) {operator} ({right.sql})", left.values + right.values)


def scope_condition(scope: str) -> Condition:
    """Records of `scope` and its descendants: '/app' never matches '/apple'."""
    if scope == "/":
        return _TRUE
    # '0' follows '/' in ASCII, so the range holds exactly what starts with scope + '/'.
    return Condition(
        "r.scope_id IN (SELECT id FROM scope WHERE path = ? OR (path >= ? AND path < ?))",
        (scope, scope + "/", scope + "0"),
    )


def one_record(record_id: int) -> Condition:
    """The record with this row id."""
    return Condition("r.id = ?", (record_id,))


def records_in(ids: Sequence[int] | NDArray[np.int64]) -> Condition:
    """The records with these row ids."""
    return Condition("r.id IN (SELECT value FROM carray(?))", (id_array(ids),))


def same_text(scope: str, kind: str, content_hash: bytes) -> Condition:
    """Open records of a kind in exactly this scope that say the same, word for word."""
    return Condition(
        "r.valid_to IS NULL AND r.kind = ? AND r.content_hash = ? "
        "AND r.scope_id = (SELECT id FROM scope WHERE path = ?)",
        (kind, content_hash, scope),
    )


def open_versions() -> Condition:
    """Records as they stand, not their closed versions."""
    return Condition("r.valid_to IS NULL")


def closed_versions() -> Condition:
    """Texts that another has taken the place of."""
    return Condition("r.valid_to IS NOT NULL")


def expired(now: int) -> Condition:
    """Records as they stand that have expired."""
    return open_versions() & Condition("r.expires_at <= ?", (now,))


def without_vector() -> Condition:
    """Records that wait for a vector."""
    return Condition("r.embedding_state != 'embedded' AND r.embedding_state != 'refused'")


def _compile(where: object, path: str, depth: int, base: str) -> Condition:
    if not isinstance(where, dict):
        raise InvalidFilter(f"{path} is {shown(where)}: give a dict such as {{'importance': {{'gte': 0.5}}}}")
    if depth > _MAX_DEPTH:
        raise InvalidFilter(f"{path} is nested more than {_MAX_DEPTH} deep")
    found = []
    for key, value in where.items():
        here = f"{path}.{key if isinstance(key, str) and len(key) <= _MOST_SHOWN and key.isprintable() else shown(key)}"
        if key in ("and", "or"):
            if not isinstance(value, list | tuple) or not value:
                raise InvalidFilter(f"{here} is {shown(value)}: give a non-empty list of filters")
            parts = [_compile(item, f"{here}[{place}]", depth + 1, base) for place, item in enumerate(value)]
            found.append(_joined(parts, key.upper()))
        elif key == "not":
            inner = _compile(value, here, depth + 1, base)
            found.append(Condition(f"NOT coalesce(({inner.sql}), 0)", inner.values))
        else:
            found.append(_field(key, value, here, base))
    return _joined(found, "AND")


def _field(name: object, comparison: object, path: str, base: str) -> Condition:
    if not isinstance(comparison, dict):
        comparison = {"eq": comparison}
    condition = _TRUE
    for operator, value in comparison.items():
        if operator not in _OPERATORS:
            raise InvalidFilter(f"{path} has the operator {shown(operator)}: use one of {', '.join(_OPERATORS)}")
        condition &= _compare(name, operator, value, f"{path}.{operator}", base)
    return condition


def _compare(name: object, operator: str, value: object, path: str, base: str) -> Condition:
    if name == "tags":
        return _compare_tags(operator, value, path)
    bound: tuple[str | int, ...] = ()
    if isinstance(name, str) and name.startswith("metadata."):
        keys = name.removeprefix("metadata.").split(".")
        if not all(keys) or '"' in name or "\x00" in name or _has_surrogate(name):
            raise InvalidFilter(f"{path}: {shown(name)} is no path: write metadata.key or metadata.key.key")
        pointer = "$" + "".join(f'."{key}"' for key in keys)
        if operator == "contains":
            return _json_contains(pointer, _scalar(value, path))
        expression, bound = "json_extract(r.metadata, ?)", (pointer,)
    elif name == "scope" and base != "/":
        expression = "(SELECT coalesce(nullif(substr(path, ?), ''), '/') FROM scope WHERE id = r.scope_id)"
        bound = (len(base) + 1,)
    elif isinstance(name, str) and name in _FIELDS:
        expression = _FIELDS[name]
        if name in _TIMES:
            value = _times(value, path)
    else:
        raise InvalidFilter(
            f"{path}: unknown field {shown(name)}: use one of {', '.join(_FIELDS)}, tags, or metadata.<key>"
        )
    return _compare_value(expression, bound, operator, value, path)


def _compare_value(expression: str, bound: tuple[str | int, ...], operator: str, value: object, path: str) -> Condition:
    if operator in ("in", "nin"):
        if not isinstance(value, list | tuple | set | frozenset) or any(item is None for item in value):
            raise InvalidFilter(f"{path} is {shown(value)}: give a list of values other than None")
        values = _json([_scalar(item, path) for item in value])
        if operator == "in":
            return Condition(f"{expression} IN (SELECT value FROM json_each(?))", (*bound, values))
        return Condition(
            f"{expression} IS NULL OR {expression} NOT IN (SELECT value FROM json_each(?))",
            (*bound, *bound, values),
        )
    scalar = _scalar(value, path)
    if operator == "eq":
        return Condition(f"{expression} IS ?", (*bound, scalar))
    if operator == "ne":
        return Condition(f"{expression} IS NOT ?", (*bound, scalar))
    if scalar is None:
        raise InvalidFilter(f"{path} is None: compare with eq or ne")
    if operator == "contains":
        if not isinstance(scalar, str):
            raise InvalidFilter(f"{path} is {shown(value)}: give the str to look for")
        return Condition(f"instr({expression}, ?) > 0", (*bound, scalar))
    # SQLite orders any text above any number, so the types are compared first.
    types = "'text'" if isinstance(scalar, str) else "'integer', 'real'"
    return Condition(
        f"typeof({expression}) IN ({types}) AND {expression} {_COMPARISONS[operator]} ?",
        (*bound, *bound, scalar),
    )


def _json_contains(pointer: str, value: object) -> Condition:
    text = value if isinstance(value, str) else None
    return Condition(
        "CASE json_type(r.metadata, ?) WHEN 'array' THEN EXISTS (SELECT 1 FROM json_each(r.metadata, ?) j "
        "WHERE j.value IS ?) WHEN 'text' THEN coalesce(instr(json_extract(r.metadata, ?), ?) > 0, 0) ELSE 0 END",
        (pointer, pointer, value, pointer, text),
    )


def _compare_tags(operator: str, value: object, path: str) -> Condition:
    if operator in ("contains", "eq"):
        names = [value]
    elif operator in ("in", "nin") and isinstance(value, list | tuple | set | frozenset):
        names = list(value)
    else:
        raise InvalidFilter(f"{path}: tags take contains with a str, or in or nin with a list of str")
    if not all(isinstance(name, str) for name in names):
        raise InvalidFilter(f"{path} is {shown(value)}: tags are str")
    condition = _any_tag(names)
    return Condition(f"NOT ({condition.sql})", condition.values) if operator == "nin" else condition


def _any_tag(names: list[Any]) -> Condition:
    return Condition(
        "r.id IN (SELECT rt.record_id FROM record_tag rt JOIN tag t ON t.id = rt.tag_id "
        "WHERE t.name IN (SELECT value FROM json_each(?)))",
        (_json(names),),
    )


def _times(value: object, path: str) -> object:
    try:
        if isinstance(value, list | tuple | set | frozenset):
            return [check_time(item, path) for item in value]
        return check_time(value, path)
    except InvalidInput as fault:
        raise InvalidFilter(str(fault)) from None


def _scalar(value: object, path: str) -> str | int | float | None:
    if isinstance(value, bool):
        return int(value)
    if value is None or (isinstance(value, int) and -(2**63) <= value < 2**63):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, str) and "\x00" not in value and not _has_surrogate(value):
        return value
    raise InvalidFilter(f"{path} is {shown(value)}: give a str, a finite number, a bool or None")


def _has_surrogate(value: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in value)


def _json(values: object) -> str:
    return msgspec.json.encode(values).decode()
