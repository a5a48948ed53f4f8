"""mem0: what `get_all()` returns as JSON, or its local stores.

A JSON file is a list of memories, or an object with one under "results" (get_all), "memories" (OpenMemory's backup) or
"data" (`mem0 list --json`). Of the local stores a Qdrant folder, collection/NAME/storage.sqlite, has the memories with
their users and metadata; its points are pickles, of which nothing is run. history.db has the texts alone, as the last
event of each memory says. https://docs.mem0.ai/cookbooks/essentials/exporting-memories,
https://github.com/mem0ai/mem0/blob/main/mem0/memory/main.py,
https://github.com/qdrant/qdrant-client/blob/master/qdrant_client/local/persistence.py
"""

from __future__ import annotations

import pickletools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recallite.errors import InvalidInput, NotADatabase
from recallite.model.records import NewRecord
from recallite.model.reports import FileTrouble
from recallite.store.opening import foreign
from recallite.system.folders import open_regular
from recallite_connect.importers.reading import (
    Entries,
    FoundMemory,
    LeftOut,
    array_items,
    cleaned,
    label_of,
    scope_of,
    tags_of,
    time_of,
)
from recallite_connect.importers.sources import Source

_ARRAYS = ("results", "memories", "data")
_TEXTS = ("memory", "data", "content", "text")
_OWNERS = ("user_id", "agent_id", "app_id", "run_id")
# What says nothing, or stands in a field of its own.
_DROPPED = frozenset(
    {"id", "hash", "score", "text_lemmatized", "metadata", *_TEXTS, "created_at", "categories", "embedding"}
)
_POINTS, _HISTORY = "points", "history"
_HISTORY_COLUMNS = (
    "memory_id", "new_memory", "event", "created_at", "updated_at", "is_deleted", "actor_id", "role",
)  # fmt: skip


def read(path: Path) -> Entries:
    """The memories of a JSON file, a store's database or a folder with one. InvalidInput for a folder without."""
    if not path.is_dir():
        try:
            yield from _database(path)
        except NotADatabase:
            yield from _json(path)
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
    for number, (data,) in enumerate(foreign.rows(path, _POINTS, ["point"]), 1):
        try:
            point = plain_values(data if isinstance(data, bytes) else b"")
            state = point.state if isinstance(point, Opaque) else None
            fields = state.get("__dict__") if isinstance(state, dict) else None
            payload = fields.get("payload") if isinstance(fields, dict) else None
            if not isinstance(fields, dict) or not isinstance(payload, dict):
                raise InvalidInput("it is no point with a payload")
            yield _found({**payload, "id": fields.get("id")}, name, None)
        except (InvalidInput, RecursionError) as fault:
            yield FileTrouble(path=name, reason=f"point {number}: {fault}")


def _history(path: Path) -> Entries:
    """Memories as their last event says, without deleted ones."""
    last: dict[object, int] = {}
    for number, (memory,) in enumerate(foreign.rows(path, _HISTORY, ["memory_id"])):
        last[memory] = number
    columns = [name for name in _HISTORY_COLUMNS if name in foreign.tables(path)[_HISTORY]]
    for number, row in enumerate(foreign.rows(path, _HISTORY, columns)):
        event = dict(zip(columns, row, strict=True))
        if last[event["memory_id"]] != number:
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
            yield FileTrouble(path=path.name, reason=f"event {number + 1}: {fault}")


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
    beside = {
        str(name): value for name, value in item.items()
        if name not in _DROPPED and value is not None and value != "" and not _holds_opaque(value)
    }  # fmt: skip
    owner = next((item[name] for name in _OWNERS if item.get(name)), None)
    record = NewRecord(
        id=id, text=cleaned(text), scope=scope_of(owner), tags=tags_of(item.get("categories") or ()),
        context=label_of(item.get("actor_id")) or label_of(item.get("role")),
        created_at=time_of(item.get("created_at")), expires_at=time_of(item.get("expiration_date"), end=True),
        metadata={**(metadata if isinstance(metadata, dict) else {}), **beside},
    )  # fmt: skip
    return FoundMemory(record=record, path=path, line=line)


def _holds_opaque(value: Any) -> bool:
    parts: Iterator[Any] = iter(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    return isinstance(value, Opaque) or any(_holds_opaque(part) for part in parts)


# A model has extracted what it stores.
SOURCE = Source(
    read, "what mem0's get_all() returns as JSON, or the folder of its stores", authority="agent", changes=True,
    folder=".mem0",
)  # fmt: skip


_MAX_BYTES = 16 << 20
_MARK: Any = object()
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Any] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "EMPTY_SET": list}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_IGNORED = frozenset({"PROTO", "FRAME", "STOP"})


class Opaque:
    """An object of a class: only the state it was saved with is known."""

    def __init__(self) -> None:
        self.state: Any = None


def plain_values(data: bytes) -> Any:
    """The value of a pickle; sets are lists.

    InvalidInput for what is none, has more than 16 MiB, shares lists or dicts between its parts, or is of rare kinds.
    """
    if len(data) > _MAX_BYTES:
        raise InvalidInput(f"it has {len(data):,} bytes: at most {_MAX_BYTES:,} are read")
    machine = _Machine()
    try:
        for opcode, argument, _ in pickletools.genops(data):
            machine.step(opcode.name, argument)
        return machine.stack[-1]
    except InvalidInput:
        raise
    except Exception as fault:  # whatever a malformed file makes of the stack
        raise InvalidInput(f"it is not a pickle that can be read: {type(fault).__name__}") from None


class _Machine:
    """The stack and the memo of a pickle."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._repeated_chars = 0

    def step(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in _IGNORED:
            return
        if name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name == "MARK":
            stack.append(_MARK)
        elif name in {"MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT"}:
            self._memo[len(self._memo) if name == "MEMOIZE" else argument] = stack[-1]
        elif name in {"BINGET", "LONG_BINGET", "GET"}:
            stack.append(self._again(self._memo[argument]))
        elif name in {"STACK_GLOBAL", "GLOBAL", "NEWOBJ", "NEWOBJ_EX", "REDUCE"}:
            taken = {"STACK_GLOBAL": 2, "GLOBAL": 0, "NEWOBJ": 2, "NEWOBJ_EX": 3, "REDUCE": 2}[name]
            del stack[len(stack) - taken :]
            stack.append(Opaque())
        elif name == "BUILD":
            state = stack.pop()
            if isinstance(stack[-1], Opaque):
                stack[-1].state = state
        elif name in _TUPLES:
            items = stack[-_TUPLES[name] :]
            stack[-_TUPLES[name] :] = [tuple(items)]
        elif name == "TUPLE":
            stack.append(tuple(self._marked()))
        elif name == "APPEND":
            item = stack.pop()
            stack[-1].append(item)
        elif name in {"APPENDS", "ADDITEMS"}:
            items = self._marked()
            stack[-1].extend(items)
        elif name in {"SETITEM", "SETITEMS"}:
            pairs = self._marked() if name == "SETITEMS" else [stack.pop(-2), stack.pop()]
            stack[-1].update(zip(pairs[::2], pairs[1::2], strict=True))
        elif isinstance(argument, str | bytes | int | float):
            stack.append(argument)
        else:
            raise InvalidInput(f"it has a {name}, which is not read")

    def _again(self, value: Any) -> Any:
        """A value that is said once and used again; what would grow without bound, or hold itself, is refused."""
        self._repeated_chars += len(value) if isinstance(value, str | bytes) else 0
        if isinstance(value, list | dict) or (isinstance(value, tuple) and value) or self._repeated_chars > _MAX_BYTES:
            raise InvalidInput("its parts share values, which is not read")
        return value

    def _marked(self) -> list[Any]:
        """Take what is on the stack above the last mark, and the mark."""
        i = len(self.stack) - 1
        while self.stack[i] is not _MARK:
            i -= 1
        items = self.stack[i + 1 :]
        del self.stack[i:]
        return items
