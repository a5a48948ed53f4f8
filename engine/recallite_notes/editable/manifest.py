"""The manifest of a folder of Markdown: the last common state of the folder and a store, for a three-way merge.

It is `.recallite/exported-….json` in the folder, one for each store and scope of a handle. An export sees in it which
files are unchanged, an import which memories were changed or removed in the files. It can be deleted; then a change on
one side cannot be told from one on both.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress

import msgspec
from msgspec import Struct

from recallite.engine import Engine
from recallite.errors import InvalidInput
from recallite.remember.uuid7 import uuid7
from recallite_notes.editable.safe_folder import OWN, Changed, Folder

# Version control has the memories themselves.
_IGNORED = f"{OWN}/.gitignore"


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
        identity = reader.meta.identity()
    if identity is None:
        with engine.atomic() as writer:
            writer.meta.put_identity(uuid7())
            identity = writer.meta.identity()
    assert identity is not None
    return identity
