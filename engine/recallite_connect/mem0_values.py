"""The values of mem0 as those of Recallite and back: ids, filters, dates and results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from hashlib import md5
from typing import Any

from recallite.errors import InvalidInput
from recallite.model.records import Hit, Record
from recallite.system.messages import shown
from recallite_connect.common import scope_segment

ENTITIES = ("user_id", "agent_id", "run_id")
IDENTITY = (*ENTITIES, "actor_id")
_BESIDE = (*IDENTITY, "role", "attributed_to", "expiration_date")
"""Metadata that a result has beside its text, and not below `metadata`."""
_OPERATORS = ("eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "contains")
_LOGIC = {"AND": "and", "OR": "or", "$or": "or", "NOT": "not", "$not": "not"}


def entity_ids(arguments: Mapping[str, Any]) -> dict[str, str]:
    """The ids of a user, an agent and a run that are not None, checked as mem0 does."""
    ids = {}
    for name in ENTITIES:
        if (value := arguments.get(name)) is None:
            continue
        plain = str(value).strip()
        if not plain:
            raise InvalidInput(f"Invalid {name}: cannot be empty or whitespace-only. Provide a valid identifier.")
        if any(character.isspace() for character in plain):
            raise InvalidInput(f"Invalid {name}: cannot contain whitespace. Provide a valid identifier without spaces.")
        ids[name] = plain
    return ids


def scope_of(ids: Mapping[str, str]) -> str:
    """The scope of ids: `/user_id/ada/agent_id/coder`."""
    return "".join(f"/{name}/{scope_segment(ids[name])}" for name in ENTITIES if name in ids)


def where_of(filters: Mapping[str, Any], *, show_expired: bool) -> dict[str, Any]:
    """The `where` of a mem0 filter."""
    parts = list(_conditions(filters))
    if not show_expired:
        today = datetime.now(UTC).date().isoformat()
        field = "metadata.expiration_date"
        parts.append({"or": [{field: None}, {field: {"gte": today}}]})
    return {"and": parts}


def _conditions(filters: object) -> Iterator[dict[str, Any]]:
    if not isinstance(filters, Mapping):
        raise InvalidInput(f"a filter is {shown(filters)}: give a dict such as {{'user_id': 'ada'}}")
    for key, value in filters.items():
        if key in _LOGIC:
            if not isinstance(value, list) or not value:
                raise InvalidInput(f"{key} operator requires a non-empty list of conditions")
            parts = [{"and": list(_conditions(condition))} for condition in value]
            yield {"not": {"or": parts}} if _LOGIC[key] == "not" else {_LOGIC[key]: parts}
        else:
            yield from _comparisons(f"metadata.{key}", value)


def _comparisons(field: str, value: object) -> Iterator[dict[str, Any]]:
    if value == "*":
        yield {field: {"ne": None}}
    elif isinstance(value, list | tuple):
        yield {field: {"in": value}}
    elif not isinstance(value, Mapping):
        yield {field: value}
    else:
        for operator, bound in value.items():
            if operator not in _OPERATORS:
                raise InvalidInput(
                    f"Unsupported metadata filter operator: {operator}. Use one of {', '.join(_OPERATORS)}"
                )
            yield {field: {operator: bound}}


def check_search(*, threshold: object = None, top_k: object = None) -> None:
    """Refuse what is no threshold or no number of results."""
    if threshold is not None and (
        isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 1
    ):
        raise InvalidInput(f"Invalid threshold: {shown(threshold)}. Must be a number between 0 and 1 (inclusive).")
    if isinstance(top_k, bool) or not isinstance(top_k, int) or top_k < 0:
        raise InvalidInput(f"Invalid top_k: {shown(top_k)}. Must be a non-negative integer.")


def day_of(value: object) -> str | None:
    """An expiration date as YYYY-MM-DD."""
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.date().isoformat()
    if isinstance(value, date):
        return value.isoformat()
    try:
        return date.fromisoformat(value).isoformat()  # type: ignore[arg-type]
    except (ValueError, TypeError):
        raise InvalidInput(f"expiration_date must be a valid date in YYYY-MM-DD format. It is {shown(value)}") from None


def messages_of(messages: object) -> list[Any]:
    """A str, a message or a list of messages as a list of messages."""
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    if isinstance(messages, Mapping):
        return [messages]
    if isinstance(messages, list):
        return messages
    raise InvalidInput(f"messages is {shown(messages)}: messages must be str, dict, or list[dict]")


def item_of(memory: Record | Hit, *, score: float | None = None, listed: bool = False) -> dict[str, Any]:
    """A memory as mem0 returns it; `listed` ones have no score."""
    metadata = {key: value for key, value in memory.metadata.items() if key not in _BESIDE}
    item: dict[str, Any] = {
        "id": memory.id,
        "memory": memory.text,
        "hash": md5(memory.text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": metadata or None,
        "score": score,
        "created_at": memory.created_at.isoformat(),
        "updated_at": memory.updated_at.isoformat(),
    }
    if listed:
        del item["score"]
    return item | {key: memory.metadata[key] for key in _BESIDE if key in memory.metadata}


def history_of(versions: list[Record]) -> list[dict[str, Any]]:
    """The versions of a memory, oldest first, as mem0's rows of changes."""
    rows = []
    for number, version in enumerate(versions):
        rows.append(
            {
                "id": f"{version.id}:{number}",
                "memory_id": version.id,
                "old_memory": versions[number - 1].text if number else None,
                "new_memory": version.text,
                "event": "UPDATE" if number else "ADD",
                "created_at": version.created_at.isoformat(),
                "updated_at": version.recorded_from.isoformat(),
                "is_deleted": False,
                "actor_id": version.metadata.get("actor_id"),
                "role": version.metadata.get("role"),
            }
        )
    return rows
