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

STORE, SETTINGS, CREATE, OPTIONS, HOOK = "store", "settings", "create", "options", "hook"
"""The fields of a request: the file of the store, a settings file, whether a missing store is made, options of MCP, and
those of a hook."""
SUFFIX = ".socket"
MAX_FRAME_BYTES = 2**28
"""The most bytes of a frame: of what another program says, the first ones would be a length."""
KEYS = "OPENAI"
"""The beginning of variables that a process forgets unless it needs them: callers with other keys may share it."""
_SHARED = ("RECALLITE", "EMBEDDING", "TZ")
_MODELS = ("EMBEDDING_PROVIDER", "RECALLITE_LLM_MODEL", "RECALLITE_LLM_BASE_URL")
_LOCAL_EMBEDDERS = ("", "default", "instant", "multilingual", "none")
_OF_A_CALL = ("RECALLITE_DB", "RECALLITE_SETTINGS", "RECALLITE_MCP_TOKEN", "RECALLITE_DEBUG", "RECALLITE_WARM")
ALIVE_SECONDS = 1.0
"""The time that a process has to answer: a healthy one takes a millisecond, a stopped one never does."""
_ANSWER_SECONDS = 60.0
_PIECE_BYTES = 2**20
_POLL_SECONDS = 0.02


DONE = b"done\n"
"""The beginning of an answer to what was done."""


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


def store_fields(path: str, settings: str | None = None, *, create: bool = False) -> dict[str, str]:
    """The fields that name a store, a settings file, and whether a missing store is created."""
    fields = {STORE: _absolute(path)}
    if settings is not None:
        fields[SETTINGS] = _absolute(settings)
    return {**fields, CREATE: "yes"} if create else fields


def _absolute(path: str) -> str:
    return in_field(os.path.abspath(os.path.expanduser(path)))


def in_field(text: str) -> str:
    """A text or path as a field takes it."""
    return text.encode("utf-8", "surrogateescape").hex()


def of_field(value: str) -> str:
    """The text that a field holds. Raises ValueError."""
    return bytes.fromhex(value).decode("utf-8", "surrogateescape")


def proof(token: bytes, challenge: bytes) -> bytes:
    """The answer to a challenge, which only a holder of the token can give."""
    return blake2b(challenge, key=token, digest_size=16).digest()


class Link:
    """A connection to the process. Raises Unanswered if there is none, or if it does not answer at once.

    Both sides send frames: four bytes with the length, and the bytes. A request is a frame of lines (the token, what is
    asked, a line for each field) and one with a body; its answer begins with `DONE`, or is why the process refuses.
    """

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
        # A port may be another program's since its file was written: the token is for a process that knows it.
        challenge = os.urandom(16)
        if self.ask("prove", challenge) != proof(token.encode("ascii"), challenge):
            self.close()
            remove_dead(path)
            raise Unanswered("the process does not know the token")
        self._token = token
        self._connection.settimeout(answer_seconds)

    def ask(self, what: str, body: bytes = b"", fields: Mapping[str, str] | None = None) -> bytes:
        """The answer to a request. Raises Unanswered."""
        try:
            lines = (self._token, what, *(f"{name} {value}" for name, value in (fields or {}).items()))
            self.write("\n".join(lines).encode("ascii"))
            self.write(body)
            answer = self.read()
        except (OSError, ValueError) as fault:
            self.close()
            raise Unanswered(str(fault)) from None
        if not answer.startswith(DONE):
            raise Unanswered(answer.decode("utf-8", "replace"))
        return answer[len(DONE) :]

    def converse(self, fields: Mapping[str, str]) -> None:
        """Begin to exchange lines of MCP, a frame each; an empty one is the end. Raises Unanswered."""
        self.ask("converse", fields=fields)
        self._connection.settimeout(None)

    def write(self, frame: bytes) -> None:
        """Send a frame. Raises OSError."""
        self._connection.sendall(len(frame).to_bytes(4, "big") + frame)

    def read(self) -> bytes:
        """The next frame. Raises OSError, and ValueError for a part of one."""
        return self._bytes(int.from_bytes(self._bytes(4), "big"))

    def _bytes(self, size: int) -> bytes:
        if size > MAX_FRAME_BYTES:
            raise ValueError("another program answers")
        pieces = []
        while size:
            piece = self._connection.recv(min(size, _PIECE_BYTES))
            if not piece:
                raise ValueError("the process ended before it had answered")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def may_start() -> bool:
    """Whether a process may be started unasked: not in continuous integration."""
    return allowed() and not os.environ.get("CI")


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
            Link(path).ask("close", fields=store_fields(store))
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
_MCP: dict[str, Option] = {
    "--scope": ("scope", str), "--read-only": ("read_only", bool), "--tools": ("tools", str),
    "--document-folder": ("folders", list), "--document-urls": ("urls", bool), "--token-budget": ("token_budget", int),
    "--authority": ("authority", str),
}  # fmt: skip
_HOOK: dict[str, Option] = {
    "--host": ("host", str), "--scope": ("scope", str), "--patience": ("patience", float), "--wait": ("wait", bool),
    "--memories": ("memories", bool),
}  # fmt: skip
_OPTIONS = {"mcp": _MCP, "hook": _HOOK}
OPERATIONS = ("recall", "remember")
"""The operations whose commands it carries out."""


class Call:
    """A command: its name, its words, and the fields that name its store, if that `is_of_file`.

    The options and texts of `mcp` and `hook` are parsed here. Those of operations are not: their declarations, which
    take a while to load, say what they are.
    """

    def __init__(self, words: Sequence[str]) -> None:
        """Raise Unanswered for what only the full command line knows."""
        rest = iter(words)
        store, (self.name, *_) = _parsed(rest, _GLOBAL, one_text=True)
        self.words = [*rest]
        is_operation = self.name in OPERATIONS
        self.options, self.texts = ({}, []) if is_operation else _parsed(iter(self.words), _OPTIONS.get(self.name, {}))
        path: str = store["db"] if "db" in store else os.environ.get("RECALLITE_DB", "")
        if not path and "db" not in store:
            from recallite.system.folders import user_folder

            path = os.path.join(user_folder(), "memory.db")
        if self.name not in (*OPERATIONS, *_OPTIONS) or not path.strip():
            raise Unanswered("this is for the full command line")
        self.is_of_file = path != ":memory:" and "://" not in path
        self.settings: str | None = store.get("settings") or os.environ.get("RECALLITE_SETTINGS") or None
        self.fields = store_fields(path, self.settings, create=self.name != "recall")


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
