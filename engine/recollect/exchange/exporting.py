"""Export: versions and links streamed out of one read transaction."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any

import msgspec

from recollect.exchange.documents import document_lines
from recollect.exchange.files import Place, format_of, writing
from recollect.exchange.lines import COLUMNS, FORMAT, VERSION, written_time
from recollect.store.values import EmbedderRow, Version

if TYPE_CHECKING:
    from recollect.engine import Engine
    from recollect.filters import Filter
    from recollect.records import Link, Record

__all__ = ["export"]

Progress = Callable[[int, int | None], None]
_PROGRESS_EVERY = 500
# Whole runs, so that each is looked at once: the white space around a line break goes with it.
_SPACE = re.compile(r"\s+")
_encode = msgspec.json.Encoder().encode


def export(
    engine: Engine,
    target: Place,
    chosen: Filter,
    *,
    base: str = "/",
    format: str | None,
    vectors: bool,
    on_progress: Progress | None,
) -> int:
    """Write the memories that `chosen` matches, as a handle bound to the scope `base` sees them; returns how many.

    `on_progress(done, total)` counts memories.
    """
    write = {"jsonl": _write_jsonl, "csv": _write_csv, "text": _write_text}[format_of(target, format)]
    with engine.store.read() as reader, writing(target, store=engine.store.path) as stream:
        embedder = reader.vectors.active_embedder()
        total = None if on_progress is None else reader.records.count(chosen, 0, versions="open")
        with_vectors = embedder if vectors and write is _write_jsonl else None
        records = _Counted(_counted_up(engine, reader.records.versions(chosen, with_vectors)), total, on_progress)
        write(stream, records, reader.links.between(chosen), embedder, base)
        if write is _write_jsonl:
            for line in document_lines(reader, chosen, base):
                stream.write(_encode({"document": line}).decode() + "\n")
        if on_progress is not None:
            on_progress(records.done, total)
        return records.done


def _counted_up(engine: Engine, versions: Iterator[Version]) -> Iterator[Version]:
    """The versions with the accesses that are not written yet."""
    for record, parts in versions:
        yield Version(engine.counted(record), parts)


class _Counted:
    """The versions, with the open ones counted."""

    def __init__(self, versions: Iterator[Version], total: int | None, on_progress: Progress | None) -> None:
        self._versions, self._total, self._on_progress = versions, total, on_progress
        self.done = 0

    def __iter__(self) -> Iterator[Version]:
        for version in self._versions:
            yield version
            if version.record.valid_to is None:
                self.done += 1
                if self._on_progress is not None and self.done % _PROGRESS_EVERY == 0:
                    self._on_progress(self.done, self._total)


def _write_jsonl(
    stream: IO[str], versions: _Counted, links: Iterator[Link], embedder: EmbedderRow | None, base: str
) -> None:
    made_by = None if embedder is None else {
        "fingerprint": embedder.fingerprint, "name": embedder.name, "dimension": embedder.dimension,
    }  # fmt: skip
    header = {"format": FORMAT, "version": VERSION, "embedder": made_by}
    stream.write(_encode(header).decode() + "\n")
    for record, parts in versions:
        line = _fields(record, base)
        if parts:
            line["vectors"] = parts
        stream.write(_encode(line).decode() + "\n")
    for link in links:
        joined = {
            "source": link.source, "target": link.target, "type": link.type, "strength": link.strength,
            "created_at": written_time(link.created_at),
        }  # fmt: skip
        stream.write(_encode({"link": joined}).decode() + "\n")


def _write_csv(
    stream: IO[str], versions: _Counted, links: Iterator[Link], embedder: EmbedderRow | None, base: str
) -> None:
    rows = csv.DictWriter(stream, COLUMNS, extrasaction="ignore", lineterminator="\r\n")
    rows.writeheader()
    for record, _ in versions:
        if record.valid_to is None:
            row = _fields(record, base)
            row["tags"] = _joined_tags(record.tags)
            row["metadata"] = _encode(record.metadata).decode() if record.metadata else None
            row["pinned"] = "true" if record.pinned else "false"
            rows.writerow(row)


def _write_text(
    stream: IO[str], versions: _Counted, links: Iterator[Link], embedder: EmbedderRow | None, base: str
) -> None:
    for record, _ in versions:
        if record.valid_to is None:
            stream.write(_on_one_line(record.text) + "\n")


def _on_one_line(text: str) -> str:
    return _SPACE.sub(lambda run: " " if "\n" in run[0] or "\r" in run[0] else run[0], text.strip())


def _fields(record: Record, base: str) -> dict[str, Any]:
    return {
        "id": record.id,
        "text": record.text,
        "context": record.context,
        "kind": record.kind,
        "scope": record.scope if base == "/" else record.scope.removeprefix(base) or "/",
        "tags": record.tags,
        "importance": record.importance,
        "base_importance": record.base_importance,
        "pinned": record.pinned,
        "topic": record.topic,
        "source": record.source,
        "position": record.position,
        "created_at": written_time(record.created_at),
        "event_at": written_time(record.event_at),
        "updated_at": written_time(record.updated_at),
        "accessed_at": written_time(record.accessed_at),
        "expires_at": written_time(record.expires_at),
        "access_count": record.access_count,
        "valid_from": written_time(record.valid_from),
        "valid_to": written_time(record.valid_to),
        "metadata": record.metadata,
        "embedding_state": record.embedding_state,
    }


def _joined_tags(tags: tuple[str, ...]) -> str:
    if any(";" in tag or tag != tag.strip() for tag in tags) or (tags and tags[0].startswith("[")):
        return _encode(tags).decode()
    return ";".join(tags)
