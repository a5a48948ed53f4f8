"""The base of AsyncMemory, AsyncWorkspace and their services: methods awaited while they run in threads.

The event loop never waits for SQLite, a file or a kernel. An asynchronous class lists the methods of its twin once, as
`recall = awaited(Memory.recall)`; arguments and results keep their types.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from contextvars import ContextVar, copy_context
from functools import partial, update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar

from recallite.errors import StoreClosed

MAX_THREADS = 4
# The threads of the handle whose transaction a task is inside, and the thread of that transaction.
_transaction: ContextVar[tuple[ThreadPoolExecutor | None, ThreadPoolExecutor | None]] = ContextVar(
    "recallite_transaction", default=(None, None)
)


class _Closes(Protocol):
    def close(self) -> None: ...


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
Closes = TypeVar("Closes", bound=_Closes)


class AsyncOf(Generic[T_co]):
    """The asynchronous twin of a T_co."""

    async def _opened(self) -> T_co:
        raise NotImplementedError

    async def _run(self, call: Callable[[], R]) -> R:
        raise NotImplementedError


class AsyncHandle(AsyncOf[Closes]):
    """Opens its twin when it is first needed and runs its methods in threads of its own, `threads` at a time."""

    def __init__(self, open: Callable[[], Closes], *, threads: int = MAX_THREADS) -> None:
        self._open = open
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="recallite")
        self._owner = True
        self._opening = threading.Lock()
        self._twin: Closes | None = None

    async def open(self) -> Self:
        """Open the file, as `async with` and the first method awaited do."""
        await self._opened()
        return self

    async def close(self) -> None:
        """Close the file and end the threads. Again, it does nothing; a scoped handle leaves both."""
        if not self._owner:
            return
        from asyncio import get_running_loop

        loop = get_running_loop()
        # Methods that run are let finish: what they have written they can still report.
        await loop.run_in_executor(None, partial(self._executor.shutdown, wait=True))
        if self._twin is not None:
            await loop.run_in_executor(None, self._twin.close)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _now(self) -> Closes:
        """The twin, which must be open: for what is read without awaiting."""
        if self._twin is None:
            raise StoreClosed(f"this {type(self).__name__} is not open yet: use `async with`, or await open()")
        return self._twin

    async def _opened(self) -> Closes:
        def open_once() -> Closes:
            with self._opening:
                # Set in the thread: if the await is cancelled, close() still closes what is opened here.
                if self._twin is None:
                    self._twin = self._open()
                return self._twin

        return await self._run(open_once) if self._twin is None else self._twin

    async def _run(self, call: Callable[[], R]) -> R:
        from asyncio import get_running_loop  # here: it loads ssl and 30 other modules, which Memory does not need

        whose, dedicated = _transaction.get()
        executor = dedicated if whose is self._executor and dedicated is not None else self._executor
        try:
            # In the caller's context: what is traced in the thread belongs to the caller's span.
            running = get_running_loop().run_in_executor(executor, partial(copy_context().run, call))
        except RuntimeError:  # the executor was shut down
            raise StoreClosed(f"this {type(self).__name__} was closed: open a new one") from None
        return await running

    @asynccontextmanager
    async def _in_one_thread(self, enter: Callable[[Closes], AbstractContextManager[None]]) -> AsyncIterator[None]:
        """A context of the twin; what this task awaits in it runs in the thread that entered it."""
        twin = await self._opened()
        with ExitStack() as stack:
            if _transaction.get()[0] is not self._executor:
                dedicated = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="recallite-transaction"))
                stack.callback(_transaction.reset, _transaction.set((self._executor, dedicated)))
            context = enter(twin)
            try:
                await self._run(context.__enter__)
                yield
            except BaseException as fault:
                # If the await was cancelled the thread enters nevertheless, and leaves after it.
                await self._run(partial(context.__exit__, type(fault), fault, fault.__traceback__))
                raise
            await self._run(partial(context.__exit__, None, None, None))


class AsyncService(AsyncOf[T]):
    """A service of a handle, such as `memory.sessions`; `find` gives it from the handle's twin."""

    def __init__(self, handle: AsyncHandle[Any], find: Callable[[Any], T]) -> None:
        self._handle = handle
        self._find = find

    def _now(self) -> T:
        return self._find(self._handle._now())

    async def _opened(self) -> T:
        return self._find(await self._handle._opened())

    async def _run(self, call: Callable[[], R]) -> R:
        return await self._handle._run(call)


def awaited(method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[AsyncOf[T], P], Coroutine[Any, Any, R]]:
    """The same method, run in a thread; a cancelled await leaves it to finish there."""

    async def verb(self: AsyncOf[T], /, *args: P.args, **kwargs: P.kwargs) -> R:
        twin = await self._opened()
        return await self._run(partial(method, twin, *args, **kwargs))

    update_wrapper(verb, method)
    return verb


def passed_on(name: str) -> Any:
    """The property of this name of the twin, which has to be open; its type is declared where it stands."""
    return property(lambda self: getattr(self._now(), name))


def awaited_service(
    method: Callable[Concatenate[S, P], T], twin: Callable[[AsyncHandle[Any], Callable[[Any], T]], R]
) -> Callable[Concatenate[AsyncService[S], P], Coroutine[Any, Any, R]]:
    """The same for a method that gives a service, as `Sessions.open` does: its twin is given."""

    async def verb(self: AsyncService[S], /, *args: P.args, **kwargs: P.kwargs) -> R:
        service = await self._run(partial(method, await self._opened(), *args, **kwargs))
        return twin(self._handle, lambda _: service)

    update_wrapper(verb, method)
    return verb
