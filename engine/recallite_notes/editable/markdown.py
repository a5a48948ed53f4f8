"""A memory as a file of Markdown with YAML front matter, and back.

    ---
    scope: /infra
    id: 0195b8b4-62d7-7c1f-8f0e-2d1a6a5e9b10
    tags: [database]
    created_at: 2026-03-21T14:02:11.031000Z
    ---

    We migrated from PostgreSQL to MySQL last week

- A file of Markdown whose front matter begins with `scope` is a memory. Every other field is there if it differs from
  its default; a file without an `id` is a new memory. What follows is the text.
- A text that editors or git may change (white space around it, CR, control characters) is the field `text` instead.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct, structs

from recallite.errors import InvalidInput
from recallite.model.authority import authority_of, ranks_of
from recallite.model.checks import check_name, check_scope, check_time, optional_datetime
from recallite.model.filters import CHUNK_KIND, MESSAGE_KIND, Filter
from recallite.model.records import Record
from recallite.store.transaction import Reader
from recallite.text.patterns import lazily
from recallite.transfer.lines import LinkTo, OccurrenceLine, RecordFields, scope_within, written_time
from recallite.transfer.streaming import link_fields, occurrence_lines, supersession_lines
from recallite_documents.front_matter import read_block, write_block

_HEAD = lazily(r"\A---\n(scope:[^\n]*\n(?:(?!---)[^\n]*\n)*+)---[ \t]*(?:\n|\Z)")
_CONTROL = lazily(r"[\x00-\x08\x0b-\x1f\x7f]")


class SupersededBy(Struct, frozen=True, forbid_unknown_fields=True):
    """The successor of the memory that lists it; with `known_until` it was undone then.

    Without `holds_from` it is when the new one begins, without `known_from` the time of the import.
    """

    new: str
    holds_from: str | None = None
    known_from: str | None = None
    known_until: str | None = None
    reason: str | None = None
    strength: float = 1.0
    certain: bool = True
    by_rule: bool = False


class MemoryFile(RecordFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The memory of a file; its scope is relative to that of the handle."""

    scope: str = "/"
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    links: tuple[LinkTo, ...] = ()
    superseded_by: tuple[SupersededBy, ...] = ()
    text: str = ""


_DEFAULTS: dict[type[Struct], Struct] = {
    type(value): value for value in (MemoryFile(), LinkTo(""), SupersededBy(""), OccurrenceLine(""))
}
_JOINED = ("scope", "text", "links", "superseded_by")
_SHARED = [name for name in MemoryFile.__struct_fields__ if name in Record.__struct_fields__ and name not in _JOINED]
_CHANGEABLE = (
    "text", "scope", "context", "kind", "tags", "importance", "metadata", "topic", "source", "position", "valid_from",
    "valid_until", "expires_at", "pinned",
)  # fmt: skip
_TIMES = ("valid_from", "valid_until", "expires_at")


def render(memory: MemoryFile) -> bytes:
    """The file of a memory."""
    values, text = msgspec.to_builtins({"scope": memory.scope, **_stated(memory)}), memory.text
    if text != text.strip() or _CONTROL.search(text):
        return f"---\n{write_block(values)}---\n".encode()
    del values["text"]
    return f"---\n{write_block(values)}---\n\n{text}\n".encode()


def decoded(data: bytes) -> str:
    """The text of a file, with LF as its line ends; InvalidInput if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as fault:
        raise InvalidInput(f"the byte {data[fault.start]:#04x} at {fault.start} is not UTF-8: convert it") from None


def is_memory_file(text: str) -> bool:
    """Whether a file begins as one of a memory."""
    return _HEAD.match(text) is not None


def parse(text: str) -> MemoryFile | None:
    """The memory of a file; None if the file is not one of a memory. Raises InvalidInput for a wrong field."""
    head = _HEAD.match(text)
    if head is None:
        return None
    try:
        memory = msgspec.convert(read_block(head[1]), MemoryFile)
    except (ValueError, RecursionError) as fault:
        raise InvalidInput(f"the front matter cannot be read ({fault}): undo the change") from None
    body = text[head.end() :].strip()
    if bool(body) == bool(memory.text):
        state = "twice, in the front matter and below it: remove one" if body else "empty: remove the file to forget it"
        raise InvalidInput(f"the text of the memory is {state}")
    if memory.kind in (CHUNK_KIND, MESSAGE_KIND):
        # An export writes no chunks, and would remove the file that holds one.
        raise InvalidInput(f"kind is {memory.kind!r}, of a document or session, not a memory: give another kind")
    check_scope(memory.scope)
    ends = [*(link.target for link in memory.links), *(entry.new for entry in memory.superseded_by)]
    for id in ends if memory.id is None else (memory.id, *ends):
        check_name(id, "id")
    return structs.replace(memory, text=body or memory.text)


def _stated(value: Struct) -> dict[str, Any]:
    """The fields that differ from their defaults (msgspec's omit_defaults compares by identity, and keeps some)."""
    default, stated = _DEFAULTS[type(value)], {}
    for name in value.__struct_fields__:
        field = getattr(value, name)
        if field != getattr(default, name):
            parts = field if isinstance(field, tuple) else ()
            stated[name] = [_stated(part) if isinstance(part, Struct) else part for part in parts] or field
    return stated


class Joined:
    """The links, successors and further times of the memories that a filter admits."""

    def __init__(self, reader: Reader, filter: Filter) -> None:
        self._reader, self._base = reader, filter.base
        self._links: defaultdict[str, list[LinkTo]] = defaultdict(list)
        self._superseded_by: defaultdict[str, list[SupersededBy]] = defaultdict(list)
        for link in reader.links.between(filter, chunks=False):
            self._links[link.source].append(LinkTo(**link_fields(link)))
        for pair in supersession_lines(reader, filter):
            self._superseded_by[pair.old].append(SupersededBy(*structs.astuple(pair)[1:]))

    def files(self, records: dict[int, Record]) -> list[MemoryFile]:
        """The files of these memories, given by row id."""
        times = self._reader.comparisons.occurrences([id for id, record in records.items() if record.occurrences > 1])
        files = []
        for row_id, record in records.items():
            links = sorted(self._links.get(record.id, ()), key=lambda link: (link.target, link.type))
            successors, repeated = self._superseded_by.get(record.id, ()), occurrence_lines(times.get(row_id, ()))
            alone = file_of(record, self._base)
            files.append(structs.replace(alone, links=tuple(links), superseded_by=tuple(successors), repeated=repeated))
        return files


def file_of(record: Record, base: str) -> MemoryFile:
    """The file of a memory alone. It names the author only where the other fields do not."""
    values = {name: getattr(record, name) for name in _SHARED}
    times = {name: written_time(value) for name, value in values.items() if isinstance(value, datetime)}
    same = [name for name in ("updated_at", "recorded_from") if values[name] == record.created_at]
    if values["authority"] == authority_of(*ranks_of("user", [record.kind], [record.source], [record.context])):
        same.append("authority")
    scope = scope_within(record.scope, base)
    return MemoryFile(**{**values, **times, **dict.fromkeys(same)}, scope=scope, text=record.text)


def changeable_fields(memory: MemoryFile) -> dict[str, Any]:
    """The fields of a file that `update` can change, by `update`'s names. InvalidInput for a wrong time."""
    values = {name: getattr(memory, name) for name in _CHANGEABLE}
    times = {name: optional_datetime(check_time(values[name], name)) for name in _TIMES}
    return {**values, **times, "tags": tuple(dict.fromkeys(memory.tags or ()))}


def content_digest(memory: MemoryFile) -> str:
    """16 hexadecimal digits of the changeable fields of a file."""
    return hashlib.sha256(msgspec.json.encode(changeable_fields(memory), order="sorted")).hexdigest()[:16]


def known_supersessions(reader: Reader, base: str) -> set[tuple[str, str, int | None]]:
    """Supersessions, undone or not: the ids of the old and the new memory, and since when it is known.

    Each pair is in it without a time, too.
    """
    pairs = reader.supersessions.between(Filter().within(base))
    return {(pair.old, pair.new, time) for pair in pairs for time in (pair.known_from, None)}


def unnamed_id(memory: MemoryFile, base: str) -> str:
    """The id of a memory that a person wrote, while its text is unchanged.

    It depends on the scope `base` of the handle, so that it reveals nothing about other scopes.
    """
    key = "\x00".join((base, memory.scope, memory.context or "", memory.text))
    return f"md-{hashlib.sha256(key.encode()).hexdigest()[:32]}"
