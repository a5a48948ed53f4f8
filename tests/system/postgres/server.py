"""A PostgreSQL server of the tests' own: on a Unix socket in a folder of its own, gone when the tests end."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from tests.limits import LAST_RESORT_SECONDS, until
from tests.system.postgres.binaries import found_binaries, open_to_all, owner, readable_binaries, run

SUPERUSER = "postgres"
_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_HELD = "pre-existing shared memory block"


class PostgresServer:
    """A server in a folder of its own. `start` and `stop` may be called again and again; `remove` ends it.

    It listens on a Unix socket only. Without `fsync` it is fast and loses what was committed when the machine crashes,
    not when the server is killed. `launcher` is a command that runs another, such as `unshare`.
    """

    def __init__(self, *, fsync: bool, settings: Mapping[str, str] | None = None, binaries: Path | None = None) -> None:
        self.folder = _new_folder()
        self.data = self.folder / "data"
        self.settings = {
            "fsync": "on" if fsync else "off",
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "shared_buffers": "64MB",
            **(settings or {}),
        }
        self.launcher: tuple[str, ...] = ()
        self._supervisor: subprocess.Popen[str] | None = None
        try:
            self.binaries = readable_binaries(binaries or found_binaries(), self.folder)
        except BaseException:
            shutil.rmtree(self.folder)
            raise

    @classmethod
    def started(cls, *, fsync: bool, settings: Mapping[str, str] | None = None) -> PostgresServer:
        """A new, empty server that runs."""
        server = cls(fsync=fsync, settings=settings)
        try:
            server.initialise()
            server.start()
        except BaseException:
            server.remove()
            raise
        return server

    def initialise(self) -> None:
        """Make an empty cluster whose users on the socket need no password."""
        options = ["--encoding=UTF8", "--no-locale", "--no-instructions", "--auth=trust", f"--username={SUPERUSER}"]
        run(self.binaries / "initdb", "--pgdata", self.data, *options, "--no-sync")

    def start(self) -> None:
        """Start, and wait until connections are accepted."""
        assert self._supervisor is None, "it runs already"
        until(self._launched)

    def _launched(self) -> bool:
        """Whether the server has started; not while a process that outlives a kill holds its shared memory."""
        log = len(self.log()) if (self.folder / "log").exists() else 0
        configuration = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
        command = [self.binaries / "postgres", "-D", self.data, *configuration]
        # A session of its own: Ctrl-C ends the tests, and their end ends the server.
        self._supervisor = subprocess.Popen(
            [*self.launcher, sys.executable, "-S", _SUPERVISOR, *map(str, (*owner(), self.folder, *command))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._supervisor.stdout is not None
        self.pid = int(self._supervisor.stdout.readline())
        until(lambda: self._is_ready() or not _runs(self.pid))
        if _runs(self.pid):
            return True
        self._end("keep")
        assert _HELD in self.log()[log:], f"the server did not start: {self.log()}"
        return False

    def stop(self) -> None:
        """Stop as `pg_ctl stop -m fast` does: connections are closed, what is committed is on disk."""
        self._end("keep")

    def kill(self) -> None:
        """`kill -9` of the server and all its processes; `start` then recovers."""
        for pid in (self.pid, *_children(self.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._end("keep")

    def remove(self) -> None:
        """Stop and delete."""
        self._end("")
        shutil.rmtree(self.folder, ignore_errors=True)

    def let_go(self) -> None:
        """In a forked child: leave the server to the parent, which could not end it while the child is there."""
        if self._supervisor is not None and self._supervisor.stdin is not None:
            self._supervisor.stdin.close()

    def address(
        self, *, user: str = SUPERUSER, password: str | None = None, database: str = "postgres", **parameters: str
    ) -> str:
        """A `postgresql://` address on the socket; `parameters` are libpq's or ours, as in `schema="notes"`."""
        secret = "" if password is None else f":{quote(password, safe='')}"
        query = urlencode({"host": str(self.folder), **parameters})
        return f"postgresql://{quote(user)}{secret}@/{quote(database)}?{query}"

    def execute(self, statement: str, *values: Any, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Rows of a statement that the superuser runs, in a connection and a transaction of its own."""
        import psycopg

        with psycopg.connect(self.address(database=database), autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def log(self) -> str:
        """What the server wrote to its log."""
        return (self.folder / "log").read_text(errors="replace")

    @property
    def socket(self) -> Path:
        """The socket that it listens on."""
        return self.folder / f".s.PGSQL.{self.settings.get('port', '5432')}"

    def _is_ready(self) -> bool:
        with contextlib.suppress(FileNotFoundError):
            # `pg_ctl --wait` reads the same line.
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            return len(lines) >= 8 and int(lines[0]) == self.pid and lines[7].strip() in ("ready", "standby")
        return False

    def _end(self, last_word: str) -> None:
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            supervisor.communicate(last_word, timeout=LAST_RESORT_SECONDS)


def _new_folder() -> Path:
    """A folder of the server's user with a short path: that of a socket has at most 107 bytes."""
    given = Path(tempfile.gettempdir())
    parent = given if len(str(given)) < 60 and (os.geteuid() != 0 or open_to_all(given)) else Path("/tmp")
    folder = Path(tempfile.mkdtemp(prefix="recallite-postgres-", dir=parent))
    if os.geteuid() == 0:
        os.chown(folder, *owner())
    return folder


def _runs(pid: int) -> bool:
    """Whether a process of that number runs and is no zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


def _children(pid: int) -> list[int]:
    """The processes that a server has started; none are known where there is no /proc, and they end by themselves."""
    with contextlib.suppress(FileNotFoundError):
        return [int(number) for number in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []
