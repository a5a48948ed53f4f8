"""What a store and a folder of Markdown last had in common, kept in the folder as `.recollect/exported-….json`, one
for each store and scope it is seen through.

By it an export knows which files nobody has changed since, and an import which memories were changed, or taken out, in
the files. It can be deleted: then what has changed on one side only cannot be told from what has changed on both.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from recollect.checks import check_time, optional_datetime
from recollect.engine import Engine
from recollect.errors import InvalidInput
from recollect.exchange.folder import OWN, Changed, Folder
from recollect.exchange.lines import written_time
from recollect.exchange.markdown import Fields, LinkTo
from recollect.records import Link, Record
from recollect.remember.prepare import uuid7

__all__ = ["FileEntry", "Known", "fields_of", "said", "said_digest", "scope_within", "store_identity"]
# Version control has the memories themselves.
_IGNORED = f"{OWN}/.gitignore"


class FileEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A file: the SHA-256 that it may have, its scope, and by id what its memories said, as `said_digest`."""

    hashes: tuple[str, ...]
    scope: str
    memories: dict[str, str]


class _Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    store: str
    base: str
    files: dict[str, FileEntry]


class Known:
    """The manifest of a folder, for one store seen through a handle bound to the scope `base`."""

    def __init__(self, folder: Folder, store: str, base: str) -> None:
        self._folder, self._store, self._base = folder, store, base
        self._path = f"{OWN}/exported-{hashlib.sha256(f'{store} {base}'.encode()).hexdigest()[:12]}.json"
        self._read = folder.read(self._path)
        self.files: dict[str, FileEntry] = {}
        if self._read is not None:
            # One that was changed by hand is as if it were not there.
            with suppress(msgspec.DecodeError):
                self.files = msgspec.json.decode(self._read, type=_Manifest).files

    def write(self, files: dict[str, FileEntry]) -> None:
        """Keep `files` as what store and folder now have in common."""
        data = msgspec.json.encode(_Manifest(self._store, self._base, dict(sorted(files.items()))))
        data = msgspec.json.format(data, indent=1) + b"\n"
        if data == self._read:
            return
        if self._read is None:
            with suppress(Changed):  # it is there already
                self._folder.write(_IGNORED, b"*\n", over=None)
        try:
            self._folder.write(self._path, data, over=self._read)
        except Changed:
            raise InvalidInput(
                f"another program writes to {self._folder.root} at the same time: run it again when that is done"
            ) from None
        self._read, self.files = data, files


def store_identity(engine: Engine) -> str:
    """What tells the engine's store from any other, made at the first asking."""
    with engine.store.read() as reader:
        found = reader.meta.identity()
    if found is None:
        with engine.atomic() as writer:
            writer.meta.put_identity(uuid7())
            found = writer.meta.identity()
    assert found is not None
    return found


def scope_within(scope: str, base: str) -> str:
    """A scope of the store as a handle bound to `base` sees it."""
    return scope if base == "/" else scope.removeprefix(base) or "/"


def fields_of(record: Record, links: list[Link]) -> Fields:
    """What the comment of a memory's section says."""
    return Fields(
        id=record.id, kind=record.kind, tags=record.tags, importance=record.importance,
        base_importance=record.base_importance, pinned=record.pinned, topic=record.topic, source=record.source,
        position=record.position, context=record.context, created=written_time(record.created_at),
        event=written_time(record.event_at),
        updated=written_time(record.updated_at) if record.updated_at != record.created_at else None,
        valid_from=written_time(record.valid_from) if record.valid_from != record.created_at else None,
        expires=written_time(record.expires_at), metadata=record.metadata,
        links=tuple(
            LinkTo(link.target, link.type, link.strength, written_time(link.created_at))
            for link in sorted(links, key=lambda link: (link.target, link.type))
        ),
    )  # fmt: skip


def said(scope: str, fields: Fields, text: str) -> dict[str, Any]:
    """What a section says that `update` can change, by the names that it has there; InvalidInput for a bad time."""
    return {
        "text": text, "context": fields.context, "kind": fields.kind, "scope": scope,
        "tags": tuple(dict.fromkeys(fields.tags)),
        "importance": fields.importance, "metadata": fields.metadata, "topic": fields.topic, "source": fields.source,
        "position": fields.position, "event_at": optional_datetime(check_time(fields.event, "event")),
        "expires_at": optional_datetime(check_time(fields.expires, "expires")), "pinned": fields.pinned,
    }  # fmt: skip


def said_digest(what: dict[str, Any]) -> str:
    """16 hexadecimal digits of what a section says."""
    return hashlib.sha256(msgspec.json.encode(what, order="sorted")).hexdigest()[:16]
