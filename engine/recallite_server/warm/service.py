"""What the resident process does: each request is answered with the store that it names."""

from __future__ import annotations

import asyncio
import hmac
import json
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from time import monotonic
from typing import Any, TypeVar, cast

import click
import msgspec

from recallite._version import __version__
from recallite.compat import load_settings
from recallite.doors.operations import operation_named
from recallite.errors import AccessDenied, InvalidInput, RecalliteError, StoreError
from recallite.memory import Memory
from recallite.model.settings import Settings, Warm
from recallite.system.files import return_freed
from recallite.system.local_socket import is_own
from recallite.system.messages import shown
from recallite.system.telemetry import logger
from recallite_cli.command import Command
from recallite_cli.output import encoded
from recallite_cli.printers import Answers
from recallite_server.hooks.running import WAIT_SECONDS
from recallite_server.warm import asking, commands
from recallite_server.warm.asking import DONE, STORE, Unanswered, of_field

_log = logger(__name__)
_Result = TypeVar("_Result")
_Fields = Mapping[str, str]
# How long a process without a store waits for one.
_EMPTY_SECONDS = 60.0
_MOST_SECONDS_ASLEEP = 60.0
# How long requests may go on once the process is to end.
_GRACE_SECONDS = 5.0
# A project's files may keep its hooks waiting, but not the callers of others.
_MOST_HOOKS, _MOST_CALLS = 20, 40
# A store that nobody has used for this long is a file like any other: it may be copied, replaced or removed. Opening it
# again takes a millisecond.
_QUIET_SECONDS = 3.0


# Of the options that only a command has, those that name no files.
_OWN_OPTIONS = {"as_json", "explain", "overrides", "whole"}


def _parsed(name: str, words: bytes) -> click.Context:
    """A command that is carried out here. Raises Unanswered for others, also if they would read standard input."""
    context = commands.parsed(name, json.loads(words))  # unlike msgspec it reads half of a surrogate pair
    given = {option for option, value in context.params.items() if value is not None}
    texts = context.params["text"] if name == "remember" else [context.params["query"]]
    of_files = given - operation_named(name).options.keys() - _OWN_OPTIONS
    if of_files or texts is None or len(texts) != 1 or texts[0] in (None, "-"):
        raise Unanswered("this is for the full command line")
    return context


def _carried_out(context: click.Context, memory: Memory) -> bytes:
    """What a command prints in JSON, or what it prints from, after a line: whether it is the former, and has failed."""
    command, context.obj = cast("Command", context.command), memory
    values = dict(context.params)
    as_json = values.pop("as_json")
    with context:
        value = command.result(context, values)
    printed = command.as_json(value) if as_json else value
    if isinstance(printed, Answers):
        printed = printed._asdict() | {"hits": [hits.fields() for hits in printed.hits]}
    head = msgspec.json.encode([as_json, command.failed(value)])
    return head + b"\n" + encoded(printed).encode()


class OpenStore:
    """A store. `used` is when a request last began or ended, `active` counts those that run; `rests` says that its
    files are closed, `ended` is called after each request, and `conversations` are those of hosts.
    """

    def __init__(self, path: str, settings: Settings) -> None:
        self.path, self.idle_seconds = path, (settings.warm or Warm()).idle_minutes * 60
        self.memory = Memory(path, settings=settings)
        self.used, self.active, self.rests = monotonic(), 0, False
        self.ended: Callable[[], None] = lambda: None
        self.conversations: set[asyncio.Task[Any]] = set()

    @property
    def ends_at(self) -> float:
        """The time at which it is closed if nobody uses it."""
        return self.used + self.idle_seconds if self.idle_seconds and not self.active else float("inf")

    @property
    def rests_at(self) -> float:
        """The time at which it lets go of its files if nobody uses it."""
        return float("inf") if self.rests or self.active else self.used + _QUIET_SECONDS

    def rest(self) -> None:
        """Let go of the files, and of the memory that requests have taken; try again later if it is in use."""
        used = self.used
        try:
            done = self.memory._engine.let_go()
        except Exception as fault:
            _log.warning("a store was not let go of", exc_info=fault)
            done = False
        if done:
            return_freed()
        self.rests = done and not self.active and self.used == used

    def begin(self) -> None:
        """Count a request that begins."""
        self.active += 1
        self.used, self.rests = monotonic(), False

    def end(self) -> None:
        """Count a request that has ended."""
        self.active -= 1
        self.used = monotonic()
        self.ended()

    def load(self) -> None:
        """Load model and index; kernels are compiled in a process of their own, so that others are answered at once."""
        try:
            self.memory.recall("what is needed for this", purpose="inspect")
        except Exception:  # the first recall says it, or works without the embedder
            _log.warning("the embedding model or the index could not be loaded", exc_info=True)
        return_freed()

    async def close(self) -> None:
        """End the conversations, and close the store."""
        for conversation in self.conversations:
            conversation.cancel()
        await asyncio.to_thread(self.memory.close)


class Service:
    """Answers the requests of connections. `token` is what clients have to send, if anything."""

    def __init__(self, token: str) -> None:
        self.ended = asyncio.Event()
        """Set when the process is to end."""
        self._token = token.encode("ascii")
        self._stores: dict[tuple[str, str], OpenStore] = {}
        self._began = self._last = monotonic()
        self._changed = asyncio.Event()
        self._hooks, self._calls = ThreadPoolExecutor(_MOST_HOOKS), ThreadPoolExecutor(_MOST_CALLS)
        # Of a file at a time one store is opened or closed; those of other files go on meanwhile.
        self._files: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a process of this user until it closes the connection."""
        try:
            while self._token or is_own(writer.get_extra_info("socket")):
                token, what, *lines = (await _frame(reader)).decode("ascii").split("\n")
                fields, body = dict[str, str](line.split(" ") for line in lines), await _frame(reader)
                try:
                    if what != "prove" and not hmac.compare_digest(token.encode("ascii"), self._token):
                        raise AccessDenied("the token is not that of this process")
                    await self._answer(what, fields, body, reader, writer)
                except Exception as fault:  # the client does it itself, and sees why it fails
                    level = "info" if isinstance(fault, RecalliteError | OSError | Unanswered) else "warning"
                    getattr(_log, level)("%s was refused", what, exc_info=fault)
                    await _send(writer, str(fault).encode("utf-8", "replace"))
        except (OSError, EOFError, ValueError):
            pass  # it has gone, or is another program
        finally:
            writer.close()

    async def _answer(
        self, what: str, fields: _Fields, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if what == "prove":
            await _send(writer, DONE + asking.proof(self._token, body))
            return
        if what in ("state", "close", "stop"):
            if what == "close":
                path = os.path.realpath(of_field(fields[STORE]))
                async with self._files[path]:
                    for key in [key for key in self._stores if key[0] == path]:
                        await self._close(key)
            await _send(writer, DONE + msgspec.json.encode(self._state()))
            if what == "stop":
                self.ended.set()
            return
        context = _parsed(what, body) if what in asking.OPERATIONS else None
        store = await self._store(fields)
        store.begin()
        try:
            if what == "converse":
                await _Conversation(store, reader, writer).run(fields)
            elif what == "hook":
                await self._answer_hook(store, fields, body, writer)
            elif context is not None:
                await _send(writer, DONE + await _in_thread(self._calls, lambda: _carried_out(context, store.memory)))
            elif what == "count":
                await _send(writer, DONE + str(await _in_thread(self._calls, store.memory.count)).encode())
            else:
                raise InvalidInput(f"{shown(what)} is nothing that this process does")
        finally:
            store.end()
            self._last = store.used

    def _state(self) -> dict[str, Any]:
        now = monotonic()
        stores = [{"path": store.path, "idle_seconds": round(now - store.used)} for store in self._stores.values()]
        return {"pid": os.getpid(), "version": __version__, "seconds": round(now - self._began), "stores": stores}

    async def _answer_hook(self, store: OpenStore, fields: _Fields, body: bytes, writer: asyncio.StreamWriter) -> None:
        """Answer a host's hook. Turns are kept before it is answered, and stored afterwards.

        If they cannot be kept it is refused, and the client stores them itself.
        """
        from recallite_server.hooks.events import Event, answer, output_of, payload_of

        event, host, shared, memories, folder, current = of_field(fields[asking.HOOK]).split("\0")

        def output() -> bytes:
            payload = payload_of(body, folder, current)
            if event == "turn":
                from recallite_server.hooks.turns import keep_turns

                keep_turns(store.memory, Event.of(host, payload, shared or None), memories=bool(memories))
                return b""
            return output_of(answer(store.memory, event, host, payload, shared or None), payload, host)

        text = b""
        try:
            text = await _in_thread(self._hooks, output)
        except Exception as fault:
            if event == "turn":
                raise StoreError("the turns are not kept") from fault
            _log.warning("a hook failed", exc_info=fault)
        with suppress(OSError):  # its host has not waited
            await _send(writer, DONE + text)
        if event not in ("prompt", "tool"):
            from recallite_server.hooks.turns import store_turns

            await _in_thread(self._calls, lambda: store_turns(store.memory, WAIT_SECONDS))

    async def _store(self, fields: _Fields) -> OpenStore:
        """The store that a request names, opened by the first. Raises InvalidInput, StoreError and OSError."""
        path = os.path.realpath(of_field(fields[STORE]))
        settings = of_field(fields.get(asking.SETTINGS, ""))
        key = path, _version_of(settings)
        async with self._files[path]:
            store = self._stores.get(key)
            if store is not None and not os.path.exists(path):
                await self._close(key)
                store = None
            if store is None:
                if not os.path.exists(path) and asking.CREATE not in fields:
                    raise InvalidInput("there is no such store")
                store = self._stores[key] = await _in_thread(self._calls, lambda: _opened(path, settings))
                store.ended = self._changed.set
                self._calls.submit(store.load)
                self._changed.set()
            store.used = monotonic()
        return store

    async def _close(self, key: tuple[str, str]) -> None:
        await self._stores.pop(key).close()
        self._last = monotonic()

    async def run(self) -> None:
        """Return when it has ended and its stores are closed."""
        watching = asyncio.create_task(self._watch())
        await self.ended.wait()
        watching.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_SECONDS):
                while any(store.active for store in self._stores.values()):
                    self._changed.clear()
                    await self._changed.wait()
        for key in [*self._stores]:
            await self._close(key)

    async def _watch(self) -> None:
        """Let go of the files of stores that are quiet, close those that are idle, and end when there is none, or
        Recallite was replaced by another version.
        """
        installed = _file_at(__file__)
        while _file_at(__file__) == installed:
            now = monotonic()
            for quiet in [store for store in self._stores.values() if store.rests_at <= now]:
                await _in_thread(self._calls, quiet.rest)
            idle = [key for key, store in self._stores.items() if store.ends_at <= now]
            for key in idle:
                async with self._files[key[0]]:
                    if (store := self._stores.get(key)) is not None and store.ends_at <= now:  # nor used meanwhile
                        await self._close(key)
            ends_at = min((store.ends_at for store in self._stores.values()), default=self._last + _EMPTY_SECONDS)
            if not self._stores and (idle or ends_at <= now):
                break
            self._changed.clear()
            waits = [store.idle_seconds or _MOST_SECONDS_ASLEEP for store in self._stores.values()]
            waits += [max(store.rests_at - now, _QUIET_SECONDS / 10) for store in self._stores.values()]
            with suppress(TimeoutError):
                async with asyncio.timeout(min(ends_at - now, _MOST_SECONDS_ASLEEP, *waits)):
                    await self._changed.wait()
        self.ended.set()


class _Conversation:
    """One host's conversation in the Model Context Protocol: a frame for each line, both ways."""

    def __init__(self, store: OpenStore, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._store, self._reader, self._writer = store, reader, writer

    async def run(self, fields: _Fields) -> None:
        """Answer lines until the host's end is closed, or the store."""
        server = await asyncio.to_thread(_server_of, self._store, json.loads(of_field(fields[asking.OPTIONS])))
        from recallite_server.mcp.server import converse

        await _send(self._writer, DONE)
        conversation = asyncio.create_task(converse(server, self, self))
        self._store.conversations.add(conversation)
        await asyncio.wait([conversation])
        self._store.conversations.discard(conversation)
        if not conversation.cancelled() and conversation.exception() is None:
            await _send(self._writer, b"")
        self._writer.close()  # one that its host has not ended goes on in another process

    async def __aiter__(self) -> AsyncIterator[str]:
        while True:
            self._store.end()  # an open conversation in which nothing is said keeps no store
            try:
                line = await _frame(self._reader)
            except (OSError, EOFError):
                return
            finally:
                self._store.begin()
            if not line:
                return
            yield line.decode("utf-8", "replace")

    async def write(self, line: str) -> None:
        self._store.used = monotonic()
        await _send(self._writer, line.encode())

    async def flush(self) -> None:
        """Do nothing: a line is sent at once."""


def _server_of(store: OpenStore, options: dict[str, Any]) -> Any:
    """The server of a conversation; importing what it is made of takes a second."""
    from recallite_server.mcp.server import MemoryServer
    from recallite_tools.action import DocumentAccess

    documents = DocumentAccess.of(options.pop("folders", ()), options.pop("urls", False))
    return MemoryServer(lambda: nullcontext(store.memory), documents=documents, **options)


async def _in_thread(threads: ThreadPoolExecutor, work: Callable[[], _Result]) -> _Result:
    return await asyncio.get_running_loop().run_in_executor(threads, work)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big")
    if size > asking.MAX_FRAME_BYTES:
        raise ValueError("another program asks")
    return await reader.readexactly(size)


async def _send(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(len(frame).to_bytes(4, "big") + frame)
    await writer.drain()


def _opened(path: str, settings: str) -> OpenStore:
    options = load_settings(settings) if settings else Settings()
    if options.warm is not None and not options.warm.use:
        raise InvalidInput("warm.use is false")
    if options.key_file is not None or str(options.embedder).startswith("."):
        raise InvalidInput("the settings name a key, or an embedder by a relative path")
    return OpenStore(path, options)


def _file_at(path: str) -> tuple[int, int] | None:
    """The device and inode of the file at a path; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _version_of(settings: str) -> str:
    """The path of a settings file, with its time and size."""
    if not settings:
        return ""
    status = os.stat(settings)
    return f"{settings}\0{status.st_mtime_ns}\0{status.st_size}"
