"""AsyncMemory: the methods of Memory awaited, while they run in threads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from inspect import isfunction
from operator import attrgetter
from typing import TYPE_CHECKING

from recallite.memory import NAMESPACES, USE, Memory, class_of
from recallite.model.settings import Settings
from recallite.system import plugins
from recallite.system.asynchrony import AsyncHandle, awaited, passed_on
from recallite.system.messages import no_attribute

if TYPE_CHECKING:
    from recallite.agents.consolidation import AsyncConsolidator
    from recallite.agents.experience import AsyncExperience
    from recallite.agents.sessions import AsyncSessions
    from recallite.agents.tiers import AsyncEpisodes, AsyncProcedures, AsyncSemantic
    from recallite.agents.working import AsyncWorking
    from recallite.documents.knowledge import AsyncKnowledge
    from recallite.embedding.protocol import Embedder
    from recallite.remote import LanguageModel
    from recallite.review.memory_review import AsyncMemoryReview
    from recallite.transfer.memory_transfer import AsyncMemoryTransfer
    from recallite.upkeep import AsyncMemoryStore


class AsyncMemory(AsyncHandle[Memory]):
    """`Memory` for asyncio. Open it with `async with AsyncMemory(path) as memory:`; its methods are awaited.

    At most four run at a time; more wait their turn without blocking the event loop.
    """

    working: AsyncWorking
    semantic: AsyncSemantic
    episodes: AsyncEpisodes
    procedures: AsyncProcedures
    sessions: AsyncSessions
    experience: AsyncExperience
    consolidator: AsyncConsolidator
    knowledge: AsyncKnowledge
    store: AsyncMemoryStore
    review: AsyncMemoryReview
    transfer: AsyncMemoryTransfer

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        embedder: Embedder | str | None = None,
        settings: Settings | None = None,
        language_model: LanguageModel | str | None = None,
        key: str | None = None,
    ) -> None:
        def opened() -> Memory:
            plugins.load_all("services")  # imported here, not while the event loop waits
            return Memory(path, embedder=embedder, settings=settings, language_model=language_model, key=key)

        super().__init__(opened)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """The asynchronous twin of a namespace or service: the class Async… beside its class."""
            if name.startswith("_") or name not in (*NAMESPACES, *plugins.names("services")):
                raise no_attribute(self, name, USE)
            kind = class_of(name)
            twin = getattr(import_module(kind.__module__), f"Async{kind.__name__}")
            return vars(self).setdefault(name, twin(self, attrgetter(name)))

    def __dir__(self) -> Iterable[str]:
        return {*super().__dir__(), *NAMESPACES, *plugins.names("services")}

    remember = awaited(Memory.remember)
    remember_many = awaited(Memory.remember_many)
    update = awaited(Memory.update)
    supersede = awaited(Memory.supersede)
    restore = awaited(Memory.restore)
    forget = awaited(Memory.forget)
    link = awaited(Memory.link)
    unlink = awaited(Memory.unlink)
    recall = awaited(Memory.recall)
    recall_many = awaited(Memory.recall_many)
    bootstrap = awaited(Memory.bootstrap)
    get = awaited(Memory.get)
    vectors = awaited(Memory.vectors)
    embed = awaited(Memory.embed)
    list = awaited(Memory.list)
    count = awaited(Memory.count)
    scopes = awaited(Memory.scopes)
    tags = awaited(Memory.tags)
    history = awaited(Memory.history)
    neighbors = awaited(Memory.neighbors)

    path: str = passed_on("path")
    """The file, or ":memory:". Raises StoreClosed before it is open, as `settings` does."""
    scope: str = passed_on("scope")
    """The scope in the file that this handle is bound to; "/" for the whole file."""
    settings: Settings = passed_on("settings")
    """The settings this memory was opened with."""

    def transaction(self, *, embed: Iterable[object] = ()) -> AbstractAsyncContextManager[None]:
        """A transaction around several calls, as `Memory.transaction`: `async with memory.transaction(): ...`.

        What this task awaits inside is part of it; what other tasks do is not.
        """
        return self._in_one_thread(lambda memory: memory.transaction(embed=embed))

    def scoped(self, scope: str, *, reads: str | Sequence[str] = ()) -> AsyncMemory:
        """The memory bound to a scope; open it first. The handle shares the threads and does not close them."""
        handle = object.__new__(type(self))
        handle._twin = self._now().scoped(scope, reads=reads)
        handle._executor = self._executor
        handle._owner = False
        return handle


# Methods that the class does not name, which is for types alone, are awaited too.
for _name, _method in vars(Memory).items():
    if isfunction(_method) and not _name.startswith("_") and not hasattr(AsyncMemory, _name) and _name != "close":
        setattr(AsyncMemory, _name, awaited(_method))
