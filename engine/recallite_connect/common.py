"""What several frameworks need: the Memory they stand on, values that a store takes, threads, the tool `memory`."""

from __future__ import annotations

import asyncio
import json
import math
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time
from enum import Enum
from functools import wraps
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, Self, TypeVar
from uuid import UUID

from msgspec import structs

import recallite_tools as tools
from recallite.agents.sessions import Session, Sessions, plain_text
from recallite.errors import InvalidInput, NotFound, StoreClosed
from recallite.memory import Memory
from recallite.model.checks import MAX_QUERY_CHARS
from recallite.model.filters import metadata_field
from recallite.model.records import Hit, NewRecord
from recallite.model.settings import WritePolicy
from recallite.remember.embed import MESSAGE_CHARS
from recallite.system.messages import install_command, shown
from recallite.system.telemetry import logger
from recallite.text.quotes import NOTICE
from recallite_connect.importers.reading import cleaned

if TYPE_CHECKING:
    from recallite.embedding.protocol import Embedder


RANKED_ALONE: dict[str, Any] = {"standing_instructions": 0, "adaptive": False, "hops": 0, "superseded": "as_ranked"}
"""The options of a recall whose hits are those of the ranking, in its order, and no others."""

# Nothing that is stored replaces, repeats or annotates another.
_AS_GIVEN = {
    "supersede_confidence": None, "contradict_confidence": None, "duplicates": "store", "judge": False,
    "resolve_dates": False, "topic_cosine": None, "recognise_recalled": False, "link_cosine": None, "junk": "store",
}  # fmt: skip

_log = logger(__name__)
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


@contextmanager
def needed(extra: str) -> Iterator[None]:
    """Around the imports of a framework: a missing package is an error that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as fault:
        fault.add_note(f"It is part of the extra {extra}: {install_command(extra)}")
        raise


class OnMemory:
    """The base of what stands on a Memory: one that the caller opened and closes, or one of its own for a path."""

    def __init__(self, memory: Memory | str | os.PathLike[str], *, embedder: Embedder | str | None = None) -> None:
        """`embedder` is that of a Memory that is opened here."""
        if not isinstance(memory, Memory | str | os.PathLike):
            raise InvalidInput(f"memory is {shown(memory)}: give a Memory, or the path of one")
        self._owns = not isinstance(memory, Memory)
        self._memory = memory if isinstance(memory, Memory) else Memory(memory, embedder=embedder)

    @property
    def memory(self) -> Memory:
        """The memory that it stands on."""
        return self._memory

    def close(self) -> None:
        """Close the memory if it was opened here, for a path. A second call does nothing."""
        if self._owns:
            self._memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def as_given(memory: Memory) -> WritePolicy:
    """The write policy of a memory without what it does of itself: a framework finds again what it has stored."""
    return structs.replace(memory.settings.write_policy, **_AS_GIVEN)


class Restorable(NamedTuple):
    """A value as JSON that a store takes, and what JSON has not: `types` has of each such part its type, its path and,
    if the JSON does not say it, its exact form. `restored` makes the value of them again.
    """

    json: Any
    types: list[list[Any]]


def restorable(value: object) -> Restorable:
    """A value whose times and UUIDs are texts, enumerations their values, and dataclasses objects, as orjson has them.

    Times, UUIDs, numbers that JSON has not and texts that no store holds come back as they were; the classes of
    enumerations and dataclasses do not. What is nothing of these stays, for the store to refuse.
    """
    types: list[list[Any]] = []
    try:
        return Restorable(_json_of(value, (), types), types)
    except RecursionError:
        raise InvalidInput("the value is nested too deep, or holds itself") from None


def _json_of(value: Any, path: tuple[str | int, ...], types: list[list[Any]]) -> Any:
    if isinstance(value, Enum):
        return _json_of(value.value, path, types)
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {_json_key(key): _json_of(inner, (*path, _json_key(key)), types) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_json_of(inner, (*path, i), types) for i, inner in enumerate(value)]
    if isinstance(value, str):
        if (text := cleaned(value)) != value:
            types.append(["str", path, json.dumps(value)])
        return text
    if isinstance(value, datetime | date | time):
        types.append([type(value).__name__, path])
        return value.isoformat()
    if isinstance(value, UUID):
        types.append(["UUID", path])
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        types.append(["float", path, str(value)])
        return None
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        types.append(["int", path])
        return str(value)
    return value


def _json_key(key: Any) -> Any:
    return cleaned(key) if isinstance(key, str) else key


_RESTORED: dict[str, Callable[[str], Any]] = {
    "str": json.loads, "float": float, "int": int, "UUID": UUID, "datetime": datetime.fromisoformat,
    "date": date.fromisoformat, "time": time.fromisoformat,
}  # fmt: skip


def restored(value: Any, types: Iterable[Sequence[Any]]) -> Any:
    """The value that `restorable` was given, with lists for its tuples. Nothing of `value` is changed."""
    for name, path, *exact in types:
        value = _with_part(value, path, _RESTORED[name], exact)
    return value


def _with_part(value: Any, path: Sequence[str | int], made: Callable[[str], Any], exact: Sequence[str]) -> Any:
    if not path:
        return made(exact[0] if exact else value)
    copied = value.copy()
    copied[path[0]] = _with_part(value[path[0]], path[1:], made, exact)
    return copied


def blank_as_dash(item: dict[str, Any]) -> dict[str, Any]:
    """The item of `remember_many`; a blank text, which no memory has, is a dash that no search finds by its words."""
    return item if item["text"].strip() else {**item, "text": "-", "indexed": item.get("vector") is not None}


def compared(keys: Sequence[str], operator: str, operand: Any) -> dict[str, Any]:
    """The `where` for what is under these keys of the metadata, one inside the other.

    A key with dots is meant as it is, or as the keys between them.
    """
    inner = (part for key in keys for part in key.split("."))
    names = dict.fromkeys((metadata_field(*keys), metadata_field(*inner)))
    parts = [{name: {operator: operand}} for name in names]
    asks_for_none = operator in ("ne", "nin") or (operator == "eq" and operand is None)
    return parts[0] if len(parts) == 1 else {"and" if asks_for_none else "or": parts}


def hashed_id(prefix: str, scope: str, name: str) -> str:
    """Return the id of the record that a framework calls `name` in a scope."""
    digest = blake2b(f"{scope}\0{name}".encode("utf-8", "surrogatepass"), digest_size=16)
    return f"{prefix}-{digest.hexdigest()}"


def existing_session(sessions: Sessions, id: str, *, agent: str | None = None) -> Session | None:
    """Return the session with an id, None if there is none."""
    try:
        return sessions.get(id, agent=agent)
    except NotFound:
        return None


def stored_messages(
    sessions: Sessions, id: str, *, agent: str | None = None, limit: int | None = None
) -> list[dict[str, Any]]:
    """Return the last `limit` messages of a session, oldest first; [] if there is none with this id."""
    try:
        return sessions.get(id, agent=agent).messages(limit=limit)
    except NotFound:
        return []


def to_embed(messages: Iterable[Mapping[str, Any]]) -> list[NewRecord]:
    """Return the texts of messages as `Memory.transaction(embed=...)` takes them, to append the messages inside it."""
    texts = [(plain_text(message.get("content")), message.get("role")) for message in messages]
    return [NewRecord(text[:MESSAGE_CHARS], context=role) for text, role in texts if text.strip()]


def memory_tool_schema() -> tuple[str, dict[str, Any]]:
    """Return the description of the tool `memory` of `recallite.tools`, and the JSON schema of its arguments."""
    schema = tools.schemas()["memory"]
    return schema["description"], {
        key: schema[key] for key in ("type", "properties", "required", "additionalProperties")
    }


async def call_memory_tool(memory: Memory, scope: str, arguments: str | Mapping[str, Any]) -> str:
    """Call the tool `memory` within a scope, in a thread, and return its answer as text for a model."""
    return tools.as_text(await in_thread(tools.call, "memory", arguments, memory=memory, scope=scope))


def scope_segment(name: str) -> str:
    """Return a name as a segment of a scope: different names are different segments."""
    escaped = name.replace("%", "%25").replace("/", "%2F")
    return escaped if escaped.strip(".") and escaped == escaped.strip() else f"%{escaped}%"


async def in_thread(call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Run a call in a thread and return its result. An await that is cancelled ends when the call has ended.

    The next call therefore finds the store as this one leaves it, whatever became of the task that awaited it.
    """
    running = asyncio.ensure_future(asyncio.to_thread(call, *args, **kwargs))
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait({running})
        except asyncio.CancelledError as fault:
            cancelled = cancelled or fault
    if cancelled is not None:
        running.exception()  # taken: asyncio would log it as never retrieved
        raise cancelled
    return running.result()


def threaded(
    method: Callable[Concatenate[S, P], R], run: Callable[..., Awaitable[Any]] = in_thread
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """The asynchronous twin of a method, which `run` calls in a thread."""

    @wraps(method)
    async def twin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await run(method, self, *args, **kwargs)  # type: ignore[no-any-return]

    return twin


def marks_of(hit: Hit) -> dict[str, Any]:
    """Return what a host has to know of a hit besides its text: what superseded it, and what contradicts it."""
    marks = {"superseded_by": hit.superseded_by, "contradicts": hit.contradicts}
    return {name: [*ids] for name, ids in marks.items() if ids}


def recalled_text(memory: Memory, query: str, limit: int) -> str:
    """Return the hits for a query as text, quoted for a prompt; "" without hits, or for a blank query."""
    if not query.strip():
        return ""
    hits = memory.recall(query[:MAX_QUERY_CHARS], limit=limit, relevant=True)
    if not hits:
        return ""
    results = [{"content": hit.text, "date": hit.created_at.date().isoformat(), **marks_of(hit)} for hit in hits]
    return tools.as_text({"notice": NOTICE, "results": results})


class Sweeper:
    """Calls `sweep` in a thread of its own; what it raises is logged, and the next call comes as planned.

    The thread ends when it is stopped, or when the store is closed.
    """

    def __init__(self, sweep: Callable[[], object]) -> None:
        self._sweep = sweep
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, minutes: float) -> Future[None]:
        """Begin anew; returns a future that ends with the thread, and ends it when it is cancelled."""
        self.stop()
        ended: Future[None] = Future()
        stop = self._stop = threading.Event()

        def run() -> None:
            while not stop.wait(minutes * 60):
                try:
                    self._sweep()
                except StoreClosed:
                    break
                except Exception as fault:
                    message = "a sweep of what has expired failed with %s; the next is in %g minutes"
                    _log.warning(message, type(fault).__name__, minutes)
            if ended.set_running_or_notify_cancel():
                ended.set_result(None)

        ended.add_done_callback(lambda _: stop.set())
        self._thread = threading.Thread(target=run, name="recallite-sweeper", daemon=True)
        self._thread.start()
        return ended

    def stop(self, timeout: float | None = None) -> bool:
        """End the thread, if there is one, waiting at most `timeout` seconds; returns whether it has ended."""
        self._stop.set()
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()
