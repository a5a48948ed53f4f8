"""What a disk may hold after the power fails: a log of writes up to a point, with what was not synced in doubt.

What counts as there is what POSIX promises: a file's bytes once the file is synced, a name once its folder is. Names
change in order, and a folder loses only the last of them; bytes that were not synced are there, gone or torn, in any
order, and a file may have grown without them.
"""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

__all__ = ["Disk", "Entry", "entries"]

_HEADER = struct.Struct("<QQQII")


class Entry(NamedTuple):
    """A logged call: W(rite), S(ync), T(runcate), R(ename), L(ink), U(nlink), C(reate) or M(ark)."""

    kind: str
    inode: int
    offset: int
    data: bytes


def entries(log: bytes) -> Iterator[Entry]:
    """The calls of a log, in order."""
    at = 0
    while at < len(log):
        inode, offset, length, kind, _ = _HEADER.unpack_from(log, at)
        at += _HEADER.size
        yield Entry(chr(kind), inode, offset, log[at : at + length])
        at += (length + 7) & ~7


@dataclass
class _File:
    synced: bytearray = field(default_factory=bytearray)
    # (offset, bytes) that were written since, or (size, None) where it was cut.
    waiting: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> None:
        for offset, data in self.waiting:
            _apply(self.synced, offset, data)
        self.waiting.clear()


@dataclass
class _Folder:
    names: dict[str, _File] = field(default_factory=dict)
    # (name, file) since the last sync; None where it was removed.
    waiting: list[tuple[str, _File | None]] = field(default_factory=list)


class Disk:
    """Files below a folder as the log has them so far: what is synced, and what waits."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders: dict[str, _Folder] = {}
        self._inodes: dict[int, _File] = {}

    def take(self, entry: Entry) -> None:
        """The next call."""
        match entry.kind:
            case "W":
                self._inodes.setdefault(entry.inode, _File()).waiting.append((entry.offset, entry.data))
            case "T":
                self._inodes.setdefault(entry.inode, _File()).waiting.append((entry.offset, None))
            case "C":
                self._inodes[entry.inode] = _File()
                self._name(entry.data, self._inodes[entry.inode])
            case "S" if entry.offset:
                folder = self._folders.setdefault(os.fsdecode(entry.data), _Folder())
                _rename(folder.names, folder.waiting)
                folder.waiting.clear()
            case "S" if entry.inode in self._inodes:
                self._inodes[entry.inode].sync()
            case "R" | "L":
                source, target = entry.data.split(b"\0")
                self._name(target, self._find(source))
                if entry.kind == "R":
                    self._name(source, None)
            case "U":
                self._name(entry.data, None)

    def _name(self, path: bytes, file: _File | None) -> None:
        folder, name = os.path.split(os.fsdecode(path))
        self._folders.setdefault(folder, _Folder()).waiting.append((name, file))

    def _find(self, path: bytes) -> _File | None:
        folder, name = os.path.split(os.fsdecode(path))
        names = dict(self._folders[folder].names)
        _rename(names, self._folders[folder].waiting)
        return names.get(name)

    def after_power_loss(self, chance: random.Random, target: Path) -> str:
        """Write one of the states that the disk may be in to a folder; returns how it was chosen."""
        how = chance.choice(("all", "none", "the first", "some", "some", "torn", "torn", "grown"))
        share, sector = chance.choice((0.1, 0.5, 0.9)), chance.choice((512, 4096))
        for path, folder in self._folders.items():
            names = dict(folder.names)
            # A rename is two changes of which none is without the other.
            kept = len(folder.waiting) if how == "all" else chance.randrange(len(folder.waiting) + 1)
            if 0 < kept < len(folder.waiting) and folder.waiting[kept][1] is None:
                kept += 1
            _rename(names, folder.waiting[:kept])
            place = target / Path(path).relative_to(self._root)
            place.mkdir(parents=True, exist_ok=True)
            for name, file in names.items():
                if not name.endswith("-shm"):  # a mapping, which SQLite makes anew
                    (place / name).write_bytes(_content(file, how, share, sector, chance))
                elif chance.random() < 0.2:
                    (place / name).write_bytes(chance.randbytes(32_768))
        return f"{how} of what was not synced"


def _rename(names: dict[str, _File], changes: list[tuple[str, _File | None]]) -> None:
    for name, file in changes:
        if file is None:
            names.pop(name, None)
        else:
            names[name] = file


def _content(file: _File, how: str, share: float, sector: int, chance: random.Random) -> bytes:
    content, waiting = bytearray(file.synced), file.waiting
    if how == "the first":
        waiting = waiting[: chance.randrange(len(waiting) + 1)]
    for offset, data in waiting if how != "none" else ():
        if how in ("all", "the first"):
            _apply(content, offset, data)
        elif how == "torn" and data is not None:
            for start in range(0, len(data), sector):
                if chance.random() < share:
                    _apply(content, offset + start, data[start : start + sector])
        elif chance.random() < share:
            _apply(content, offset, data)
        elif how == "grown" and data is not None and len(content) < offset + len(data):
            content.extend(bytes(offset + len(data) - len(content)))
    return bytes(content)


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        content.extend(bytes(offset - len(content)))
        return
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data
