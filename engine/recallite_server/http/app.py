"""The application: a route for each operation, and what a server has besides."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from recallite.doors.operation import Operation
from recallite.doors.operations import PREFIX, served
from recallite.errors import AccessDenied
from recallite.memory import Memory
from recallite.system.logs import logger
from recallite_server.http import failures, pages
from recallite_server.http.access import GRANT, Access, may_write
from recallite_server.http.access_tokens import Grant, Tokens
from recallite_server.http.answers import without_folders
from recallite_server.http.batching import RecallBatcher
from recallite_server.http.failures import Refused, json_response
from recallite_server.http.mcp import MemoryProtocol
from recallite_server.http.metrics import CONTENT_TYPE, Metrics
from recallite_server.http.openapi import description
from recallite_server.http.request_checks import Application, Limits, RequestChecks, is_large
from recallite_server.http.requests import fields_of, values_of
from recallite_server.http.transfer import MAX_EXPORTS, Export
from recallite_server.memory_map import MemoryMap

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
        load: Callable[[], object] | None = None,
    ) -> None:
        """`hosts` are the names under which the server may be asked; None: any. Without `batch` recalls are answered
        one by one. `load` loads what recall needs; by default it compiles missing kernels in this process too.
        """
        self._memory = memory
        self._access = Access(memory, tokens or Tokens(memory), tokens_required=tokens_required)
        self._metrics = Metrics()
        self._threads = anyio.CapacityLimiter(limits.max_threads)
        self._large = anyio.CapacityLimiter(limits.max_large_threads)
        self._exports = anyio.CapacityLimiter(MAX_EXPORTS)
        self._recalls = RecallBatcher(self._in_thread, seen=self._metrics.batch.observe) if batch else None
        self._ready, self._load = False, load or memory.store.warmup
        self.limits = limits
        self._protocol = MemoryProtocol(memory, self._access)
        self.app = Starlette(routes=[*self._routes()], exception_handlers=failures.HANDLERS, lifespan=self._lifespan)
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
        yield from pages.routes(self._access, MemoryMap(self._memory), self._in_thread)

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
            await anyio.to_thread.run_sync(self._load, abandon_on_cancel=True)
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
            await self._in_thread(functools.partial(operation.apply, memory, values))
            return Export(memory, values, self._exports)
        extra = {"body": await request.body()} if operation.raw else {}
        large = is_large(request.scope)
        if operation.name == "recall" and self._recalls is not None and not large:
            return json_response((await self._recalls.recall(memory, scope, values.pop("query"), values)).fields())

        def work() -> Response:
            result = operation.apply(memory, values, **extra)
            is_new = getattr(result, "outcome", "created") not in ("duplicate", "skipped")
            return json_response(without_folders(result), operation.status if is_new else 200)

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
        return Response(text, media_type=CONTENT_TYPE)
