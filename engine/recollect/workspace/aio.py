"""AsyncWorkspace: the verbs of Workspace on a bounded executor, so that the event loop never waits for a file."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial, update_wrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from recollect.errors import StoreClosed
from recollect.workspace.config import MemoryConfig
from recollect.workspace.search import Extensions
from recollect.workspace.workspace import Workspace

if TYPE_CHECKING:
    from recollect.embedding.protocol import Embedder
    from recollect.llm.protocol import LanguageModel

__all__ = ["AsyncWorkspace"]

P = ParamSpec("P")
R = TypeVar("R")
MAX_THREADS = 4


def _verb(method: Callable[Concatenate[Workspace, P], R]) -> Callable[Concatenate[AsyncWorkspace, P], Awaitable[R]]:
    """The same verb, run in a thread of the executor; a cancelled await leaves the verb to finish there."""

    async def verb(self: AsyncWorkspace, /, *args: P.args, **kwargs: P.kwargs) -> R:
        workspace = await self._opened()
        return await self._run(partial(method, workspace, *args, **kwargs))

    update_wrapper(verb, method)
    return verb


class AsyncWorkspace:
    """`Workspace` for asyncio. Open it with `async with AsyncWorkspace("notes") as workspace:`; the verbs are awaited.

    At most four verbs run at a time; more wait their turn without blocking the event loop. Strategies and
    post-processors are registered at once, without awaiting; those that are coroutines run on the event loop.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | MemoryConfig | None = None,
        config: MemoryConfig | None = None,
        *,
        embedder: Embedder | str | None = None,
        language_model: LanguageModel | str | None = None,
    ) -> None:
        self._open = partial(Workspace, folder, config, embedder=embedder, language_model=language_model)
        self._executor = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="recollect-workspace")
        self._opening = asyncio.Lock()
        self._extensions = Extensions()
        self._workspace: Workspace | None = None

    index = _verb(Workspace.index)
    add = _verb(Workspace.add)
    files = _verb(Workspace.files)
    status = _verb(Workspace.status)
    search = _verb(Workspace.search)
    flush = _verb(Workspace.flush)
    export = _verb(Workspace.export)
    restore = _verb(Workspace.restore)
    start_watching = _verb(Workspace.start_watching)
    stop_watching = _verb(Workspace.stop_watching)

    def register_strategy(self, name: str, strategy: object) -> None:
        """As `Workspace.register_strategy`, without awaiting."""
        self._extensions.add_strategy(name, strategy)

    def register_postprocessor(self, processor: object) -> None:
        """As `Workspace.register_postprocessor`, without awaiting."""
        self._extensions.add_postprocessor(processor)

    @property
    def config(self) -> MemoryConfig:
        """The configuration, with the folder. Raises StoreClosed before the workspace is open."""
        if self._workspace is None:
            raise StoreClosed("this AsyncWorkspace is not open yet: use `async with`, or await open()")
        return self._workspace.config

    @property
    def folder(self) -> Path:
        """The folder, absolute. Raises StoreClosed before the workspace is open."""
        return self.config.folder

    async def open(self) -> Self:
        """Open the index, as `async with` and the first verb do."""
        await self._opened()
        return self

    async def close(self) -> None:
        """Stop watching, close the index and end the threads. Again, it does nothing."""
        loop = asyncio.get_running_loop()
        # Verbs that run are let finish: what they have written they can still report.
        await loop.run_in_executor(None, partial(self._executor.shutdown, wait=True))
        if self._workspace is not None:
            await loop.run_in_executor(None, self._workspace.close)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def _opened(self) -> Workspace:
        if self._workspace is None:
            async with self._opening:
                if self._workspace is None:
                    self._extensions.finish = partial(_finish_on, asyncio.get_running_loop())
                    workspace = await self._run(self._open)
                    workspace._extensions = self._extensions
                    self._workspace = workspace
        return self._workspace

    async def _run(self, call: Callable[[], R]) -> R:
        try:
            running = asyncio.get_running_loop().run_in_executor(self._executor, call)
        except RuntimeError:  # the executor was shut down
            raise StoreClosed("this AsyncWorkspace was closed: open a new one") from None
        return await running


def _finish_on(loop: asyncio.AbstractEventLoop, given: Any) -> Any:
    """What an awaitable gives that runs on the event loop, asked for from a thread; anything else as it is."""
    if not inspect.isawaitable(given):
        return given

    async def wait() -> Any:
        return await given

    return asyncio.run_coroutine_threadsafe(wait(), loop).result()
