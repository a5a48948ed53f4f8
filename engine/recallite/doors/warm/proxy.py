"""`recallite mcp` over the resident process: lines of a host go to it, and its lines back.

If it ends, or is killed, the conversation goes on in another one, or in a process of its own: that is sent the
handshake again, and every request that was not answered.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from contextlib import suppress

from recallite.doors.warm.asking import Link, Unanswered, start
from recallite.doors.warm.quick import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, BinaryIO

# A host waits for the handshake; a cold start takes about two seconds.
_PATIENCE_SECONDS = 15.0
_BROKEN = (OSError, ValueError)


class _Child:
    """A server in a process of its own, as hosts start one without the resident process.

    As with a link, both methods raise OSError or ValueError if it is gone, and an empty line is the end.
    """

    def __init__(self, words: Sequence[str]) -> None:
        import subprocess  # as other imports here: each of ten hosts would take a megabyte for it

        from recallite.system.processes import safe_environment

        self._process = subprocess.Popen(
            command(["--no-warm", *words]), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=safe_environment()
        )

    def write(self, line: bytes) -> None:
        """Send a line; an empty one closes its input."""
        assert self._process.stdin is not None
        if line:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        else:
            self._process.stdin.close()

    def read(self) -> bytes:
        """Its next line."""
        assert self._process.stdout is not None
        return self._process.stdout.readline()


class Proxy:
    """One conversation of a host. `headers` name the store and the options, `words` are the command's arguments."""

    def __init__(self, headers: Mapping[str, str], words: Sequence[str], may_start: Callable[[], bool]) -> None:
        self._headers, self._words, self._may_start = dict(headers), words, may_start
        # One thread writes at a time. The other lock is never held while a line is written: the reader needs it to go
        # on, and a server that cannot write takes no line.
        self._writing, self._lock = threading.Lock(), threading.Lock()
        self._server: Link | _Child | None = None
        self._opening: list[bytes] = []
        self._repeated: set[str] = set()
        self._waiting: dict[str, bytes] = {}
        self._ended = False

    def connect(self) -> bool:
        """Find the resident process, or start it; returns whether it takes the conversation."""
        try:
            try:
                link = Link()
            except Unanswered:
                if not self._may_start():
                    return False
                link = start(_PATIENCE_SECONDS)
            if not link.begin_stream("/mcp/lines", self._headers):
                link.close()
                return False
        except Unanswered:
            return False
        self._begin(link)
        return True

    def run(self) -> int:
        """Pass lines on until the host closes its end; returns the exit code."""
        for line in sys.stdin.buffer:
            with self._writing:
                self._note(line)
                self._send(line)
        with self._writing:
            self._ended = True
            if self._server is not None:
                with suppress(*_BROKEN):
                    self._server.write(b"")
        self._reader.join()
        return 0

    def _begin(self, server: Link | _Child) -> None:
        self._server = server
        self._reader = threading.Thread(target=self._receive, args=(server, sys.stdout.buffer), daemon=True)
        self._reader.start()

    def _note(self, line: bytes) -> None:
        """Keep what another server would have to be sent: the handshake, and requests that are not answered."""
        message = _message(line)
        method, id = message.get("method"), json.dumps(message.get("id"))
        if method in ("initialize", "notifications/initialized"):
            self._opening.append(line)
        if method is not None and "id" in message:
            with self._lock:
                self._waiting[id] = line

    def _send(self, line: bytes) -> None:
        try:
            if self._server is None:
                raise OSError("the server has gone")
            self._server.write(line)
        except _BROKEN:
            self._resume(line)

    def _resume(self, line: bytes = b"") -> None:
        """Go on with another server: `line` is what the last one did not take."""
        self._server = None
        if not self.connect():
            self._begin(_Child(self._words))
        assert self._server is not None
        begun = [entry for entry in self._opening if entry != line]
        ids = {json.dumps(_message(entry).get("id")) for entry in begun}
        with self._lock:
            self._repeated = ids - self._waiting.keys()
            others = [entry for entry in self._waiting.values() if entry not in begun and entry != line]
        for entry in [*begun, *others, *([line] if line else [])]:
            self._server.write(entry)

    def _receive(self, server: Link | _Child, host: BinaryIO) -> None:
        """Pass the lines of a server on; if it is gone before all requests are answered, ask another."""
        while True:
            try:
                line = server.read()
            except _BROKEN:
                line = b""
            if not line:
                break
            message = _message(line)
            id = json.dumps(message.get("id")) if "method" not in message else ""
            with self._lock:
                self._waiting.pop(id, None)
                repeated = id in self._repeated
                self._repeated.discard(id)
            if not repeated:
                try:
                    host.write(line)
                    host.flush()
                except OSError:
                    os._exit(1)  # nobody reads; the other thread waits for input, which nothing else ends
        with self._writing:
            if self._server is server:
                self._server = None
                if self._waiting and not self._ended:
                    self._resume()


def _message(line: bytes) -> dict[str, Any]:
    """The message of a line; empty for a line that is none, which the server refuses."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
