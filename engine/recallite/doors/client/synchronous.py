"""Client: the methods of `Memory`, asked of a server."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

import httpx2
import numpy as np
from numpy.typing import NDArray

from recallite.agents.snapshots import Snapshot
from recallite.documents.outcomes import IngestedDocument
from recallite.doors import operations
from recallite.doors.client import messages
from recallite.doors.client.messages import Sent, answered, asked, operation_of, unreachable
from recallite.doors.operations import PREFIX, OpenedSession
from recallite.errors import InvalidItem, ServerError, StoreClosed
from recallite.memory import Memory
from recallite.model import checks
from recallite.model.filters import FilterFields
from recallite.model.policies import WritePolicy
from recallite.model.records import OnExisting, Record
from recallite.model.reports import Audit, Imported
from recallite.remember.pending import Progress
from recallite.review.timeline import timeline

P = ParamSpec("P")
R = TypeVar("R")


class Asks:
    """What asks a server: a client, or a service of one."""

    def _send(self, sent: Sent) -> tuple[int, bytes]:
        raise NotImplementedError

    def _ask(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        operation = operation_of(call)
        return answered(operation, *(self._send(asked(operation, *args, **kwargs))))


def sent(call: Callable[Concatenate[Memory, P], R]) -> Callable[Concatenate[Asks, P], R]:
    """The same function of a memory, asked of a server."""

    def verb(self: Asks, /, *args: P.args, **kwargs: P.kwargs) -> R:
        value: R = self._ask(call, *args, **kwargs)
        return value

    verb.__name__, verb.__doc__ = operation_of(call).name, call.__doc__
    return verb


class Client(Asks):
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

    Raises AccessDenied, ServerUnreachable and ServerError beside the errors of the methods.
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

    # ── as Memory ──────────────────────────────────────────────────────────────────────────────────────────────

    remember = sent(Memory.remember)
    update = sent(operations.update)
    supersede = sent(Memory.supersede)
    restore = sent(Memory.restore)
    forget = sent(Memory.forget)
    touch = sent(operations.touch)
    purge_expired = sent(operations.purge_expired)
    link = sent(Memory.link)
    unlink = sent(Memory.unlink)
    recall = sent(operations.recall)
    recall_many = sent(operations.recall_many)
    explain = sent(operations.explain)
    bootstrap = sent(operations.bootstrap)
    get = sent(operations.get_one)
    list = sent(Memory.list)
    count = sent(Memory.count)
    scopes = sent(Memory.scopes)
    tags = sent(Memory.tags)
    history = sent(Memory.history)
    neighbors = sent(operations.neighbors)
    backlinks = sent(operations.backlinks)
    traverse = sent(operations.traverse)
    diffs = sent(operations.diffs)
    timeline = sent(timeline)
    stats = sent(operations.stats)

    def get_many(self, ids: Iterable[str]) -> dict[str, Record]:
        """The memories with these ids, as `Memory.get` of several."""
        return {each.id: each for each in self._ask(operations.get_many, [*ids])}

    def vectors(self, ids: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        """As `Memory.vectors`."""
        return messages.arrays(self._ask(Memory.vectors, [*ids]))

    def remember_many(
        self,
        items: Iterable[object],
        *,
        batch_size: int = 2048,
        on_progress: Progress | None = None,
        policy: WritePolicy | None = None,
        on_existing: OnExisting = "error",
    ) -> builtins.list[str]:
        """As `Memory.remember_many`; each batch is one request and one transaction."""
        ids: builtins.list[str] = []
        options = {"policy": policy, "on_existing": on_existing}
        for batch in messages.batches(items, checks.check_count(batch_size, "batch_size")):
            try:
                ids += self._ask(operations.remember_many, batch, **options)
            except InvalidItem as fault:
                raise InvalidItem(len(ids) + fault.position, len(ids), fault.reason) from None
            if on_progress is not None:
                on_progress(len(ids), None)
        return ids

    def audit(
        self, checks: Sequence[str] | None = None, *, mend: bool = False, **fields: Unpack[FilterFields]
    ) -> Audit:
        """As `memory.review.audit`."""
        found: Audit = self._ask(operations.mend if mend else operations.audit, checks, **fields)
        return found

    def export(
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
        sent = Sent("GET", messages.export_path(messages.format_of(path, format), vectors, fields), reads=True)
        with self._stream(sent) as response, messages.replacing(path) as file:
            for piece in response.iter_bytes():
                file.write(piece)

    def import_(self, source: str | os.PathLike[str], *, format: str | None = None, scope: str = "/") -> Imported:
        """Read memories from a file of this machine, all or none; formats as for `memory.transfer.import_`."""
        path = checks.check_path(source, "source")
        query = {"format": messages.format_of(path, format), "scope": scope}
        body = messages.document(path, None)[0]
        sent = Sent("POST", messages.with_query(f"{PREFIX}/import", query), body, content_type=messages.BYTES)
        return messages.decoded(*self._send(sent), Imported)

    @property
    def sessions(self) -> ClientSessions:
        """Conversations, stored message by message."""
        return ClientSessions(self)

    @property
    def knowledge(self) -> ClientKnowledge:
        """Documents, searched by passage."""
        return ClientKnowledge(self)

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


class _Service(Asks):
    def __init__(self, client: Client) -> None:
        self._client = client

    def _send(self, sent: Sent) -> tuple[int, bytes]:
        return self._client._send(sent)


class ClientSession(_Service):
    """A session of a server: the methods of `Session`."""

    def __init__(self, client: Client, opened: OpenedSession) -> None:
        super().__init__(client)
        self.id, self.agent, self.provider, self.created_at = (
            opened.id,
            opened.agent,
            opened.provider,
            opened.created_at,
        )

    def append(
        self, message: Mapping[str, Any] | str, content: object = None, *, created_at: datetime | str | None = None
    ) -> int:
        """Store a message at the end and return its position; see `Session.append`."""
        given = {"role": message, "content": content} if isinstance(message, str) else message
        return self.extend([given], created_at=created_at)

    def extend(self, messages: Iterable[Mapping[str, Any]], *, created_at: datetime | str | None = None) -> int:
        """Store several messages at the end, all or none; returns the position of the first."""
        position: int = self._own(operations.extend_session, [*messages], created_at=created_at)
        return position

    def messages(self, *, limit: int | None = None, skip_damaged: bool = False) -> builtins.list[dict[str, Any]]:
        """The messages in order, as they were given; with `limit`, the last of them."""
        found: builtins.list[dict[str, Any]] = self._own(operations.messages, limit=limit, skip_damaged=skip_damaged)
        return found

    def pop(self, *, skip_damaged: bool = False) -> dict[str, Any] | None:
        """Remove the last message and return it; None if there is none."""
        found: dict[str, Any] | None = self._own(operations.pop_message, skip_damaged=skip_damaged)
        return found

    def clear(self) -> int:
        """Remove every message; returns how many there were."""
        count: int = self._own(operations.clear_session)
        return count

    def end(self, /, **details: Any) -> Snapshot | None:
        """Remove the session and, with `snapshot`, keep a snapshot of it; see `Session.end`."""
        taken: Snapshot | None = self._own(operations.end_session, **details)
        return taken

    def _own(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._ask(call, self.id, *args, agent=self.agent, **kwargs)


class ClientSessions(_Service):
    """The sessions of a server: the methods of `Sessions`."""

    list = sent(operations.list_sessions)
    search = sent(operations.search_sessions)
    cleanup = sent(operations.cleanup_sessions)

    def open(self, id: str | None = None, *, agent: str | None = None, provider: str | None = None) -> ClientSession:
        """Open the session with this id, or create it; without an id it gets a UUID."""
        opened = self._ask(operations.open_session, id, agent=agent, provider=provider)
        return ClientSession(self._client, opened)

    def get(self, id: str, *, agent: str | None = None) -> ClientSession:
        """The existing session with this id; NotFound if there is none here."""
        return ClientSession(self._client, self._ask(operations.get_session, id, agent=agent))


class ClientKnowledge(_Service):
    """The documents of a server: the methods of `Knowledge`."""

    search = sent(operations.search_documents)
    context = sent(operations.document_context)
    list = sent(operations.list_documents)
    get = sent(operations.get_document)
    delete = sent(operations.delete_document)

    def ingest(
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
        given = {"name": named, "title": title, "scope": scope, "metadata": metadata}
        query = {name: value for name, value in given.items() if value is not None}
        sent = Sent("POST", messages.with_query(f"{PREFIX}/documents", query), body, content_type=messages.BYTES)
        return messages.decoded(*self._send(sent), IngestedDocument)
