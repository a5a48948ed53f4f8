"""A client of `recallite serve`: the methods of `Memory`, asked of a server.

from recallite_server.client import Client

with Client("http://127.0.0.1:7333", token="rct_...") as memory:
memory.remember("Ada prefers green tea")
hits = memory.recall("What does Ada drink?")
"""

from __future__ import annotations

import builtins
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, Unpack
from urllib.parse import quote, urlencode, urlsplit

import httpx2
import msgspec
import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from recallite import errors
from recallite.documents.document import IngestedDocument
from recallite.doors.calls import OpenedSession
from recallite.doors.operation import SESSION_PREFIX, Operation
from recallite.doors.operations import PREFIX, SCOPE_HEADER, served
from recallite.errors import InvalidInput, InvalidItem, RecalliteError, ServerError, StoreClosed
from recallite.model import checks
from recallite.model.filters import FilterFields
from recallite.model.records import NewRecord, OnExisting
from recallite.model.reports import Imported
from recallite.model.settings import WritePolicy
from recallite.store.store import Progress
from recallite.system.asynchrony import AsyncHandle
from recallite.system.files import replacing
from recallite.system.messages import shown
from recallite_server.operations import from_json, in_json

__all__ = ["AsyncClient", "Client"]


_SHOWN_CHARS = 200
BYTES = "application/octet-stream"
"""The content type of a document or an import."""


class Sent(NamedTuple):
    """A request. `reads` says that it may be sent again."""

    method: str
    path: str
    body: bytes | None = None
    reads: bool = False
    content_type: str = "application/json"


class _Failure(msgspec.Struct):
    type: str
    message: str
    reason: Any = None
    position: int = 0
    stored: int = 0
    label: str | None = None
    item: _Failure | None = None

    def as_error(self) -> RecalliteError:
        if self.item is not None:
            return errors.InvalidItem(self.position, self.stored, self.item.as_error(), label=self.label)
        kind = errors.CLASSES.get(self.type, ServerError)
        return kind(self.message, self.reason if self.reason in kind.REASONS else None)


class _Failed(msgspec.Struct):
    error: _Failure


def encode_request(operation: Operation, *args: Any, **kwargs: Any) -> Sent:
    """The request for a call. Raises InvalidInput for what no request can hold, and TypeError as the call would."""
    fields = {name: value for name, value in operation.bind(*args, **kwargs).items() if value is not ...}
    path = PREFIX + operation.path
    if "{id}" in path:
        id = fields.pop("id")
        if not isinstance(id, str) or not id:
            raise InvalidInput(f"id is {shown(id)}: give a str")
        path = path.replace("{id}", quote(checks.encodable(id, "id"), safe=""))
    if operation.in_body:
        return Sent(operation.method, path, _encoded(fields), not operation.writes(fields))
    given = {name: value for name, value in fields.items() if value != operation.fields[name][1]}
    pairs = [pair for name, value in given.items() for pair in _pairs(name, value)]
    return Sent(operation.method, f"{path}?{urlencode(pairs)}" if pairs else path, None, operation.reads)


def _pairs(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """A field in a query: lists are repeated, objects are JSON, None is empty."""
    if value is None:
        yield name, ""
        return
    plain = msgspec.json.decode(_encoded(value))
    for part in plain if isinstance(plain, list) else [plain]:
        yield name, part if isinstance(part, str) else msgspec.json.encode(part).decode()


def _encoded(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=_plain)
    except (TypeError, UnicodeEncodeError, RecursionError) as fault:
        raise InvalidInput(f"an argument cannot be sent as JSON: {fault}") from None


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # an array
        return value.tolist()
    if isinstance(value, Iterable):
        return [*value]
    raise TypeError(f"{shown(value)} has no form in JSON")


def decode_response(operation: Operation, status: int, content: bytes) -> Any:
    """The value of an answer. Raises the error that the server answered, by its own class."""
    check_status(status, content)
    try:
        value = msgspec.json.decode(content, type=in_json(operation.returns))
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise ServerError(f"the answer is not that of this version of Recallite ({fault})") from None
    return from_json(value)


def check_status(status: int, content: bytes) -> None:
    """Raise the error of an answer that is none of success; a redirect is followed nowhere."""
    if 200 <= status < 300:
        return
    try:
        failed = msgspec.json.decode(content, type=_Failed).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = content[:_SHOWN_CHARS].decode("utf-8", "replace")
        raise ServerError(f"the server answered {status}: {text}") from None
    raise failed.as_error()


def unreachable(url: str, sent: Sent, fault: Exception) -> ServerError:
    """The error for a request without an answer."""
    doubt = "" if sent.reads else "; what was asked may have been done: look before you ask again"
    return ServerError(f"{url} gave no answer ({type(fault).__name__}: {fault}){doubt}", "unreachable")


def check_token(token: object) -> dict[str, str]:
    """The headers with a token; none without one."""
    if token is None:
        return {}
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token.strip():
        raise InvalidInput("token is none: give what `recallite token create` printed")
    return {"Authorization": f"Bearer {token.strip()}"}


def check_url(url: object) -> str:
    """The address of a server, without a slash at its end."""
    try:
        parts = urlsplit(url) if isinstance(url, str) and url.isascii() and url.isprintable() else None
        known = parts is not None and parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if not known or parts is None:
        raise InvalidInput(f"url is {shown(url)}: give an address such as http://127.0.0.1:7333")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput("url has a user, query or fragment: give the token as token=")
    return str(url).rstrip("/")


def batches(items: Iterable[object], size: int) -> Iterator[builtins.list[object]]:
    """The items in lists of at most `size`."""
    checks.check_stream(items)
    rest = iter(items)
    while batch := [*islice(rest, size)]:
        yield [item if isinstance(item, str) else fields_of(item) for item in batch]


def fields_of(item: object) -> Any:
    """A memory to be stored as the fields that were given."""
    if isinstance(item, str):
        return {"text": item}
    if isinstance(item, msgspec.Struct):
        defaults = item.__struct_defaults__
        named = item.__struct_fields__[len(item.__struct_fields__) - len(defaults) :]
        absent = {name for name, value in zip(named, defaults, strict=True) if getattr(item, name) is value}
        return {name: getattr(item, name) for name in item.__struct_fields__ if name not in absent}
    return item


def document(source: object, name: str | None) -> tuple[bytes, str]:
    """The bytes and the name of a document: those of a file, which this process reads, or bytes with their name."""
    if isinstance(source, bytes | bytearray | memoryview):
        if name is None:
            raise InvalidInput("the document has no name: give name=, which tells its format, such as 'report.pdf'")
        return bytes(source), name
    path = checks.check_path(source, "source")
    try:
        return path.read_bytes(), name or path.name
    except OSError as fault:
        raise errors.DocumentError(f"{path} cannot be read: {fault.strerror or fault}") from None


def format_of(path: Path, format: str | None) -> str:
    """The format of an export or import: the one given, else by the extension of the file."""
    known = {".csv": "csv", ".txt": "text"}
    return format or known.get(path.suffix.lower(), "jsonl")


_OPERATIONS = {operation.name: operation for operation in served()}


class OperationProxy:
    """Base of what asks a server for operations: a client, a service of one, or a session."""

    _prefix = ""
    """Prefix of the names of its operations."""

    def _send(self, sent: Sent) -> tuple[int, bytes]:
        raise NotImplementedError

    def _ask(self, name: str, /, *args: Any, body: bytes | None = None, **kwargs: Any) -> Any:
        operation = _OPERATIONS[name]
        sent = encode_request(operation, *args, **kwargs)
        if body is not None:
            sent = sent._replace(body=body, content_type=BYTES)
        return decode_response(operation, *self._send(sent))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]:
            """The operation of this name, as a method; or the service, whose operations have it before theirs."""
            path = self._prefix + name
            if (operation := _OPERATIONS.get(path)) is not None:
                method = partial(self._ask, path)
                method.__doc__ = operation.about
                vars(method)["__signature__"] = inspect.Signature(operation.parameters)
                return method
            if self._prefix or not (name in _SERVICES or any(known.startswith(f"{name}.") for known in _OPERATIONS)):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            return _SERVICES.get(name, ClientService)(self, f"{name}.")

    def __dir__(self) -> Iterable[str]:
        names = (name.removeprefix(self._prefix) for name in _OPERATIONS if name.startswith(self._prefix))
        return {*super().__dir__(), *(name.partition(".")[0] for name in names)} - {SESSION_PREFIX.rstrip(".")}


if TYPE_CHECKING:  # its methods are those of Memory, and have their types
    from recallite.agents.sessions import Session, Sessions
    from recallite.documents.knowledge import Knowledge
    from recallite.memory import Memory
    from recallite.transfer.memory_transfer import MemoryTransfer

    class _Surface(OperationProxy, Memory): ...

    class _Sessions(OperationProxy, Sessions): ...

    class _Session(OperationProxy, Session): ...

    class _Knowledge(OperationProxy, Knowledge): ...

    class _Transfer(OperationProxy, MemoryTransfer): ...
else:
    _Surface = _Sessions = _Session = _Knowledge = _Transfer = OperationProxy


class Client(_Surface):
    """A memory that a server has. Its methods are those of `Memory`, with the same arguments and errors.

    - url: the address of `recallite serve`
    - token: an access token, where the server asks for one
    - scope: the handle's scope, within that of the token
    - timeout_seconds: how long the server may take for an answer, or for its next piece; a receipt and the audit of a
      large store take long

    What needs the store in this process is not here: transactions, `Filter` objects (give their fields), the tiers,
    `evaluate`, and upkeep of the whole file; `bootstrap` gives the text without its parts. `remember_many` stores each
    batch whole or not at all. Reading is tried again once where the connection breaks; writing is not. A client can be
    shared between threads.

    Raises AccessDenied and ServerError beside the errors of the methods.
    """

    def __init__(self, url: str, *, token: str | None = None, scope: str = "/", timeout_seconds: float = 60.0) -> None:
        self._url = check_url(url)
        # No proxy and no netrc of the environment: the token goes to this address alone.
        self._http = httpx2.Client(
            timeout=checks.check_finite(timeout_seconds, "timeout_seconds", minimum=0.001), trust_env=False,
            headers=check_token(token),
            verify=self._url.startswith("https:"),  # reading certificates that nothing needs took 40 ms
        )  # fmt: skip
        self._scope, self._owner = checks.check_scope(scope), True

    def scoped(self, scope: str, *, reads: str | Sequence[str] = ()) -> Client:
        """A handle bound to a scope, as `Memory.scoped`. It shares the connections and does not close them.

        Further scopes that are read come with the token: with `reads` InvalidInput is raised.
        """
        if reads:
            raise InvalidInput(f"reads is {shown(reads)}: the token says it (`recallite token create --reads`)")
        handle = object.__new__(type(self))
        handle._url, handle._http, handle._owner = self._url, self._http, False
        handle._scope = checks.join_scopes(self._scope, scope) or "/"
        return handle

    def get(self, id: str | Iterable[str]) -> Any:
        """Do as `Memory.get`."""
        if isinstance(id, str) or not isinstance(id, Iterable):
            return self._ask("get", id)
        return {record.id: record for record in self._ask("get_many", [*id])}

    def remember(self, text: str | NewRecord, **fields: Any) -> Any:
        """Do as `Memory.remember`; the fields of a `NewRecord` can be given by name."""
        return self._ask("remember", **fields_of(text) | fields)

    def update(self, id: str | Iterable[str], /, **changes: Any) -> Any:
        """Do as `Memory.update`."""
        if isinstance(id, str) or not isinstance(id, Iterable):
            return self._ask("update", id, **changes)
        moment, renew = changes.pop("expires_at", None), changes.pop("renew", False)
        if changes:
            raise InvalidInput(f"update of several ids takes expires_at or renew, and not {min(changes)}")
        return self._ask("touch", [*id], expires_at=moment, never=moment is None and not renew)

    def neighbors(self, id: str, **options: Any) -> Any:
        """Do as `Memory.neighbors`."""
        return self._ask("neighbors" if options.get("depth") is None else "traverse", id, **options)

    def vectors(self, ids: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        """Do as `Memory.vectors`."""
        return {id: np.asarray(parts, np.float32) for id, parts in self._ask("vectors", [*ids]).items()}

    def remember_many(
        self,
        items: Iterable[object],
        *,
        batch_size: int = 2048,
        on_progress: Progress | None = None,
        policy: WritePolicy | None = None,
        on_existing: OnExisting = "error",
    ) -> builtins.list[str]:
        """Do as `Memory.remember_many`; each batch is one request and one transaction."""
        ids: builtins.list[str] = []
        options: dict[str, Any] = {"policy": policy, "on_existing": on_existing}
        for batch in batches(items, checks.check_count(batch_size, "batch_size")):
            try:
                ids += self._ask("remember_many", batch, **options)
            except InvalidItem as fault:
                raise InvalidItem(len(ids) + fault.position, len(ids), fault.error) from None
            if on_progress is not None:
                on_progress(len(ids), None)
        return ids

    # ── the connection ─────────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Close the connections. A second call does nothing; a scoped handle leaves them open."""
        if self._owner:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        scope = "" if self._scope == "/" else f", scope={self._scope!r}"
        return f"Client({self._url!r}{scope})"

    def _request(self, sent: Sent) -> httpx2.Request:
        headers = {} if self._scope == "/" else {SCOPE_HEADER: quote(self._scope, safe="/")}
        if sent.body is not None:
            headers["Content-Type"] = sent.content_type
        if self._http.is_closed:
            raise StoreClosed("this Client was closed: open a new one")
        return self._http.build_request(sent.method, self._url + sent.path, content=sent.body, headers=headers)

    def _send(self, sent: Sent) -> tuple[int, bytes]:
        request, attempts = self._request(sent), 2 if sent.reads else 1
        for left in reversed(range(attempts)):
            try:
                response = self._http.send(request)
                return response.status_code, response.content
            except (httpx2.ConnectError, httpx2.TimeoutException) as fault:
                raise unreachable(self._url, sent, fault) from None
            except httpx2.TransportError as fault:
                if not left:
                    raise unreachable(self._url, sent, fault) from None
        raise AssertionError

    @contextmanager
    def _stream(self, sent: Sent) -> Iterator[httpx2.Response]:
        try:
            response = self._http.send(self._request(sent), stream=True)
            try:
                if response.status_code != 200:
                    check_status(response.status_code, response.read())
                    raise ServerError(f"the server answered {response.status_code} and no export")
                yield response
            finally:
                response.close()
        except httpx2.TransportError as fault:
            raise unreachable(self._url, sent, fault) from None


class ClientService(OperationProxy):
    """A service of a client's memory."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client, self._prefix = client, prefix

    def _send(self, sent: Sent) -> tuple[int, bytes]:
        return self._client._send(sent)


class ClientSession(ClientService, _Session):
    """A session of a server: the methods of `Session`, and its `id`, `agent`, `provider` and `created_at`."""

    def __init__(self, client: Client, opened: OpenedSession) -> None:
        ClientService.__init__(self, client, SESSION_PREFIX)
        vars(self).update(structs.asdict(opened))

    def append(
        self, message: Mapping[str, Any] | str, content: object = None, *, created_at: datetime | str | None = None
    ) -> int:
        """Store a message at the end and return its position; see `Session.append`."""
        whole = {"role": message, "content": content} if isinstance(message, str) else message
        return self.extend([whole], created_at=created_at)

    def _ask(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        return super()._ask(name, self.id, *args, agent=self.agent, **kwargs)


class ClientSessions(ClientService, _Sessions):
    """The sessions of a server: the methods of `Sessions`."""

    def open(self, id: str | None = None, *, agent: str | None = None, provider: str | None = None) -> ClientSession:
        """Open the session with this id, or create it; without an id it gets a UUID."""
        return ClientSession(self._client, self._ask("sessions.open", id, agent=agent, provider=provider))

    def get(self, id: str, *, agent: str | None = None) -> ClientSession:
        """The existing session with this id. Raises NotFound if there is none."""
        return ClientSession(self._client, self._ask("sessions.get", id, agent=agent))


class ClientKnowledge(ClientService, _Knowledge):
    """The documents of a server: the methods of `Knowledge`."""

    def ingest(  # type: ignore[override]
        self,
        source: str | os.PathLike[str] | bytes,
        *,
        name: str | None = None,
        title: str | None = None,
        scope: str = "/",
        metadata: Mapping[str, Any] | None = None,
    ) -> IngestedDocument:
        """Send a document: a file of this machine, or bytes with a `name`, which tells the format."""
        body, named = document(source, name)
        answer: IngestedDocument = self._ask(
            "knowledge.ingest", name=named, title=title, scope=scope, metadata=metadata, body=body
        )
        return answer


class ClientTransfer(ClientService, _Transfer):
    """Files of this machine that a server's memories are written to and read from."""

    def export(  # type: ignore[override]
        self,
        target: str | os.PathLike[str],
        *,
        format: str | None = None,
        vectors: bool = False,
        **fields: Unpack[FilterFields],
    ) -> None:
        """Write memories to a file of this machine; formats as for `memory.transfer.export`.

        An existing file is replaced only after the export has come completely.
        """
        path = checks.check_path(target, "target")
        operation = _OPERATIONS["transfer.export"]
        sent = encode_request(operation, format=format_of(path, format), vectors=vectors, **fields)
        try:
            with (
                self._client._stream(sent) as response, replacing(path) as descriptor,
                open(descriptor, "wb", closefd=False) as file,
            ):  # fmt: skip
                file.writelines(response.iter_bytes())
        except OSError as fault:
            raise InvalidInput(f"target {path} cannot be written: {fault.strerror or fault}") from None

    def import_(  # type: ignore[override]
        self, source: str | os.PathLike[str], *, format: str | None = None, scope: str = "/"
    ) -> Imported:
        """Read memories from a file of this machine, all or none; formats as for `memory.transfer.import_`."""
        path = checks.check_path(source, "source")
        body, _ = document(path, None)
        imported: Imported = self._ask("transfer.import_", format=format_of(path, format), scope=scope, body=body)
        return imported


_SERVICES: dict[str, Callable[[Client, str], ClientService]] = {
    "sessions": ClientSessions,
    "knowledge": ClientKnowledge,
    "transfer": ClientTransfer,
}


MOST_REQUESTS = 64
"""Requests of an `AsyncClient` that are under way at a time; more wait their turn."""

if TYPE_CHECKING:  # its methods are those of AsyncMemory, and have their types
    from recallite.aio import AsyncMemory as _AsyncSurface
else:
    _AsyncSurface = AsyncHandle


class AsyncClient(_AsyncSurface):
    """`Client` for asyncio: `async with AsyncClient(url) as memory:`; its methods are awaited."""

    def __init__(self, url: str, *, token: str | None = None, scope: str = "/", timeout_seconds: float = 60.0) -> None:
        self._client = Client(url, token=token, scope=scope, timeout_seconds=timeout_seconds)
        AsyncHandle.__init__(self, lambda: self._client, threads=MOST_REQUESTS)

    def scoped(self, scope: str, *, reads: str | Sequence[str] = ()) -> AsyncClient:
        """A handle bound to a scope; open the client first. It shares the connections and does not close them."""
        handle = object.__new__(type(self))
        handle._client = handle._twin = self._now().scoped(scope, reads=reads)  # type: ignore[assignment]
        handle._executor, handle._owner = self._executor, False
        return handle

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The method or service of the client, awaited."""
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            return _awaited(self, getattr(self._client, name))

        def __dir__(self) -> set[str]:
            return {*super().__dir__(), *dir(self._client)}


class _Awaited:
    """A service or session of a client, awaited."""

    def __init__(self, handle: AsyncClient, asks: OperationProxy) -> None:
        self._handle, self._asks = handle, asks

    def __getattr__(self, name: str) -> Any:
        return _awaited(self._handle, getattr(self._asks, name))

    def __dir__(self) -> list[str]:
        return dir(self._asks)


def _awaited(handle: AsyncClient, value: Any) -> Any:
    """A value of a client; a service, a session or a method of it is awaited."""
    if isinstance(value, OperationProxy):
        return _Awaited(handle, value)
    if not callable(value):
        return value

    async def method(*args: Any, **kwargs: Any) -> Any:
        await handle._opened()
        return _awaited(handle, await handle._run(partial(value, *args, **kwargs)))

    method.__doc__ = value.__doc__
    return method
