"""The lines of a text file, with their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from recollect.errors import InvalidInput


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, from 1. InvalidInput where the file cannot be opened."""
    try:
        stream = path.open("rb")
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}") from fault
    with stream:
        for number, line in enumerate(stream, 1):
            if line := line.removeprefix(b"\xef\xbb\xbf").strip():
                yield number, line
