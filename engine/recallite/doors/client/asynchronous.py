"""AsyncClient: the methods of Client awaited, while they run in threads."""

from __future__ import annotations

from recallite.doors.client.synchronous import Client, ClientKnowledge, ClientSession, ClientSessions
from recallite.system.asynchrony import AsyncHandle, AsyncService, awaited, awaited_service

MOST_REQUESTS = 64
"""How many requests of an `AsyncClient` are under way at a time; more wait their turn."""


class AsyncClient(AsyncHandle[Client]):
    """`Client` for asyncio: `async with AsyncClient(url) as memory:`; its methods are awaited."""

    def __init__(self, url: str, *, token: str | None = None, scope: str = "/", timeout_seconds: float = 60.0) -> None:
        client = Client(url, token=token, scope=scope, timeout_seconds=timeout_seconds)
        super().__init__(lambda: client, threads=MOST_REQUESTS)

    remember = awaited(Client.remember)
    remember_many = awaited(Client.remember_many)
    update = awaited(Client.update)
    supersede = awaited(Client.supersede)
    restore = awaited(Client.restore)
    forget = awaited(Client.forget)
    touch = awaited(Client.touch)
    purge_expired = awaited(Client.purge_expired)
    link = awaited(Client.link)
    unlink = awaited(Client.unlink)
    recall = awaited(Client.recall)
    recall_many = awaited(Client.recall_many)
    explain = awaited(Client.explain)
    bootstrap = awaited(Client.bootstrap)
    get = awaited(Client.get)
    get_many = awaited(Client.get_many)
    vectors = awaited(Client.vectors)
    list = awaited(Client.list)
    count = awaited(Client.count)
    scopes = awaited(Client.scopes)
    tags = awaited(Client.tags)
    history = awaited(Client.history)
    neighbors = awaited(Client.neighbors)
    backlinks = awaited(Client.backlinks)
    traverse = awaited(Client.traverse)
    diffs = awaited(Client.diffs)
    timeline = awaited(Client.timeline)
    stats = awaited(Client.stats)
    audit = awaited(Client.audit)
    export = awaited(Client.export)
    import_ = awaited(Client.import_)

    @property
    def sessions(self) -> AsyncClientSessions:
        """Conversations, stored message by message."""
        return AsyncClientSessions(self, lambda client: client.sessions)

    @property
    def knowledge(self) -> AsyncClientKnowledge:
        """Documents, searched by passage."""
        return AsyncClientKnowledge(self, lambda client: client.knowledge)

    def scoped(self, scope: str) -> AsyncClient:
        """A handle bound to a scope; open the client first. It shares the connections and does not close them."""
        handle = object.__new__(type(self))
        handle._twin = self._now().scoped(scope)
        handle._executor = self._executor
        handle._owner = False
        return handle


class AsyncClientSession(AsyncService[ClientSession]):
    """`ClientSession`, awaited."""

    append = awaited(ClientSession.append)
    extend = awaited(ClientSession.extend)
    messages = awaited(ClientSession.messages)
    pop = awaited(ClientSession.pop)
    clear = awaited(ClientSession.clear)
    end = awaited(ClientSession.end)

    @property
    def id(self) -> str:
        """The session's id."""
        return self._now().id

    @property
    def agent(self) -> str | None:
        """The agent whose session it is; None for the scope's own."""
        return self._now().agent


class AsyncClientSessions(AsyncService[ClientSessions]):
    """`ClientSessions`, awaited."""

    open = awaited_service(ClientSessions.open, AsyncClientSession)
    get = awaited_service(ClientSessions.get, AsyncClientSession)
    list = awaited(ClientSessions.list)
    search = awaited(ClientSessions.search)
    cleanup = awaited(ClientSessions.cleanup)


class AsyncClientKnowledge(AsyncService[ClientKnowledge]):
    """`ClientKnowledge`, awaited."""

    ingest = awaited(ClientKnowledge.ingest)
    search = awaited(ClientKnowledge.search)
    context = awaited(ClientKnowledge.context)
    list = awaited(ClientKnowledge.list)
    get = awaited(ClientKnowledge.get)
    delete = awaited(ClientKnowledge.delete)
