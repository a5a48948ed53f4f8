"""Files and streams of an import or export: formats by ending, and files that appear complete or not at all."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from recallite.errors import InvalidInput, RecalliteError, StoreError
from recallite.model.checks import check_path
from recallite.store.opening import is_file_of
from recallite.system.files import new_file_mode, unfinished
from recallite.system.messages import shown

Place = str | os.PathLike[str] | IO[str]
FORMATS = ("jsonl", "csv", "text")
_ENDINGS = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".txt": "text", ".text": "text",
    ".md": "text",
}  # fmt: skip
# A byte that is not UTF-8, after `surrogateescape`.
_UNDECODED = re.compile("[\udc80-\udcff]")
_COUNTED_BYTES = 1 << 20


def format_of(place: Place, format: str | None) -> str:
    """The given format, else that of the file's ending; JSON lines for a stream."""
    if format is not None:
        if isinstance(format, str) and format == "markdown":
            raise InvalidInput("Markdown is a folder of files: use export_folder and import_folder")
        if not isinstance(format, str) or format not in FORMATS:
            raise InvalidInput(f"format is {shown(format)}: use one of {', '.join(FORMATS)}")
        return format
    if not isinstance(place, str | os.PathLike):
        return "jsonl"
    ending = check_path(place).suffix.lower()
    if ending not in _ENDINGS:
        raise InvalidInput(
            f"the format of {shown(os.fspath(place))} is not clear from its ending: "
            f"give the format: {', '.join(FORMATS)}, or markdown for a folder. "
            "Documents (PDF, Word, HTML, notes): recallite knowledge ingest"
        )
    return _ENDINGS[ending]


class Lines:
    """The lines of a text stream; `number` is that of the last one, from 1."""

    def __init__(self, stream: IO[str], *, max_chars: int) -> None:
        self._stream = stream
        self._max_chars = max_chars
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self.number += 1
        try:
            line = self._stream.readline(self._max_chars + 1)
        except UnicodeDecodeError as fault:
            raise InvalidInput(
                f"the stream is not UTF-8 ({fault.reason}) here or soon after: convert it first"
            ) from None
        except OSError as fault:
            raise InvalidInput(f"reading stopped here: {fault.strerror}") from fault
        if not line:
            self.number -= 1
            raise StopIteration
        if len(line) > self._max_chars:
            raise InvalidInput(f"the line has more than {self._max_chars:,} characters: is the format right?")
        if not line.isascii() and (undecoded := _UNDECODED.search(line)):
            raise InvalidInput(
                f"the byte {ord(undecoded.group()) - 0xDC00:#04x} at character {undecoded.start() + 1} is not UTF-8: "
                "convert the file to UTF-8 first"
            )
        return line.removeprefix("\ufeff") if self.number == 1 else line


@contextmanager
def reading(source: Place, *, store: str, count: bool) -> Iterator[tuple[IO[str], int | None]]:
    """The text stream of a source and, with `count` and for a regular file, its number of lines."""
    if not isinstance(source, str | os.PathLike):
        if not callable(getattr(source, "readline", None)):
            raise InvalidInput(f"source is {shown(source)}: give a path, or a text stream to read from")
        yield source, None
        return
    path = _checked(source, store)
    try:
        total = _count_lines(path) if count and path.is_file() else None
        stream = path.open(encoding="utf-8-sig", errors="surrogateescape", newline="")
    except OSError as fault:
        raise InvalidInput(f"{path} cannot be read: {fault.strerror}") from fault
    with stream:
        yield stream, total


@contextmanager
def writing(target: Place, *, store: str) -> Iterator[IO[str]]:
    """A text stream to write to. A file appears, or is replaced, when it is complete."""
    if not isinstance(target, str | os.PathLike):
        if not callable(getattr(target, "write", None)):
            raise InvalidInput(f"target is {shown(target)}: give a path, or a text stream to write to")
        yield target
        target.flush()
        return
    path = _checked(target, store)
    try:
        if path.exists() and not path.is_file():  # /dev/stdout or a FIFO cannot be replaced
            with path.open("w", encoding="utf-8", newline="") as stream:
                yield stream
            return
        mode = path.stat().st_mode & 0o777 if path.exists() else new_file_mode()
        with unfinished(f"{path.parent}{os.sep}", path.name) as part:
            with open(part.descriptor, "w", encoding="utf-8", newline="", closefd=False) as stream:
                yield stream
            part.finish()
            os.replace(part.path, path)
            part.give(mode)
    except OSError as fault:
        if isinstance(fault, BrokenPipeError):
            raise
        if fault.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(f"the disk that holds {path} is full; nothing was left of the export", "full") from fault
        raise InvalidInput(f"{path} cannot be written: {fault.strerror}") from fault


def _checked(place: str | os.PathLike[str], store: str) -> Path:
    """The real path of a file that is not the store itself: closing it would drop SQLite's locks."""
    path = check_path(place)
    try:
        path = path.resolve()
        if path.is_dir():
            raise InvalidInput(f"{path} is a directory: give the path of a file, e.g. {path / 'memories.jsonl'}")
        if path.exists() and is_file_of(path, store):
            raise InvalidInput(f"{path} is the store itself: give the path of another file")
    except RecalliteError:
        raise
    except (OSError, RuntimeError) as fault:
        raise InvalidInput(f"{path} cannot be opened: {fault}") from fault
    return path


def _count_lines(path: Path) -> int:
    lines, last = 0, b"\n"
    with path.open("rb") as stream:
        while block := stream.read(_COUNTED_BYTES):
            lines += block.count(b"\n")
            last = block
    return lines + (not last.endswith(b"\n"))
