"""The systems that memories are imported from, by the name that `--from` takes."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from recollect import checks
from recollect.errors import InvalidInput
from recollect.importers.found import Entries


class Source(NamedTuple):
    """A system: what to give as the path, and whether its memories change there after they were first read.

    Its reader is `read(path)` of the module `recollect.importers.NAME`. Where a system always keeps its files in the
    same place, `folder` is that place below the home folder, which is read when no path is given.
    """

    module: str
    path: str
    changes: bool = False
    folder: str | None = None

    @property
    def read(self) -> Callable[[Path], Entries]:
        """The reader, imported when it is first needed."""
        reader: Callable[[Path], Entries] = import_module(f"recollect.importers.{self.module}").read
        return reader

    def folder_or_file(self, path: str | os.PathLike[str] | None) -> Path:
        """The path given, or the place where the system keeps its files. InvalidInput where nothing is there."""
        if path is not None:
            chosen = checks.check_path(path)
        elif self.folder is not None:
            chosen = Path.home() / self.folder
        else:
            raise InvalidInput(f"give a path: {self.path}")
        if not chosen.exists():
            raise InvalidInput(f"there is no {chosen}: give {self.path}")
        return chosen


SOURCES: dict[str, Source] = {
    "server-memory": Source("server_memory", "memory.jsonl of @modelcontextprotocol/server-memory", changes=True),
}


def source_named(name: str) -> Source:
    """The source of that name; InvalidInput for another."""
    if name not in SOURCES:
        raise InvalidInput(f"from is {checks.shown(name)}: use one of {', '.join(sorted(SOURCES))}")
    return SOURCES[name]
