"""mem0: what `get_all()` returns as JSON, or its local stores.

A JSON file is a list of memories, or an object with one under "results" (get_all), "memories" (OpenMemory's backup) or
"data" (`mem0 list --json`). Of the local stores a Qdrant folder, collection/NAME/storage.sqlite, has the memories with
their users and metadata; its points are pickles, of which nothing is run. history.db has the texts alone, as the last
event of each memory says. https://docs.mem0.ai/cookbooks/essentials/exporting-memories,
https://github.com/mem0ai/mem0/blob/main/mem0/memory/main.py,
https://github.com/qdrant/qdrant-client/blob/master/qdrant_client/local/persistence.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recallite.errors import InvalidInput, NotADatabase
from recallite.model.records import NewRecord
from recallite.model.reports import FileTrouble
from recallite.store import foreign
from recallite.system.folders import open_regular
from recallite_connect.importers.entries import Entries, FoundMemory, LeftOut
from recallite_connect.importers.json_items import array_items
from recallite_connect.importers.pickled import Opaque, plain_values
from recallite_connect.importers.sources import Source
from recallite_connect.importers.values import cleaned, label_of, scope_of, tags_of, time_of

_ARRAYS = ("results", "memories", "data")
_TEXTS = ("memory", "data", "content", "text")
_OWNERS = ("user_id", "agent_id", "app_id", "run_id")
# What says nothing, or stands in a field of its own.
_DROPPED = frozenset(
    {"id", "hash", "score", "text_lemmatized", "metadata", *_TEXTS, "created_at", "categories", "embedding"}
)
_POINTS, _HISTORY = "points", "history"


def read(path: Path) -> Entries:
    """The memories of a JSON file, a store's database or a folder with one. InvalidInput for a folder without."""
    if not path.is_dir():
        yield from _file(path)
        return
    stores = sorted(path.glob("collection/*/storage.sqlite")) + sorted(path.glob("qdrant/collection/*/storage.sqlite"))
    # mem0 keeps which entities memories are about beside them.
    stores = [store for store in stores if not store.parent.name.endswith(("_entities", "migrations"))]
    databases = stores or [store for store in (path / "history.db",) if store.exists()]
    if not databases:
        raise InvalidInput(
            f"{path} has neither a Qdrant collection nor history.db: write what memory.get_all(...) of mem0 returns to "
            "a file, with json.dump, and import that"
        )
    for store in databases:
        yield from _database(store)


def _file(path: Path) -> Entries:
    try:
        yield from _database(path)
    except NotADatabase:
        yield from _json(path)


def _json(path: Path) -> Entries:
    any_item = False
    try:
        with open_regular(path) as stream:
            for item in array_items(stream, _ARRAYS):
                any_item = True
                try:
                    yield _found(item.value(), path.name, item.line)
                except (InvalidInput, RecursionError) as fault:
                    yield FileTrouble(path=path.name, line=item.line, reason=f"memory {item.number}: {fault}")
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}") from fault
    if not any_item:
        yield FileTrouble(
            path=path.name,
            reason=f"there are no memories in it: they are a list, or stand under {' or '.join(_ARRAYS)}",
        )


def _database(path: Path) -> Entries:
    tables = foreign.tables(path)
    if _POINTS in tables:
        yield from _points(path)
    elif {"memory_id", "new_memory", "event"} <= {*tables.get(_HISTORY, ())}:
        yield from _history(path)
    else:
        raise InvalidInput(f"{path} has neither points of Qdrant nor a history of mem0")


def _points(path: Path) -> Entries:
    """The points of a local Qdrant collection."""
    name = f"{path.parent.name}/{path.name}"
    for place, (data,) in enumerate(foreign.rows(path, _POINTS, ["point"]), 1):
        try:
            point = plain_values(data if isinstance(data, bytes) else b"")
            state = point.state if isinstance(point, Opaque) else None
            fields = state.get("__dict__") if isinstance(state, dict) else None
            payload = fields.get("payload") if isinstance(fields, dict) else None
            if not isinstance(fields, dict) or not isinstance(payload, dict):
                raise InvalidInput("it is no point with a payload")
            yield _found({**payload, "id": fields.get("id")}, name, None)
        except (InvalidInput, RecursionError) as fault:
            yield FileTrouble(path=name, reason=f"point {place}: {fault}")


def _history(path: Path) -> Entries:
    """Memories as their last event says, but for those deleted."""
    last: dict[object, int] = {}
    for place, (memory,) in enumerate(foreign.rows(path, _HISTORY, ["memory_id"])):
        last[memory] = place
    columns = [name for name in _HISTORY_COLUMNS if name in foreign.tables(path)[_HISTORY]]
    for place, row in enumerate(foreign.rows(path, _HISTORY, columns)):
        event = dict(zip(columns, row, strict=True))
        if last[event["memory_id"]] != place:
            continue
        if event["event"] == "DELETE" or event.get("is_deleted"):
            yield LeftOut("deleted memories")
            continue
        memory_fields = {"id": event["memory_id"], "memory": event["new_memory"], **{
            name: event[name] for name in ("created_at", "updated_at", "actor_id", "role") if event.get(name)
        }}  # fmt: skip
        try:
            yield _found(memory_fields, path.name, None)
        except InvalidInput as fault:
            yield FileTrouble(path=path.name, reason=f"event {place + 1}: {fault}")


_HISTORY_COLUMNS = (
    "memory_id", "new_memory", "event", "created_at", "updated_at", "is_deleted", "actor_id", "role",
)  # fmt: skip


def _found(item: Any, path: str, line: int | None) -> FoundMemory | LeftOut:
    if not isinstance(item, dict):
        raise InvalidInput("it is no object")
    if item.get("state", "active") != "active":
        return LeftOut(f"{label_of(item['state'])} memories")
    text = next((item[name] for name in _TEXTS if isinstance(item.get(name), str)), None)
    id = label_of(item.get("id"))
    if text is None or id is None:
        raise InvalidInput(f"it has no {'id' if text is not None else 'text'}")
    metadata = item.get("metadata")
    beside = {str(name): value for name, value in item.items() if name not in _DROPPED and _says(value)}
    owner = next((item[name] for name in _OWNERS if item.get(name)), None)
    record = NewRecord(
        id=id,
        text=cleaned(text),
        scope=scope_of(owner),
        tags=tags_of(item.get("categories") or ()),
        context=label_of(item.get("actor_id")) or label_of(item.get("role")),
        created_at=time_of(item.get("created_at")),
        expires_at=time_of(item.get("expiration_date"), end=True),
        metadata={**(metadata if isinstance(metadata, dict) else {}), **beside},
    )
    return FoundMemory(record=record, path=path, line=line)


def _says(value: Any) -> bool:
    return value is not None and value != "" and not _holds_opaque(value)


def _holds_opaque(value: Any) -> bool:
    parts: Iterator[Any] = iter(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    return isinstance(value, Opaque) or any(_holds_opaque(part) for part in parts)


# A model has extracted what it stores.
SOURCE = Source(
    read, "what mem0's get_all() returns as JSON, or the folder of its stores", authority="agent", changes=True,
    folder=".mem0",
)  # fmt: skip
