"""Whether connections still have the files of the path open, and whether a WAL belongs to its database.

People treat a store as a file: they put a backup in its place, copy one over it or remove it while it is open. SQLite
does not notice. It goes on with files that nobody finds any more, or mixes the pages of the old WAL with the new
database, which destroys both.

Before each transaction the metadata of database and WAL are compared. If the database's changed, it was a checkpoint,
or somebody else wrote the file: a row of `meta` tells, which each commit writes. It names the commit, and
the one on which the WAL was begun. In the database itself there may only be a commit from there on; with any other one
the WAL is of another file.
"""

from __future__ import annotations

import os
import time
import zlib
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import quote

import apsw

from recallite.errors import StoreError
from recallite.store.sqlite.encryption import Key
from recallite.store.sqlite.faults import removed, unreadable
from recallite.system.files import open_to_overwrite, try_lock
from recallite.system.telemetry import logger

_log = logger(__name__)
_READ = "SELECT CAST(value AS BLOB) FROM meta WHERE key = 'commit'"
_WRITE = "INSERT INTO meta VALUES ('commit', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
_FED = "SELECT (SELECT min(sequence) FROM feed), (SELECT commit_name FROM feed WHERE sequence = ?)"
_LAST_FED = "SELECT sequence, commit_name FROM feed ORDER BY sequence DESC LIMIT 1"
_SALT_BYTES, _SALT_OFFSET = 8, 16
_NO_SALT = "0" * 2 * _SALT_BYTES
# While others commit or make checkpoints, what is read of database and WAL may not be of one moment.
_ATTEMPTS, _PAUSE_SECONDS = 8, 0.005


class CommitMark(NamedTuple):
    """The name of a commit, and of the one before; the salt of the WAL as it began, and the commit before that WAL."""

    name: str = ""
    before: str = ""
    salt: str = ""
    base: str = ""

    def encode(self) -> str:
        """Its value in `meta`. The checksum tells a page that a power failure left half written."""
        text = " ".join([part or "-" for part in self])
        return f"{text} {zlib.crc32(text.encode()):08x}"

    @classmethod
    def decoded(cls, value: str) -> CommitMark | None:
        """What `encode` made; None for anything else."""
        mark = cls(*("" if part == "-" else part for part in value.split(" ")[:4]))
        return mark if mark.encode() == value else None

    def began_on(self, salt: str) -> str:
        """The commit on which the WAL with this salt was begun, if this is the last commit in it."""
        return self.base if self.salt == salt else self.before


class WalState(NamedTuple):
    """The salt of a WAL, the frames in it, and how many of these are in the database."""

    salt: str
    frames: int
    copied: int


class _Content(NamedTuple):
    """The mark in a database, the last row of its feed, and whether that goes on from what was known of it."""

    mark: CommitMark
    last: tuple[int, int] | None
    goes_on: bool


def all_copied(connection: apsw.Connection) -> bool:
    """Whether a checkpoint has copied all of the WAL into the database."""
    with suppress(apsw.Error):
        state = _state_of(connection)
        return state.copied >= state.frames
    return False


class HeldFiles:
    """The files that the connections of a store have open; with `read_only` whatever happens to them is news."""

    def __init__(self, database: str, key: Key | None, *, read_only: bool = False) -> None:
        self.database, self._key, self._read_only = database, key, read_only
        self._file, self._wal = _file_at(database), self._wal_now()
        # The salt of the WAL as the last write transaction began; the mark that it wrote, and the last commit's.
        self._salt = _NO_SALT
        self._written = self._last = CommitMark()
        # What SQLite's `data_version` was then: with another one somebody else has committed.
        self._version: int | None = None
        # The state of the WAL, and the mark in the database, as they were last seen; and the last row of the feed.
        self._seen: tuple[WalState, CommitMark] | None = None
        self._fed: tuple[int, int] | None = None

    def opened(self, connection: apsw.Connection) -> bool:
        """Whether the WAL that the first connection has found belongs to the database. Raises apsw's errors."""
        if _state_of(connection).frames and not self.belong(connection):
            return False
        self._fed = _last_fed(connection)
        return True

    def usable(self, connection: apsw.Connection) -> bool:
        """Whether a connection, which is in no transaction, may go on: what has changed was done by SQLite.

        Raises StoreError if the database is not there any more.
        """
        try:
            now, wal = _file_at(self.database), self._wal_now()
        except StoreError:
            return True  # SQLite says what is wrong
        if now == self._file and wal == self._wal and now is not None:
            return True
        if now is None:
            raise removed(self.database)
        if self._read_only or self.moved or wal != self._wal or not self.belong(connection):
            return False
        self._file = now
        return True

    def _wal_now(self) -> tuple[int, ...] | None:
        """The numbers that tell the WAL at the path from another one; who only reads also sees what was written."""
        status = _file_at(f"{self.database}-wal")
        return status if status is None or self._read_only else status[:2]

    @property
    def moved(self) -> bool:
        """Whether another file, or none, has the path of the database, as far as that can be found out."""
        with suppress(StoreError):
            now = _file_at(self.database)
            return now is None or self._file is None or now[:2] != self._file[:2]
        return False

    def belong(self, connection: apsw.Connection) -> bool:
        """Whether the WAL that a connection reads was begun on what the database at the path holds.

        True also if that cannot be found out: a WAL may hold what was acknowledged.
        """
        with suppress(apsw.Error):  # whoever reads on is told what is wrong
            for attempt in range(0 if self._read_only else _ATTEMPTS):
                time.sleep(attempt * _PAUSE_SECONDS)
                state, in_wal = _state_of(connection), _mark_of(connection) or self._last
                content = self._content()
                if content is None:
                    continue
                if self._fits(content, in_wal, state):
                    self._seen, self._fed = (state, content.mark), content.last
                    return True
                if state == _state_of(connection):
                    return False
        return True

    def _fits(self, content: _Content, in_wal: CommitMark, state: WalState) -> bool:
        """Whether a database holds what a WAL was begun on, or what a checkpoint has copied from it."""
        if state.copied < state.frames:
            base = in_wal.began_on(state.salt)
            return content.mark.name in (base, in_wal.name) or content.mark.began_on(state.salt) == base
        # All of it is in the database, which is read then, or pages of it that were kept: `in_wal` tells nothing.
        if state.frames and self._seen is not None and self._seen[0] == state:
            return content.mark == self._seen[1]
        return content.goes_on

    def _content(self) -> _Content | None:
        """The content of the database without its WAL; None if it cannot be read, as while a checkpoint writes it."""
        connection = None
        try:
            connection = open_immutable(self.database)
            if self._key is not None:
                self._key.unlock(connection)
            mark = _mark_of(connection)
            return None if mark is None else _Content(mark, _last_fed(connection), self._goes_on(connection))
        except apsw.Error:
            return None
        finally:
            if connection is not None:
                connection.close(True)

    def _goes_on(self, connection: apsw.Connection) -> bool:
        """Whether the feed has the last row that was seen in it, or has been trimmed since."""
        if self._fed is None:
            return True
        first, name = connection.execute(_FED, (self._fed[0],)).get
        return name == self._fed[1] or (name is None and first is not None and first > self._fed[0])

    def begin(self, connection: apsw.Connection) -> None:
        """Note the WAL in which a write transaction has begun."""
        self._salt = _salt_of(connection)

    def mark(self, connection: apsw.Connection, name: str) -> None:
        """Write the mark of the commit that follows."""
        version = connection.data_version()
        before = self._last if version == self._version else _mark_of(connection) or CommitMark()
        base = before.name if self._salt == _NO_SALT else before.began_on(self._salt)
        self._written, self._version = CommitMark(name, before.name, self._salt, base), None
        connection.execute(_WRITE, (self._written.encode(),))

    def committed(self, connection: apsw.Connection, fed: tuple[int, int] | None) -> None:
        """Note that the commit marked by `mark` has succeeded; `fed` is its last row in the feed."""
        self._last, self._version = self._written, connection.data_version()
        self._fed = fed or self._fed

    def take_wal_away(self, *, keep: bool) -> None:
        """Rename or remove the WAL that is held, as it is of another file; not one that another process has made since.

        It is kept if it may hold what no file has. Processes that have it open notice, and open the database again.
        """
        path = f"{self.database}-wal"
        try:
            descriptor = open_to_overwrite(path)
        except OSError:
            return
        try:
            # All who would take it away lock it first.
            while try_lock(descriptor) is False:
                time.sleep(_PAUSE_SECONDS)
            status = os.fstat(descriptor)
            if self._wal != (status.st_dev, status.st_ino) or self._wal_now() != self._wal:
                return
            # Who opens the database in between finds the whole WAL, and that it does not belong.
            with suppress(OSError):
                os.unlink(f"{self.database}-shm")
            with suppress(OSError):  # on a disk that fails, say: whoever opens the database is told
                if keep:
                    os.replace(path, aside_of(self.database))
                    _log.warning("%s was replaced while it was open; what its log held is in %s",
                                 self.database, aside_of(self.database))  # fmt: skip
                else:
                    os.unlink(path)
            with suppress(OSError):
                os.unlink(f"{self.database}-shm")
        finally:
            os.close(descriptor)


def aside_of(database: str) -> str:
    """The path of a WAL that was beside a database and belongs to the file that it replaced."""
    return f"{database}-wal-of-replaced"


def open_immutable(database: str) -> apsw.Connection:
    """A connection to a database as it is without its WAL, which locks nothing and writes nothing."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return apsw.Connection(f"file:{quote(database)}?immutable=1", flags=flags)


def mark_file(connection: apsw.Connection, *, copy: bool) -> None:
    """Give a new file, or a copy, a mark of its own; on a copy no WAL was begun that is beside another file."""
    name = os.urandom(8).hex()
    connection.execute(_WRITE, (CommitMark(name, name, "" if copy else _NO_SALT).encode(),))


def leave(connection: apsw.Connection) -> None:
    """Close a connection, and copy nothing of the WAL, which may be of another file."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close(True)


def _file_at(path: str) -> tuple[int, int, int, int, int] | None:
    """The device, the number, the size and the times of change of a file; None if there is none. Raises StoreError."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as fault:
        raise unreadable(path, fault) from fault
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _state_of(connection: apsw.Connection) -> WalState:
    frames, copied = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
    return WalState(_salt_of(connection), frames, copied)


def _salt_of(connection: apsw.Connection) -> str:
    """The salt of the WAL that a connection writes; zeros while it is empty."""
    salt: bytes = connection.read("main", 1, _SALT_OFFSET, _SALT_BYTES)[1]
    return salt.hex()


def _mark_of(connection: apsw.Connection) -> CommitMark | None:
    """The mark that a connection reads; None where it is damaged, or missing, as from a page that is torn."""
    value: bytes | None = connection.execute(_READ).get
    return None if value is None else CommitMark.decoded(value.decode(errors="replace"))


def _last_fed(connection: apsw.Connection) -> tuple[int, int] | None:
    last: tuple[int, int] | None = connection.execute(_LAST_FED).get
    return last
