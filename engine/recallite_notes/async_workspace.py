"""AsyncWorkspace: the methods of Workspace awaited, while they run in threads."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import Any

from recallite.embedding.protocol import Embedder
from recallite.remote import LanguageModel
from recallite.system.asynchrony import AsyncHandle, awaited
from recallite_notes.config import WorkspaceConfig
from recallite_notes.search import Extensions
from recallite_notes.workspace import Workspace


class AsyncWorkspace(AsyncHandle[Workspace]):
    """`Workspace` for asyncio. Open it with `async with AsyncWorkspace("notes") as workspace:`; await its methods.

    At most four run at a time; more wait their turn without blocking the event loop. Strategies and
    post-processors are registered at once, without awaiting; those that are coroutines run on the event loop.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | WorkspaceConfig | None = None,
        config: WorkspaceConfig | None = None,
        *,
        embedder: Embedder | str | None = None,
        language_model: LanguageModel | str | None = None,
    ) -> None:
        self._extensions = Extensions()
        super().__init__(partial(self._made, folder, config, embedder, language_model))

    def _made(
        self,
        folder: Any,
        config: WorkspaceConfig | None,
        embedder: Embedder | str | None,
        language_model: LanguageModel | str | None,
    ) -> Workspace:
        workspace = Workspace(folder, config, embedder=embedder, language_model=language_model)
        workspace._extensions = self._extensions
        return workspace

    index = awaited(Workspace.index)
    add = awaited(Workspace.add)
    files = awaited(Workspace.files)
    status = awaited(Workspace.status)
    search = awaited(Workspace.search)
    flush = awaited(Workspace.flush)
    start_watching = awaited(Workspace.start_watching)
    stop_watching = awaited(Workspace.stop_watching)

    def register_strategy(self, name: str, strategy: object) -> None:
        """Register a strategy as `Workspace.register_strategy`, without awaiting."""
        self._extensions.add_strategy(name, strategy)

    def register_postprocessor(self, processor: object) -> None:
        """Register a post-processor as `Workspace.register_postprocessor`, without awaiting."""
        self._extensions.add_postprocessor(processor)

    @property
    def config(self) -> WorkspaceConfig:
        """The configuration, with the folder. Raises StoreClosed before the workspace is open."""
        return self._now().config

    @property
    def folder(self) -> Path:
        """The folder, absolute. Raises StoreClosed before the workspace is open."""
        return self._now().folder

    async def _opened(self) -> Workspace:
        if self._twin is None:
            self._extensions.loop = asyncio.get_running_loop()
        return await super()._opened()
