"""Memories and questions in files, one at a time, each with its line or row."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from recallite.errors import InvalidInput, InvalidItem, RecalliteError
from recallite.model.checks import check_path
from recallite.system.messages import shown
from recallite.transfer.formats import Lines, format_of, reading
from recallite.transfer.line_types import Header, Incoming, parse
from recallite_bulk.arrow import new_records, new_records_table

PARQUET = "parquet"
# A line may spell each character of a text as two escapes of six, and carry a megabyte of metadata and vectors.
_CHARS_PER_CHARACTER, _OTHER_CHARS = 12, 16_000_000


class Placed(NamedTuple):
    """An item and where it stands, in words: "line 7"."""

    label: str
    item: Any


def file_format(path: str | os.PathLike[str], format: str | None = None) -> str:
    """The format given, else that of the file's ending: parquet, jsonl, csv or text."""
    if format == PARQUET or (format is None and check_path(path).suffix.lower() == f".{PARQUET}"):
        return PARQUET
    return format_of(path, format)


def read_files(
    paths: list[str | os.PathLike[str]], *, format: str | None, store: str, max_text_chars: int
) -> Iterator[Placed]:
    """The new records of files, in order. Raises InvalidItem, which names the line."""
    for path in paths:
        prefix = f"{Path(path).name}, " if len(paths) > 1 else ""
        if file_format(path, format) == PARQUET:
            for number, record in enumerate(new_records(path), 1):
                yield Placed(f"{prefix}row {number}", record)
            continue
        with reading(path, store=store, count=False) as (stream, _):
            lines = Lines(stream, max_chars=_CHARS_PER_CHARACTER * max_text_chars + _OTHER_CHARS)
            yield from read_lines(lines, file_format(path, format), prefix, max_text_chars)


def read_lines(lines: Lines, format: str, prefix: str, max_text_chars: int) -> Iterator[Placed]:
    """The new records of lines. Raises InvalidItem for a line that is none, or that only `import` can read."""
    entries = parse(format, lines, max_text_chars=max_text_chars)
    while True:
        try:
            entry = next(entries, None)
            if entry is None:
                return
            label = f"{prefix}line {lines.number}"
            if isinstance(entry, Incoming) and entry.recorded_until is None:
                yield Placed(label, entry)
            elif not isinstance(entry, Header):
                raise InvalidInput("it is no new memory but a link, a version or a document of an export: use import")
        except RecalliteError as reason:
            raise InvalidItem(lines.number - 1, 0, reason, label=f"{prefix}line {lines.number}") from reason


def records_of_lines(lines: Sequence[str], format: str) -> Any:
    """The new records of lines of JSON or text as an Arrow table. Raises InvalidInput, which quotes the line."""
    longest = max(map(len, lines), default=0) + 2
    stream = Lines(io.StringIO("".join(f"{line}\n" for line in lines)), max_chars=longest)
    try:
        return new_records_table(placed.item for placed in read_lines(stream, format, "", longest))
    except InvalidItem as refused:
        raise InvalidInput(f"{refused.error}: {shown(lines[refused.position])}") from None
