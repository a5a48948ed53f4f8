"""Stores of LangGraph, which LangMem writes too: the database of a SqliteStore.

An item is a memory whose scope is its namespace. Its text is what LangMem calls the content, or a field named as texts
are; of other values it is the fields with their names. https://langchain-ai.github.io/langmem/concepts/conceptual_guide,
https://github.com/langchain-ai/langgraph/blob/main/libs/checkpoint-sqlite/langgraph/store/sqlite/base.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recallite.errors import InvalidInput
from recallite.model.records import NewRecord
from recallite.model.reports import FileTrouble
from recallite.store.opening import foreign
from recallite_connect.importers.reading import Entries, FoundMemory, cleaned, json_value, label_of, scope_of, time_of
from recallite_connect.importers.sources import Source

_TABLE = "store"
_COLUMNS = ("prefix", "key", "value", "created_at")
_EXPIRES = "expires_at"
_TEXTS = ("content", "text", "memory", "data")


def read(path: Path) -> Entries:
    """The items of a store. InvalidInput for a database that is none."""
    tables = foreign.tables(path)
    if not {*_COLUMNS} <= {*tables.get(_TABLE, ())}:
        raise InvalidInput(f"{path} is no store of LangGraph: give the database of a SqliteStore")
    columns = [*_COLUMNS, *([_EXPIRES] if _EXPIRES in tables[_TABLE] else [])]
    for row in foreign.rows(path, _TABLE, columns):
        item = dict(zip(columns, row, strict=True))
        prefix, key, value = str(item["prefix"]), str(item["key"]), item["value"]
        try:
            content = json_value(value if isinstance(value, bytes) else str(value).encode("utf-8", "replace"))
            record = _record(prefix, key, content, item)
        except (InvalidInput, RecursionError) as fault:
            yield FileTrouble(path=path.name, reason=f"the item {prefix}/{key}: {fault}")
        else:
            yield FoundMemory(record=record, path=path.name)


def _record(prefix: str, key: str, value: Any, row: dict[str, Any]) -> NewRecord:
    text, rest = _text(value)
    if not text.strip():
        raise InvalidInput("it has no text")
    namespace = prefix.split(".")
    return NewRecord(
        id=" ".join(f"{prefix}/{key}".split()), text=cleaned(text), scope=scope_of(*namespace), source=label_of(prefix),
        created_at=time_of(row["created_at"]), expires_at=time_of(row.get(_EXPIRES), end=True),
        metadata={"namespace": namespace, "key": key, **rest},
    )  # fmt: skip


def _text(value: Any) -> tuple[str, dict[str, Any]]:
    """The text of an item, and what else it has."""
    if not isinstance(value, dict):
        return _said(value), {}
    # LangMem's values are {"kind": the name of a schema, "content": its fields}.
    kind = {"kind": value["kind"]} if isinstance(value.get("kind"), str) else {}
    inner = value.get("content")
    if isinstance(inner, dict):
        text, rest = _text(inner)
        return text, {**kind, **rest}
    named = next((name for name in _TEXTS if isinstance(value.get(name), str)), None)
    if named is not None:
        return value[named], {name: other for name, other in value.items() if name != named}
    return "\n".join(
        f"{name}: {_said(other)}" for name, other in value.items() if other not in (None, "", [], {})
    ), kind


def _said(value: Any) -> str:
    """A value as a person would write it."""
    if isinstance(value, dict):
        return "; ".join(f"{name}: {_said(other)}" for name, other in value.items())
    if isinstance(value, list):
        return ", ".join(map(_said, value))
    return "" if value is None else str(value)


# Agents write to it, LangMem what a model has extracted.
SOURCE = Source(
    read, "the database of LangGraph's SqliteStore, which LangMem writes too", authority="agent", changes=True,
    local_ids=True,
)  # fmt: skip
