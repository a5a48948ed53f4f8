"""Memories as Markdown files below `memory/` of a workspace, where they are indexed like any other, and back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.checks import check_path, shown
from recollect.errors import InvalidInput
from recollect.reports import Exported, Restored

if TYPE_CHECKING:
    from recollect.memory import Memory
    from recollect.workspace.config import WorkspaceConfig

__all__ = ["export_memories", "restore_memories"]

_FOLDER = "memory"


def export_memories(config: WorkspaceConfig, memory: Memory | str | os.PathLike[str], **options: Any) -> Exported:
    """Write memories below `memory/`. A file must exist; no embedder is loaded."""
    with _opened(memory, must_exist=True) as source:
        return source.export_folder(_place(config), **options)


def restore_memories(config: WorkspaceConfig, memory: Memory | str | os.PathLike[str], **options: Any) -> Restored:
    """Read the memories below `memory/` into a store. A file is created if it is missing."""
    with _opened(memory, must_exist=False) as target:
        return target.import_folder(_place(config), **options)


def _place(config: WorkspaceConfig) -> Path:
    place = config.folder / _FOLDER
    if place.is_symlink():
        raise InvalidInput(f"{place} is a symbolic link: memories are written inside the workspace only")
    return place


@contextmanager
def _opened(memory: Memory | str | os.PathLike[str], *, must_exist: bool) -> Iterator[Memory]:
    from recollect.memory import Memory  # a workspace that exports nothing does not load it

    if not isinstance(memory, str | os.PathLike):
        if not isinstance(memory, Memory):
            raise InvalidInput(f"memory is {shown(memory)}: give a Memory, or the path of its file")
        yield memory
    elif must_exist and not os.path.isfile(check_path(memory, "memory")):
        raise InvalidInput(f"{shown(os.fspath(memory))} is not a file: give a Memory, or the path of its file")
    else:
        with Memory(memory) as opened:
            yield opened
