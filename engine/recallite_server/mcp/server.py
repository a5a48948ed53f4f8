"""The server: what a host asks in the Model Context Protocol, what the memory answers, and over what they talk.

Nothing is opened before the first call of a tool, a resource or the prompt: the handshake waits for nothing. Calls run
in threads. The memory is bound to a scope when the server starts, and nothing that a model says leaves it.
"""

from __future__ import annotations

import hmac
import json
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import unquote

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from msgspec import Struct
from pydantic import ValidationError

from recallite._version import __version__
from recallite.doors.operation import INVALID_PARAMS, codes_of
from recallite.errors import EmbedderError, InvalidInput, NotFound, RecalliteError
from recallite.model.authority import Authority, check_authority
from recallite.model.checks import check_scope
from recallite.system.processes import noted_interrupts
from recallite.system.telemetry import logger
from recallite.text.quotes import NOTICE, escaped, harmless, quoted
from recallite_cli.run import ended
from recallite_server.http.access_tokens import GRANTED, Grant, seen_by
from recallite_tools.action import Action, Call, DocumentAccess, Refused, schemas_of
from recallite_tools.calling import SERVER_TOOLS, as_text, execute
from recallite_tools.server_tools import INSTRUCTIONS, URI, uri_of

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.shared._stream_protocols import ReadStream, WriteStream

    from recallite.memory import Memory


RECENT = "recallite://recent"
_MOST_RECENT = 20
PATH = "/mcp"
_ASKS_THE_USER = types.ClientCapabilities(elicitation=types.ElicitationCapability())
_ASKED_CHARS = 500
_MOST_BODY_BYTES = 4 * 2**20
_WARMING = "warming up: opening the memory and loading the embedding model"
_log = logger(__name__)

Context = ServerRequestContext[Any, Any]
Answer = TypeVar("Answer")


class Opened:
    """The memory, opened by the first who needs it, and bound to a scope."""

    def __init__(self, open: Callable[[], AbstractContextManager[Memory]], scope: str) -> None:
        self._open, self._scope = open, scope
        self._lock, self._held = threading.Lock(), ExitStack()
        self._memory: Memory | None = None

    @property
    def waiting(self) -> bool:
        """Whether nobody has needed it yet."""
        return self._memory is None

    def __call__(self) -> Memory:
        with self._lock:
            if self._memory is None:
                self._memory = self._held.enter_context(self._open()).scoped(self._scope)
            return self._memory

    def close(self) -> None:
        """Close it, if it was opened."""
        with self._lock:
            self._memory = None
            self._held.close()


class MemoryServer:
    """The handlers of one server."""

    def __init__(
        self,
        open: Callable[[], AbstractContextManager[Memory]],
        *,
        scope: str = "/",
        read_only: bool = False,
        tools: Sequence[str] | None = None,
        documents: DocumentAccess = DocumentAccess(),  # noqa: B008
        token_budget: int = 2_000,
        authority: Authority = "agent",
    ) -> None:
        """`tools` names those that are offered; None offers all that the host allows. `authority` is that of the model.

        Raises InvalidInput for an unknown tool, an unknown authority and a malformed scope.
        """
        self._authority = check_authority(authority, "--authority")
        scope = check_scope(scope)
        self._memory, self._documents, self._token_budget = Opened(open, scope), documents, token_budget
        self._tools = {tool.name: tool for tool in offered(read_only, tools, documents)}

    def server(self) -> Server[None]:
        """The server of the SDK."""
        return Server(
            "recallite", title="Recallite", version=__version__, instructions=INSTRUCTIONS, lifespan=self._lifespan,
            on_list_tools=self._list_tools, on_call_tool=self._call_tool, on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates, on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts, on_get_prompt=self._get_prompt,
        )  # fmt: skip

    def memory_for(self, _: Context) -> Memory:
        """The memory of a request: the same for all."""
        return self._memory()

    def tools_for(self, _: Context) -> dict[str, Action]:
        """The tools that a request may call: the same for all."""
        return self._tools

    def seen(self, _: Context, result: Any) -> Any:
        """A result as a request sees it."""
        return result

    @asynccontextmanager
    async def _lifespan(self, _: Server[None]) -> AsyncIterator[None]:
        try:
            yield None
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._memory.close)

    # ── tools ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def _list_tools(self, context: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in self.tools_for(context).values()])

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tools = self.tools_for(context)
        tool = tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {params.name!r}: use {', '.join(tools)}")

        def report(done: int, total: int | None) -> None:
            anyio.from_thread.run(context.session.report_progress, done, total)

        def confirm(refused: Refused) -> bool:
            return anyio.from_thread.run(_agreed, context, tool.title, refused)

        asks = context.session.check_client_capability(_ASKS_THE_USER)

        def answer() -> dict[str, Any]:
            call = Call(
                self.memory_for(context), "/", self._documents, self._token_budget, report, self._authority,
                confirm if asks else None,
            )  # fmt: skip
            result = execute(tool, params.arguments or {}, call)
            return {name: harmless(value) for name, value in self.seen(context, result).items()}

        try:
            result = await self._in_thread(context, answer)
        except RecalliteError as fault:
            return _failed(_told(fault))
        if "error" in result:
            return _failed(as_text(result) if "candidates" in result["error"] else result["error"]["message"])
        text = escaped(msgspec.json.encode(result).decode()) if tool.plain else as_text(result)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)], structured_content=result, is_error=False
        )

    # ── resources and the prompt ───────────────────────────────────────────────────────────────────────────────

    async def _list_resources(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        recent = types.Resource(
            uri=RECENT, name="recent", title="Latest memories", mime_type="text/plain",
            description=f"The {_MOST_RECENT} memories that were stored last.",
        )  # fmt: skip
        return types.ListResourcesResult(resources=[recent])

    async def _list_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        memory = types.ResourceTemplate(
            uri_template=URI + "{id}", name="memory", title="A memory or passage", mime_type="text/plain",
            description="The text of a memory, or of a passage of a document, by the id that results give.",
        )  # fmt: skip
        return types.ListResourceTemplatesResult(resource_templates=[memory])

    async def _read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)

        def text() -> str:
            if uri == RECENT:
                latest = self.memory_for(context).list(limit=_MOST_RECENT)
                listed = [
                    {"id": record.id, "text": record.text}
                    | ({"superseded_by": record.superseded_by} if record.superseded_by else {})
                    for record in latest
                ]
                return quoted(msgspec.json.encode({"results": listed, "notice": NOTICE}).decode())
            if not uri.startswith(URI):
                raise NotFound(f"no resource {uri!r}: there is {RECENT}, and {uri_of('ID')}")
            record = self.memory_for(context).get(unquote(uri.removeprefix(URI)))
            content = {"id": record.id, "text": record.text, "notice": NOTICE}
            return quoted(msgspec.json.encode(content).decode())

        try:
            content = await self._in_thread(context, text)
        except RecalliteError as fault:
            raise MCPError(codes_of(fault).mcp, _told(fault)) from None
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type="text/plain", text=content)]
        )

    async def _list_prompts(self, _: Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        bootstrap = types.Prompt(
            name="bootstrap", title="What to have in mind for a task",
            description="Standing instructions, knowledge, the last session, procedures and tips for a task.",
            arguments=[
                types.PromptArgument(name="task", description="What is to be done.", required=True),
                types.PromptArgument(name="agent", description="Whose memory; the server's own without it."),
            ],
        )  # fmt: skip
        return types.ListPromptsResult(prompts=[bootstrap])

    async def _get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        arguments = dict(params.arguments or {})
        task, agent = arguments.pop("task", None), arguments.pop("agent", None)
        if params.name != "bootstrap" or task is None or arguments:
            raise MCPError(types.INVALID_PARAMS, "the one prompt is bootstrap: it takes task, and agent if you like")

        def markdown() -> str:
            text = str(self.memory_for(context).bootstrap(agent, task, self._token_budget))
            return str(self.seen(context, text))

        try:
            text = await self._in_thread(context, markdown)
        except RecalliteError as fault:
            raise MCPError(codes_of(fault).mcp, _told(fault)) from None
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(messages=[message])

    async def _in_thread(self, context: Context, work: Callable[[], Answer]) -> Answer:
        """Do `work` in a thread and return its result; report progress while the memory opens."""
        if self._memory.waiting:
            _log.info(_WARMING)
            await context.session.report_progress(0, None, _WARMING)
        return await anyio.to_thread.run_sync(work)


class _GrantedServer(MemoryServer):
    """A server that gives each request the memory and tools that its token allows."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(lambda: nullcontext(memory))
        self._read_only = {tool.name: tool for tool in offered(True, None, DocumentAccess())}

    def memory_for(self, context: Context) -> Memory:
        return _granted(context)[0]

    def tools_for(self, context: Context) -> dict[str, Action]:
        return self._read_only if _granted(context)[1].read_only else self._tools

    def seen(self, context: Context, result: Any) -> Any:
        return seen_by(_granted(context)[1], result)


def _granted(context: Context) -> tuple[Memory, Grant]:
    """The memory of a request, and what it may do."""
    assert context.request is not None
    granted: tuple[Memory, Grant] = context.request.scope[GRANTED]
    return granted


def session_manager(memory: Memory) -> StreamableHTTPSessionManager:
    """The manager that answers requests of the protocol. No request has a session: any may be the last."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    return StreamableHTTPSessionManager(
        app=_GrantedServer(memory).server(), json_response=True, stateless=True, max_request_body_size=_MOST_BODY_BYTES
    )


def offered(read_only: bool, names: Sequence[str] | None, documents: DocumentAccess) -> list[Action]:
    """The tools that a server offers. Raises InvalidInput for an unknown one, and one that is not allowed."""
    allowed = [
        tool
        for tool in SERVER_TOOLS.values()
        if not (read_only and tool.writes) and (not tool.reaches_out or documents.folders or documents.urls)
    ]
    if names is None:
        return allowed
    by_name = {tool.name: tool for tool in allowed}
    for name in names:
        if name not in by_name:
            why = "is not allowed by --read-only, or needs --document-folder" if name in SERVER_TOOLS else "is no tool"
            raise InvalidInput(f"{name!r} {why}: use {', '.join(by_name)}")
    return [by_name[name] for name in dict.fromkeys(names)]


def _described(tool: Action) -> types.Tool:
    _, answers = schemas_of([tool.answers])
    root = dict(answers.pop(tool.answers.__name__))
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.about,
        input_schema={
            "type": "object", "properties": tool.properties, "required": tool.required, "additionalProperties": False,
        },
        output_schema={**root, **({"$defs": answers} if answers else {})},
        annotations=types.ToolAnnotations(
            title=tool.title, read_only_hint=not tool.writes, destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent, open_world_hint=tool.reaches_out,
        ),
    )  # fmt: skip


async def _agreed(context: Context, title: str, refused: Refused) -> bool:
    """Whether the user, asked by the host, agrees that what they stored is changed or forgotten."""
    lines = [f"{title}? You stored:", *(f"- {text[:_ASKED_CHARS]}" for text in refused.texts)]
    if new := refused.fields.get("text"):
        lines.append(f"It would become: {new[:_ASKED_CHARS]}")
    agreed = {"type": "boolean", "title": "Agree", "description": "The memory is changed as the agent asks."}
    schema = {"type": "object", "properties": {"agree": agreed}, "required": ["agree"]}
    try:
        answer = await context.session.elicit_form("\n".join(lines), schema, context.request_id)
    except MCPError:  # nobody can be asked
        return False
    return answer.action == "accept" and (answer.content or {}).get("agree") is True


def _failed(message: str) -> types.CallToolResult:
    """An error that the model may correct."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=message)], is_error=True)


def _told(fault: RecalliteError) -> str:
    """The text of an error for a model. Its message may name files of this machine: that goes to the log alone."""
    if codes_of(fault).mcp == INVALID_PARAMS:
        return str(fault)
    _log.error("%s: %s", type(fault).__name__, fault)
    what = "the embedding model" if isinstance(fault, EmbedderError) else "the memory"
    return f"{what} cannot be used now ({fault.reason or type(fault).__name__}); the log of the server says why"


Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


def run_stdio(memory: MemoryServer) -> None:
    """Answer one host until it closes its end of one of the pipes, or Ctrl-C is pressed."""

    async def run() -> None:
        interrupted = noted_interrupts()

        def left() -> None:
            # A thread waits for input, which nothing else ends.
            os._exit(ended(KeyboardInterrupt(), ["mcp"]) if interrupted.is_set() else 1)

        await converse(memory, left=left)

    anyio.run(run)


async def converse(
    memory: MemoryServer, lines: Any = None, answers: Any = None, *, left: Callable[[], object] = lambda: None
) -> None:
    """Answer the lines of one host, by default from standard input, until they end.

    `left` is called when nobody takes the answers; the memory is closed then.
    """
    server = memory.server()
    async with stdio_server(lines, answers) as (incoming, outgoing):
        try:
            await server.run(_Readable(incoming, outgoing), outgoing, server.create_initialization_options())
        except anyio.get_cancelled_exc_class():
            left()
            raise


class _Readable:
    """The messages of a host. Lines that are none are answered, which the SDK does not do."""

    def __init__(self, incoming: ReadStream[SessionMessage | Exception], outgoing: WriteStream[SessionMessage]) -> None:
        self._incoming, self._outgoing = incoming, outgoing

    async def receive(self) -> SessionMessage | Exception:
        while isinstance(item := await self._incoming.receive(), Exception):
            await self._outgoing.send(SessionMessage(_refusal(item)))
        return item

    async def aclose(self) -> None:
        await self._incoming.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _Request(Struct):
    id: int | str | None = None


def _refusal(fault: Exception) -> types.JSONRPCError:
    """The answer to a line that is no message, with the id of the request if it can be read."""
    errors = fault.errors(include_url=False) if isinstance(fault, ValidationError) else []
    id, code, message = None, types.INVALID_REQUEST, "the line is no request of JSON-RPC 2.0"
    if errors and errors[0]["type"] == "json_invalid":
        code, message = types.PARSE_ERROR, "the line is not JSON, or is nested too deep"
        with suppress(ValueError, TypeError, RecursionError, msgspec.MsgspecError):
            # Python reads what the SDK refuses: half of a character, as of a text that was cut within an emoji.
            request_id = msgspec.convert(json.loads(errors[0]["input"]), _Request).id
            str(request_id).encode()
            id = request_id
            if r"\ud" in str(errors[0]["input"]).lower():
                message = "a text has half of a character (a lone surrogate): send the whole"
    elif requests := [error["input"] for error in errors if isinstance(error["input"], dict)]:
        with suppress(msgspec.MsgspecError):
            id = msgspec.convert(requests[0], _Request).id
    return types.JSONRPCError(jsonrpc="2.0", id=id, error=types.ErrorData(code=code, message=message))


def run_http(memory: MemoryServer, host: str, port: int, token: str | None) -> None:
    """Answer hosts at http://HOST:PORT/mcp until the process is told to end.

    Raises InvalidInput without a token, unless the address is this machine's own, and if it cannot be bound.
    """
    from recallite_server.http.connections import listen, server_of

    application = http_application(memory, host, token)
    with listen(host, port) as listener:
        server_of(application).run(sockets=[listener])


def http_application(memory: MemoryServer, host: str, token: str | None) -> Application:
    """The ASGI application: the server behind the check of Host, Origin and the token."""
    from recallite_server.http.request_checks import is_loopback

    local = is_loopback(host)
    if not local and token is None:
        raise InvalidInput(f"{host} can be reached by others: give a token (RECALLITE_MCP_TOKEN or --token-file)")
    # A page in a browser may send requests to this machine's own address, and cannot know a token.
    names = ["127.0.0.1", "localhost", "[::1]"]
    guard = TransportSecuritySettings(
        enable_dns_rebinding_protection=local,
        allowed_hosts=[address for name in names for address in (name, f"{name}:*")],
        allowed_origins=[address for name in names for address in (f"http://{name}", f"http://{name}:*")],
    )
    application: Application = memory.server().streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, json_response=True, max_request_body_size=_MOST_BODY_BYTES,
        transport_security=guard, host=host,
    )  # fmt: skip
    return application if token is None else _with_token(application, token)


def _with_token(application: Application, token: str) -> Application:
    """The application for clients that send this token."""
    expected = f"Bearer {token}".encode()

    async def answer(
        scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        header = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        if hmac.compare_digest(header, expected):
            await application(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": b'{"error": "send the token as Authorization: Bearer"}'})

    return answer
