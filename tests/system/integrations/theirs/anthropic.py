"""A plugin of pytest: the SDK's tests of its memory tools for a folder get ours."""

from __future__ import annotations

from anthropic.lib.tools import _beta_builtin_memory_tool as theirs

from recallite.integrations.anthropic import AsyncMemoryTool, MemoryTool


class _MemoryTool(MemoryTool):
    def __init__(self, base_path: str) -> None:
        super().__init__(base_path)


class _AsyncMemoryTool(AsyncMemoryTool):
    def __init__(self, base_path: str) -> None:
        super().__init__(base_path)


theirs.BetaLocalFilesystemMemoryTool = _MemoryTool
theirs.BetaAsyncLocalFilesystemMemoryTool = _AsyncMemoryTool
