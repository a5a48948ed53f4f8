"""A plugin of pytest: the SDK's tests of its memory tools for a folder get ours, called as a model calls them.

The tests call a command, which ours inherits; here it goes through `call`, which ours has, and which calls `execute`.
"""

from __future__ import annotations

from typing import Any

from anthropic.lib.tools import _beta_builtin_memory_tool as theirs

from recallite_connect.anthropic import AsyncMemoryTool, MemoryTool


def _called(tool: Any, command: Any) -> Any:
    return tool.call(command.model_dump(exclude_unset=True))


class _MemoryTool(MemoryTool):
    def __init__(self, base_path: str) -> None:
        super().__init__(base_path)

    def execute(self, command: Any) -> Any:
        return getattr(MemoryTool, command.command)(self, command)

    view = create = str_replace = insert = delete = rename = _called


class _AsyncMemoryTool(AsyncMemoryTool):
    def __init__(self, base_path: str) -> None:
        super().__init__(base_path)

    async def execute(self, command: Any) -> Any:
        return await getattr(AsyncMemoryTool, command.command)(self, command)

    view = create = str_replace = insert = delete = rename = _called


theirs.BetaLocalFilesystemMemoryTool = _MemoryTool
theirs.BetaAsyncLocalFilesystemMemoryTool = _AsyncMemoryTool
