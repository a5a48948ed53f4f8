"""Asking the resident process, starting it, and the words of a command that it may answer.

A process serves those that have its version and its environment: its socket is named by both. Nothing is imported here
that takes a while.
"""

from __future__ import annotations

import os
import sys
import time

try:
    from _blake2 import blake2b  # importing hashlib loads OpenSSL, which takes 4 ms
except ImportError:
    from hashlib import blake2b

from recallite._version import __version__
from recallite.system.local_socket import connect, is_private, remove_dead

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    Option = tuple[str, type]

STORE, SETTINGS, CREATE, OPTIONS, HOOK, TOKEN, CHALLENGE = (
    f"Recallite-{name}" for name in ("Store", "Settings", "Create", "Options", "Hook", "Warm-Token", "Warm-Challenge")
)
"""The headers of a request: the file of the store, a settings file, whether a missing store is made, options of MCP,
those of a hook, the token, and what a process proves with that it knows the token."""
SUFFIX = ".socket"
NEEDED = ("starlette", "uvicorn", "httptools", "mcp")
"""The packages of the extra `server` that the process needs."""
KEYS = "OPENAI"
"""The beginning of variables that a process forgets unless it needs them: callers with other keys may share it."""
_SHARED = ("RECALLITE", "EMBEDDING", "TZ")
_MODELS = ("EMBEDDING_PROVIDER", "RECALLITE_LLM_MODEL", "RECALLITE_LLM_BASE_URL")
_LOCAL_EMBEDDERS = ("", "default", "instant", "none")
_OF_A_CALL = ("RECALLITE_DB", "RECALLITE_SETTINGS", "RECALLITE_MCP_TOKEN", "RECALLITE_DEBUG", "RECALLITE_WARM")
ALIVE_SECONDS = 1.0
"""The time that a process has to answer: a healthy one takes a millisecond, a stopped one never does."""
_ANSWER_SECONDS = 60.0
_PIECE_BYTES = 2**16
_POLL_SECONDS = 0.02


class Unanswered(Exception):
    """The resident process cannot be asked, or gave no whole answer."""


def allowed() -> bool:
    """Whether a resident process may be used: it keeps no key, and cannot find an embedder by a relative path."""
    variables = os.environ
    embedder = variables.get("RECALLITE_EMBEDDER", "")
    return (
        variables.get("RECALLITE_WARM") != "0"
        and not (variables.get("RECALLITE_KEY") or variables.get("RECALLITE_KEY_FILE"))
        and (os.path.isabs(embedder) or not os.path.isdir(embedder))
    )


def needs_keys() -> bool:
    """Whether the environment names a model that may be OpenAI's."""
    variables = os.environ
    return any(map(variables.get, _MODELS)) or variables.get("RECALLITE_EMBEDDER", "") not in _LOCAL_EMBEDDERS


def folder() -> str:
    """The folder of the sockets: the session's, which the system empties, or one in the user's data."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and is_private(runtime):
        return os.path.join(runtime, "recallite")
    from recallite.system.folders import user_folder

    return os.path.join(user_folder(), "warm")


def address() -> str:
    """The path of the socket of the process that has this one's version and environment."""
    shared_names = (*_SHARED, KEYS) if needs_keys() else _SHARED
    shared = (f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(shared_names))
    known = (entry for entry in shared if not entry.startswith(tuple(f"{name}=" for name in _OF_A_CALL)))
    identity = "\0".join((__version__, sys.executable, os.path.dirname(__file__), *known))
    name = blake2b(identity.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    return os.path.join(folder(), name + SUFFIX)


def store_headers(path: str, settings: str | None = None, *, create: bool = False) -> dict[str, str]:
    """The headers that name a store, a settings file, and whether a missing store is created."""
    headers = {STORE: _absolute(path)}
    if settings is not None:
        headers[SETTINGS] = _absolute(settings)
    return {**headers, CREATE: "yes"} if create else headers


def _absolute(path: str) -> str:
    return in_header(os.path.abspath(os.path.expanduser(path)))


def in_header(text: str) -> str:
    """A text or path as a header takes it."""
    return text.encode("utf-8", "surrogateescape").hex()


def of_header(value: str) -> str:
    """The text that a header holds. Raises ValueError."""
    return bytes.fromhex(value).decode("utf-8", "surrogateescape")


def proof(token: bytes, challenge: str) -> str:
    """The answer to a challenge, which only a holder of the token can give."""
    return blake2b(challenge.encode("ascii", "replace"), key=token, digest_size=16).hexdigest()


class Link:
    """A connection to the process. Raises Unanswered if there is none, or if it does not answer at once."""

    def __init__(self, path: str | None = None, answer_seconds: float = _ANSWER_SECONDS) -> None:
        """`path` is the socket's; None is `address()`. An answer is waited for this long."""
        if path is None and not allowed():
            raise Unanswered("the environment does not allow it")
        try:
            path = path or address()
            if not is_private(os.path.dirname(path)):
                raise Unanswered("there is no folder of sockets that only this user may enter")
            self._connection, token = connect(path, ALIVE_SECONDS)
        except (OSError, ValueError) as fault:
            remove_dead(path or "")
            raise Unanswered(str(fault)) from None
        self._token = ""
        self._received = b""
        # A port may be another program's since its file was written: the token is for a process that knows it.
        challenge = os.urandom(16).hex() if token else ""
        status, answer = self.ask("GET", "/healthz", headers={CHALLENGE: challenge})
        if status != 200 or (token and answer != f'"{proof(token.encode("ascii"), challenge)}"'.encode()):
            self.close()
            remove_dead(path)
            raise Unanswered("the process does not know the token")
        self._token = token
        self._connection.settimeout(answer_seconds)

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Status and body of the answer to a request. Raises Unanswered."""
        try:
            self._send_head(method, path, {"Content-Length": str(len(body)), **(headers or {})}, body)
            status, fields = self._head()
            size = int(fields.get("content-length", "0"))
            return status, self._bytes(size)
        except (OSError, ValueError) as fault:
            self.close()
            raise Unanswered(str(fault)) from None

    def _send_head(self, method: str, path: str, headers: dict[str, str], body: bytes = b"") -> None:
        fields = {"Host": "localhost", "Content-Type": "application/json", TOKEN: self._token, **headers}
        lines = (f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items() if value))
        self._connection.sendall("\r\n".join((*lines, "\r\n")).encode("ascii") + body)

    def _head(self) -> tuple[int, dict[str, str]]:
        status = self._line().split(b" ")
        fields = {}
        while line := self._line().decode("latin-1").strip():
            name, _, value = line.partition(":")
            fields[name.lower()] = value.strip()
        return int(status[1]), fields

    def _line(self) -> bytes:
        while b"\n" not in self._received:
            self._receive()
        line, _, self._received = self._received.partition(b"\n")
        return line

    def _bytes(self, size: int) -> bytes:
        while len(self._received) < size:
            self._receive()
        piece, self._received = self._received[:size], self._received[size:]
        return piece

    def _receive(self) -> None:
        piece = self._connection.recv(_PIECE_BYTES)
        if not piece:
            raise ValueError("the process ended before it had answered")
        self._received += piece

    # ── a stream of lines ──────────────────────────────────────────────────────────────────────────────────────

    def begin_stream(self, path: str, headers: dict[str, str]) -> bool:
        """Begin a request that streams lines both ways; returns whether the process takes it."""
        try:
            self._send_head("POST", path, {"Transfer-Encoding": "chunked", **headers})
            accepted = self._head()[0] == 200
            self._connection.settimeout(None)
        except (OSError, ValueError) as fault:
            raise Unanswered(str(fault)) from None
        return accepted

    def write(self, line: bytes) -> None:
        """Send one line; an empty one ends the stream. Raises OSError."""
        self._connection.sendall(b"%x\r\n%b\r\n" % (len(line), line))

    def read(self) -> bytes:
        """The next piece of the answer's stream; empty at its end. Raises OSError, and ValueError for a part of one."""
        size = int(self._line(), 16)
        return self._bytes(size + 2)[:size]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def may_start() -> bool:
    """Whether a process may be started unasked: not in continuous integration, nor if packages are missing."""
    from importlib.util import find_spec

    if sys.flags.no_site:
        import site

        site.main()  # where packages are
    return allowed() and not os.environ.get("CI") and all(find_spec(name) is not None for name in NEEDED)


def start(patience_seconds: float) -> Link:
    """Start the process and wait until it answers. If two start at once, one stays. Raises Unanswered."""
    from recallite.system.processes import start_detached
    from recallite_server.warm.quick import module

    try:
        os.makedirs(folder(), mode=0o700, exist_ok=True)
        if not is_private(folder()):
            raise Unanswered(f"{folder()} is not a folder that only this user may enter")
        process = start_detached(module("recallite_server.warm"), folder())
    except OSError as fault:
        raise Unanswered(str(fault)) from None
    deadline = time.monotonic() + patience_seconds
    while True:
        try:
            return Link()
        except Unanswered:
            # One that ends with 0 has found another that is starting.
            if time.monotonic() > deadline or process.poll():
                raise
        time.sleep(_POLL_SECONDS)


def release(store: str) -> None:
    """Have every process of this user close a store that a caller needs for itself."""
    for path in sockets():
        try:
            Link(path).ask("POST", "/warm/close", headers=store_headers(store))
        except Unanswered:
            continue


def sockets() -> list[str]:
    """The sockets of all processes of this user, of other versions and environments too."""
    try:
        names = sorted(os.listdir(folder()))
    except OSError:
        return []
    return [os.path.join(folder(), name) for name in names if name.endswith(SUFFIX)]


# ── the words of a command ──────────────────────────────────────────────────────────────────────────────────────

_GLOBAL: dict[str, Option] = {"--db": ("db", str), "--settings": ("settings", str)}
_JSON: dict[str, Option] = {"--json": ("json", bool)}
_RECALL: dict[str, Option] = {
    "--limit": ("limit", int), "-n": ("limit", int), "--mode": ("mode", str), "--profile": ("profile", str),
    "--relevant": ("relevant", bool), "--scope": ("scope", str),
    "--kind": ("kinds", list), "--tag": ("tags", list), "--as-of": ("as_of", str), "--valid-at": ("valid_at", str),
    "--diversify-by": ("diversify_by", str), "--token-budget": ("token_budget", int), "--since": ("since", str),
    "--until": ("until", str), "--include-superseded": ("include_superseded", bool), "--all": ("all", bool), **_JSON,
}  # fmt: skip
_REMEMBER: dict[str, Option] = {
    "--on-existing": ("on_existing", str), "--importance": ("importance", float), "--pinned": ("pinned", bool),
    "--tag": ("tags", list), "--context": ("context", str), "--topic": ("topic", str), "--source": ("source", str),
    "--position": ("position", int), "--created-at": ("created_at", str), "--valid-from": ("valid_from", str),
    "--valid-until": ("valid_until", str), "--expires-at": ("expires_at", str), "--scope": ("scope", str),
    "--kind": ("kind", str), "--id": ("id", str), **_JSON,
}  # fmt: skip
_MCP: dict[str, Option] = {
    "--scope": ("scope", str), "--read-only": ("read_only", bool), "--tools": ("tools", str),
    "--document-folder": ("folders", list), "--document-urls": ("urls", bool), "--token-budget": ("token_budget", int),
    "--authority": ("authority", str),
}  # fmt: skip
_HOOK: dict[str, Option] = {
    "--host": ("host", str), "--scope": ("scope", str), "--patience": ("patience", float), "--wait": ("wait", bool),
    "--memories": ("memories", bool),
}  # fmt: skip
_COMMANDS = {"recall": _RECALL, "remember": _REMEMBER, "mcp": _MCP, "hook": _HOOK}


class Call:
    """A parsed command: its name, options and texts, and the headers that name its store, if that `is_of_file`."""

    def __init__(self, words: Sequence[str]) -> None:
        """Raise Unanswered for what only the full command line knows."""
        rest = iter(words)
        store, (self.name, *_) = _parsed(rest, _GLOBAL, one_text=True)
        self.options, self.texts = _parsed(rest, _COMMANDS.get(self.name, {}))
        path: str = store["db"] if "db" in store else os.environ.get("RECALLITE_DB", "")
        if not path and "db" not in store:
            from recallite.system.folders import user_folder

            path = os.path.join(user_folder(), "memory.db")
        if self.name not in _COMMANDS or not path.strip():
            raise Unanswered("this is for the full command line")
        self.is_of_file = path != ":memory:" and "://" not in path
        self.as_json = self.options.pop("json", False)
        self.settings: str | None = store.get("settings") or os.environ.get("RECALLITE_SETTINGS") or None
        self.headers = store_headers(path, self.settings, create=self.name != "recall")

    @property
    def text(self) -> str:
        """Its one text. Raises Unanswered if there is another number of them, or it is on standard input."""
        if len(self.texts) != 1 or self.texts[0] == "-":
            raise Unanswered("this is for the full command line")
        return self.texts[0]


def _parsed(
    words: Iterator[str], known: Mapping[str, Option], *, one_text: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """The options and texts of a command; with `one_text` up to and including the first text."""
    values: dict[str, Any] = {}
    texts: list[str] = []
    try:
        for word in words:
            if word == "--" and not one_text:
                return values, [*texts, *words]
            if not word.startswith("-"):
                texts.append(word)
                if one_text:
                    return values, texts
                continue
            name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
            field, kind = known[name]
            value = value if equals or kind is bool else next(words)
            if kind is bool and equals:
                raise ValueError(word)
            values[field] = [*values.get(field, ()), value] if kind is list else kind(value or kind is bool)
    except (KeyError, StopIteration, ValueError):
        raise Unanswered("an option is for the full command line") from None
    if one_text:
        raise Unanswered("there is no command")
    return values, texts
