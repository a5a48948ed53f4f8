"""The lines of a text file, with their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from recallite.errors import InvalidInput

MAX_LINE_BYTES = 64 << 20


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, from 1. InvalidInput if the file cannot be opened.

    Of a line longer than 64 MiB only the beginning is read, which is no JSON.
    """
    try:
        stream = path.open("rb")
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}") from fault
    with stream:
        number = 0
        while line := next_line(stream):
            number += 1
            if line := line.removeprefix(b"\xef\xbb\xbf").strip():
                yield number, line


def next_line(stream: BinaryIO) -> bytes:
    """The next line with its end, or the first 64 MiB of it; empty at the end of the file."""
    line = rest = stream.readline(MAX_LINE_BYTES)
    while rest and not rest.endswith(b"\n"):
        rest = stream.readline(MAX_LINE_BYTES)
    return line
