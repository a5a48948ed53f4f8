"""What an importer is: how memories that people have in another system are found there."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.system import plugins
from recallite.transfer.importers.found import Entries

if TYPE_CHECKING:
    from recallite.transfer.importers.sessions import Sessions


class Source(NamedTuple):
    """A system to import from, registered as an entry point of the group `recallite.importers`.

    `reader(path)` gives what is at a path, or `reader(path, mapping)` if it is `mapped`; `path` says what to give as
    the path. If a system always keeps its files in the same place, `folder` is that place below the home folder, which
    is read when no path is given. `changes`: memories change there after they were first read. If its files grow,
    `growing(path)` gives what is new. `local_ids`: another folder or file may have the same ids, such as paths of
    notes, so each scope has its own.
    """

    reader: Callable[..., Entries]
    path: str
    changes: bool = False
    folder: str | None = None
    mapped: bool = False
    growing: Callable[[Path], Sessions] | None = None
    local_ids: bool = False

    def read(self, path: str | os.PathLike[str] | None, mapping: Mapping[str, str] | None = None) -> Entries:
        """What the reader finds at a path. InvalidInput as `folder_or_file`."""
        chosen = self.folder_or_file(path)
        if self.mapped:
            return self.reader(chosen, mapping or {})
        if mapping:
            mapped = ", ".join(sorted(name for name, each in sources().items() if each.mapped))
            raise InvalidInput(f"map is given, and there is nothing to map here: leave it out, or import from {mapped}")
        return self.reader(chosen)

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
        if not chosen.is_file() and not chosen.is_dir():
            raise InvalidInput(f"{chosen} is neither a file nor a folder: give {self.path}")
        return chosen


def sources() -> dict[str, Source]:
    """Every importer by the name that `--from` takes."""
    return plugins.load_all("importers")


def source_named(name: str) -> Source:
    """The importer of that name; InvalidInput for another."""
    source: Source = plugins.load("importers", name)
    return source
