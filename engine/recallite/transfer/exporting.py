"""Export: versions, links, supersessions and documents streamed out of one read transaction."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import IO, Any

import msgspec

from recallite.engine import Engine
from recallite.errors import InvalidInput
from recallite.model.filters import CHUNK_KIND, Filter
from recallite.model.records import Link, Record
from recallite.remember.pending import catch_up
from recallite.store.sql.record_reading import Version
from recallite.store.sql.relations import Occurrence
from recallite.store.sql.vectors import EmbedderRow
from recallite.store.store import Progress
from recallite.store.transaction import Reader
from recallite.system.telemetry import traced
from recallite.transfer.lines import (
    COLUMNS,
    FORMAT,
    RECORD_FIELDS,
    VERSION,
    DocumentLine,
    Embedder,
    OccurrenceLine,
    Place,
    SupersessionLine,
    format_of,
    scope_within,
    writing,
    written_time,
)

_PROGRESS_EVERY = 500
# Whole runs of white space: those with a line break become one space.
_SPACE = re.compile(r"\s+")
_encode = msgspec.json.Encoder().encode


@traced("export", lambda count: {"memories": count})
def export(
    engine: Engine, target: Place, filter: Filter, *, format: str | None, vectors: bool, on_progress: Progress | None
) -> int:
    """Write the memories that a filter admits, their scopes relative to its base; returns how many.

    `on_progress(done, total)` counts memories.
    """
    line_format = format_of(target, format)
    if filter.sessions:
        raise InvalidInput("messages of sessions are in no export: leave sessions out, or use store.backup or copy")
    with ExitStack() as opened:
        stream = opened.enter_context(writing(target, store=engine.store.path))
        catch_up(engine)  # a file says what superseded what, not what waits to be compared
        reader = opened.enter_context(engine.store.read())
        embedder = reader.vectors.active_embedder()
        total = None if on_progress is None else reader.records.count(filter, 0, versions="open")
        with_vectors = embedder if vectors and line_format == "jsonl" else None
        done = 0

        def versions() -> Iterator[Version]:
            """Every version, with the accesses that are not written yet; open ones are counted."""
            nonlocal done
            for record, parts, repeated in reader.records.versions(filter, with_vectors):
                yield Version(engine.counted(record), parts, repeated)
                done += record.recorded_until is None
                if on_progress is not None and record.recorded_until is None and done % _PROGRESS_EVERY == 0:
                    on_progress(done, total)

        if line_format == "jsonl":
            for line in _json_lines(reader, filter, versions(), embedder):
                stream.write(_encode(line).decode() + "\n")
        elif line_format == "csv":
            _write_csv(stream, versions(), filter.base)
        else:
            for record, *_ in versions():
                if record.recorded_until is None:
                    stream.write(_SPACE.sub(_on_one_line, record.text.strip()) + "\n")
        if on_progress is not None:
            on_progress(done, total)
        return done


def _json_lines(
    reader: Reader, filter: Filter, versions: Iterator[Version], embedder: EmbedderRow | None
) -> Iterator[dict[str, Any]]:
    made_by = None if embedder is None else Embedder(embedder.fingerprint, embedder.name, embedder.dimension)
    yield {"format": FORMAT, "version": VERSION, "embedder": made_by}
    for record, parts, repeated in versions:
        line = _fields(record, filter.base)
        if repeated:
            line["repeated"] = occurrence_lines(repeated)
        if parts:
            line["vectors"] = parts
        yield line
    for link in reader.links.between(filter):
        yield {"link": {"source": link.source, **link_fields(link)}}
    for pair in supersession_lines(reader, filter):
        yield {"supersession": pair}
    # The documents of the exported chunks; none if the filter has more than scopes and kinds.
    whole = filter.replaced(kinds=None).scopes_only and CHUNK_KIND in (filter.kinds or (CHUNK_KIND,))
    for scope in (filter.scopes or ("/",)) if whole else ():
        for row in reader.documents.in_scope(scope):
            yield {
                "document": DocumentLine(
                    id=row.public_id, source=row.source, scope=scope_within(row.scope, filter.base), title=row.title,
                    media_type=row.media_type, content_hash=row.content_hash.hex(), chunking=row.chunking,
                    size_bytes=row.size_bytes, metadata=msgspec.json.decode(row.metadata) if row.metadata else None,
                    caller_metadata=msgspec.json.decode(row.caller_metadata) if row.caller_metadata else None,
                    created_at=written_time(row.created_at), updated_at=written_time(row.updated_at),
                )
            }  # fmt: skip


def _write_csv(stream: IO[str], versions: Iterator[Version], base: str) -> None:
    rows = csv.DictWriter(stream, COLUMNS, extrasaction="ignore", lineterminator="\r\n")
    rows.writeheader()
    for record, *_ in versions:
        if record.recorded_until is None:
            row = _fields(record, base)
            tags = ";".join(record.tags)
            as_list = tags.startswith("[") or any(";" in tag or tag != tag.strip() for tag in record.tags)
            row["tags"] = _encode(record.tags).decode() if as_list else tags
            row["metadata"] = _encode(record.metadata).decode() if record.metadata else None
            row["pinned"] = "true" if record.pinned else "false"
            rows.writerow(row)


def _on_one_line(space: re.Match[str]) -> str:
    return " " if "\n" in space[0] or "\r" in space[0] else space[0]


def _fields(record: Record, base: str) -> dict[str, Any]:
    values = {name: getattr(record, name) for name in RECORD_FIELDS}
    times = {name: written_time(value) for name, value in values.items() if isinstance(value, datetime)}
    return {**values, **times, "scope": scope_within(record.scope, base)}


# What has lines of its own or is part of one, as in the files of `recallite_notes` too.


def link_fields(link: Link) -> dict[str, Any]:
    """The fields of a link as in files, without its source."""
    created_at = None if link.created_at is None else written_time(link.created_at)
    return {"target": link.target, "type": link.type, "strength": link.strength, "created_at": created_at,
            "reason": link.reason}  # fmt: skip


def supersession_lines(reader: Reader, filter: Filter) -> Iterator[SupersessionLine]:
    """The supersessions among the memories of an export, undone ones too."""
    for pair in reader.supersessions.between(filter):
        yield SupersessionLine(
            pair.old, pair.new, written_time(pair.holds_from), written_time(pair.known_from),
            None if pair.known_until is None else written_time(pair.known_until), pair.reason, pair.strength,
            bool(pair.certain), bool(pair.by_rule),
        )  # fmt: skip


def occurrence_lines(repeated: Sequence[Occurrence]) -> tuple[OccurrenceLine, ...]:
    """The further times of a memory."""
    return tuple(OccurrenceLine(written_time(occurrence.at), occurrence.text) for occurrence in repeated)
