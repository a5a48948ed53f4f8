"""The application of the resident process: each request goes to the application of the store that it names."""

from __future__ import annotations

import asyncio
import hmac
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from time import monotonic

import anyio
import anyio.to_thread
import msgspec
from starlette.responses import Response

from recallite._version import __version__
from recallite.compat import load_settings
from recallite.errors import AccessDenied, InvalidInput, RecalliteError, StoreError
from recallite.memory import Memory
from recallite.model.settings import Settings, Warm
from recallite.system.files import return_freed
from recallite.system.telemetry import logger
from recallite_server.hooks.running import HOOKS_PATH, WAIT_SECONDS
from recallite_server.http.app import MemoryApi
from recallite_server.http.request_checks import Message, Receive, Send, error_json, json_response
from recallite_server.warm import asking
from recallite_server.warm.asking import STORE, of_header

_log = logger(__name__)
# How long a process without a store waits for one.
_EMPTY_SECONDS = 60.0
_MOST_SECONDS_ASLEEP = 60.0
# Hooks that are answered at a time: half of the threads.
_MOST_HOOKS = 20
# A store that nobody has used for this long is a file like any other: it may be copied, replaced or removed. Opening it
# again takes a millisecond.
_QUIET_SECONDS = 3.0


class OpenStore:
    """A store with its application. `used` is when a request last began or ended, `active` counts those that run;
    `rests` says that its files are closed, and `ended` is called after each request.
    """

    def __init__(self, path: str, settings: Settings) -> None:
        self.path, self.idle_seconds = path, (settings.warm or Warm()).idle_minutes * 60
        self.memory = Memory(path, settings=settings)
        self.api = MemoryApi(self.memory, load=self._load)
        self.used, self.active, self.rests = monotonic(), 0, False
        self.ended: Callable[[], None] = lambda: None
        self.streams: set[anyio.CancelScope] = set()
        self.closing = asyncio.Event()

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

    def _load(self) -> None:
        """Load model and index; kernels are compiled in a process of their own, so that others are answered at once."""
        self.memory.recall("what is needed for this", purpose="inspect")
        return_freed()

    async def run(self) -> None:
        """Load it, and keep it until it is to be closed."""
        application = self.api.app
        async with application.router.lifespan_context(application):
            await self.closing.wait()
            for stream in self.streams:
                stream.cancel()
        await anyio.to_thread.run_sync(self.memory.close)


class Service:
    """The ASGI application. `token` is what clients have to send, if anything; `end` ends the server."""

    def __init__(self, token: str, end: Callable[[], None]) -> None:
        self._token, self._end = token.encode("ascii"), end
        self._stores: dict[tuple[str, str], OpenStore] = {}
        self._running: dict[OpenStore, asyncio.Task[None]] = {}
        self._began = self._last = monotonic()
        self._changed = asyncio.Event()
        # A project's files may keep its hooks waiting, but not the callers of others.
        self._hooks = anyio.CapacityLimiter(_MOST_HOOKS)
        # Of a file at a time one store is opened or closed; those of other files go on meanwhile.
        self._files: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if scope["path"] == "/healthz":
            await json_response(asking.proof(self._token, headers.get(asking.CHALLENGE.lower(), "")))(
                scope, receive, send
            )
        elif not hmac.compare_digest(headers.get(asking.TOKEN.lower(), "").encode("latin-1"), self._token):
            await error_json(401, AccessDenied("the token is not that of this process"))(scope, receive, send)
        elif scope["path"].startswith("/warm"):
            await self._managed(scope, receive, send, headers)
        else:
            await self._with_store(scope, receive, send, headers)

    async def _managed(self, scope: Message, receive: Receive, send: Send, headers: dict[str, str]) -> None:
        """Answer a request about the process itself: its state, closing a store, its end."""
        if scope["path"] == "/warm/close":
            path = os.path.realpath(of_header(headers[STORE.lower()]))
            async with self._files[path]:
                for key in [key for key in self._stores if key[0] == path]:
                    await self._close(key)
        elif scope["path"] == "/warm/stop":
            self._end()
        now = monotonic()
        stores = [{"path": store.path, "idle_seconds": round(now - store.used)} for store in self._stores.values()]
        state = {"pid": os.getpid(), "version": __version__, "seconds": round(now - self._began), "stores": stores}
        await json_response(state)(scope, receive, send)

    async def _with_store(self, scope: Message, receive: Receive, send: Send, headers: dict[str, str]) -> None:
        # A hook gives up after a second or two, and what it has sent cannot be read any more then.
        body = await _body(receive) if scope["path"] == HOOKS_PATH else b""
        try:
            store = await self._store(headers)
        except (RecalliteError, OSError) as fault:  # the client opens the store itself, and sees why it fails
            _log.info("a store was not opened: %s", fault)
            await error_json(409, StoreError("this process does not open the store"))(scope, receive, send)
            return
        store.begin()
        try:
            if scope["path"] == "/mcp/lines":
                await _Conversation(store).answer(scope, receive, send, headers)
            elif scope["path"] == HOOKS_PATH:
                fields = of_header(headers[asking.HOOK.lower()])
                await _answer_hook(store, fields, body, self._hooks, scope, receive, send)
            else:
                await store.api.application(scope, receive, send)
        finally:
            store.end()
            self._last = store.used

    async def _store(self, headers: dict[str, str]) -> OpenStore:
        """The store that a request names, opened by the first. Raises InvalidInput, StoreError and OSError."""
        path = os.path.realpath(of_header(headers.get(STORE.lower(), "")))
        settings = of_header(headers.get(asking.SETTINGS.lower(), ""))
        key = path, _version_of(settings)
        async with self._files[path]:
            store = self._stores.get(key)
            if store is not None and not os.path.exists(path):
                await self._close(key)
                store = None
            if store is None:
                if not os.path.exists(path) and asking.CREATE.lower() not in headers:
                    raise InvalidInput("there is no such store")
                store = await anyio.to_thread.run_sync(_opened, path, settings)
                store.ended = self._changed.set
                self._stores[key] = store
                self._running[store] = asyncio.create_task(store.run())
                self._changed.set()
            store.used = monotonic()
        return store

    async def _close(self, key: tuple[str, str]) -> None:
        store = self._stores.pop(key)
        store.closing.set()
        await self._running.pop(store)
        self._last = monotonic()

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        watching = asyncio.create_task(self._watch())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        watching.cancel()
        for key in [*self._stores]:
            await self._close(key)
        await send({"type": "lifespan.shutdown.complete"})

    async def _watch(self) -> None:
        """Let go of the files of stores that are quiet, close those that are idle, and end when there is none, or
        Recallite was replaced by another version.
        """
        installed = _file_at(__file__)
        while _file_at(__file__) == installed:
            now = monotonic()
            for quiet in [store for store in self._stores.values() if store.rests_at <= now]:
                await anyio.to_thread.run_sync(quiet.rest)
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
            with anyio.move_on_after(min(ends_at - now, _MOST_SECONDS_ASLEEP, *waits)):
                await self._changed.wait()
        self._end()


class _Conversation:
    """One host's conversation in the Model Context Protocol: lines in the body of a request, lines in its answer."""

    def __init__(self, store: OpenStore) -> None:
        self._store = store

    async def answer(self, scope: Message, receive: Receive, send: Send, headers: dict[str, str]) -> None:
        """Answer lines until the host's end is closed, or the store."""
        from recallite.doors.tools.action import DocumentAccess
        from recallite_server.mcp.server import MemoryServer, converse

        options = msgspec.json.decode(of_header(headers.get(asking.OPTIONS.lower(), asking.in_header("{}"))))
        documents = DocumentAccess.of(options.pop("folders", ()), options.pop("urls", False))
        try:
            server = MemoryServer(lambda: nullcontext(self._store.memory), documents=documents, **options)
        except InvalidInput as fault:
            await error_json(422, fault)(scope, receive, send)
            return
        self._receive, self._send = receive, send
        await send({"type": "http.response.start", "status": 200, "headers": [(b"cache-control", b"no-store")]})
        with anyio.CancelScope() as stream:
            self._store.streams.add(stream)
            await converse(server, self, self)
        self._store.streams.discard(stream)
        await send({"type": "http.response.body", "body": b""})

    async def __aiter__(self) -> AsyncIterator[str]:
        rest = b""
        while True:
            self._store.end()  # an open conversation in which nothing is said keeps no store
            try:
                message = await self._receive()
            finally:
                self._store.begin()
            *lines, rest = (rest + message.get("body", b"")).split(b"\n")
            for line in lines:
                yield line.decode("utf-8", "replace")
            if not message.get("more_body", False):
                return

    async def write(self, line: str) -> None:
        self._store.used = monotonic()
        await self._send({"type": "http.response.body", "body": line.encode(), "more_body": True})

    async def flush(self) -> None:
        """Do nothing: a line is sent at once."""


async def _answer_hook(
    store: OpenStore, fields: str, body: bytes, limiter: anyio.CapacityLimiter, scope: Message, receive: Receive,
    send: Send,
) -> None:  # fmt: skip
    """Answer a host's hook. Turns are kept before it is answered, and stored afterwards.

    If they cannot be kept, the answer is an error, and the client stores them itself.
    """
    from recallite_server.hooks.events import Event, answer, output_of, payload_of

    event, host, shared, memories, folder, current = fields.split("\0")

    def output() -> bytes:
        payload = payload_of(body, folder, current)
        if event == "turn":
            from recallite_server.hooks.turns import keep_turns

            keep_turns(store.memory, Event.of(host, payload, shared or None), memories=bool(memories))
            return b""
        return output_of(answer(store.memory, event, host, payload, shared or None), payload, host)

    response = Response(b"")
    try:
        response = Response(await anyio.to_thread.run_sync(output, limiter=limiter))
    except Exception as fault:
        _log.warning("a hook failed", exc_info=fault)
        if event == "turn":
            response = error_json(503, StoreError("the turns are not kept"))
    await response(scope, receive, send)
    if event not in ("prompt", "tool"):
        from recallite_server.hooks.turns import store_turns

        await anyio.to_thread.run_sync(store_turns, store.memory, WAIT_SECONDS)


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


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
