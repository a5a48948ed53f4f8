"""Files below a folder, and the manifest that says in what state a store and the folder last agreed.

No symbolic link is followed, and no file is replaced that has changed since it was read.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct

from recallite.engine import Engine
from recallite.errors import InvalidInput, StoreError
from recallite.model.checks import check_path
from recallite.remember.prepare import uuid7
from recallite.system.files import FolderLock, new_file_mode, sweep, unfinished
from recallite.system.folders import open_file, walk, writable_folder
from recallite.system.messages import shown

OWN = ".recallite"
"""The folder for the files of exports themselves."""
_WAIT_SECONDS = 60.0
MAX_FILE_BYTES = 256 * 2**20
"""Larger files are not read."""
_IGNORED = f"{OWN}/.gitignore"  # version control has the memories themselves
_OURS = re.compile(r".+\.(md|json)|\.gitignore", re.DOTALL)


class Changed(Exception):
    """A file has changed since it was read; nothing was written."""


def digest(data: bytes) -> str:
    """SHA-256 as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


class Folder:
    """Files below a folder, by relative paths with `/`. The folder itself may be a symbolic link, nothing below it.

    Raises InvalidInput for a path that leaves the folder, a link in it, what is not a regular file, and what the system
    refuses.
    """

    def __init__(self, root: str | os.PathLike[str], *, create: bool = False) -> None:
        self.root = check_path(root, "folder")
        self._unsettled: set[tuple[str, ...]] = set()
        try:
            if create:
                self.root.mkdir(parents=True, exist_ok=True)
            if not self.root.is_dir():
                raise InvalidInput(f"{self.root} is not a folder: give the path of one")
        except OSError as fault:
            raise InvalidInput(f"the folder {self.root} cannot be opened: {fault.strerror}") from fault

    @contextmanager
    def locked(self, *, optional: bool = False) -> Iterator[None]:
        """Lock the folder against other exports and imports. Raises InvalidInput if one of them takes long.

        With `optional` a folder that cannot be written is used without a lock.
        """
        with ExitStack() as stack:
            try:
                with writable_folder(self.root, (OWN,)):
                    pass
                locked = stack.enter_context(FolderLock(self.root / OWN / "lock").held(_WAIT_SECONDS))
            except OSError as fault:
                if not optional:
                    raise self._refused(OWN, fault) from fault
                locked = True
            if not locked:
                raise InvalidInput(f"another export or import of {self.root} is running: wait for its end")
            yield

    def walk(self, suffix: str) -> Iterator[str]:
        """The regular files whose names end so, in order. Hidden files, links and files that vanish are left out.

        Raises InvalidInput for a folder that cannot be listed: its files must not be taken for removed.
        """

        def refuse(inner: str, fault: OSError) -> None:
            raise InvalidInput(f"{self.root / inner} cannot be listed: {fault.strerror}") from fault

        for inner, folders, entries in walk(self.root, refuse):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for entry in entries:
                if entry.name.endswith(suffix) and not entry.name.startswith(".") and _may_be_read(entry):
                    yield f"{inner}/{entry.name}" if inner else entry.name

    def sweep(self) -> None:
        """Remove the unfinished files of killed writers below the folder."""
        for inner, folders, _ in walk(self.root, lambda inner, fault: None):
            folders[:] = [name for name in folders if not name.startswith(".") or (inner, name) == ("", OWN)]
            sweep(f"{self.root / inner}{os.sep}", _OURS)

    def read(self, path: str) -> bytes | None:
        """The bytes of a file; None if there is none."""
        try:
            return self._read(_parts(self.root, path))
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise self._refused(path, fault) from fault

    def write(self, path: str, data: bytes, *, over: bytes | None, derived: bool = False) -> None:
        """Atomically replace a file with the content `over` (None: there is no file) by `data`.

        It is on the disk then, unless it is `derived`: the folders of such are after `settle`, which takes a flush for
        each folder instead of two for each file. Raises Changed if the file has other content by now.
        """
        parts = _parts(self.root, path)
        try:
            with writable_folder(self.root, parts[:-1]) as folder:
                name = parts[-1]
                mode = new_file_mode() if over is None else folder.mode(name)
                with unfinished(folder.prefix, name, parent=folder.parent, swept=derived) as part:
                    with open(part.descriptor, "wb", closefd=False) as stream:
                        stream.write(data)
                    part.finish(sync=not derived)
                    if over is None:
                        folder.add(part.path, name)
                    else:
                        if self._read(parts) != over:
                            raise Changed(path)
                        folder.replace(part.path, name)
                    part.give(mode)
                    if derived:
                        self._unsettled.add(parts[:-1])
                    else:
                        folder.sync()
        except (FileExistsError, FileNotFoundError) as fault:
            raise Changed(path) from fault
        except OSError as fault:
            raise self._refused(path, fault) from fault

    def settle(self) -> None:
        """Flush the folders of derived files to the disk."""
        for parts in self._unsettled:
            with writable_folder(self.root, parts) as folder:
                folder.sync()
        self._unsettled.clear()

    def remove(self, path: str, *, over: bytes) -> None:
        """Remove a file with the content `over`. Raises Changed if it has other content by now."""
        parts = _parts(self.root, path)
        try:
            with writable_folder(self.root, parts[:-1]) as folder:
                if self._read(parts) != over:
                    raise Changed(path)
                folder.remove(parts[-1])
        except FileNotFoundError as fault:
            raise Changed(path) from fault
        except OSError as fault:
            raise self._refused(path, fault) from fault

    def _read(self, parts: tuple[str, ...]) -> bytes:
        with open_file(self.root, "/".join(parts)) as descriptor:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InvalidInput(f"{self.root.joinpath(*parts)} is not a regular file")
            with open(descriptor, "rb", closefd=False) as stream:
                data = stream.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise InvalidInput(f"{self.root.joinpath(*parts)} has more than {MAX_FILE_BYTES:,} bytes")
        return data

    def _refused(self, path: str, fault: OSError) -> InvalidInput | StoreError:
        where = self.root / path
        if fault.errno in (errno.ENOSPC, errno.EDQUOT):
            return StoreError(f"the disk that holds {where} is full; the file is as it was", "full")
        if fault.errno in (errno.ELOOP, errno.ENOTDIR):
            return InvalidInput(
                f"{where} is below a link or something that is not a folder: links below {self.root} are not followed"
            )
        return InvalidInput(f"{where} cannot be used: {fault.strerror}")


def _may_be_read(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a regular file, or the system does not tell: then `read` says why."""
    try:
        return entry.is_file(follow_symlinks=False)
    except OSError:
        return True


def _parts(root: Path, path: str) -> tuple[str, ...]:
    pure = PurePosixPath(path)
    is_inside = pure.parts and not pure.is_absolute() and ".." not in pure.parts
    if not is_inside or "\x00" in path or (os.sep != "/" and os.sep in path):
        raise InvalidInput(f"{shown(path)} leads out of {root}")
    return pure.parts


class FileEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """A file: its possible SHA-256 digests, and the scope, the id and the `content_digest` of its memory."""

    hashes: tuple[str, ...]
    scope: str
    id: str
    content: str


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
