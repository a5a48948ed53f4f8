"""Export: versions and links streamed out of one read transaction."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any

import msgspec

from recallite.store.store import Progress
from recallite.store.values import EmbedderRow, Version
from recallite.system.tracing import traced
from recallite.transfer.document_lines import document_lines
from recallite.transfer.formats import Place, format_of, writing
from recallite.transfer.line_types import (
    COLUMNS,
    FORMAT,
    RECORD_FIELDS,
    VERSION,
    Embedder,
    link_fields,
    scope_within,
    written_time,
)
from recallite.transfer.supersessions import occurrence_lines, supersession_lines

if TYPE_CHECKING:
    from recallite.engine import Engine
    from recallite.model.filters import Filter
    from recallite.model.records import Link, Record


_PROGRESS_EVERY = 500
# Whole runs of white space: those with a line break become one space.
_SPACE = re.compile(r"\s+")
_encode = msgspec.json.Encoder().encode


@traced("export", lambda count: {"memories": count})
def export(
    engine: Engine,
    target: Place,
    filter: Filter,
    *,
    format: str | None,
    vectors: bool,
    on_progress: Progress | None,
) -> int:
    """Write the memories that a filter admits, their scopes relative to its base; returns how many.

    `on_progress(done, total)` counts memories.
    """
    write = {"jsonl": _write_jsonl, "csv": _write_csv, "text": _write_text}[format_of(target, format)]
    with engine.store.read() as reader, writing(target, store=engine.store.path) as stream:
        embedder = reader.vectors.active_embedder()
        total = None if on_progress is None else reader.records.count(filter, 0, versions="open")
        with_vectors = embedder if vectors and write is _write_jsonl else None
        done = 0

        def versions() -> Iterator[Version]:
            """Every version, with the accesses that are not written yet; open ones are counted."""
            nonlocal done
            for record, parts, repeated in reader.records.versions(filter, with_vectors):
                yield Version(engine.counted(record), parts, repeated)
                done += record.recorded_until is None
                if on_progress is not None and record.recorded_until is None and done % _PROGRESS_EVERY == 0:
                    on_progress(done, total)

        write(stream, versions(), reader.links.between(filter), embedder, filter.base)
        if write is _write_jsonl:
            for pair in supersession_lines(reader, filter):
                stream.write(_encode({"supersession": pair}).decode() + "\n")
            for line in document_lines(reader, filter):
                stream.write(_encode({"document": line}).decode() + "\n")
        if on_progress is not None:
            on_progress(done, total)
        return done


def _write_jsonl(
    stream: IO[str], versions: Iterator[Version], links: Iterator[Link], embedder: EmbedderRow | None, base: str
) -> None:
    made_by = None if embedder is None else Embedder(embedder.fingerprint, embedder.name, embedder.dimension)
    header = {"format": FORMAT, "version": VERSION, "embedder": made_by}
    stream.write(_encode(header).decode() + "\n")
    for record, parts, repeated in versions:
        line = _fields(record, base)
        if repeated:
            line["repeated"] = occurrence_lines(repeated)
        if parts:
            line["vectors"] = parts
        stream.write(_encode(line).decode() + "\n")
    for link in links:
        stream.write(_encode({"link": {"source": link.source, **link_fields(link)}}).decode() + "\n")


def _write_csv(
    stream: IO[str], versions: Iterator[Version], links: Iterator[Link], embedder: EmbedderRow | None, base: str
) -> None:
    rows = csv.DictWriter(stream, COLUMNS, extrasaction="ignore", lineterminator="\r\n")
    rows.writeheader()
    for record, *_ in versions:
        if record.recorded_until is None:
            row = _fields(record, base)
            row["tags"] = _joined_tags(record.tags)
            row["metadata"] = _encode(record.metadata).decode() if record.metadata else None
            row["pinned"] = "true" if record.pinned else "false"
            rows.writerow(row)


def _write_text(
    stream: IO[str], versions: Iterator[Version], links: Iterator[Link], embedder: EmbedderRow | None, base: str
) -> None:
    for record, *_ in versions:
        if record.recorded_until is None:
            stream.write(_on_one_line(record.text) + "\n")


def _on_one_line(text: str) -> str:
    return _SPACE.sub(lambda run: " " if "\n" in run[0] or "\r" in run[0] else run[0], text.strip())


def _fields(record: Record, base: str) -> dict[str, Any]:
    values = {name: getattr(record, name) for name in RECORD_FIELDS}
    times = {name: written_time(value) for name, value in values.items() if isinstance(value, datetime)}
    return {**values, **times, "scope": scope_within(record.scope, base)}


def _joined_tags(tags: tuple[str, ...]) -> str:
    if any(";" in tag or tag != tag.strip() for tag in tags) or (tags and tags[0].startswith("[")):
        return _encode(tags).decode()
    return ";".join(tags)
