"""Importers: readers of memories that people have in another system, and folders of session files that grow."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.model.authority import Authority
from recallite.model.records import NewRecord
from recallite.model.reports import FileTrouble
from recallite.system import plugins
from recallite.system.folders import open_regular
from recallite_connect.importers.reading import (
    MAX_LINE_BYTES,
    Entries,
    Entry,
    FoundMemory,
    files_below,
    is_json_document,
    json_value,
    mapping,
    next_line,
    scope_of,
    shown_name,
    text_of,
    time_of,
)
from recallite_documents.detecting import looks_like

_MOST_BAD_LINES = 10_000
_MOST_TOLD = 3  # of a file in which nothing can be read


class Source(NamedTuple):
    """A system to import from, registered as an entry point of the group `recallite.importers`.

    `reader(path)` gives what is at a path, or `reader(path, mapping)` if it is `mapped`; None: what `growing`
    gives. `path` says what to give as the path. `authority` is whose word its memories are, unless one says it
    itself; None: as `remember` tells by the source and context of a memory. If a system always keeps its files in
    the same place, `folder` is that place below the home folder, which is read when no path is given. `changes`:
    memories change there after they were first read. If its files grow, `growing(path)` gives what is new.
    `local_ids`: another folder or file may have the same ids, such as paths of notes, so each scope has its own.
    """

    reader: Callable[..., Entries] | None
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
        if self.reader is None:
            assert self.growing is not None
            return _readable(self.growing(place).entries(), place, self.path)
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
    if not any_entry:  # it may be another place than was meant
        of_itself = place.is_file() and {trouble.path for trouble in troubles} == {shown_name(place.name)}
        if not troubles or (of_itself and (len(troubles) > _MOST_TOLD or looks_like(place))):
            troubles = [_told_once(troubles, place, name, wanted)]
    yield from troubles


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


_CHECKED_BYTES = 4096


class SessionReader:
    """The base of what reads the lines of one file of a coding agent, `host`, in their order.

    Its state, from which another can go on, are the time and the position of the last turn, and the attributes `kept`.
    """

    host: ClassVar[str]
    kept: ClassVar[tuple[str, ...]]

    def __init__(self, name: str, changed_at: datetime) -> None:
        self._name, self._at, self._position = name, changed_at, 0

    def line(self, number: int, line: dict[str, Any]) -> Iterator[Entry]:
        """The memories of a line."""
        raise NotImplementedError

    def end(self) -> Iterator[Entry]:
        """The memories that waited for a further line."""
        yield from ()

    def state(self) -> dict[str, Any] | None:
        """Its state after these lines, as JSON without their texts; None while words wait for a further line."""
        kept = {name: getattr(self, f"_{name}") for name in self.kept}
        return {"at": self._at.isoformat(), "position": self._position, **kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on as the reader that had this state."""
        self._at, self._position = time_of(state["at"]) or self._at, state["position"]
        for name in self.kept:
            setattr(self, f"_{name}", state[name])

    def _turn(
        self, number: int, project: str, session: str, *, id: str, text: str, role: str, authority: Authority,
        about: Mapping[str, Any],
    ) -> FoundMemory:  # fmt: skip
        """The memory of a turn that begins at a line of the file, at the next position of the session."""
        record = turn_record(
            self.host, project, session, id=id, text=text, role=role, position=self._position, said_at=self._at,
            about=about,
        )  # fmt: skip
        return FoundMemory(record=record, path=self._name, line=number, authority=authority)


class _Progress:
    """How far a file is read."""

    def __init__(self, reader: SessionReader, inode: int) -> None:
        self.reader, self.inode = reader, inode
        self.bytes = self.lines = 0


class Sessions:
    """The session files of a folder, or one. Each call of `entries` gives what is new since the last one.

    `opened(name, changed_at)` makes the reader of a file, by its path below the folder.
    """

    def __init__(self, path: Path, names: re.Pattern[str], opened: Callable[[str, datetime], SessionReader]) -> None:
        self.path, self._names, self._opened = path, names, opened
        self._progress: dict[str, _Progress] = {}
        self._unread: dict[str, str] = {}  # why files could not be read when they were last tried

    def mark(self) -> dict[str, Any] | None:
        """The place up to which a single file was read, as JSON for `go_on`; None if there is none to go on from."""
        progress = self._progress.get(self.path.name)
        state = None if progress is None else progress.reader.state()
        if progress is None or state is None:
            return None
        before, read = _digest_before(self.path, progress.bytes), {"bytes": progress.bytes, "lines": progress.lines}
        return {"inode": progress.inode, **read, "before": before, "reader": state}

    def go_on(self, mark: Mapping[str, Any]) -> None:
        """Read a single file from a mark on, if it is the same file and has only grown; else from its beginning."""
        file = self.path.stat()
        if (file.st_ino, _digest_before(self.path, mark["bytes"])) != (mark["inode"], mark["before"]):
            return
        reader = self._opened(shown_name(self.path.name), datetime.fromtimestamp(file.st_mtime, UTC))
        reader.restore(mark["reader"])
        progress = self._progress[self.path.name] = _Progress(reader, file.st_ino)
        progress.bytes, progress.lines = mark["bytes"], mark["lines"]

    def entries(self, *, growing: bool = False) -> Entries:
        """The memories of new lines. Of files that are `growing`, a last line without its end waits for it."""
        files: list[str | FileTrouble] = [self.path.name]
        if self.path.is_dir():
            files = [*files_below(self.path, lambda name: name.endswith("/") or self._names.search(name) is not None)]
        reported, self._unread = self._unread, {}
        for file in files:
            trouble = None
            try:
                if isinstance(file, FileTrouble):
                    trouble = file
                else:
                    yield from self._new_lines(file, growing)
            except OSError as fault:
                reason = f"it cannot be read: {fault.strerror or fault}"
                trouble = FileTrouble(path=shown_name(str(file)), reason=reason)
            if trouble is not None:
                self._unread[trouble.path] = trouble.reason
                if reported.get(trouble.path) != trouble.reason:
                    yield trouble

    def _new_lines(self, name: str, growing: bool) -> Entries:
        file = self.path / name if self.path.is_dir() else self.path
        state = file.stat()
        progress = self._progress.get(name)
        if progress is None or state.st_size < progress.bytes or state.st_ino != progress.inode:  # new, or written anew
            changed_at = datetime.fromtimestamp(state.st_mtime, UTC)
            progress = self._progress[name] = _Progress(self._opened(shown_name(name), changed_at), state.st_ino)
        if state.st_size == progress.bytes:
            return
        with open_regular(file) as stream:
            stream.seek(progress.bytes)
            while line := next_line(stream):
                if growing and not line.endswith(b"\n") and len(line) < MAX_LINE_BYTES:
                    return
                progress.bytes, progress.lines = stream.tell(), progress.lines + 1
                if line := line.removeprefix(b"\xef\xbb\xbf").strip():
                    yield from self._line(shown_name(name), progress, line)
        if not growing:
            yield from progress.reader.end()

    def _line(self, name: str, progress: _Progress, line: bytes) -> Entries:
        try:
            value = json_value(line)
        except InvalidInput as fault:
            yield FileTrouble(path=name, line=progress.lines, reason=str(fault))
            return
        if isinstance(value, dict):
            yield from progress.reader.line(progress.lines, value)
        else:
            yield FileTrouble(path=name, line=progress.lines, reason="the line is no object of JSON")


def _digest_before(file: Path, end: int) -> str:
    """The digest of the bytes of a file before `end`; of what is there, if the file is shorter."""
    with open_regular(file) as stream:
        stream.seek(max(end - _CHECKED_BYTES, 0))
        return blake2b(stream.read(min(end, _CHECKED_BYTES)), digest_size=16).hexdigest()


def project_name(folder: object) -> str:
    """The name of a project by its folder: the last part of the path."""
    parts = re.split(r"[/\\]+", text_of(folder).rstrip("/\\"))
    return parts[-1]


def turn_record(
    host: str, project: str, session: str, *, id: str, text: str, role: str, position: int, said_at: datetime | None,
    about: Mapping[str, Any],
) -> NewRecord:  # fmt: skip
    """The record of what was said in a session of a coding agent; `about` becomes its metadata, beside the role."""
    source = "/".join(filter(None, (host, project, session)))[:500]
    return NewRecord(
        id=id, text=text, context=role, scope=scope_of(project), source=source, position=position, created_at=said_at,
        metadata={**about, "role": role},
    )  # fmt: skip


def blocks_of(content: object) -> list[dict[str, object]]:
    """The blocks of a message; its content may be a plain text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [mapping(block) for block in content] if isinstance(content, list) else []
