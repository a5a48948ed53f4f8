"""Folders of session files: JSON lines that grow, read from where the last reading ended."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from recallite.errors import InvalidInput
from recallite.model.reports import FileTrouble
from recallite.system.folders import open_regular
from recallite_connect.importers.entries import Entries, Entry
from recallite_connect.importers.files import MAX_LINE_BYTES, files_below, next_line
from recallite_connect.importers.json_items import json_value
from recallite_connect.importers.values import mapping, shown_name, text_of

_CHECKED_BYTES = 4096


class SessionReader(Protocol):
    """Reads the lines of one file, in their order."""

    def line(self, number: int, line: dict[str, object]) -> Iterator[Entry]:
        """The memories of a line."""

    def end(self) -> Iterator[Entry]:
        """The memories that waited for a further line."""

    def state(self) -> dict[str, Any] | None:
        """Its state after these lines, as JSON without their texts; None while words wait for a further line."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go on as the reader that had this state."""


class _Place:
    """The place up to which a file is read."""

    def __init__(self, reader: SessionReader, inode: int) -> None:
        self.reader, self.inode = reader, inode
        self.bytes = self.lines = 0


class Sessions:
    """The session files of a folder, or one. Each call of `entries` gives what is new since the last one.

    `opened(name, changed_at)` makes the reader of a file, by its path below the folder.
    """

    def __init__(self, path: Path, names: re.Pattern[str], opened: Callable[[str, datetime], SessionReader]) -> None:
        self.path, self._names, self._opened = path, names, opened
        self._places: dict[str, _Place] = {}
        self._unread: dict[str, str] = {}  # why files could not be read when they were last tried

    def mark(self) -> dict[str, Any] | None:
        """The place up to which a single file was read, as JSON for `go_on`; None if there is none to go on from."""
        place = self._places.get(self.path.name)
        state = None if place is None else place.reader.state()
        if place is None or state is None:
            return None
        before = _digest_before(self.path, place.bytes)
        return {"inode": place.inode, "bytes": place.bytes, "lines": place.lines, "before": before, "reader": state}

    def go_on(self, mark: Mapping[str, Any]) -> None:
        """Read a single file from a mark on, if it is the same file and has only grown; else from its beginning."""
        file = self.path.stat()
        if (file.st_ino, _digest_before(self.path, mark["bytes"])) != (mark["inode"], mark["before"]):
            return
        reader = self._opened(shown_name(self.path.name), datetime.fromtimestamp(file.st_mtime, UTC))
        reader.restore(mark["reader"])
        place = self._places[self.path.name] = _Place(reader, file.st_ino)
        place.bytes, place.lines = mark["bytes"], mark["lines"]

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
        place = self._places.get(name)
        if place is None or state.st_size < place.bytes or state.st_ino != place.inode:  # new, or written anew
            changed_at = datetime.fromtimestamp(state.st_mtime, UTC)
            place = self._places[name] = _Place(self._opened(shown_name(name), changed_at), state.st_ino)
        if state.st_size == place.bytes:
            return
        with open_regular(file) as stream:
            stream.seek(place.bytes)
            while line := next_line(stream):
                if growing and not line.endswith(b"\n") and len(line) < MAX_LINE_BYTES:
                    return
                place.bytes, place.lines = stream.tell(), place.lines + 1
                if line := line.removeprefix(b"\xef\xbb\xbf").strip():
                    yield from self._line(shown_name(name), place, line)
        if not growing:
            yield from place.reader.end()

    def _line(self, name: str, place: _Place, line: bytes) -> Entries:
        try:
            value = json_value(line)
        except InvalidInput as fault:
            yield FileTrouble(path=name, line=place.lines, reason=str(fault))
            return
        if isinstance(value, dict):
            yield from place.reader.line(place.lines, value)
        else:
            yield FileTrouble(path=name, line=place.lines, reason="the line is no object of JSON")


def _digest_before(file: Path, place: int) -> str:
    """The digest of the bytes of a file before a place; of what is there, if the file is shorter."""
    with open_regular(file) as stream:
        stream.seek(max(place - _CHECKED_BYTES, 0))
        return blake2b(stream.read(min(place, _CHECKED_BYTES)), digest_size=16).hexdigest()


def project_name(folder: object) -> str:
    """The name of a project by its folder: the last part of the path."""
    parts = re.split(r"[/\\]+", text_of(folder).rstrip("/\\"))
    return parts[-1]


def blocks_of(content: object) -> list[dict[str, object]]:
    """The blocks of a message, whose content may be a plain text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [mapping(block) for block in content] if isinstance(content, list) else []
