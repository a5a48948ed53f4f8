"""Client: the operations of a memory, asked of a server."""

from __future__ import annotations

import builtins
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

import httpx2
import numpy as np
from numpy.typing import NDArray

from recallite.documents.outcomes import IngestedDocument
from recallite.doors.calls import OpenedSession
from recallite.doors.operation import SESSION, Operation
from recallite.doors.operations import served
from recallite.errors import InvalidInput, InvalidItem, ServerError, StoreClosed
from recallite.model import checks
from recallite.model.filters import FilterFields
from recallite.model.policies import WritePolicy
from recallite.model.records import NewRecord, OnExisting
from recallite.model.reports import Imported
from recallite.store.store import Progress
from recallite_server.client import messages
from recallite_server.client.messages import Sent, answered, asked, unreachable

_OPERATIONS = {operation.name: operation for operation in served()}


class Asks:
    """Base of what asks a server for operations: a client, a service of one, or a session."""

    _prefix = ""
    """Prefix of the names of its operations."""

    def _send(self, sent: Sent) -> tuple[int, bytes]:
        raise NotImplementedError

    def _ask(self, name: str, /, *args: Any, body: bytes | None = None, **kwargs: Any) -> Any:
        operation = _OPERATIONS[name]
        sent = asked(operation, *args, **kwargs)
        if body is not None:
            sent = sent._replace(body=body, content_type=messages.BYTES)
        return answered(operation, *self._send(sent))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]:
            """The operation of this name, as a method; or the service, whose operations have it before theirs."""
            path = self._prefix + name
            if path in _OPERATIONS:
                return self._method(_OPERATIONS[path])
            if self._prefix or not (name in _SERVICES or any(known.startswith(f"{name}.") for known in _OPERATIONS)):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            return _SERVICES.get(name, ClientService)(self, f"{name}.")

    def _method(self, operation: Operation) -> Callable[..., Any]:
        method = partial(self._ask, operation.name)
        method.__doc__ = operation.about
        vars(method)["__signature__"] = inspect.Signature(operation.parameters)
        return method

    def __dir__(self) -> Iterable[str]:
        names = (name.removeprefix(self._prefix) for name in _OPERATIONS if name.startswith(self._prefix))
        return {*super().__dir__(), *(name.partition(".")[0] for name in names)} - {SESSION.rstrip(".")}


if TYPE_CHECKING:  # its methods are those of Memory, and have their types
    from recallite.agents.sessions import Session, Sessions
    from recallite.documents.knowledge import Knowledge
    from recallite.memory import Memory
    from recallite.transfer.memory_transfer import MemoryTransfer

    class _Surface(Asks, Memory): ...

    class _Sessions(Asks, Sessions): ...

    class _Session(Asks, Session): ...

    class _Knowledge(Asks, Knowledge): ...

    class _Transfer(Asks, MemoryTransfer): ...
else:
    _Surface = _Sessions = _Session = _Knowledge = _Transfer = Asks


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
        self._url = messages.check_url(url)
        # No proxy and no netrc of the environment: the token goes to this address alone.
        self._http = httpx2.Client(
            timeout=checks.check_finite(timeout_seconds, "timeout_seconds", minimum=0.001), trust_env=False,
            headers=messages.check_token(token),
            verify=self._url.startswith("https:"),  # reading certificates that nothing needs took 40 ms
        )  # fmt: skip
        self._scope, self._owner = checks.check_scope(scope), True

    def scoped(self, scope: str) -> Client:
        """A handle bound to a scope, as `Memory.scoped`. It shares the connections and does not close them."""
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
        return self._ask("remember", **messages.fields_of(text) | fields)

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
        return messages.arrays(self._ask("vectors", [*ids]))

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
        for batch in messages.batches(items, checks.check_count(batch_size, "batch_size")):
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

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        scope = "" if self._scope == "/" else f", scope={self._scope!r}"
        return f"Client({self._url!r}{scope})"

    def _request(self, sent: Sent) -> httpx2.Request:
        headers = messages.scope_header(self._scope)
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
                    messages.check_status(response.status_code, response.read())
                    raise ServerError(f"the server answered {response.status_code} and no export")
                yield response
            finally:
                response.close()
        except httpx2.TransportError as fault:
            raise unreachable(self._url, sent, fault) from None


class ClientService(Asks):
    """A service of a client's memory."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client, self._prefix = client, prefix

    def _send(self, sent: Sent) -> tuple[int, bytes]:
        return self._client._send(sent)


class ClientSession(ClientService, _Session):
    """A session of a server: the methods of `Session`."""

    def __init__(self, client: Client, opened: OpenedSession) -> None:
        ClientService.__init__(self, client, SESSION)
        self._opened_as = opened

    @property
    def id(self) -> str:
        """The session's id."""
        return self._opened_as.id

    @property
    def agent(self) -> str | None:
        """The agent whose session it is; None for the scope's own."""
        return self._opened_as.agent

    @property
    def provider(self) -> str | None:
        """The provider that answers in the session."""
        return self._opened_as.provider

    @property
    def created_at(self) -> datetime:
        """The time at which the session was opened first."""
        return self._opened_as.created_at

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
        body, named = messages.document(source, name)
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
        sent = asked(operation, format=messages.format_of(path, format), vectors=vectors, **fields)
        with self._client._stream(sent) as response, messages.replacing(path) as file:
            for piece in response.iter_bytes():
                file.write(piece)

    def import_(  # type: ignore[override]
        self, source: str | os.PathLike[str], *, format: str | None = None, scope: str = "/"
    ) -> Imported:
        """Read memories from a file of this machine, all or none; formats as for `memory.transfer.import_`."""
        path = checks.check_path(source, "source")
        body, _ = messages.document(path, None)
        imported: Imported = self._ask(
            "transfer.import_", format=messages.format_of(path, format), scope=scope, body=body
        )
        return imported


_SERVICES: dict[str, Callable[[Client, str], ClientService]] = {
    "sessions": ClientSessions,
    "knowledge": ClientKnowledge,
    "transfer": ClientTransfer,
}
