"""Long-term memory for AI agents in one SQLite file: embedded, offline, on a CPU.

from recallite import Memory

with Memory("agent.db") as memory:
    memory.remember("We migrated from PostgreSQL to MySQL last week", tags=["database"])
    for hit in memory.recall("What database are we using?", limit=5):
        print(f"{hit.score:.2f}", hit.text)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recallite import errors as errors
    from recallite import tools as tools
    from recallite._version import __version__ as __version__
    from recallite.aio import AsyncMemory as AsyncMemory
    from recallite.exchange.copying import copy_store as copy_store
    from recallite.filters import Filter as Filter
    from recallite.memory import Memory as Memory
    from recallite.records import Hit as Hit
    from recallite.settings import Settings as Settings
    from recallite.workspace.aio import AsyncWorkspace as AsyncWorkspace
    from recallite.workspace.config import WorkspaceConfig as WorkspaceConfig
    from recallite.workspace.workspace import Workspace as Workspace

__all__ = [
    "AsyncMemory",
    "AsyncWorkspace",
    "Filter",
    "Hit",
    "Memory",
    "Settings",
    "Workspace",
    "WorkspaceConfig",
    "__version__",
    "copy_store",
    "errors",
    "tools",
]

_HOMES = {
    "AsyncMemory": "recallite.aio",
    "AsyncWorkspace": "recallite.workspace.aio",
    "Filter": "recallite.filters",
    "Hit": "recallite.records",
    "Memory": "recallite.memory",
    "WorkspaceConfig": "recallite.workspace.config",
    "Settings": "recallite.settings",
    "Workspace": "recallite.workspace.workspace",
    "__version__": "recallite._version",
    "copy_store": "recallite.exchange.copying",
}


def __getattr__(name: str) -> object:
    """Load what is asked for when it is asked for: importing numpy alone takes 70 ms."""
    from importlib import import_module

    if name in ("errors", "tools"):
        return import_module(f"recallite.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'recallite' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
