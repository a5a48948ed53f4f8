"""The manifest of a folder of Markdown: the last common state of the folder and a store, for a three-way merge.

It is `.recollect/exported-….json` in the folder, one for each store and scope of a handle. An export sees in it which
files are unchanged, an import which memories were changed or removed in the files. It can be deleted; then a change on
one side cannot be told from one on both.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from recollect.checks import check_time, optional_datetime
from recollect.engine import Engine
from recollect.errors import InvalidInput
from recollect.exchange.folder import OWN, Changed, Folder
from recollect.exchange.lines import LinkTo, scope_within, written_time
from recollect.exchange.markdown import Fields
from recollect.records import Link, Record
from recollect.remember.prepare import uuid7

# Version control has the memories themselves.
_IGNORED = f"{OWN}/.gitignore"


_SHARED = tuple(name for name in Fields.__struct_fields__ if name in Record.__struct_fields__ and name != "links")
_CHANGEABLE = (
    "context", "kind", "tags", "importance", "metadata", "topic", "source", "position", "event_at", "expires_at",
    "pinned",
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


def fields_of(record: Record, links: list[Link]) -> Fields:
    """The comment of a memory's section."""
    held = {name: getattr(record, name) for name in _SHARED}
    times = {name: written_time(value) for name, value in held.items() if isinstance(value, datetime)}
    same = {name: None for name in ("updated_at", "valid_from") if held[name] == record.created_at}
    listed = tuple(
        LinkTo(link.target, link.type, link.strength, written_time(link.created_at))
        for link in sorted(links, key=lambda link: (link.target, link.type))
    )
    return Fields(**{**held, **times, **same}, links=listed)


def changeable_fields(scope: str, fields: Fields, text: str) -> dict[str, Any]:
    """What a section says that `update` can change, by `update`'s names. InvalidInput for a wrong time."""
    changeable = {name: getattr(fields, name) for name in _CHANGEABLE}
    times = {name: optional_datetime(check_time(changeable[name], name)) for name in ("event_at", "expires_at")}
    return {**changeable, **times, "text": text, "scope": scope, "tags": tuple(dict.fromkeys(fields.tags))}


def stored_fields(record: Record, base: str) -> dict[str, Any]:
    """`changeable_fields` of a memory in the store."""
    return changeable_fields(scope_within(record.scope, base), fields_of(record, []), record.text)


def content_digest(what: dict[str, Any]) -> str:
    """16 hexadecimal digits of the content of a section."""
    return hashlib.sha256(msgspec.json.encode(what, order="sorted")).hexdigest()[:16]
