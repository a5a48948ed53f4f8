"""Conditions as SQLite compares values: by the type of each value, and in metadata by JSON pointers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from recallite.store.sql.conditions import ORDERS, Condition, Conditions

_LISTED = "IN (SELECT value FROM json_each(?))"


class SqliteConditions(Conditions):
    """A value may be of any type in any column."""

    def by_value(self, field: str, expression: str, bound: tuple[Any, ...], operator: str, value: Any) -> Condition:
        return _by_value(expression, bound, operator, value)

    def of_metadata(self, keys: Sequence[str], operator: str, value: Any) -> Condition:
        pointer = "$" + "".join(f'."{key}"' for key in keys)
        if operator == "contains":
            return _json_contains(pointer, value)
        return _by_value("json_extract(r.metadata, ?)", (pointer,), operator, value)


def _by_value(expression: str, bound: tuple[Any, ...], operator: str, value: Any) -> Condition:
    if operator == "in":
        return Condition(f"{expression} {_LISTED}", (*bound, msgspec.json.encode(value).decode()))
    if value is None:
        return Condition(f"{expression} IS NULL", bound)
    if operator == "eq":  # an index serves `=`, and not `IS ?`
        return Condition(f"{expression} = ?", (*bound, value))
    if operator == "contains":
        return Condition(f"instr({expression}, ?) > 0", (*bound, value))
    # SQLite orders any text above any number, so the types are compared first.
    types = "'text'" if isinstance(value, str) else "'integer', 'real'"
    return Condition(
        f"typeof({expression}) IN ({types}) AND {expression} {ORDERS[operator]} ?", (*bound, *bound, value)
    )


def _json_contains(pointer: str, value: Any) -> Condition:
    text = value if isinstance(value, str) else None
    return Condition(
        "CASE json_type(r.metadata, ?) WHEN 'array' THEN EXISTS (SELECT 1 FROM json_each(r.metadata, ?) j "
        "WHERE j.value IS ?) WHEN 'text' THEN coalesce(instr(json_extract(r.metadata, ?), ?) > 0, 0) ELSE 0 END",
        (pointer, pointer, value, pointer, text),
    )
