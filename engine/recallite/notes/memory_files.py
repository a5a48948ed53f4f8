"""Memories as Markdown files below `memory/` of a workspace, where they are indexed like any other, and back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from recallite.errors import InvalidInput
from recallite.model.checks import check_path
from recallite.system.messages import shown

if TYPE_CHECKING:
    from recallite.memory import Memory
    from recallite.notes.config import WorkspaceConfig


@contextmanager
def memory_and_folder(
    config: WorkspaceConfig, memory: Memory | str | os.PathLike[str], *, must_exist: bool
) -> Iterator[tuple[Memory, Path]]:
    """The Memory, opened if it is given by the path of its file, and the folder `memory/` of the workspace.

    With `must_exist` the file is not created. No embedder is loaded.
    """
    from recallite.memory import Memory  # a workspace that exports nothing does not load it

    folder = config.folder / "memory"
    if folder.is_symlink():
        raise InvalidInput(f"{folder} is a symbolic link: memories are written inside the workspace only")
    if not isinstance(memory, str | os.PathLike):
        if not isinstance(memory, Memory):
            raise InvalidInput(f"memory is {shown(memory)}: give a Memory, or the path of its file")
        yield memory, folder
    elif must_exist and not os.path.isfile(check_path(memory, "memory")):
        raise InvalidInput(f"{shown(os.fspath(memory))} is not a file: give a Memory, or the path of its file")
    else:
        with Memory(memory) as opened:
            yield opened, folder
