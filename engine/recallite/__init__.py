"""Long-term memory for AI agents in one SQLite file: embedded, offline, on a CPU.

from recallite import Memory

with Memory("agent.db") as memory:
    memory.remember("We migrated from PostgreSQL to MySQL last week", tags=["database"])
    for hit in memory.recall("What database are we using?", limit=5):
        print(f"{hit.score:.2f}", hit.text)
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing it from typing takes 10 ms
if TYPE_CHECKING:
    import recallite_tools as tools
    from recallite import errors as errors
    from recallite._version import __version__ as __version__
    from recallite.aio import AsyncMemory as AsyncMemory
    from recallite.memory import Memory as Memory
    from recallite.model.filters import Filter as Filter
    from recallite.model.records import Hit as Hit
    from recallite.model.records import NewRecord as NewRecord
    from recallite.model.settings import Settings as Settings
    from recallite.transfer.memory_transfer import restore_store as restore_store
    from recallite_notes.async_workspace import AsyncWorkspace as AsyncWorkspace
    from recallite_notes.config import WorkspaceConfig as WorkspaceConfig
    from recallite_notes.workspace import Workspace as Workspace
    from recallite_postgres.copy_store import copy_store as copy_store

__all__ = [
    "AsyncMemory",
    "AsyncWorkspace",
    "Filter",
    "Hit",
    "Memory",
    "NewRecord",
    "Settings",
    "Workspace",
    "WorkspaceConfig",
    "__version__",
    "copy_store",
    "errors",
    "restore_store",
    "tools",
]

_MODULES = {"errors": "recallite.errors", "tools": "recallite_tools"}
_HOMES = {
    "AsyncMemory": "recallite.aio",
    "AsyncWorkspace": "recallite_notes.async_workspace",
    "Filter": "recallite.model.filters",
    "Hit": "recallite.model.records",
    "Memory": "recallite.memory",
    "NewRecord": "recallite.model.records",
    "WorkspaceConfig": "recallite_notes.config",
    "Settings": "recallite.model.settings",
    "Workspace": "recallite_notes.workspace",
    "__version__": "recallite._version",
    "copy_store": "recallite_postgres.copy_store",
    "restore_store": "recallite.transfer.memory_transfer",
}


def __getattr__(name: str) -> object:
    """Load what is asked for when it is asked for: importing numpy alone takes 70 ms."""
    from importlib import import_module

    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'recallite' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
