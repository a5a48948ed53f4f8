"""LangGraph's items as memories: namespaces as scopes, keys as ids, filters as filters, fields as texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from recallite.errors import InvalidInput
from recallite.system.messages import shown
from recallite_connect.common import compared, hashed_id, needed, restorable

with needed("langgraph"):
    from langgraph.store.base import IndexConfig, MatchCondition, PutOp, get_text_at_path, tokenize_path

INDEXED, UNINDEXED = "item", "item-unindexed"
"""The kinds of the records of items: those that a search with a query ranks, and the others."""
KINDS = (INDEXED, UNINDEXED)

_UNSAFE = re.compile(r"[%/\x00-\x1f\x7f\ud800-\udfff]|^\s+|\s+$|^\.{1,2}$")
_QUOTED = re.compile("%([0-9a-f]{4,6});")
_FILTER_KEY = re.compile(r"[^\"\x00]+")
_OPERATORS = {"$eq": "eq", "$ne": "ne", "$gt": "gt", "$gte": "gte", "$lt": "lt", "$lte": "lte"}


def scope_of(namespace: Sequence[str]) -> str:
    """The scope of a namespace; what a scope refuses in a label is quoted, such as "/" as "%002f;"."""
    return "/" + "/".join(map(_quoted, namespace))


def namespace_of(scope: str) -> tuple[str, ...]:
    """The namespace of a scope."""
    return (
        () if scope == "/" else tuple(_QUOTED.sub(lambda code: chr(int(code[1], 16)), s) for s in scope[1:].split("/"))
    )


def _quoted(label: str) -> str:
    return _UNSAFE.sub(lambda match: "".join(f"%{ord(character):04x};" for character in match[0]), label)


def id_of(base: str, namespace: Sequence[str], key: str) -> str:
    """The id of the item with a key: of its scope in the file, so that a store of a scope above has the same item."""
    if not isinstance(key, str):
        raise InvalidInput(f"key is {shown(key)}: give a str")
    return hashed_id("item", f"{base.rstrip('/')}{scope_of(namespace)}", key)


def matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    """Whether a namespace begins or ends with a path, in which "*" is any label."""
    path, length = condition.path, len(condition.path)
    if condition.match_type not in ("prefix", "suffix"):
        raise InvalidInput(f"match_type is {shown(condition.match_type)}: use 'prefix' or 'suffix'")
    part = namespace[:length] if condition.match_type == "prefix" else namespace[max(len(namespace) - length, 0) :]
    return len(part) == length and all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


class Fields:
    """The texts by which a value is found: those of the fields of an `IndexConfig`, or all of it."""

    def __init__(self, index: IndexConfig | None) -> None:
        config = index or {}
        paths = config.get("fields") or config.get("text_fields")  # the latter is how SqliteStore calls them
        if index is not None and paths is None:
            paths = ["$"]
        self._paths = None if paths is None else _tokenized(paths)

    def texts(self, op: PutOp, value: dict[str, Any]) -> list[str]:
        """The texts of a value that is put, as JSON; without any it is not indexed."""
        if op.index is False:
            return []
        paths = self._paths if op.index is None else _tokenized(op.index)
        texts = [_readable(value)] if paths is None else [t for path in paths for t in get_text_at_path(value, path)]
        return [text for text in texts if text.strip()]


def _tokenized(paths: object) -> list[Any]:
    listed = [paths] if isinstance(paths, str) else paths
    if not isinstance(listed, list | tuple) or not all(isinstance(path, str) for path in listed):
        raise InvalidInput(f"fields are {shown(paths)}: give a list of paths, such as ['text', 'items[*].name']")
    return [path if path == "$" else tokenize_path(path) for path in listed]


def _readable(value: Mapping[str, Any]) -> str:
    """A value as lines of text: its only str, or a line of each field."""
    if len(value) == 1 and isinstance(only := next(iter(value.values())), str):
        return only
    return "\n".join(f"{key}: {text}" for key in value for text in get_text_at_path(dict(value), [key]))


Test = Callable[[Any], bool]


class Filters(NamedTuple):
    """A filter of LangGraph: the part that the store compares, and tests of values for the rest."""

    where: dict[str, Any]
    tests: list[Test]


def parse_filter(filter: Mapping[str, Any] | None) -> Filters:
    """Split a filter into what a `where` can say and tests; InvalidInput names what is wrong.

    Lists, infinite numbers and whole numbers of more than 64 bits are compared by tests. Times and UUIDs are compared
    as the texts that are stored of them.
    """
    conditions: list[dict[str, Any]] = []
    tests: list[Test] = []
    for path, operator, operand in _comparisons(filter or {}, ()):
        plain, types = restorable(operand)
        exact = not any(name in ("str", "float", "int") for name, *_ in types)
        if exact and (plain is None or isinstance(plain, str | int | float)):
            conditions.append(compared(("value", *path), _OPERATORS[operator], plain))
        else:
            tests.append(_test(path, operator, operand))
    return Filters({"and": conditions} if conditions else {}, tests)


def _comparisons(filter: Mapping[Any, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, Any]]:
    for key, value in filter.items():
        if not isinstance(key, str) or not _FILTER_KEY.fullmatch(key) or not all(key.split(".")):
            raise InvalidInput(
                f"Invalid filter key: {shown(key)}: give the name of a field, or names joined by '.'", "filter"
            )
        here = (*path, key)
        if not isinstance(value, Mapping) or not value:
            yield here, "$eq", value
        elif any(isinstance(name, str) and name.startswith("$") for name in value):
            for operator, operand in value.items():
                if operator not in _OPERATORS:
                    raise InvalidInput(f"Unsupported operator: {operator}: use {', '.join(_OPERATORS)}", "filter")
                yield here, operator, operand
        else:
            yield from _comparisons(value, here)


def _test(path: Sequence[str], operator: str, operand: Any) -> Test:
    def holds(value: Any) -> bool:
        for key in path:
            value = _under(value, key)
        if operator in ("$eq", "$ne"):
            return (value == _plain_lists(operand)) is (operator == "$eq")
        if not isinstance(value, int | float):
            return False
        if not isinstance(operand, int | float):
            raise InvalidInput(f"{'.'.join(path)}.{operator} is {shown(operand)}: give a number or a str", "filter")
        return {"$gt": value > operand, "$gte": value >= operand, "$lt": value < operand, "$lte": value <= operand}[
            operator
        ]

    return holds


def _under(value: Any, key: str) -> Any:
    """The value under a key, or, if there is no such key, under those between its dots."""
    if not isinstance(value, Mapping) or key in value or "." not in key:
        return value.get(key) if isinstance(value, Mapping) else None
    first, _, rest = key.partition(".")
    return _under(value.get(first), rest)


def _plain_lists(value: Any) -> Any:
    """A value with lists for tuples, as JSON gives it back."""
    if isinstance(value, list | tuple):
        return [_plain_lists(item) for item in value]
    return {key: _plain_lists(item) for key, item in value.items()} if isinstance(value, Mapping) else value
