"""The files below a folder, and the lines of a text file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from recallite.errors import InvalidInput
from recallite.model.reports import FileTrouble
from recallite.system.folders import kind_of, open_regular, printable, walk
from recallite_connect.importers.json_items import json_value

MAX_LINE_BYTES = 64 << 20
_MOST_DOCUMENT_BYTES = 256 << 20
_DEEPEST = 64


def files_below(
    folder: Path, wanted: Callable[[str], bool], *, report_links: bool = False
) -> Iterator[str | FileTrouble]:
    """The paths of the regular files below a folder that are wanted, and what cannot be read.

    Folders, whose paths end with a slash, are entered if they are wanted. Hidden files and folders are left out, and
    symbolic links are not followed. InvalidInput if the folder itself cannot be read.
    """
    troubles: list[FileTrouble] = []

    def refused(inner: str, fault: OSError) -> None:
        reason = f"it cannot be read: {fault.strerror or fault}"
        if not inner:
            raise InvalidInput(f"{folder}: {reason}") from fault
        troubles.append(FileTrouble(path=printable(inner), reason=reason))

    for inner, folders, entries in walk(folder, refused):
        prefix = f"{inner}/" if inner else ""
        folders[:] = [name for name in folders if not name.startswith((".", "__MACOSX")) and wanted(f"{prefix}{name}/")]
        if folders and prefix.count("/") >= _DEEPEST:
            troubles.append(FileTrouble(path=printable(inner), reason=f"folders deeper than {_DEEPEST} are left out"))
            folders.clear()
        for entry in entries:
            path = prefix + entry.name
            if entry.name.startswith(".") or not wanted(path):
                continue
            if entry.is_file(follow_symlinks=False):
                yield path
            elif report_links:
                kind = kind_of(entry.stat(follow_symlinks=False).st_mode)
                troubles.append(FileTrouble(path=printable(path), reason=f"it is {kind}, which is not followed"))
        yield from troubles
        troubles.clear()
    yield from troubles


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, from 1. InvalidInput if the file cannot be opened.

    Of a line longer than 64 MiB only the beginning is read, which is no JSON.
    """
    try:
        stream = open_regular(path)
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}") from fault
    with stream:
        number = 0
        while line := next_line(stream):
            number += 1
            if line := line.removeprefix(b"\xef\xbb\xbf").strip():
                yield number, line


def json_document(path: Path) -> Any:
    """The value of a file that is one JSON value; None for anything else, such as JSON lines. InvalidInput as below."""
    try:
        with open_regular(path) as stream:
            data = stream.read(_MOST_DOCUMENT_BYTES + 1)
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}") from fault
    if len(data) > _MOST_DOCUMENT_BYTES or not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return None
    try:
        return json_value(data.removeprefix(b"\xef\xbb\xbf"))
    except InvalidInput:
        return None


def is_json_document(path: Path) -> bool:
    """Whether a file is one JSON value of several lines."""
    try:
        value = json_document(path)
        return value is not None and len([*zip(range(2), lines_of(path), strict=False)]) == 2
    except InvalidInput:
        return False


def next_line(stream: BinaryIO) -> bytes:
    """The next line with its end, or the first 64 MiB of it; empty at the end of the file."""
    line = rest = stream.readline(MAX_LINE_BYTES)
    while rest and not rest.endswith(b"\n"):
        rest = stream.readline(MAX_LINE_BYTES)
    return line
