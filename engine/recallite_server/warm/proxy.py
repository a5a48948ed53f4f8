"""`recallite mcp` over the resident process: lines of a host go to it, and its lines back.

The handshake is answered here, and so is the question for the tools, before anything is loaded. If the process ends,
or is killed, the conversation goes on in another one, or in a process of its own: that is sent the handshake again, and
every request that was not answered.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from contextlib import suppress

from recallite._version import __version__
from recallite_server.warm.asking import Link, Unanswered, start
from recallite_server.warm.quick import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

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
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def code(self) -> int:
        """Its exit code, once it has ended."""
        return self._process.wait()


class _Opening:
    """The answers that a conversation begins with: they depend on the options alone, and are there before a server is.

    Codex drops the tools of a server that takes longer than about a second to answer.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        with open(os.path.join(os.path.dirname(os.path.dirname(__file__)), "mcp", "opening.json"), "rb") as file:
            self._told = json.load(file)
        self._options, self._begun = options, False

    def answer(self, message: Mapping[str, Any]) -> bytes:
        """The answer to a handshake, or to the question for tools after one; empty if the server is to answer."""
        method, id, params = message.get("method"), message.get("id"), message.get("params")
        if message.get("jsonrpc") != "2.0" or not isinstance(id, int | str) or isinstance(id, bool):
            return b""
        if method == "initialize" and isinstance(params, dict) and _is_handshake(params):
            self._begun, version, versions = True, params["protocolVersion"], self._told["versions"]
            result = {**self._told["initialize"], "protocolVersion": version if version in versions else versions[-1]}
            result["serverInfo"] = {**result["serverInfo"], "version": __version__}
        elif method == "tools/list" and self._begun and not (params or {}).get("cursor"):
            result = {"tools": self._tools()}
        else:
            return b""
        return json.dumps({"jsonrpc": "2.0", "id": id, "result": result}, separators=(",", ":")).encode() + b"\n"

    def _tools(self) -> list[dict[str, Any]]:
        """The tools that the options allow and name; the server refuses names that it does not know."""
        reaches_out = self._options.get("folders") or self._options.get("urls")
        allowed = {
            tool["name"]: tool for tool in self._told["tools"]
            if (tool["annotations"]["readOnlyHint"] or not self._options.get("read_only"))
            and (reaches_out or not tool["annotations"]["openWorldHint"])
        }  # fmt: skip
        names = dict.fromkeys(self._options.get("tools") or allowed)
        return [allowed[name] for name in names if name in allowed]


def _is_handshake(params: Mapping[str, Any]) -> bool:
    client = params.get("clientInfo")
    return (
        isinstance(params.get("protocolVersion"), str)
        and isinstance(params.get("capabilities"), dict)
        and isinstance(client, dict)
        and isinstance(client.get("name"), str)
        and isinstance(client.get("version"), str)
    )


class Proxy:
    """One conversation of a host. `fields` makes those that name the store and the options, `words` are the command's
    arguments, `options` those of `mcp`. Without `fields` the resident process is not asked.
    """

    def __init__(
        self, fields: Callable[[], Mapping[str, str]] | None, words: Sequence[str], options: Mapping[str, Any],
        may_start: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._fields, self._words, self._may_start = fields, words, may_start
        self._answers = _Opening(options)
        # One thread writes at a time. The other lock is never held while a line is written: the reader needs it to go
        # on, and a server that cannot write takes no line.
        self._writing, self._lock = threading.Lock(), threading.Lock()
        self._server: Link | _Child | None = None
        self._early: list[bytes] | None = []  # what came before there was a server
        self._opening: list[bytes] = []
        self._repeated: set[str] = set()
        self._waiting: dict[str, bytes] = {}
        self._ended, self._code = False, 0

    def run(self) -> int:
        """Pass lines on until the host closes its end; returns the exit code."""
        connecting = threading.Thread(target=self._connect_first, daemon=True)
        connecting.start()
        try:
            for line in sys.stdin.buffer:
                with self._writing:
                    message = _message(line)
                    if answer := self._answers.answer(message):
                        self._tell(answer)
                    self._note(line, message, answered=bool(answer))
                    if answer and message.get("method") != "initialize":
                        continue
                    if self._early is not None:
                        self._early.append(line)
                    else:
                        self._send(line)
        finally:  # Ctrl-C ends the conversation too
            connecting.join()
            with self._writing:
                self._ended = True
                if self._server is not None:
                    with suppress(*_BROKEN):
                        self._server.write(b"")
            self._reader.join()
        return self._code

    def _connect_first(self) -> None:
        try:
            server = self._connected()
        except Exception as fault:  # the other thread would wait for its host for ever
            os.write(2, f"recallite: no server can be started: {fault}\n".encode())
            os._exit(1)
        with self._writing:
            early, self._early = self._early or [], None
            self._begin(server)
            with self._lock:
                self._repeated = self._ids_of_opening() - self._waiting.keys()
            for line in early:
                self._send(line)

    def _connected(self) -> Link | _Child:
        """The resident process, which is started if it may be, or else a process of its own."""
        try:
            if self._fields is None:
                raise Unanswered("it opens files")
            try:
                link = Link()
            except Unanswered:
                if not self._may_start():
                    raise
                link = start(_PATIENCE_SECONDS)
            link.converse(self._fields())
            return link
        except Unanswered:
            return _Child(self._words)

    def _begin(self, server: Link | _Child) -> None:
        self._server = server
        self._reader = threading.Thread(target=self._receive, args=(server,), daemon=True)
        self._reader.start()

    def _note(self, line: bytes, message: Mapping[str, Any], *, answered: bool) -> None:
        """Keep what another server would have to be sent: the handshake, and requests that are not answered."""
        method = message.get("method")
        if method in ("initialize", "notifications/initialized"):
            self._opening.append(line)
        if method is not None and "id" in message and not answered:
            with self._lock:
                self._waiting[json.dumps(message["id"])] = line

    def _ids_of_opening(self) -> set[str]:
        return {json.dumps(_message(entry).get("id")) for entry in self._opening}

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
        self._begin(self._connected())
        assert self._server is not None
        begun = [entry for entry in self._opening if entry != line]
        with self._lock:
            self._repeated = self._ids_of_opening() - self._waiting.keys()
            others = [entry for entry in self._waiting.values() if entry not in begun and entry != line]
        for entry in [*begun, *others, *([line] if line else [])]:
            self._server.write(entry)

    def _receive(self, server: Link | _Child) -> None:
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
                self._tell(line)
        if isinstance(server, _Child):
            self._code = max(server.code(), 0)
            if self._code and not self._ended:
                os._exit(self._code)  # it has said why, and another would say the same
        with self._writing:
            if self._server is server:
                self._server = None
                if self._waiting and not self._ended:
                    self._resume()

    def _tell(self, line: bytes) -> None:
        try:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        except OSError:
            os._exit(1)  # nobody reads; the other thread waits for input, which nothing else ends


def _message(line: bytes) -> dict[str, Any]:
    """The message of a line; empty for a line that is none, which the server refuses."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
