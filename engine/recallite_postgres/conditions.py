"""Conditions as PostgreSQL compares values: by the type of each column, and in metadata as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recallite.store.sql.conditions import ORDERS, Condition, Conditions
from recallite.store.sql.repository import IN_ARRAY
from recallite.store.sql.schema import TABLES

_NEVER = Condition("false")
# The types of the columns that hold no text.
_TYPES = {
    name: kind
    for table in TABLES if table.name == "record"
    for name, (kind, _) in table.columns.items() if kind in ("FLAG", "INTEGER", "REAL")
}  # fmt: skip


class PostgresConditions(Conditions):
    """A value of another type than its column's matches nothing."""

    def by_value(self, field: str, expression: str, bound: tuple[Any, ...], operator: str, value: Any) -> Condition:
        if operator == "in":
            typed = [_as_column(field, item) for item in value]
            values = [item for item in typed if item is not None]
            if not values:
                return _NEVER
            if field in _TYPES:
                either = " OR ".join(f"{expression} = ?" for _ in values)
                return Condition(f"({either})", tuple(part for item in values for part in (*bound, item)))
            return Condition(f"{expression} {IN_ARRAY}", (*bound, self._array(values)))
        if value is None:
            return Condition(f"{expression} IS NULL", bound)
        if operator == "contains":
            if not isinstance(value, str) or field in _TYPES:
                return _NEVER
            return Condition(f"strpos({expression}, ?) > 0", (*bound, value))
        typed = _as_column(field, value)
        if typed is None or (operator != "eq" and isinstance(value, str) != isinstance(typed, str)):
            return _NEVER
        return Condition(f"{expression} {ORDERS.get(operator, '=')} ?", (*bound, typed))

    def of_metadata(self, keys: Sequence[str], operator: str, value: Any) -> Condition:
        field = "(r.metadata::json #> ?)"
        path = (list(keys),)
        if operator == "contains":
            element = _json_is("j.value", value)
            text = value if isinstance(value, str) else None
            return Condition(
                f"CASE json_typeof{field} WHEN 'array' THEN EXISTS (SELECT 1 FROM json_array_elements{field} j(value) "
                f"WHERE {element.sql}) WHEN 'string' THEN coalesce(strpos({field} #>> '{{}}', ?::text) > 0, false) "
                "ELSE false END",
                (*path, *path, *element.values, *path, text),
            )
        if operator == "in":
            parts = [_json_is(field, item, path) for item in value if item is not None]
            if not parts:
                return _NEVER
            return Condition(
                "(" + " OR ".join(part.sql for part in parts) + ")",
                tuple(item for part in parts for item in part.values),
            )
        if value is None:
            return Condition(f"coalesce(json_typeof{field}, 'null') = 'null'", path)
        if operator == "eq":
            return _json_is(field, value, path)
        if isinstance(value, str):
            return Condition(
                f"json_typeof{field} = 'string' AND ({field} #>> '{{}}') COLLATE \"C\" {ORDERS[operator]} ?",
                (*path, *path, value),
            )
        return Condition(f"{_number(field)} {ORDERS[operator]} ?::float8", (*path * 3, value))


def _as_column(field: str, value: Any) -> Any:
    """A value in the type of its column, as SQLite converts it; None where it has none."""
    if value is None:
        return None
    if _TYPES.get(field) == "FLAG":
        return bool(value) if value in (0, 1) else None
    if field in _TYPES:
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                return None
        return float(value)
    return value if isinstance(value, str) else str(int(value) if isinstance(value, bool) else value)


def _number(field: str) -> str:
    """A number or, as SQLite has it, a bool of JSON as a number; NULL for anything else."""
    return (
        f"(CASE json_typeof{field} WHEN 'number' THEN ({field} #>> '{{}}')::float8 "
        f"WHEN 'boolean' THEN ({field} #>> '{{}}')::boolean::int::float8 END)"
    )


def _json_is(field: str, value: Any, path: tuple[Any, ...] = ()) -> Condition:
    """The condition that a JSON value is this str or number."""
    wrapped = field if field.startswith("(") else f"({field})"
    if value is None:
        return Condition(f"json_typeof{wrapped} = 'null'", path)
    if isinstance(value, str):
        return Condition(f"(json_typeof{wrapped} = 'string' AND {wrapped} #>> '{{}}' = ?)", (*path, *path, value))
    return Condition(f"({_number(wrapped)} = ?::float8)", (*path * 3, float(value)))
