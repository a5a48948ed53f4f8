"""Memories as files of a workspace, both ways: below `memory/`, where they are indexed like any other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Unpack

from recollect.checks import check_path, shown
from recollect.engine import Engine
from recollect.errors import InvalidInput
from recollect.exchange import Folder, export_folder, import_folder
from recollect.filters import Filter, FilterFields, bound_filter
from recollect.remember.pending import Progress
from recollect.reports import Exported, Restored
from recollect.settings import Settings

if TYPE_CHECKING:
    from recollect.workspace.config import WorkspaceConfig

__all__ = ["Exporter", "export_memories", "restore_memories"]

_FOLDER = "memory"


class Exporter(Protocol):
    """What a `Memory`, or a handle of one bound to a scope, can do with a folder."""

    def export_folder(
        self,
        folder: str | os.PathLike[str],
        *,
        filter: Filter | None = None,
        overwrite: bool = False,
        on_progress: Progress | None = None,
        **fields: Unpack[FilterFields],
    ) -> Exported:
        """Write memories to a folder."""

    def import_folder(
        self,
        folder: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        forget_missing: bool = False,
        on_progress: Progress | None = None,
    ) -> Restored:
        """Read memories from a folder."""


def export_memories(config: WorkspaceConfig, memory: Exporter | str | os.PathLike[str], **options: Any) -> Exported:
    """Write memories below `memory/`. A file is opened without an embedder, and must be there."""
    with _opened(memory, must_exist=True) as source:
        return source.export_folder(_place(config), **options)


def restore_memories(config: WorkspaceConfig, memory: Exporter | str | os.PathLike[str], **options: Any) -> Restored:
    """Read the memories below `memory/` into a store. A file is made where it is missing."""
    with _opened(memory, must_exist=False) as target:
        return target.import_folder(_place(config), **options)


def _place(config: WorkspaceConfig) -> Path:
    place = config.folder / _FOLDER
    if place.is_symlink():
        raise InvalidInput(f"{place} is a symbolic link: memories are written inside the workspace only")
    return place


@contextmanager
def _opened(memory: Exporter | str | os.PathLike[str], *, must_exist: bool) -> Iterator[Exporter]:
    if not isinstance(memory, str | os.PathLike):
        if not callable(getattr(memory, "export_folder", None)) or isinstance(memory, type):
            raise InvalidInput(f"memory is {shown(memory)}: give a Memory, or the path of its file")
        yield memory
        return
    if must_exist and not os.path.isfile(check_path(memory, "memory")):
        raise InvalidInput(f"{shown(os.fspath(memory))} is no file: give a Memory, or the path of one's file")
    engine = Engine(memory, None, Settings())
    try:
        yield _Whole(engine)
    finally:
        engine.close()


class _Whole:
    """A store that was opened for one verb."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def export_folder(
        self,
        folder: str | os.PathLike[str],
        *,
        filter: Filter | None = None,
        overwrite: bool = False,
        on_progress: Progress | None = None,
        **fields: Unpack[FilterFields],
    ) -> Exported:
        chosen, place = bound_filter("/", filter, fields, takes_as_of=False), Folder(folder, create=True)
        return export_folder(self._engine, place, chosen, base="/", overwrite=overwrite, on_progress=on_progress)

    def import_folder(self, folder: str | os.PathLike[str], **options: Any) -> Restored:
        return import_folder(self._engine, Folder(folder), base="/", **options)
