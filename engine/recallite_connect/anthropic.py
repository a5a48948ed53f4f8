"""The memory tool of the Anthropic SDK (`memory_20250818`) on a workspace: what Claude writes to files can be searched.

`MemoryTool` is a `BetaAbstractMemoryTool`, `AsyncMemoryTool` a `BetaAsyncAbstractMemoryTool`. The commands are done by
the SDK's own tools for a folder, so that files, results and errors are the same as theirs.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from recallite.errors import InvalidInput
from recallite_connect.common import in_thread, needed, threaded
from recallite_notes.config import WorkspaceConfig
from recallite_notes.search import SearchResults
from recallite_notes.workspace import Workspace

with needed("anthropic"):
    from anthropic import beta_async_tool, beta_tool
    from anthropic.lib.tools import ToolError
    from anthropic.tools import (
        BetaAbstractMemoryTool,
        BetaAsyncAbstractMemoryTool,
        BetaAsyncLocalFilesystemMemoryTool,
        BetaLocalFilesystemMemoryTool,
    )
    from anyio import Path as AsyncPath

__all__ = ["AsyncMemoryTool", "MemoryTool"]

_ROOT = "/memories"
_SEARCH: dict[str, Any] = {
    "name": "memory_search",
    "description": (
        f"Search the Markdown files in {_ROOT} by meaning and words. Returns the passages that answer the query, best "
        "first, with file and line."
    ),
    "input_schema": {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "A question, or a few words."}},
        "required": ["query"],
    },
}


class _Files:
    """The workspace of a tool."""

    _workspace: Workspace
    _owned: bool

    @property
    def workspace(self) -> Workspace:
        """The workspace, which a program searches with `workspace.search`."""
        return self._workspace

    def _open(self, place: Workspace | str | os.PathLike[str]) -> Path:
        """Open the workspace; returns the folder that `/memories` is."""
        self._owned = not isinstance(place, Workspace)
        if isinstance(place, Workspace):
            self._workspace = place
        else:
            base = Path(place).expanduser().absolute()
            _make_private(base / "memories")
            self._workspace = Workspace(
                WorkspaceConfig(workspace_dir=str(base / "memories"), db_path=str(base / ".recallite" / "index.db"))
            )
        return self._workspace.folder

    def _check(self, command: object) -> None:
        """Refuse paths to the index, where it is below the files."""
        root, index = self._workspace.folder.resolve(), self._workspace.config.index_path.resolve()
        if not index.is_relative_to(root) or not isinstance(command, Mapping):
            return
        for name in ("path", "old_path", "new_path"):
            path = command.get(name)
            if isinstance(path, str) and path.startswith(_ROOT):
                target = (root / path.removeprefix(_ROOT).lstrip("/")).resolve()
                around = command.get("command") in ("delete", "rename") and target != root and target in index.parents
                if around or _is_of_index(target, index, root):
                    raise ToolError(f"{path} is where the index of the memory files is and cannot be read or changed")

    def _clear(self) -> str:
        root = self._workspace.folder.resolve()
        _empty(root, self._workspace.config.index_path.resolve(), root)
        self._workspace.index()
        return "All memory cleared"

    def _search(self, query: object, max_results: int) -> str:
        try:
            return _shown(self._workspace.search(query, max_results=max_results))  # type: ignore[arg-type]
        except InvalidInput as fault:
            raise ToolError(str(fault)) from fault

    def _close(self) -> None:
        """Close the workspace, if it was opened here."""
        if self._owned:
            self._workspace.close()


class MemoryTool(_Files, BetaLocalFilesystemMemoryTool):
    """Claude's memory files, in a `Workspace`.

    - place: a folder, with the files in `memories/` and the index in `.recallite/`; or a Workspace, whose folder is
      `/memories`, and which `close` leaves open
    - cache_control: as for the SDK's tools

    `search_tool` is a second tool, with which Claude finds passages; each search first indexes what has changed. Only
    files that end in .md or .markdown are searched.
    """

    def __init__(
        self, place: Workspace | str | os.PathLike[str] = "./memory", *, cache_control: Any | None = None
    ) -> None:
        BetaAbstractMemoryTool.__init__(self, cache_control=cache_control)
        self.memory_root = self._open(place)
        self.base_path = self.memory_root.parent

    def call(self, input: object) -> Any:
        """Do a command of the model. Raises ToolError for the index."""
        self._check(input)
        return super().call(input)

    clear_all_memory = _Files._clear

    def search_tool(self, *, max_results: int = 6) -> Any:
        """The tool `memory_search`, for the model beside this one."""

        def search(query: str) -> str:
            return self._search(query, max_results)

        return beta_tool(search, **_SEARCH)

    close = _Files._close

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncMemoryTool(_Files, BetaAsyncLocalFilesystemMemoryTool):
    """`MemoryTool` for the asynchronous client."""

    def __init__(
        self, place: Workspace | str | os.PathLike[str] = "./memory", *, cache_control: Any | None = None
    ) -> None:
        BetaAsyncAbstractMemoryTool.__init__(self, cache_control=cache_control)
        root = self._open(place)
        self.base_path, self.memory_root = AsyncPath(root.parent), AsyncPath(root)

    async def call(self, input: object) -> Any:
        """Do a command of the model. Raises ToolError for the index."""
        await in_thread(self._check, input)
        return await super().call(input)

    clear_all_memory = threaded(_Files._clear)

    def search_tool(self, *, max_results: int = 6) -> Any:
        """The tool `memory_search`, for the model beside this one."""

        async def search(query: str) -> str:
            return await in_thread(self._search, query, max_results)

        return beta_async_tool(search, **_SEARCH)

    close = threaded(_Files._close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _make_private(folder: Path) -> None:
    """Make a folder, and its parents where missing, for this user alone."""
    for ancestor in reversed([folder, *folder.parents]):
        if not ancestor.exists():
            ancestor.mkdir(mode=0o700, exist_ok=True)


def _is_of_index(path: Path, index: Path, root: Path) -> bool:
    """Whether a path is in the folder of the index; where that is the root, whether it is one of the index's files."""
    if index.parent == root:
        return path.parent == root and path.name.startswith(index.name)
    return path.is_relative_to(index.parent)


def _empty(folder: Path, index: Path, root: Path) -> None:
    """Remove what is in a folder, but for the index."""
    for entry in folder.iterdir():
        if _is_of_index(entry, index, root):
            continue
        if entry.is_symlink() or not entry.is_dir():
            entry.unlink()
        elif entry in index.parents:
            _empty(entry, index, root)
        else:
            shutil.rmtree(entry)


def _shown(results: SearchResults) -> str:
    passages = [f"{_ROOT}/{hit.path}, line {hit.snippet_line}:\n{hit.snippet}" for hit in results]
    notes = [f"Note: {note}" for note in (*results.problems, *results.evidence_gaps)]
    return "\n\n".join([*(passages or ["No passage answers the query."]), *notes])
