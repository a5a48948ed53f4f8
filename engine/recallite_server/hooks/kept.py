"""Files of hooks in the user's own folder: turns until they are stored, how far transcripts are read, what was shown.

A hook does not wait for others that write. A turn is first kept in a file of its own, redacted as it will be stored and
encrypted if the store is; it is removed once the turn is stored. A file that is left by a crash, or while the store was
locked for long, is stored after a later turn: its turns have ids, so that none is stored twice.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from recallite.errors import InvalidInput, StoreClosed, StoreError, WrongKey
from recallite.model.authority import Authority, check_authority
from recallite.model.checks import is_address
from recallite.model.records import NewRecord
from recallite.system.files import FolderLock, open_to_add, sync_folder, unfinished
from recallite.system.folders import user_folder
from recallite.system.local_socket import is_private
from recallite.system.telemetry import logger
from recallite_connect.frames import Typed
from recallite_server.hooks.events import Event
from recallite_server.hooks.projects import Project

if TYPE_CHECKING:
    from recallite.memory import Memory
    from recallite_connect.importers.sources import Sessions

_log = logger(__name__)
_ENDING = ".turn"
_MOST_TURNS, _MOST_BYTES = 1_000, 64 << 20
_AGAIN_SECONDS = 0.25
_DAYS_NOTED = 30
_FIELDS = ("text", "id", "scope", "context", "source", "metadata")


class KeptTurn(NamedTuple):
    """A turn as it will be stored, and whose word it is."""

    record: NewRecord
    authority: Authority


class Kept(NamedTuple):
    """Turns that are not stored yet: those that came with an event, or an event whose transcript has them."""

    event: Event
    turns: list[KeptTurn]
    memories: bool
    """Whether the host's memory files are read too."""

    def encoded(self) -> bytes:
        """The turns as JSON, without what the host sent beside them."""
        event = {**self.event._asdict(), "project": self.event.project._asdict(), "typed": None, "response": ""}
        turns = [
            {
                "authority": authority,
                "created_at": str(record.created_at),
                **{name: getattr(record, name) for name in _FIELDS},
            }
            for record, authority in self.turns
        ]
        return json.dumps({"event": event, "turns": turns, "memories": self.memories}).encode()

    @classmethod
    def decoded(cls, data: bytes) -> Kept:
        """The turns that `encoded` gave. Raises ValueError for anything else."""
        try:
            fields = json.loads(data)
            read = {"project": Project(**fields["event"]["project"]), "typed": Typed("", by_user=False, cut=False)}
            event = Event(**{**fields["event"], **read})
            turns = [KeptTurn(authority=check_authority(turn.pop("authority"), "authority"), record=NewRecord(**turn))
                     for turn in fields["turns"]]  # fmt: skip
            return cls(event, turns, bool(fields["memories"]))
        except (TypeError, KeyError, InvalidInput) as fault:
            raise ValueError(str(fault)) from None


class KeptTurns:
    """The turns of a store that are not stored yet, a file for each event, in the order of their names."""

    def __init__(self, memory: Memory) -> None:
        self._memory, self._folder = memory, _folder_of(memory, "turns")

    def names(self) -> list[str]:
        """The names of the files, the oldest first."""
        try:
            return sorted(name for name in os.listdir(self._folder) if name.endswith(_ENDING))
        except OSError:
            return []

    def put(self, turns: Kept) -> None:
        """Keep turns, so that they survive power loss. Raises OSError, and StoreError if there are too many."""
        folder, size, names = _made(self._folder), 0, self.names()
        for name in names[:_MOST_TURNS]:
            with suppress(FileNotFoundError):  # it is stored by now
                size += (folder / name).stat().st_size
        if size >= _MOST_BYTES or len(names) >= _MOST_TURNS:
            raise StoreError(
                f"{folder} holds all the turns that it may, {len(names)}: see why none of them can be stored by "
                f"recallite --db {self._memory.path} verify",
                "full",
            )
        data = self._memory._engine.store.sealed(turns.encoded())
        with unfinished(f"{folder}{os.sep}", "turn") as part:
            with open(part.descriptor, "wb", closefd=False) as file:
                file.write(data)
            part.finish()
            os.rename(part.path, folder / f"{time.time_ns():020d}-{os.urandom(4).hex()}{_ENDING}")
        sync_folder(folder)

    def store(self, store: Callable[[Kept], None], patience_seconds: float) -> None:
        """Store what is kept, in order, and try for so long if the store is locked. What is not stored then stays."""
        deadline = time.monotonic() + patience_seconds
        while self.names():
            # Of several at once one does it, and looks again afterwards for what the others have kept.
            with FolderLock(self._folder / "lock").held(0) as ours:
                if not ours:
                    return
                fault = self._store_all(store)
            if fault is not None:
                if time.monotonic() >= deadline or isinstance(fault, StoreClosed | WrongKey):
                    _log.warning("turns wait to be stored: %s", fault)
                    return
                time.sleep(_AGAIN_SECONDS)

    def _store_all(self, store: Callable[[Kept], None]) -> OSError | StoreError | None:
        """Store what is kept; returns the error that ended it, if any."""
        for path in (self._folder / name for name in self.names()):
            try:
                data = self._memory._engine.store.unsealed(path.read_bytes(), str(path))
                turns = Kept.decoded(data or b"")
            except (OSError, StoreError) as fault:
                return fault
            except ValueError:
                _log.warning("%s is damaged, and its turn lost", path)
            else:
                try:
                    store(turns)
                except StoreError as fault:
                    return fault
                except Exception as fault:  # it would fail again, and keep back those after it
                    _log.warning("a turn is not stored: %s", type(fault).__name__)
            try:
                path.unlink(missing_ok=True)
            except OSError as fault:
                return fault
        return None


class _SessionFile:
    """A file of a session; `_folder` is the folder for all files of its kind."""

    _folder: str

    def __init__(self, memory: Memory, event: Event) -> None:
        self._memory = memory
        self._path = _folder_of(memory, self._folder) / _digest(f"{event.host}/{event.session}")

    def remove_old(self) -> None:
        """Remove the files of sessions that have not gone on for a month."""
        before = time.time() - _DAYS_NOTED * 86_400
        with suppress(OSError):
            for entry in [*os.scandir(self._path.parent)]:
                if entry.stat(follow_symlinks=False).st_mtime < before:
                    os.unlink(entry)


class ReadTo(_SessionFile):
    """The position from which the transcript of a session is read on: its turns before that are stored."""

    _folder = "read"

    def begin(self, transcript: Sessions, lines: int) -> None:
        """Have a transcript read from there, if that is the place at which the store has its turns up to a line."""
        with suppress(OSError, StoreError, ValueError, KeyError, TypeError, AttributeError):
            sealed = self._path.read_bytes()
            note = json.loads(self._memory._engine.store.unsealed(sealed, str(self._path)) or b"")
            if note["stored"] == lines:
                transcript.go_on(note["mark"])

    def note(self, transcript: Sessions, lines: int) -> None:
        """Note how far a transcript is read, whose turns are stored up to a line. If that fails all is read again."""
        try:
            if (mark := transcript.mark()) is None:
                return
            data = self._memory._engine.store.sealed(json.dumps({"stored": lines, "mark": mark}).encode())
            _made(self._path.parent)
            with open(open_to_add(self._path, empty=True), "wb") as file:
                file.write(data)
        except OSError as fault:
            _log.debug("how far a transcript is read is not noted: %s", fault)


class ShownMemories(_SessionFile):
    """The ids of the memories that a session was shown. They are in no store: a prompt only reads it."""

    _folder = "shown"

    def __init__(self, memory: Memory, event: Event) -> None:
        super().__init__(memory, event)
        self.ids: set[str] = set()
        with suppress(OSError, ValueError, KeyError, TypeError):  # of a line that a crash has cut
            for line in self._path.read_text("utf-8").splitlines():
                note = json.loads(line)
                self.ids = {*note["shown"]} if note.get("anew") else self.ids | {*note["shown"]}

    def add(self, ids: Iterable[str], *, anew: bool = False) -> None:
        """Note what the session is shown; `anew` if it has forgotten all before. If that fails it is shown again."""
        try:
            _made(self._path.parent)
            with open(open_to_add(self._path, empty=anew), "w", encoding="utf-8") as file:
                file.write(json.dumps({**({"anew": True} if anew else {}), "shown": [*ids]}) + "\n")
        except OSError as fault:
            _log.debug("what a session was shown is not noted: %s", fault)


def _folder_of(memory: Memory, what: str) -> Path:
    """The folder of a store for some of what is kept; one in memory has its own in each process."""
    store = memory._engine.store
    path = store.path if is_address(store.path) else os.path.realpath(store.path)  # as the resident process has it
    name = f"{os.getpid()} {id(store)}" if store.in_memory else path
    return Path(user_folder(), "hooks", _digest(name), what)


def _made(folder: Path) -> Path:
    """The folder, made if it is not there. Raises OSError unless only this user may enter it."""
    for path in (folder.parent.parent, folder.parent, folder):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_private(str(folder)):
        raise PermissionError(f"{folder} is not a folder that only this user may enter")
    return folder


def _digest(name: str) -> str:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
