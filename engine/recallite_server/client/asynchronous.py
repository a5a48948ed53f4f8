"""AsyncClient: the methods of Client awaited, while they run in threads."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from recallite.system.asynchrony import AsyncHandle
from recallite_server.client.synchronous import Asks, Client

MOST_REQUESTS = 64
"""Requests of an `AsyncClient` that are under way at a time; more wait their turn."""

if TYPE_CHECKING:  # its methods are those of AsyncMemory, and have their types
    from recallite.aio import AsyncMemory as _Surface
else:
    _Surface = AsyncHandle


class AsyncClient(_Surface):
    """`Client` for asyncio: `async with AsyncClient(url) as memory:`; its methods are awaited."""

    def __init__(self, url: str, *, token: str | None = None, scope: str = "/", timeout_seconds: float = 60.0) -> None:
        self._client = Client(url, token=token, scope=scope, timeout_seconds=timeout_seconds)
        AsyncHandle.__init__(self, lambda: self._client, threads=MOST_REQUESTS)

    def scoped(self, scope: str) -> AsyncClient:
        """A handle bound to a scope; open the client first. It shares the connections and does not close them."""
        handle = object.__new__(type(self))
        handle._client = handle._twin = self._now().scoped(scope)  # type: ignore[assignment]
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

    def __init__(self, handle: AsyncClient, asks: Asks) -> None:
        self._handle, self._asks = handle, asks

    def __getattr__(self, name: str) -> Any:
        return _awaited(self._handle, getattr(self._asks, name))

    def __dir__(self) -> list[str]:
        return dir(self._asks)


def _awaited(handle: AsyncClient, value: Any) -> Any:
    """A value of a client; a service, a session or a method of it is awaited."""
    if isinstance(value, Asks):
        return _Awaited(handle, value)
    if not callable(value):
        return value

    async def method(*args: Any, **kwargs: Any) -> Any:
        await handle._opened()
        return _awaited(handle, await handle._run(partial(value, *args, **kwargs)))

    method.__doc__ = value.__doc__
    return method
