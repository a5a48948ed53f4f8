"""Parts of several integrations: the Memory they stand on, calls in threads, the tool `memory`, ids and policies."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from hashlib import blake2b
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from msgspec import structs

from recallite.agents.sessions import Session, Sessions
from recallite.doors import tools
from recallite.errors import InvalidInput, NotFound
from recallite.memory import Memory
from recallite.model.checks import MAX_QUERY_CHARS
from recallite.model.policies import WritePolicy
from recallite.system.extras import install_command
from recallite.system.messages import shown
from recallite.text.quoting import NOTICE

if TYPE_CHECKING:
    from recallite.embedding.protocol import Embedder

RANKED_ALONE: dict[str, Any] = {"standing_instructions": 0, "adaptive": False, "hops": 0, "superseded": "as_ranked"}
"""The options of a recall whose hits are those of the ranking, in its order, and no others."""

# Nothing that is stored replaces, repeats or annotates another.
_AS_GIVEN = {
    "supersede_confidence": None, "contradict_confidence": None, "duplicates": "store", "judge": False,
    "resolve_dates": False, "topic_cosine": None, "recognise_recalled": False, "link_cosine": None, "junk": "store",
}  # fmt: skip

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

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def as_given(memory: Memory) -> WritePolicy:
    """The write policy of a memory without what it does of itself: a framework finds again what it has stored."""
    return structs.replace(memory.settings.write_policy, **_AS_GIVEN)


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


def memory_tool_schema() -> tuple[str, dict[str, Any]]:
    """Return the description of the tool `memory` of `recallite.doors.tools`, and the JSON schema of its arguments."""
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


def recalled_text(memory: Memory, query: str, limit: int) -> str:
    """Return the hits for a query as text, quoted for a prompt; "" without hits, or for a blank query."""
    if not query.strip():
        return ""
    hits = memory.recall(query[:MAX_QUERY_CHARS], limit=limit, relevant=True)
    if not hits:
        return ""
    results = [{"content": hit.text, "date": hit.created_at.date().isoformat()} for hit in hits]
    return tools.as_text({"notice": NOTICE, "results": results})
