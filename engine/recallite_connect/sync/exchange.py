"""A run of `sync`: changes made here are numbered and written, and the files of other devices are merged.

The shared folder has a folder for each device, which that device alone writes. A file has its number in the store
before it is written, so that a run that is killed is finished by the next one: what the store says is in a file, and
the folder lacks, is written again. Everything else may be repeated without effect.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import msgspec
from msgspec import Struct, structs

from recallite.engine import Engine
from recallite.errors import InvalidInput
from recallite.model.checks import is_address, now_us
from recallite.model.reports import Synced, SyncedDevice
from recallite.store.sql.meta import SyncedRow
from recallite.store.store import Store
from recallite.store.transaction import Reader, Writer
from recallite.system.files import unfinished
from recallite.system.folders import writable_folder
from recallite.system.telemetry import traced
from recallite.system.turnstile import giving_way
from recallite.transfer.lines import Embedder
from recallite_connect.sync.states import Item, Known, Merge, all_items, items_named, known_of, noticed

_ITEMS_A_FILE = 2_000
_MOST_FILES = 32
_Value = TypeVar("_Value")


class Place(Struct):
    """The place of a store among the devices.

    - device: its name in the folder
    - host, inode: its machine, by a name that may change, and the number of its file there, 0 for a store in memory: a
      copy differs in both
    - last, live: the last number that it gave to a file, and the numbers of the files that there are
    - merged: the number of the last file that it has merged of each other device
    - commit: the commit of the store up to which all changes have a number
    - outdated: whether files may hold texts that are forgotten
    - replaced: files up to the first number were replaced by files up to the second, with the same content
    """

    device: str
    host: str
    inode: int
    last: int = 0
    live: list[int] = []
    merged: dict[str, int] = {}
    commit: str | None = None
    outdated: bool = False
    replaced: tuple[int, int] = (0, 0)

    def confirmed(self, state: DeviceState) -> int:
        """The number of this device's last file that another one has merged."""
        number = state.merged.get(self.device, 0)
        return max(number, self.replaced[1]) if number >= self.replaced[0] else number


@traced("sync", lambda done: {"sent": done.sent, "merged": done.merged})
def sync(engine: Engine, folder: str | os.PathLike[str], *, status: bool) -> Synced:
    """Exchange changes with the other devices of a folder; with `status` only say how far each is."""
    if is_address(engine.store.path):
        raise InvalidInput(f"{engine.store.path} is a server, which all devices can use: sync exchanges files")
    exchange = Exchange(engine, DeviceFiles(folder, engine.store))
    if not status:
        with giving_way():
            exchange.run()
    return exchange.report()


class Exchange:
    """One run."""

    def __init__(self, engine: Engine, files: DeviceFiles) -> None:
        self._engine, self._files = engine, files
        self._sent = 0
        self._problems: list[str] = []
        self._merge = Merge(engine)

    def run(self) -> None:
        """Send, merge, and send what merging changed."""
        self._files.states()  # raises WrongKey before anything is written that others could not read
        self._take_place()
        self._number_changes()
        self._write_files()
        self._merge_all()
        self._write_files()
        self._say_how_far()
        if self._compact():
            self._say_how_far()

    def report(self) -> Synced:
        """A report of the run, and of how far each device is."""
        with self._engine.store.read() as reader:
            place, gone = _place(reader), reader.synced.gone()
        this = None if place is None else place.device
        devices = []
        for device, state in sorted(self._files.states().items()):
            confirmed = 0 if place is None else place.confirmed(state)
            behind = [number for number in self._files.numbers(device) if number > _merged(place, device)]
            others = device != this
            devices.append(
                SyncedDevice(
                    device=device, name=state.name, this=not others,
                    confirmed=place is not None and (not others or confirmed >= place.last),
                    forgettings=sum(number > confirmed for number in gone) if others else 0,
                    waiting=len(behind) if others else 0,
                )
            )  # fmt: skip
        merge = self._merge
        return Synced(
            device=this, sent=self._sent, merged=merge.merged, forgotten=merge.forgotten,
            diverged=tuple(sorted(merge.diverged)), devices=tuple(devices), problems=tuple(self._problems),
        )  # fmt: skip

    def _take_place(self) -> None:
        """Find the name of this device. A copy of the store, or an old one put back, needs another name."""
        listed = {device: self._files.numbers(device) for device in self._files.devices()}  # before the store is read
        path = self._engine.store.path
        new = Place(new_device(), platform.node(), os.stat(path).st_ino if os.path.exists(path) else 0)
        with self._engine.atomic() as writer:
            place = _place(writer)
            if place is not None and max(listed.get(place.device, ()), default=0) <= place.last:
                if (place.host, place.inode) == (new.host, new.inode):
                    return
                if place.host == new.host or 0 < place.inode == new.inode:
                    _put_place(writer, structs.replace(place, host=new.host, inode=new.inode))
                    return
            writer.synced.number(writer.synced.sent_keys(), 0)
            if place is not None:
                new.merged, new.commit = {**place.merged}, place.commit
                if place.device not in listed:  # this folder has nothing of what was sent, or merged, elsewhere
                    for keys in _batches([row.key for row in writer.synced.all()]):
                        new.last += 1
                        new.live = [*new.live, new.last]
                        writer.synced.number(keys, new.last)
            _put_place(writer, new)

    def _number_changes(self) -> None:
        """Give everything that was changed here since the last run a number of a file."""
        with self._engine.store.read() as reader:
            place = _need(reader)
            commit = f"{reader.changes.commit()} {reader.comparisons.last_occurrence()}"
            names = [] if place.commit == commit else [*_changed(reader)]
        for batch in _batches(names):
            with self._engine.atomic() as writer:
                self._number(writer, batch)
        with self._engine.atomic() as writer:
            _put_place(writer, structs.replace(_need(writer), commit=commit))

    def _number(self, writer: Writer, batch: Sequence[tuple[str, tuple[str, ...]]]) -> None:
        place, now = _need(writer), now_us()
        before = writer.synced.rows([key for key, _ in batch])
        stored = items_named(writer, [name for _, name in batch if name])
        rows = []
        for key, name in batch:
            row = before.get(key)
            known = None if row is None else msgspec.msgpack.decode(row.state, type=Known)
            if (item := stored.get(key)) is not None:
                item, changed = noticed(item, known, place.device, now)
                place.outdated |= changed and known is not None and known.removed != item.removed
                state, text = known_of(item), msgspec.json.encode(name).decode()
            elif known is not None and not known.gone:
                changed, state, text = True, Known(known.life, True), None
                place.outdated = True
            else:
                continue
            if changed:
                diverged = row.diverged if row is not None and text is not None else None
                rows.append(SyncedRow(key, text, msgspec.msgpack.encode(state), place.last + 1, diverged))
        if rows:
            writer.synced.put(rows)
            place.last += 1
            place.live = [*place.live, place.last]
            self._sent += len(rows)
            _put_place(writer, place)

    def _write_files(self) -> None:
        """Write the files of this device that the folder lacks."""
        with self._engine.store.read() as reader:
            place = _need(reader)
            active = reader.vectors.active_embedder()
            embedder = None if active is None else Embedder(active.fingerprint, active.name, active.dimension)
            for after, number in zip([0, *place.live], place.live, strict=False):
                if not self._files.intact(place.device, number):
                    items = _items_of(reader, reader.synced.keys_in(number))
                    self._files.write(place.device, Header(number, after, embedder), items)

    def _merge_all(self) -> None:
        """Merge the files of all devices, and repeat as long as that brings what other files wait for."""
        while True:
            before, self._problems = self._merge.merged, []
            complete = [self._merge_device(device) for device in self._files.devices()]
            if all(complete) or self._merge.merged == before:
                return

    def _merge_device(self, device: str) -> bool:
        """Merge the files of another device; files after a missing one are merged, and read again later.

        Returns False if a file names what is in a file of another device.
        """
        with self._engine.store.read() as reader:
            place = _need(reader)
        if device == place.device:
            return True
        follows = complete = True
        for number in self._files.numbers(device):
            reached = _merged(place, device)
            if number <= reached:
                continue
            try:
                content = self._files.read(device, number)
                items = self._merge.prepare(content[1], content[0].embedder) if content is not None else []
            except InvalidInput as fault:
                self._problems.append(f"{device}: file {number}: {fault}")
                content = None
            if content is None or content[0].after > reached:
                self._problems.append(f"{device}: file {number}, or one before it, is not here yet or not whole")
                follows = False
            if content is None:
                continue
            with self._engine.atomic() as writer:
                place = _need(writer)
                done = self._merge.write(writer, items, place.device, place.last + 1)
                place.outdated |= done.outdated
                if done.sends:
                    place.last += 1
                    place.live = [*place.live, place.last]
                follows &= done.complete
                if follows:
                    place.merged = {**place.merged, device: max(number, _merged(place, device))}
                _put_place(writer, place)
            if not done.complete:
                complete = False
                self._problems.append(f"{device}: file {number} names memories whose files are not here yet")
        return complete

    def _say_how_far(self) -> None:
        with self._engine.store.read() as reader:
            place = _need(reader)
        self._files.write_state(place.device, DeviceState(place.host, place.last, place.merged))

    def _compact(self) -> bool:
        """Replace many files, or files that hold what is forgotten, once every device has merged them all."""
        with self._engine.store.read() as reader:
            place = _need(reader)
        others = {device: state for device, state in self._files.states().items() if device != place.device}
        waits = any(place.confirmed(state) < place.last for state in others.values())
        if waits or not (place.outdated or len(place.live) > _MOST_FILES):
            self._remove_left(place)
            return False
        with self._engine.atomic() as writer:
            place = _need(writer)
            before, first = place.last, place.last + 1
            for keys in _batches(writer.synced.sent_keys()):
                place.last += 1
                writer.synced.number(keys, place.last)
            place.live, place.outdated = [*range(first, place.last + 1)], False
            place.replaced = before, place.last
            _put_place(writer, place)
        self._write_files()
        self._remove_left(place)
        return True

    def _remove_left(self, place: Place) -> None:
        for number in self._files.numbers(place.device):
            if number <= place.last and number not in place.live:
                self._files.remove(place.device, number)


def _changed(reader: Reader) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The key and name of everything that is not as it was last synchronised; the name of what is gone is empty."""
    states = {row.key: row.state for row in reader.synced.all()}
    for item in all_items(reader):
        state = states.pop(item.key, None)
        known = None if state is None else msgspec.msgpack.decode(state, type=Known)
        if known is None or known.gone or noticed(item, known, "", 0)[1]:
            yield item.key, item.name
    for key, state in states.items():
        if not msgspec.msgpack.decode(state, type=Known).gone:
            yield key, ()


def _items_of(reader: Reader, keys: Sequence[str]) -> Iterable[Item]:
    """Items as other devices read them."""
    rows = reader.synced.rows(keys)
    names = [msgspec.json.decode(row.name, type=tuple[str, ...]) for row in rows.values() if row.name is not None]
    stored = items_named(reader, names)
    for key in keys:
        known = msgspec.msgpack.decode(rows[key].state, type=Known)
        if known.gone:
            yield Item(key=key, life=known.life)
        elif key in stored:  # else it is forgotten since, which the next run says
            yield structs.replace(stored[key], life=known.life, stamps=known.stamps, removed=known.removed)


def _batches(values: Sequence[_Value]) -> Iterator[Sequence[_Value]]:
    return (values[start : start + _ITEMS_A_FILE] for start in range(0, len(values), _ITEMS_A_FILE))


def _place(reader: Reader) -> Place | None:
    stored = reader.synced.place()
    return None if stored is None else msgspec.json.decode(stored, type=Place)


def _need(reader: Reader) -> Place:
    place = _place(reader)
    assert place is not None
    return place


def _put_place(writer: Writer, place: Place) -> None:
    writer.synced.put_place(msgspec.json.encode(place).decode())


def _merged(place: Place | None, device: str) -> int:
    return 0 if place is None else place.merged.get(device, 0)


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
        path = self._root / device / f"{number:08}.sync"
        try:
            header = msgspec.json.decode(lines[0], type=Header)
            if header.format != FORMAT or header.version > VERSION:
                raise InvalidInput(f"{path} has version {header.version}, this is {VERSION}: upgrade recallite here")
            if header.number != number:
                raise InvalidInput(f"{path} is a copy of file {header.number} of its device: remove it")
            return header, [msgspec.json.decode(line, type=Item) for line in lines[1:]]
        except (msgspec.DecodeError, RecursionError, UnicodeError) as fault:
            raise InvalidInput(f"{path} is not what a device writes ({fault}): remove it there") from None

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
