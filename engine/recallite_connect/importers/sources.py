"""Importers: readers of memories that people have in another system."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from recallite.documents.detecting import looks_like
from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.model.authority import Authority
from recallite.model.reports import FileTrouble
from recallite.system import plugins
from recallite_connect.importers.entries import Entries
from recallite_connect.importers.files import is_json_document
from recallite_connect.importers.sessions import Sessions
from recallite_connect.importers.values import shown_name

_MOST_BAD_LINES = 10_000
_MOST_TOLD = 3  # of a file in which nothing can be read


class Source(NamedTuple):
    """A system to import from, registered as an entry point of the group `recallite.importers`.

    `reader(path)` gives what is at a path, or `reader(path, mapping)` if it is `mapped`; `path` says what to give as
    the path. `authority` is whose word its memories are, unless one says it itself; None: as `remember` tells by the
    source and context of a memory. If a system always keeps its files in the same place, `folder` is that place below
    the home folder, which is read when no path is given. `changes`: memories change there after they were first read.
    If its files grow, `growing(path)` gives what is new. `local_ids`: another folder or file may have the same ids,
    such as paths of notes, so each scope has its own.
    """

    reader: Callable[..., Entries]
    path: str
    authority: Authority | None
    changes: bool = False
    folder: str | None = None
    mapped: bool = False
    growing: Callable[[Path], Sessions] | None = None
    local_ids: bool = False

    def read(self, path: str | os.PathLike[str] | None, mapping: Mapping[str, str] | None = None) -> Entries:
        """Read the entries at a path. InvalidInput as `folder_or_file`."""
        place = self.folder_or_file(path)
        if mapping and not self.mapped:
            mapped = ", ".join(sorted(name for name, other in sources().items() if other.mapped))
            raise InvalidInput(f"map is given, and there is nothing to map here: leave it out, or import from {mapped}")
        entries = self.reader(place, mapping or {}) if self.mapped else self.reader(place)
        return _readable(entries, place, self.path)

    def folder_or_file(self, path: str | os.PathLike[str] | None) -> Path:
        """The path given, or the place where the system keeps its files. InvalidInput if nothing is there."""
        if path is not None:
            place = checks.check_path(path)
        elif self.folder is not None:
            place = Path.home() / self.folder
        else:
            raise InvalidInput(f"give a path: {self.path}")
        if not place.exists():
            raise InvalidInput(f"there is no {place}: give {self.path}")
        if not place.is_file() and not place.is_dir():
            raise InvalidInput(f"{place} is neither a file nor a folder: give {self.path}")
        return place


def _readable(entries: Entries, place: Path, wanted: str) -> Entries:
    """Entries, up to an error of the disk. Of a place that has none it is told once what to give instead."""
    name, troubles, any_entry = shown_name(place.name) or shown_name(str(place)), list[FileTrouble](), False
    try:
        for entry in entries:
            if any_entry or not isinstance(entry, FileTrouble):
                yield from troubles
                troubles, any_entry = [], True
                yield entry
                continue
            troubles.append(entry)
            if len(troubles) == _MOST_BAD_LINES:  # from the beginning on: it is another file
                break
    except OSError as fault:
        troubles.append(FileTrouble(path=name, reason=f"it cannot be read further: {fault.strerror or fault}"))
    if not any_entry:
        troubles = [_told_once(troubles, place, name, wanted)] if _is_wrong(troubles, place) else troubles
    yield from troubles


def _is_wrong(troubles: list[FileTrouble], place: Path) -> bool:
    """Whether a place in which nothing could be read is another one than was meant."""
    of_itself = place.is_file() and {trouble.path for trouble in troubles} == {shown_name(place.name)}
    return not troubles or (of_itself and (len(troubles) > _MOST_TOLD or bool(looks_like(place))))


def _told_once(troubles: list[FileTrouble], place: Path, name: str, wanted: str) -> FileTrouble:
    """One sentence on a place in which nothing could be read."""
    kind, reason = looks_like(place) if place.is_file() else "", "there is nothing to import"
    if troubles:
        first = troubles[0]
        # What reads arrays tells of their first item, which such a file has in another line.
        if not kind and first.line == 1 and is_json_document(place):
            kind = "one JSON value over several lines, and not a value a line"
        where = "" if first.line is None else f"line {first.line}: "
        count = f" ({len(troubles):,} places)" if len(troubles) > 1 else ""
        reason = f"nothing in it could be read{count}, first {where}{first.reason}"
    looks = f" It looks like {kind}." if kind else ""
    return FileTrouble(path=name, reason=f"{reason}.{looks} Give {wanted}")


def sources() -> dict[str, Source]:
    """Every importer by the name that `--from` takes."""
    return plugins.load_all("importers")


def source_named(name: str) -> Source:
    """The importer of that name; InvalidInput for another."""
    source: Source = plugins.load("importers", name)
    return source
