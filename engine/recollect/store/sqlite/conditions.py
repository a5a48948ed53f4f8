"""Filters compiled to SQL conditions on `record r`. Values are always bound, never written into the statement."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from recollect.filters import And, Comparison, Expression, Filter, Not, Versions

_COLUMNS = {"id": "public_id", "scope": "scope_id", "source": "source_id"}
# What has its name in a table of its own is found by the id there, so that the index of the column serves.
_NAMED = {"scope": "SELECT id FROM scope WHERE path", "source": "SELECT id FROM source WHERE name"}
_NAMES = {
    "scope": "(SELECT path FROM scope WHERE id = r.scope_id)",
    "source": "(SELECT name FROM source WHERE id = r.source_id)",
}
_STANDING = "(SELECT name FROM standing WHERE record_id = r.id)"
_ORDERS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_BEGINS = "coalesce(r.event_at, r.created_at)"
# Versions whose record was superseded at one time, as the store knew it, by what has been undone since.
_UNDONE = (
    "r.public_id IN (SELECT o.public_id FROM supersession x JOIN record o ON o.id = x.old_id "
    "JOIN record n ON n.id = x.new_id WHERE x.known_until > ? AND x.known_from <= ? "
    "AND (n.expires_at IS NULL OR n.expires_at > ?){held})"
)
_LISTED = "IN (SELECT value FROM json_each(?))"


class Condition(Struct, frozen=True):
    """An SQL condition and the values it binds."""

    sql: str
    values: tuple[Any, ...] = ()

    def __and__(self, other: Condition) -> Condition:
        return Condition(f"({self.sql}) AND ({other.sql})", self.values + other.values)


def matching(chosen: Filter, now: int, versions: Versions = "current") -> Condition:
    """The records that a filter admits, among these versions."""
    parts = [_of_versions(versions, now if chosen.as_of is None else chosen.as_of, known=chosen.as_of is not None)]
    if chosen.held_at is not None:
        parts += _held(chosen.held_at, now, chosen.as_of)
    elif versions == "current" and not chosen.include_superseded:
        parts += _unsuperseded(now, chosen.as_of)
    if chosen.scopes:
        parts.append(in_scopes(chosen.scopes))
    if chosen.kinds:
        parts.append(_compile(Comparison("kind", "in", chosen.kinds), chosen.base))
    if chosen.since is not None:
        parts.append(Condition("coalesce(r.event_until - 1, r.event_at, r.created_at) >= ?", (chosen.since,)))
    if chosen.until is not None:
        parts.append(Condition(f"{_BEGINS} <= ?", (chosen.until,)))
    if chosen.tags:
        parts.append(_compile(Comparison("tags", "in", chosen.tags), chosen.base))
    if chosen.where is not None:
        parts.append(_compile(chosen.where, chosen.base))
    return _joined(parts, "AND")


def in_scopes(scopes: Sequence[str]) -> Condition:
    """Records of any of these scopes and their descendants; '/app' never matches '/apple'."""
    if "/" in scopes:
        return Condition("1")
    # '0' follows '/' in ASCII, so the range holds exactly what starts with scope + '/'.
    return Condition(
        "r.scope_id IN (SELECT s.id FROM json_each(?) j JOIN scope s "
        "ON s.path = j.value OR (s.path >= j.value || '/' AND s.path < j.value || '0'))",
        (_json(scopes),),
    )


def _of_versions(versions: Versions, moment: int, *, known: bool) -> Condition:
    unexpired = Condition("r.expires_at IS NULL OR r.expires_at > ?", (moment,))
    if versions == "current" and known:
        at_the_time = "r.created_at <= ? AND r.valid_from <= ? AND (r.valid_to IS NULL OR r.valid_to > ?)"
        return Condition(at_the_time, (moment, moment, moment)) & unexpired
    if versions == "current":
        return Condition("r.valid_to IS NULL") & unexpired
    if versions == "expired":
        return Condition("r.valid_to IS NULL AND r.expires_at <= ?", (moment,))
    return Condition({"open": "r.valid_to IS NULL", "closed": "r.valid_to IS NOT NULL", "any": "1"}[versions])


def _unsuperseded(now: int, known_at: int | None) -> list[Condition]:
    """Without what is superseded, or was at `known_at`, as the store knew it then. Successors may expire."""
    if known_at is None:
        return [Condition("r.superseded_at IS NULL OR r.superseded_until <= ?", (now,))]
    standing = "r.superseded_at IS NULL OR r.superseded_at > ? OR r.superseded_until <= ?"
    undone = _UNDONE.format(held="")
    return [Condition(standing, (known_at, known_at)), Condition(f"NOT {undone}", (known_at,) * 3)]


def _held(moment: int, now: int, known_at: int | None) -> list[Condition]:
    """What held at an event time, as it is known now or was at `known_at`."""
    parts = [
        Condition(f"{_BEGINS} <= ?", (moment,)),
        Condition("r.event_until IS NULL OR r.event_resolved OR r.event_until > ?", (moment,)),
    ]
    if known_at is None:
        return [*parts, Condition("r.held_until IS NULL OR r.held_until > ? OR r.superseded_until <= ?", (moment, now))]
    standing = "r.held_until IS NULL OR r.held_until > ? OR r.superseded_at > ? OR r.superseded_until <= ?"
    undone = _UNDONE.format(held=" AND x.holds_from <= ?")
    return [
        *parts,
        Condition(standing, (moment, known_at, known_at)),
        Condition(f"NOT {undone}", (*(known_at,) * 3, moment)),
    ]


def _joined(parts: Sequence[Condition], operator: str) -> Condition:
    """Conditions joined in pairs, and these in pairs: SQLite takes expressions of a depth of at most 1,000."""
    if len(parts) < 2:
        return parts[0] if parts else Condition("1")
    half = len(parts) // 2
    left, right = _joined(parts[:half], operator), _joined(parts[half:], operator)
    return Condition(f"({left.sql}) {operator} ({right.sql})", left.values + right.values)


def _compile(expression: Expression, base: str) -> Condition:
    if isinstance(expression, Comparison):
        return _compare(expression, base)
    if isinstance(expression, Not):
        inner = _compile(expression.part, base)
        return Condition(f"NOT coalesce(({inner.sql}), 0)", inner.values)
    parts = [_compile(part, base) for part in expression.parts]
    return _joined(parts, "AND" if isinstance(expression, And) else "OR")


def _compare(compared: Comparison, base: str) -> Condition:
    field, operator, value = compared.field, compared.operator, compared.value
    if field == "tags":
        chosen = f"SELECT rt.record_id FROM record_tag rt JOIN tag t ON t.id = rt.tag_id WHERE t.name {_LISTED}"
        return Condition(f"r.id IN ({chosen})", (_json(value),))
    if field.startswith("metadata."):
        pointer = "$" + "".join(f'."{key}"' for key in field.split(".")[1:])
        if operator == "contains":
            return _json_contains(pointer, value)
        return _by_value("json_extract(r.metadata, ?)", (pointer,), operator, value)
    if field == "standing":
        if operator not in ("eq", "in") or value is None:
            return _by_value(_STANDING, (), operator, value)
        chosen, bound = ("= ?", value) if operator == "eq" else (_LISTED, _json(value))
        return Condition(f"r.id IN (SELECT record_id FROM standing WHERE name {chosen})", (bound,))
    column = f"r.{_COLUMNS.get(field, field)}"
    if field in _NAMED and operator in ("eq", "in") and value is not None:
        if field == "scope":
            absolute = partial(_absolute, base)
            value = tuple(map(absolute, value)) if isinstance(value, tuple) else absolute(value)
        chosen, bound = ("= ?", value) if operator == "eq" else (_LISTED, _json(value))
        return Condition(f"{column} IN ({_NAMED[field]} {chosen})", (bound,))
    if field == "scope" and base != "/":
        relative = "(SELECT coalesce(nullif(substr(path, ?), ''), '/') FROM scope WHERE id = r.scope_id)"
        return _by_value(relative, (len(base) + 1,), operator, value)
    return _by_value(column if value is None else _NAMES.get(field, column), (), operator, value)


def _by_value(expression: str, bound: tuple[Any, ...], operator: str, value: Any) -> Condition:
    if operator == "in":
        return Condition(f"{expression} {_LISTED}", (*bound, _json(value)))
    if value is None:
        return Condition(f"{expression} IS NULL", bound)
    if operator == "eq":  # an index serves `=`, and not `IS ?`
        return Condition(f"{expression} = ?", (*bound, value))
    if operator == "contains":
        return Condition(f"instr({expression}, ?) > 0", (*bound, value))
    # SQLite orders any text above any number, so the types are compared first.
    types = "'text'" if isinstance(value, str) else "'integer', 'real'"
    return Condition(
        f"typeof({expression}) IN ({types}) AND {expression} {_ORDERS[operator]} ?", (*bound, *bound, value)
    )


def _json_contains(pointer: str, value: Any) -> Condition:
    text = value if isinstance(value, str) else None
    return Condition(
        "CASE json_type(r.metadata, ?) WHEN 'array' THEN EXISTS (SELECT 1 FROM json_each(r.metadata, ?) j "
        "WHERE j.value IS ?) WHEN 'text' THEN coalesce(instr(json_extract(r.metadata, ?), ?) > 0, 0) ELSE 0 END",
        (pointer, pointer, value, pointer, text),
    )


def _absolute(base: str, scope: Any) -> Any:
    """The path of a scope that a handle bound to `base` names; what is no path stays, and is the name of none."""
    if base == "/" or not isinstance(scope, str) or not scope.startswith("/"):
        return scope
    return base if scope == "/" else base + scope


def _json(values: object) -> str:
    return msgspec.json.encode(values).decode()
