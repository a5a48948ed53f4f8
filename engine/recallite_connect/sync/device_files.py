"""The folder that devices share: a folder for each, which that device alone writes.

    DEVICE/00000001.sync    what it changed: JSON lines, a header first, and last the SHA-256 of the others
    DEVICE/state.sync       its name, the number of its last file, and up to which file it has merged each other device

A file appears complete, by a rename, and never changes; its number is used once. What is cut, changed or not there yet
is passed over, and read at a later time. In an encrypted store all of it is sealed with the store's key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import msgspec
from msgspec import Struct

from recallite.errors import InvalidInput
from recallite.store.store import Store
from recallite.system.atomic_file import unfinished
from recallite.system.writable_folder import writable_folder
from recallite.transfer.line_types import Embedder
from recallite_connect.sync.states import Item

FORMAT, VERSION = "recallite-sync", 1
_DEVICE = re.compile(r"[0-9a-f]{12}")
_FILE = re.compile(r"(\d{8})\.sync")
_STATE = "state.sync"
_MOST_BYTES = 1 << 30


class Header(Struct, frozen=True):
    """The first line of a file. A device that has merged the file `after` lacks none before this one."""

    number: int
    after: int
    embedder: Embedder | None
    format: str = FORMAT
    version: int = VERSION


class DeviceState(Struct, frozen=True):
    """The progress of a device: its last file, and the last file that it has merged of each other device."""

    name: str
    last: int
    merged: dict[str, int]
    version: int = VERSION


class DeviceFiles:
    """The files of a folder, as the devices of one memory write and read them."""

    def __init__(self, folder: str | os.PathLike[str], store: Store) -> None:
        self._root, self._store = Path(folder), store
        if not self._root.is_dir():
            raise InvalidInput(f"{self._root} is no folder: create it, or mount what carries it")

    def numbers(self, device: str) -> list[int]:
        """The numbers of the files of a device that are here, ascending."""
        names = os.listdir(self._root / device) if (self._root / device).is_dir() else []
        return sorted(int(match[1]) for name in names if (match := _FILE.fullmatch(name)))

    def devices(self) -> list[str]:
        """Every device that has a folder here."""
        return sorted(
            entry.name
            for entry in os.scandir(self._root)
            if _DEVICE.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
        )

    def states(self) -> dict[str, DeviceState]:
        """The states of the devices that say how far they are."""
        states = {}
        for device in self.devices():
            lines = self._read(device, _STATE)
            if lines is not None:
                with suppress(msgspec.DecodeError, RecursionError, UnicodeError):
                    states[device] = msgspec.json.decode(lines[0], type=DeviceState)
        return states

    def intact(self, device: str, number: int) -> bool:
        """Whether a file is here as it was written."""
        return self._read(device, f"{number:08}.sync") is not None

    def read(self, device: str, number: int) -> tuple[Header, list[Item]] | None:
        """The header and items of a file; None if it is not here, or not as it was written.

        Raises InvalidInput for a file that no device of this version has written.
        """
        lines = self._read(device, f"{number:08}.sync")
        if lines is None:
            return None
        place = f"{self._root / device / f'{number:08}.sync'}"
        try:
            header = msgspec.json.decode(lines[0], type=Header)
            if header.format != FORMAT or header.version > VERSION:
                raise InvalidInput(f"{place} has version {header.version}, this is {VERSION}: upgrade recallite here")
            if header.number != number:
                raise InvalidInput(f"{place} is a copy of file {header.number} of its device: remove it")
            return header, [msgspec.json.decode(line, type=Item) for line in lines[1:]]
        except (msgspec.DecodeError, RecursionError, UnicodeError) as fault:
            raise InvalidInput(f"{place} is not what a device writes ({fault}): remove it there") from None

    def write(self, device: str, header: Header, items: Iterable[Item]) -> None:
        """Write a file of this device."""
        encoder = msgspec.json.Encoder()
        self._write(device, f"{header.number:08}.sync", encoder.encode_lines([header, *items]))

    def write_state(self, device: str, state: DeviceState) -> None:
        """Write how far this device is, if that has changed."""
        data = msgspec.json.Encoder(order="deterministic").encode_lines([state])
        if self._read(device, _STATE) != data.splitlines():
            self._write(device, _STATE, data)

    def remove(self, device: str, number: int) -> None:
        """Remove a file of this device."""
        with writable_folder(self._root, [device]) as place:
            place.remove(f"{number:08}.sync")

    def _write(self, device: str, name: str, data: bytes) -> None:
        data = self._store.sealed(data + b'{"sha256":"%s"}\n' % sha256(data).hexdigest().encode())
        with (
            writable_folder(self._root, [device]) as place,
            unfinished(place.prefix, name, parent=place.parent) as part,
        ):
            with open(part.descriptor, "wb", closefd=False) as stream:
                stream.write(data)
            part.finish()
            place.replace(part.path, name)
            place.sync()

    def _read(self, device: str, name: str) -> list[bytes] | None:
        """The lines of a file without the last, if it is whole."""
        path = self._root / device / name
        try:
            if path.is_symlink() or not path.is_file() or path.stat().st_size > _MOST_BYTES:
                return None
            opened = self._store.unsealed(path.read_bytes(), str(path))
        except FileNotFoundError:  # what carries the folder has removed it meanwhile
            return None
        if opened is None:
            return None
        data, _, ending = opened.removesuffix(b"\n").rpartition(b"\n")
        if ending != b'{"sha256":"%s"}' % sha256(data + b"\n").hexdigest().encode():
            return None
        return data.splitlines() or None


def new_device() -> str:
    """A name for a device that no other has."""
    return uuid4().hex[:12]
