"""The application: a route for each operation, and what a server has besides."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote

import anyio
import anyio.to_thread
from fastapi import Depends, FastAPI, Query, Request, Response
from starlette.routing import Route

from recallite._version import __version__
from recallite.documents.outcomes import IngestedDocument
from recallite.doors.http import failures, pages, transfer
from recallite.doors.http.access import GRANT, Access, may_write
from recallite.doors.http.access_tokens import Grant, Tokens
from recallite.doors.http.answers import without_folders
from recallite.doors.http.batching import RecallBatcher
from recallite.doors.http.failures import Refused, json_response
from recallite.doors.http.mcp import MemoryProtocol
from recallite.doors.http.metrics import CONTENT_TYPE, Metrics
from recallite.doors.http.openapi import RAW, RAW_ANSWER, describe, schema_of
from recallite.doors.http.request_checks import Application, Limits, RequestChecks, is_large
from recallite.doors.http.requests import arguments, request_model
from recallite.doors.operation import Operation
from recallite.doors.operations import PREFIX, SERVED
from recallite.errors import AccessDenied
from recallite.memory import Memory
from recallite.model.reports import Imported
from recallite.review.memory_map import MemoryMap
from recallite.system.logs import logger

_log = logger(__name__)
Answer = TypeVar("Answer")
Work = Callable[[Operation, Request, dict[str, Any]], Awaitable[Response]]


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
        self._exports = anyio.CapacityLimiter(transfer.MAX_EXPORTS)
        self._recalls = RecallBatcher(self._in_thread, seen=self._metrics.batch.observe) if batch else None
        self._ready, self._load = False, load or memory.store.warmup
        self.limits = limits
        self._protocol = MemoryProtocol(memory, self._access)
        self.app = FastAPI(
            title="Recallite", version=__version__, summary="Long-term memory for AI agents.", docs_url=None,
            redoc_url=None, lifespan=self._lifespan, redirect_slashes=False,
        )  # fmt: skip
        self._add_routes()
        self.application: Application = RequestChecks(
            self.app, limits, hosts, self._access.grant, self._metrics.counted
        )

    def _add_routes(self) -> None:
        failures.install(self.app)
        for operation in SERVED:
            endpoint = self._endpoint(operation, self._carried_out)
            self.app.add_api_route(
                PREFIX + operation.path, endpoint, methods=[operation.method], tags=[operation.group],
                summary=operation.summary, operation_id=operation.id, status_code=operation.status,
                responses={operation.status: schema_of(operation.returns)}, response_model=None,
                dependencies=[] if operation.reads else [Depends(may_write)],
            )  # fmt: skip
            vars(self.app.router.routes[-1])["fields"] = _fields(operation)
        documents = ("name", "title", "scope", "metadata")
        self._add("POST", "/documents", "ingest", self._ingest, documents, IngestedDocument, status=201)
        self._add("POST", "/import", "import", self._import, ("format", "scope"), Imported)
        self._add(
            "GET", "/export", "export", self._endpoint(transfer.EXPORT, self._exported), _fields(transfer.EXPORT), None
        )
        state: list[tuple[str, Callable[..., Any]]] = [
            ("healthz", self._healthy), ("readyz", self._readiness), ("metrics", self._metrics_text)
        ]  # fmt: skip
        for name, handler in state:
            self.app.add_api_route(
                f"/{name}", handler, methods=["GET", "HEAD"], include_in_schema=False, response_model=None,
                operation_id=name,
            )  # fmt: skip
        self.app.router.routes.append(Route("/mcp", self._protocol))
        pages.add_to(self.app, self._access, MemoryMap(self._memory), self._in_thread)
        describe(self.app)

    def _add(
        self,
        method: str,
        path: str,
        name: str,
        endpoint: Any,
        fields: Collection[str],
        returns: Any,
        *,
        status: int = 200,
    ) -> None:
        """Add an operation whose body is raw bytes; one that returns nothing answers with them."""
        uploads = returns is not None
        self.app.add_api_route(
            PREFIX + path, endpoint, methods=[method], tags=["transfer"], status_code=status, response_model=None,
            operation_id=name, summary=(endpoint.__doc__ or "").partition("\n")[0],
            dependencies=[Depends(may_write)] if uploads else [],
            openapi_extra={"requestBody": RAW} if uploads else None,
            responses={status: schema_of(returns) if uploads else RAW_ANSWER},
        )  # fmt: skip
        vars(self.app.router.routes[-1])["fields"] = fields

    @asynccontextmanager
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
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

    def _endpoint(self, operation: Operation, work: Work) -> Callable[..., Awaitable[Response]]:
        """The endpoint of an operation. FastAPI reads from its annotations what a request may hold."""
        model = request_model(operation)
        named = "{id}" in operation.path

        async def endpoint(request: Request, fields: Any) -> Response:
            id = unquote(request.path_params["id"], errors="surrogateescape") if named else None
            values = arguments(operation, fields or model(), id)
            return await work(operation, request, values)

        endpoint.__doc__ = operation.about
        body: Any = model
        if operation.in_body and not any(field.is_required() for field in model.model_fields.values()):
            body, endpoint.__defaults__ = model | None, (None,)  # no body is an empty one
        fields = body if operation.in_body else Annotated[model, Query()]
        endpoint.__annotations__ = {"request": Request, "fields": fields, "return": Response}
        return endpoint

    async def _carried_out(self, operation: Operation, request: Request, values: dict[str, Any]) -> Response:
        memory, scope, grant = self._access.memory(request)
        if operation.writes(values):
            may_write(request)
        if grant.read_only and "purpose" in operation.fields and values.get("purpose", "use") == "use":
            values["purpose"] = "inspect"
        large = is_large(request.scope)
        if operation.name == "recall" and self._recalls is not None and not large:
            return json_response((await self._recalls.recall(memory, scope, values.pop("query"), values)).to_dict())

        def work() -> Response:
            result = operation.apply(memory, values)
            is_new = getattr(result, "outcome", "created") not in ("duplicate", "skipped")
            return json_response(without_folders(result), operation.status if is_new else 200)

        return await self._in_thread(work, large=large)

    async def _in_thread(self, work: Callable[[], Answer], *, large: bool = False) -> Answer:
        return await anyio.to_thread.run_sync(work, limiter=self._large if large else self._threads)

    # ── raw bytes ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _ingest(
        self, request: Request, name: str, title: str | None = None, scope: str = "/", metadata: str | None = None
    ) -> Response:
        """Ingest the document in the body: PDF, DOCX, HTML, Markdown or text. Its name tells the format."""
        memory, _, _ = self._access.memory(request)
        body = await request.body()
        work = functools.partial(transfer.ingest, memory, body, name, title=title, scope=scope, metadata=metadata)
        return await self._answered(request, work, 201)

    async def _exported(self, __: Operation, request: Request, values: dict[str, Any]) -> Response:
        memory, _, _ = self._access.memory(request)
        await self._in_thread(functools.partial(transfer.check_export, memory, **values))
        return transfer.Export(memory, values, self._exports)

    async def _import(self, request: Request, format: str = "jsonl", scope: str = "/") -> Response:
        """Read memories from the body, all or none; those whose id exists are skipped."""
        memory, _, _ = self._access.memory(request)
        body = await request.body()
        work = functools.partial(transfer.import_, memory, body, format, scope)
        return await self._answered(request, work, 200)

    async def _answered(self, request: Request, work: Callable[[], Any], status: int) -> Response:
        return json_response(await self._in_thread(work, large=is_large(request.scope)), status)

    # ── the server ─────────────────────────────────────────────────────────────────────────────────────────────

    async def _healthy(self) -> Response:
        return json_response({"status": "ok"})

    async def _readiness(self) -> Response:
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


def _fields(operation: Operation) -> list[str]:
    """The fields of an operation beside those in its path."""
    return [name for name in operation.fields if name != "id" or "{id}" not in operation.path]
