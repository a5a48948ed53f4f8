"""The application: a route for each operation, batches of concurrent recalls, exports, the page, metrics and /mcp."""

from __future__ import annotations

import asyncio
import importlib
import io
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from functools import partial
from importlib.resources import files
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.streams.memory import MemoryObjectSendStream
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from recallite._version import __version__
from recallite.doors.calls import MEDIA_TYPES
from recallite.doors.operation import Operation
from recallite.doors.operations import PREFIX, served
from recallite.errors import AccessDenied, NotFound, RecalliteError, ServerError
from recallite.memory import Memory
from recallite.model.records import Hits
from recallite.plugin import engine_of
from recallite.system.telemetry import logger
from recallite_server.http.access_tokens import GRANTED, Grant, Tokens, name_of, seen_by
from recallite_server.http.request_checks import (
    GRANT,
    HANDLERS,
    Access,
    Application,
    Limits,
    Refused,
    RequestChecks,
    is_large,
    json_response,
    may_write,
    without_folders,
)
from recallite_server.http.requests import description, fields_of, values_of
from recallite_server.memory_map import MemoryMap

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


_log = logger(__name__)
Answer = TypeVar("Answer")


class OperationRoute(Route):
    """A route that a request's scope names as `route`: metrics count by its name, and errors name its fields."""

    def __init__(
        self, path: str, endpoint: Callable[..., Any], methods: set[str], name: str, fields: Collection[str] = ()
    ) -> None:
        super().__init__(path, endpoint, methods=methods, name=name)
        self.methods, self.fields = methods, fields

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match a request, and name this route in its scope."""
        match, names = super().matches(scope)
        return match, {**names, "route": self}


class MemoryApi:
    """The HTTP API of a memory. `application` is the ASGI application, behind the checks of requests."""

    def __init__(
        self,
        memory: Memory,
        *,
        tokens: Tokens | None = None,
        tokens_required: bool = False,
        hosts: Collection[str] | None = None,
        limits: Limits = Limits(),  # noqa: B008
        batch: bool = True,
    ) -> None:
        """`hosts` are the names under which the server may be asked; None: any. Without `batch` recalls are answered
        one by one.
        """
        self._memory = memory
        self._access = Access(memory, tokens or Tokens(memory), tokens_required=tokens_required)
        self._metrics = Metrics()
        self._threads = anyio.CapacityLimiter(limits.max_threads)
        self._large = anyio.CapacityLimiter(limits.max_large_threads)
        self._exports = anyio.CapacityLimiter(MAX_EXPORTS)
        self._recalls = RecallBatcher(self._in_thread, seen=self._metrics.batch.observe) if batch else None
        self._ready = False
        self.limits = limits
        self._protocol = MemoryProtocol(memory, self._access)
        self.app = Starlette(routes=[*self._routes()], exception_handlers=HANDLERS, lifespan=self._lifespan)
        self.app.router.redirect_slashes = False
        self.application: Application = RequestChecks(
            self.app, limits, hosts, self._access.grant, self._metrics.counted
        )

    def _routes(self) -> Iterator[Route]:
        # Routes are tried in turn, and nothing is asked as often as recall.
        for operation in sorted(served(), key=lambda operation: operation.name != "recall"):
            yield OperationRoute(
                PREFIX + operation.path, self._endpoint(operation), {operation.method}, operation.id,
                fields_of(operation),
            )  # fmt: skip
        for name, endpoint in (
            ("healthz", self._healthy), ("readyz", self._readiness), ("metrics", self._metrics_text)
        ):  # fmt: skip
            yield OperationRoute(f"/{name}", endpoint, {"GET", "HEAD"}, name)
        yield Route("/openapi.json", self._description)
        yield Route("/mcp", self._protocol)
        yield from routes(self._access, MemoryMap(self._memory), self._in_thread)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as group:
            group.start_soon(self._warm_up)
            group.start_soon(self._protocol.run)
            try:
                yield
            finally:
                group.cancel_scope.cancel()

    async def _warm_up(self) -> None:
        try:
            await anyio.to_thread.run_sync(self._memory.store.warmup, abandon_on_cancel=True)
        except Exception:  # the first recall says it, or works without the embedder
            _log.warning("the embedding model or the index could not be loaded", exc_info=True)
        self._ready = True

    # ── operations ─────────────────────────────────────────────────────────────────────────────────────────────

    def _endpoint(self, operation: Operation) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            if not operation.reads:
                may_write(request)
            return await self._carried_out(operation, request, await values_of(operation, request))

        return endpoint

    async def _carried_out(self, operation: Operation, request: Request, values: dict[str, Any]) -> Response:
        memory, scope, grant = self._access.memory(request)
        if operation.writes(values):
            may_write(request)
        if grant.read_only and "purpose" in operation.fields and values.get("purpose", "use") == "use":
            values["purpose"] = "inspect"
        if operation.returns is bytes:
            await self._in_thread(partial(operation.apply, memory, values))
            return Export(memory, values, self._exports)
        extra = {"body": await request.body()} if operation.raw else {}
        large = is_large(request.scope)
        if operation.name == "recall" and self._recalls is not None and not large:
            hits = (await self._recalls.recall(memory, scope, values.pop("query"), values)).fields()
            return json_response(seen_by(grant, hits))

        def work() -> Response:
            result = operation.apply(memory, values, **extra)
            is_new = getattr(result, "outcome", "created") not in ("duplicate", "skipped")
            return json_response(seen_by(grant, without_folders(result)), operation.status if is_new else 200)

        return await self._in_thread(work, large=large)

    async def _in_thread(self, work: Callable[[], Answer], *, large: bool = False) -> Answer:
        return await anyio.to_thread.run_sync(work, limiter=self._large if large else self._threads)

    # ── the server ─────────────────────────────────────────────────────────────────────────────────────────────

    async def _healthy(self, _: Request) -> Response:
        return json_response({"status": "ok"})

    async def _description(self, _: Request) -> Response:
        return json_response(description())

    async def _readiness(self, _: Request) -> Response:
        """Whether the store can be read, and what recall needs was loaded or found to be missing."""
        if self._ready:
            await self._in_thread(lambda: self._memory.list(limit=1))
        return json_response({"status": "ready" if self._ready else "warming up"}, 200 if self._ready else 503)

    async def _metrics_text(self, request: Request) -> Response:
        grant: Grant = request.scope[GRANT]
        if grant.scope != "/":
            raise Refused(403, "metrics are of the whole store: the token is for a scope", error=AccessDenied)
        text = await self._in_thread(lambda: self._metrics.text(self._memory))
        return Response(text, media_type=CONTENT_TYPE_LATEST)


MAX_QUERIES = 64
"""The most queries of one batch."""
InThread = Callable[[Callable[[], Answer]], Awaitable[Answer]]


class _Waiting(NamedTuple):
    memory: Memory
    query: str
    options: Mapping[str, Any]
    key: str
    answered: asyncio.Future[Hits]
    context: Context


class RecallBatcher:
    """Answers recalls in threads; recalls of the same scope and options together."""

    def __init__(self, run: InThread[Any], *, seen: Callable[[int], None] = lambda _: None) -> None:
        """Take `run`, which calls a function in a thread, and `seen`, which is called with the size of each batch."""
        self._run, self._seen = run, seen
        self._waiting: deque[_Waiting] = deque()
        self._working: asyncio.Task[None] | None = None

    async def recall(self, memory: Memory, scope: str, query: str, options: Mapping[str, Any]) -> Hits:
        """The hits of a query. `memory` is the handle of `scope`."""
        # A language model may be asked about a long query, for which the others shall not wait.
        if "vector" in options or engine_of(memory).core.language_model is not None:
            return await self._run(lambda: memory.recall(query, **options))  # type: ignore[no-any-return]
        key = repr((scope, engine_of(memory).shared, sorted(options.items())))
        answered = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(memory, query, options, key, answered, copy_context()))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work(), context=Context())
        return await answered  # type: ignore[no-any-return]

    async def _work(self) -> None:
        while self._waiting:
            batch = self._next()
            if batch:
                self._seen(len(batch))
                await self._answer(batch)

    def _next(self) -> list[_Waiting]:
        """The first that waits, with others like it; requests of clients that have gone are dropped."""
        key, batch, others = self._waiting[0].key, list[_Waiting](), deque[_Waiting]()
        for recall in self._waiting:
            if recall.answered.done():
                continue
            (batch if recall.key == key and len(batch) < MAX_QUERIES else others).append(recall)
        self._waiting = others
        return batch

    async def _answer(self, batch: list[_Waiting]) -> None:
        first, queries = batch[0], [recall.query for recall in batch]
        try:
            answers = (
                [await self._run(partial(first.context.run, first.memory.recall, queries[0], **first.options))]
                if len(batch) == 1
                else await self._run(lambda: first.memory.recall_many(queries, **first.options))
            )
        except RecalliteError as fault:
            if len(batch) == 1:
                _set(first.answered, fault=fault)
                return
            for recall in batch:  # one query may be what is wrong: the others are answered
                await self._answer([recall])
            return
        except BaseException as fault:
            for recall in batch:
                _set(recall.answered, fault=fault if isinstance(fault, Exception) else RuntimeError("stopped"))
            if not isinstance(fault, Exception):
                raise
            return
        for recall, hits in zip(batch, answers, strict=True):
            _set(recall.answered, hits)


def _set(answered: asyncio.Future[Hits], hits: Hits | None = None, *, fault: Exception | None = None) -> None:
    if answered.done():  # the client has gone
        return
    if fault is not None:
        answered.set_exception(fault)
    else:
        assert hits is not None
        answered.set_result(hits)


_PIECE_CHARS = 65_536
_PIECES = 4
MAX_EXPORTS = 4
"""Most exports that are written at a time: slow clients hold up other exports alone."""


class _Pieces(io.TextIOBase):
    """A text file that sends its pieces on as they are written, from a thread; it waits while nobody takes them."""

    def __init__(self, to: MemoryObjectSendStream[bytes]) -> None:
        self._to, self._kept, self._chars = to, list[str](), 0

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        self._kept.append(text)
        self._chars += len(text)
        if self._chars >= _PIECE_CHARS:
            self.flush()
        return len(text)

    def flush(self) -> None:
        if self._kept:
            anyio.from_thread.run(self._to.send, "".join(self._kept).encode())
            self._kept, self._chars = [], 0


class Export(Response):
    """An export as an answer, written as fast as the client takes it.

    If it fails in the middle the connection is broken, so that nobody takes a part for the whole.
    """

    def __init__(self, memory: Memory, options: Mapping[str, Any], limiter: anyio.CapacityLimiter) -> None:
        super().__init__(media_type=MEDIA_TYPES[options.get("format", "jsonl")])
        del self.headers["content-length"]
        self._memory, self._options, self._limiter = memory, {"format": "jsonl", **options}, limiter

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Write it."""
        to, pieces = anyio.create_memory_object_stream[bytes](_PIECES)

        def write() -> None:
            file = _Pieces(to)
            self._memory.transfer.export(cast("io.TextIOWrapper", file), **self._options)
            file.flush()

        async def run() -> None:
            async with to:
                await anyio.to_thread.run_sync(write, limiter=self._limiter)

        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        complete = False
        # When the client has gone the pieces are closed first, which ends the thread that writes them.
        async with anyio.create_task_group() as group, pieces:

            async def leave() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(run)
            group.start_soon(leave)
            try:
                async for piece in pieces:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                complete = True
            except TimeoutError:
                _log.info("a client does not take its export")
            group.cancel_scope.cancel()
        if complete:
            await send({"type": "http.response.body", "body": b""})


_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}  # fmt: skip


def routes(access: Access, map: MemoryMap, in_thread: InThread[Response]) -> Iterator[Route]:
    """The page's routes; `in_thread` calls a function in a thread."""
    folder = files("recallite_server.http") / "page"
    contents = {
        entry.name: entry.read_bytes() for entry in folder.iterdir() if PurePosixPath(entry.name).suffix in _MEDIA_TYPES
    }

    async def part(request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        if name not in contents:
            raise Refused(404, f"there is no file {name!r}", error=NotFound)
        headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-cache"}
        return Response(contents[name], headers=headers, media_type=_MEDIA_TYPES[PurePosixPath(name).suffix])

    async def state(request: Request) -> Response:
        _, scope, grant = access.memory(request)
        return json_response({"read_only": grant.read_only, "scope": scope, "version": __version__})

    async def points(request: Request) -> Response:
        memory, _, grant = access.memory(request)

        def work() -> Response:
            shown = map.points(memory).to_dict()
            return json_response(
                shown if grant.scope == "/" else shown | {"sources": [name_of(source) for source in shown["sources"]]}
            )

        return await in_thread(work)

    yield Route("/", part)
    yield Route("/page/{name}", part)
    yield Route(f"{PREFIX}/map", points)
    yield Route(f"{PREFIX}/page/state", state)


_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """The figures of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "recallite_requests", "Requests answered.", ["operation", "status"], registry=self._registry
        )
        self.seconds = Histogram(
            "recallite_request_duration_seconds", "Time to answer a request.", ["operation"], buckets=_SECONDS,
            registry=self._registry,
        )  # fmt: skip
        self.batch = Histogram(
            "recallite_recall_batch_queries", "Queries answered in one batch.", buckets=(1, 2, 4, 8, 16, 32, 64),
            registry=self._registry,
        )  # fmt: skip
        self._records = Gauge("recallite_records", "Memories stored.", ["kind"], registry=self._registry)
        self._store_bytes = Gauge("recallite_store_bytes", "Bytes of the store's files.", registry=self._registry)
        self._index_bytes = Gauge("recallite_index_bytes", "Bytes of the index in RAM.", registry=self._registry)
        self._index_records = Gauge("recallite_index_records", "Records in the index.", registry=self._registry)
        self._pending = Gauge("recallite_pending_records", "Memories that wait for a vector.", registry=self._registry)

    def counted(self, operation: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests.labels(operation, str(status)).inc()
        self.seconds.labels(operation).observe(seconds)

    def text(self, memory: Memory) -> bytes:
        """All figures, with the store's as they are now."""
        stats = memory.store.stats()
        self._records.clear()
        for kind, count in stats.kinds.items():
            self._records.labels(kind).set(count)
        self._store_bytes.set(stats.bytes_on_disk or 0)
        self._index_bytes.set(stats.index.get("bytes", 0))
        self._index_records.set(stats.index.get("records", 0))
        self._pending.set(stats.pending)
        return generate_latest(self._registry)


class MemoryProtocol:
    """The ASGI application of the protocol; it answers while `run` does."""

    def __init__(self, memory: Memory, access: Access) -> None:
        self._memory, self._access = memory, access
        self._running = anyio.Event()
        self._manager: StreamableHTTPSessionManager | None = None

    async def run(self) -> None:
        """Answer until cancelled. The SDK is imported meanwhile, which takes a second: the server waits for nothing."""
        try:
            server = await anyio.to_thread.run_sync(importlib.import_module, "recallite_server.mcp.server")
        except Exception as fault:
            _log.error("the Model Context Protocol is not answered: its SDK cannot be imported", exc_info=fault)
            self._running.set()
            return
        manager = server.session_manager(self._memory)
        async with manager.run():
            self._manager = manager
            self._running.set()
            await anyio.sleep_forever()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for what its token allows."""
        if scope["method"] != "POST":  # no request has a session that could be listened to
            raise Refused(405, "send requests of the protocol by POST")
        memory, _, grant = self._access.memory(HTTPConnection(scope))
        await self._running.wait()
        if self._manager is None:
            raise Refused(503, "the server's log says why it does not answer the protocol", error=ServerError)
        await self._manager.handle_request({**scope, GRANTED: (memory, grant)}, receive, send)
