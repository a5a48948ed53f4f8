"""AsyncMemory: the verbs of Memory on a bounded executor, so that the event loop never waits for SQLite or a kernel."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial, update_wrapper
from operator import attrgetter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from recollect.errors import StoreClosed
from recollect.knowledge.knowledge import Knowledge
from recollect.memory import Memory
from recollect.settings import Settings
from recollect.tiers.consolidator import Consolidator
from recollect.tiers.episodes import Episodes
from recollect.tiers.experience import Experience
from recollect.tiers.procedures import Procedures
from recollect.tiers.semantic import Semantic
from recollect.tiers.service import Service
from recollect.tiers.sessions import Sessions
from recollect.tiers.working import Working

if TYPE_CHECKING:
    from recollect.embedding.protocol import Embedder
    from recollect.llm.protocol import LanguageModel

__all__ = ["AsyncMemory", "AsyncService"]

P = ParamSpec("P")
R = TypeVar("R")
MAX_THREADS = 4
SERVICES: dict[str, type[Service]] = {
    "working": Working,
    "semantic": Semantic,
    "episodes": Episodes,
    "procedures": Procedures,
    "experience": Experience,
    "sessions": Sessions,
    "consolidator": Consolidator,
    "knowledge": Knowledge,
}


def _verb(method: Callable[Concatenate[Memory, P], R]) -> Callable[Concatenate[AsyncMemory, P], Awaitable[R]]:
    """The same verb, run in a thread of the executor; a cancelled await leaves the verb to finish there."""

    async def verb(self: AsyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> R:
        memory = await self._opened()
        return await self._run(partial(method, memory, *args, **kwargs))

    update_wrapper(verb, method)
    return verb


class AsyncService:
    """A service of Memory (`memory.sessions`, ...) whose methods are awaited and run in the executor.

    What a method returns is awaited likewise if it is a service itself, as a session is; properties are read at once.
    Iterate with `async for`.
    """

    def __init__(self, owner: AsyncMemory, kind: type[Service], find: Callable[[Memory], Any]) -> None:
        self._owner = owner
        self._kind = kind
        self._find = find

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        attribute = getattr(self._kind, name)
        if isinstance(attribute, property):
            memory = self._owner._memory
            if memory is None:
                raise StoreClosed("this AsyncMemory is not open yet: use `async with`, or await open()")
            return getattr(self._find(memory), name)

        async def verb(*args: Any, **kwargs: Any) -> Any:
            return await self._call(name, args, kwargs)

        return update_wrapper(verb, attribute)

    async def __aiter__(self) -> AsyncIterator[Any]:
        for item in await self._call("__iter__", (), {}):
            yield item

    async def _call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        memory = await self._owner._opened()
        service = self._find(memory)
        result = await self._owner._run(partial(getattr(service, name), *args, **kwargs))
        if isinstance(result, Service):
            return AsyncService(self._owner, type(result), lambda _: result)
        return result


class AsyncMemory:
    """`Memory` for asyncio. Open it with `async with AsyncMemory(path) as memory:`; the verbs are awaited.

    At most four verbs run at a time; more wait their turn without blocking the event loop.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        embedder: Embedder | str | None = None,
        settings: Settings | None = None,
        language_model: LanguageModel | str | None = None,
        key: str | None = None,
    ) -> None:
        # Not a partial: its repr would show the key.
        self._open: Callable[[], Memory] = lambda: Memory(
            path, embedder=embedder, settings=settings, language_model=language_model, key=key
        )
        self._executor = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="recollect")
        self._owner = True
        self._opening = asyncio.Lock()
        self._bind(None)

    def _bind(self, memory: Memory | None) -> None:
        self._memory = memory
        for name, kind in SERVICES.items():
            setattr(self, name, AsyncService(self, kind, attrgetter(name)))

    working: AsyncService
    semantic: AsyncService
    episodes: AsyncService
    procedures: AsyncService
    experience: AsyncService
    sessions: AsyncService
    consolidator: AsyncService
    knowledge: AsyncService

    remember = _verb(Memory.remember)
    remember_many = _verb(Memory.remember_many)
    update = _verb(Memory.update)
    restore = _verb(Memory.restore)
    forget = _verb(Memory.forget)
    purge_expired = _verb(Memory.purge_expired)
    link = _verb(Memory.link)
    unlink = _verb(Memory.unlink)
    recall = _verb(Memory.recall)
    recall_many = _verb(Memory.recall_many)
    explain = _verb(Memory.explain)
    bootstrap = _verb(Memory.bootstrap)
    get = _verb(Memory.get)
    list = _verb(Memory.list)
    count = _verb(Memory.count)
    history = _verb(Memory.history)
    neighbors = _verb(Memory.neighbors)
    backlinks = _verb(Memory.backlinks)
    traverse = _verb(Memory.traverse)
    stats = _verb(Memory.stats)
    verify = _verb(Memory.verify)
    rebuild = _verb(Memory.rebuild)
    vacuum = _verb(Memory.vacuum)
    backup = _verb(Memory.backup)
    export = _verb(Memory.export)
    import_ = _verb(Memory.import_)
    export_folder = _verb(Memory.export_folder)
    import_folder = _verb(Memory.import_folder)
    audit = _verb(Memory.audit)
    reembed = _verb(Memory.reembed)
    rekey = _verb(Memory.rekey)
    warmup = _verb(Memory.warmup)

    def scoped(self, scope: str) -> AsyncMemory:
        """The memory bound to a scope; open it first. The handle shares the threads and does not close them."""
        if self._memory is None:
            raise StoreClosed("this AsyncMemory is not open yet: use `async with`, or await open()")
        handle = object.__new__(type(self))
        handle._bind(self._memory.scoped(scope))
        handle._executor = self._executor
        handle._owner = False
        return handle

    async def open(self) -> AsyncMemory:
        """Open the file, as `async with` and the first verb do."""
        await self._opened()
        return self

    async def close(self) -> None:
        """Close the file and end the threads. Again, it does nothing; a scoped handle leaves both."""
        if not self._owner:
            return
        loop = asyncio.get_running_loop()
        # Verbs that run are let finish: what they have written they can still report.
        await loop.run_in_executor(None, partial(self._executor.shutdown, wait=True))
        if self._memory is not None:
            await loop.run_in_executor(None, self._memory.close)

    async def __aenter__(self) -> AsyncMemory:
        await self._opened()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _opened(self) -> Memory:
        if self._memory is None:
            async with self._opening:
                if self._memory is None:
                    self._memory = await self._run(self._open)
        return self._memory

    async def _run(self, call: Callable[[], R]) -> R:
        try:
            running = asyncio.get_running_loop().run_in_executor(self._executor, call)
        except RuntimeError:  # the executor was shut down
            raise StoreClosed("this AsyncMemory was closed: open a new one") from None
        return await running
