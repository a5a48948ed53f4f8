"""What the integrations share: whose Memory it is, calls that an event loop does not wait for, and what to install."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, Self, TypeVar

from msgspec import structs

from recallite.doors.tools import as_text
from recallite.errors import InvalidInput
from recallite.memory import Memory
from recallite.model.checks import MAX_QUERY_CHARS
from recallite.model.policies import WritePolicy
from recallite.system.extras import install_command
from recallite.system.messages import shown
from recallite.text.quoting import NOTICE

if TYPE_CHECKING:
    from recallite.embedding.protocol import Embedder

# Nothing that is stored replaces, repeats or annotates another.
_AS_GIVEN = {
    "supersede_confidence": None, "contradict_confidence": None, "duplicates": "store", "judge": False,
    "resolve_dates": False, "topic_cosine": None, "recognise_recalled": False, "link_cosine": None, "junk": "store",
}  # fmt: skip

P = ParamSpec("P")
R = TypeVar("R")


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


def scope_segment(name: str) -> str:
    """A name as a segment of a scope: different names are different segments."""
    escaped = name.replace("%", "%25").replace("/", "%2F")
    return escaped if escaped.strip(".") and escaped == escaped.strip() else f"%{escaped}%"


async def in_thread(call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """The result of a call that runs in a thread. An await that is cancelled ends when the call has ended.

    So what is called next finds the store as this call leaves it, whatever became of the one who awaited it.
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


def recalled_text(memory: Memory, query: str, limit: int) -> str:
    """What `memory` recalls for a query, quoted for a prompt; empty if that is nothing, or the query is blank."""
    if not query.strip():
        return ""
    hits = memory.recall(query[:MAX_QUERY_CHARS], limit=limit, relevant=True)
    if not hits:
        return ""
    results = [{"content": hit.text, "date": hit.created_at.date().isoformat()} for hit in hits]
    return as_text({"notice": NOTICE, "results": results})
