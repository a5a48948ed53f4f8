"""Between a section of a file and a memory of the store: its fields, what may be edited in them, and what was."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from recallite.model.authority import implied_authority
from recallite.model.checks import check_time, join_scopes, optional_datetime
from recallite.model.filters import Filter
from recallite.model.records import Record
from recallite.store.transaction import Reader
from recallite.transfer.line_types import LinkTo, OccurrenceLine, link_fields, scope_within, written_time
from recallite.transfer.supersessions import occurrence_lines, supersession_lines
from recallite_notes.editable.markdown import Fields, MemoryFile, Section, SupersededBy

_JOINED = ("links", "superseded_by")
_SHARED = tuple(name for name in Fields.__struct_fields__ if name in Record.__struct_fields__ and name not in _JOINED)
_CHANGEABLE = (
    "context", "kind", "tags", "importance", "metadata", "topic", "source", "position", "valid_from", "valid_until",
    "expires_at", "pinned",
)  # fmt: skip
_CHANGEABLE_TIMES = ("valid_from", "valid_until", "expires_at")


class Joined(NamedTuple):
    """The links, successors and further times of memories, by the id of a memory."""

    links: Mapping[str, Sequence[LinkTo]]
    superseded_by: Mapping[str, Sequence[SupersededBy]]
    repeated: Mapping[str, Sequence[OccurrenceLine]]

    @classmethod
    def of(cls, reader: Reader, filter: Filter) -> Joined:
        """The links and successors among the memories that a filter admits."""
        links: defaultdict[str, list[LinkTo]] = defaultdict(list)
        for link in reader.links.between(filter, chunks=False):
            links[link.source].append(LinkTo(**link_fields(link)))
        superseded_by: defaultdict[str, list[SupersededBy]] = defaultdict(list)
        for pair in supersession_lines(reader, filter):
            superseded_by[pair.old].append(SupersededBy(*structs.astuple(pair)[1:]))
        return cls(links, superseded_by, {})

    def with_repeated(self, reader: Reader, records: Sequence[Record]) -> Joined:
        """With the further times of these memories."""
        ids = reader.records.find_ids([record.id for record in records if record.occurrences > 1], "/")
        times = reader.occurrences.of(list(ids.values()))
        repeated = {id: occurrence_lines(times[row_id]) for id, row_id in ids.items() if row_id in times}
        return self._replace(repeated=repeated)


_NOTHING = Joined({}, {}, {})


def fields_of(record: Record, joined: Joined = _NOTHING) -> Fields:
    """The comment of a memory's section. It says whose word it is only where the other fields do not."""
    values = {name: getattr(record, name) for name in _SHARED}
    times = {name: written_time(value) for name, value in values.items() if isinstance(value, datetime)}
    same: dict[str, None] = {
        name: None for name in ("updated_at", "recorded_from") if values[name] == record.created_at
    }
    implied = implied_authority(record.kind, record.source, record.context)
    same |= {"authority": None} if values["authority"] == implied else {}
    links = tuple(sorted(joined.links.get(record.id, ()), key=lambda link: (link.target, link.type)))
    return Fields(
        **{**values, **times, **same}, links=links, superseded_by=tuple(joined.superseded_by.get(record.id, ())),
        repeated=tuple(joined.repeated.get(record.id, ())),
    )  # fmt: skip


def changeable_fields(scope: str, fields: Fields, text: str) -> dict[str, Any]:
    """The fields of a section that `update` can change, by `update`'s names. InvalidInput for a wrong time."""
    values = {name: getattr(fields, name) for name in _CHANGEABLE}
    times = {name: optional_datetime(check_time(values[name], name)) for name in _CHANGEABLE_TIMES}
    return {**values, **times, "text": text, "scope": scope, "tags": tuple(dict.fromkeys(fields.tags or ()))}


def stored_fields(record: Record, base: str) -> dict[str, Any]:
    """`changeable_fields` of a memory in the store."""
    return changeable_fields(scope_within(record.scope, base), fields_of(record), record.text)


def content_digest(fields: dict[str, Any]) -> str:
    """16 hexadecimal digits of the changeable fields of a section."""
    return hashlib.sha256(msgspec.json.encode(fields, order="sorted")).hexdigest()[:16]


def unstored_changes(record: Record, scope: str, section: Section, before: str | None, base: str) -> dict[str, Any]:
    """The fields of a section that differ from the store's; none if the section is as it was: `before` is its digest
    at the last export or import.
    """
    fields = changeable_fields(scope, section.fields, section.text)
    if before == content_digest(fields):
        return {}
    stored = stored_fields(record, base)
    return {name: value for name, value in fields.items() if value != stored[name]}


def moves_creation(record: Record, fields: Fields) -> bool:
    """Whether a section says that its memory was stored at another time."""
    created_at = optional_datetime(check_time(fields.created_at, "created_at"))
    return created_at is not None and created_at != record.created_at


def known_supersessions(reader: Reader, base: str) -> set[tuple[str, str, int | None]]:
    """Supersessions, undone or not: the ids of the old and the new memory, and since when it is known.

    Each pair is in it without a time, too.
    """
    pairs = reader.supersessions.between(Filter().within(base))
    return {(pair.old, pair.new, time) for pair in pairs for time in (pair.known_from, None)}


def ids_of(file: MemoryFile, base: str) -> list[str]:
    """The id of each memory of a file; one that was written by hand gets the same at each import, while its text is
    unchanged.

    Such an id depends on the scope `base` of the handle, so that it reveals nothing about other scopes.
    """
    scope = join_scopes(base, file.scope) or "/"
    return [section.fields.id or _derived_id(scope, section) for section in file.sections]


def _derived_id(scope: str, section: Section) -> str:
    key = "\x00".join((scope, section.fields.context or "", section.text))
    return f"md-{hashlib.sha256(key.encode()).hexdigest()[:32]}"
