"""The manifest of a folder of Markdown: the last common state of the folder and a store, for a three-way merge.

It is `.recallite/exported-….json` in the folder, one for each store and scope of a handle. An export sees in it which
files are unchanged, an import which memories were changed or removed in the files. It can be deleted; then a change on
one side cannot be told from one on both.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from recallite.engine import Engine
from recallite.errors import InvalidInput
from recallite.model.checks import check_time, optional_datetime
from recallite.model.filters import Filter
from recallite.model.records import Link, Record
from recallite.notes.editable.markdown import Fields, SupersededBy
from recallite.notes.editable.safe_folder import OWN, Changed, Folder
from recallite.remember.uuid7 import uuid7
from recallite.store.protocol import Reader
from recallite.transfer.line_types import LinkTo, OccurrenceLine, scope_within, written_time
from recallite.transfer.supersessions import occurrence_lines, supersession_lines

# Version control has the memories themselves.
_IGNORED = f"{OWN}/.gitignore"


_JOINED = ("links", "superseded_by")
_SHARED = tuple(name for name in Fields.__struct_fields__ if name in Record.__struct_fields__ and name not in _JOINED)
_CHANGEABLE = (
    "context", "kind", "tags", "importance", "metadata", "topic", "source", "position", "valid_from", "valid_until",
    "expires_at", "pinned",
)  # fmt: skip


class FileEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A file: its possible SHA-256 digests, its scope, and the `content_digest` of each memory by id."""

    hashes: tuple[str, ...]
    scope: str
    memories: dict[str, str]


class _Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    store: str
    base: str
    files: dict[str, FileEntry]


class FolderManifest:
    """The manifest of a folder, for one store seen through a handle bound to the scope `base`."""

    def __init__(self, folder: Folder, store: str, base: str) -> None:
        self._folder, self._store, self._base = folder, store, base
        self._path = f"{OWN}/exported-{hashlib.sha256(f'{store} {base}'.encode()).hexdigest()[:12]}.json"
        self._read = folder.read(self._path)
        self.files: dict[str, FileEntry] = {}
        if self._read is not None:
            # A damaged manifest is ignored.
            with suppress(msgspec.DecodeError):
                self.files = msgspec.json.decode(self._read, type=_Manifest).files

    def write(self, files: dict[str, FileEntry]) -> None:
        """Write `files` as the new common state."""
        data = msgspec.json.encode(_Manifest(self._store, self._base, dict(sorted(files.items()))))
        data = msgspec.json.format(data, indent=1) + b"\n"
        if data == self._read:
            return
        if self._read is None:
            with suppress(Changed):  # it exists
                self._folder.write(_IGNORED, b"*\n", over=None)
        try:
            self._folder.write(self._path, data, over=self._read)
        except Changed:
            raise InvalidInput(
                f"another program writes to {self._folder.root} at the same time: run it again when that is done"
            ) from None
        self._read, self.files = data, files


def store_identity(engine: Engine) -> str:
    """The identity of the engine's store, created on first use."""
    with engine.store.read() as reader:
        found = reader.meta.identity()
    if found is None:
        with engine.atomic() as writer:
            writer.meta.put_identity(uuid7())
            found = writer.meta.identity()
    assert found is not None
    return found


class Joined(NamedTuple):
    """What an export writes of memories besides their own fields, by the id of a memory."""

    links: Mapping[str, Sequence[Link]]
    superseded_by: Mapping[str, Sequence[SupersededBy]]
    repeated: Mapping[str, Sequence[OccurrenceLine]]

    @classmethod
    def of(cls, reader: Reader, chosen: Filter) -> Joined:
        """What joins the memories that a filter admits."""
        links: defaultdict[str, list[Link]] = defaultdict(list)
        for link in reader.links.between(chosen, chunks=False):
            links[link.source].append(link)
        superseded_by: defaultdict[str, list[SupersededBy]] = defaultdict(list)
        for line in supersession_lines(reader, chosen):
            superseded_by[line.pop("old")].append(SupersededBy(**line))
        return cls(links, superseded_by, {})

    def with_repeated(self, reader: Reader, records: Sequence[Record]) -> Joined:
        """With the further times of these memories."""
        ids = reader.records.find_ids([record.id for record in records if record.occurrences > 1], "/")
        found = reader.occurrences.of(list(ids.values()))
        lines = {id: occurrence_lines(found[row_id]) for id, row_id in ids.items() if row_id in found}
        return self._replace(
            repeated={id: [OccurrenceLine(**line) for line in written] for id, written in lines.items()}
        )


def known_supersessions(reader: Reader, base: str) -> set[tuple[str, str, int | None]]:
    """What superseded what, undone or not: the ids of the old and the new memory, and since when it is known.

    Each pair is in it without a time, too.
    """
    found = reader.supersessions.between(Filter().within(base))
    return {(each.old, each.new, time) for each in found for time in (each.known_from, None)}


NOTHING_JOINED = Joined({}, {}, {})


def fields_of(record: Record, joined: Joined) -> Fields:
    """The comment of a memory's section."""
    held = {name: getattr(record, name) for name in _SHARED}
    times = {name: written_time(value) for name, value in held.items() if isinstance(value, datetime)}
    same = {name: None for name in ("updated_at", "recorded_from") if held[name] == record.created_at}
    listed = tuple(
        LinkTo(link.target, link.type, link.strength, written_time(link.created_at), link.reason)
        for link in sorted(joined.links.get(record.id, ()), key=lambda link: (link.target, link.type))
    )
    return Fields(
        **{**held, **times, **same}, links=listed, superseded_by=tuple(joined.superseded_by.get(record.id, ())),
        repeated=tuple(joined.repeated.get(record.id, ())),
    )  # fmt: skip


def changeable_fields(scope: str, fields: Fields, text: str) -> dict[str, Any]:
    """What a section says that `update` can change, by `update`'s names. InvalidInput for a wrong time."""
    changeable = {name: getattr(fields, name) for name in _CHANGEABLE}
    times = {
        name: optional_datetime(check_time(changeable[name], name))
        for name in ("valid_from", "valid_until", "expires_at")
    }
    return {**changeable, **times, "text": text, "scope": scope, "tags": tuple(dict.fromkeys(fields.tags))}


def stored_fields(record: Record, base: str) -> dict[str, Any]:
    """`changeable_fields` of a memory in the store."""
    return changeable_fields(scope_within(record.scope, base), fields_of(record, NOTHING_JOINED), record.text)


def content_digest(what: dict[str, Any]) -> str:
    """16 hexadecimal digits of the content of a section."""
    return hashlib.sha256(msgspec.json.encode(what, order="sorted")).hexdigest()[:16]
