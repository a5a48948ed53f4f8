"""Long-term memory for AI agents in one SQLite file: embedded, offline, on a CPU.

from recollect import Memory

with Memory("agent.db") as memory:
    memory.remember("We migrated from PostgreSQL to MySQL last week", tags=["database"])
    for hit in memory.recall("What database are we using?", limit=5):
        print(f"{hit.score:.2f}", hit.text)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect import errors as errors
    from recollect import tools as tools
    from recollect._version import __version__ as __version__
    from recollect.aio import AsyncMemory as AsyncMemory
    from recollect.exchange.copying import copy_store as copy_store
    from recollect.filters import Filter as Filter
    from recollect.memory import Memory as Memory
    from recollect.records import Hit as Hit
    from recollect.settings import Settings as Settings
    from recollect.workspace.aio import AsyncWorkspace as AsyncWorkspace
    from recollect.workspace.config import WorkspaceConfig as WorkspaceConfig
    from recollect.workspace.workspace import Workspace as Workspace

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
    "AsyncMemory": "recollect.aio",
    "AsyncWorkspace": "recollect.workspace.aio",
    "Filter": "recollect.filters",
    "Hit": "recollect.records",
    "Memory": "recollect.memory",
    "WorkspaceConfig": "recollect.workspace.config",
    "Settings": "recollect.settings",
    "Workspace": "recollect.workspace.workspace",
    "__version__": "recollect._version",
    "copy_store": "recollect.exchange.copying",
}


def __getattr__(name: str) -> object:
    """Load what is asked for when it is asked for: importing numpy alone takes 70 ms."""
    from importlib import import_module

    if name in ("errors", "tools"):
        return import_module(f"recollect.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'recollect' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
