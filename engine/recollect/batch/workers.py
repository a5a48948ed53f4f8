"""Worker processes of one machine: batches go to them and come back in order, a bounded number at a time."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Generic, TypeVar

from recollect import errors
from recollect.checks import shown
from recollect.cpus import limit_cpus, usable_cpus
from recollect.errors import InvalidInput, InvalidItem, RecollectError, WorkerLost

__all__ = ["Workers"]

Task = TypeVar("Task")
Result = TypeVar("Result")
# Batches under way for each process: one in work and one that waits for it.
_AHEAD = 2


class Workers(Generic[Task, Result]):
    """So many processes, each of which calls `make()` once and what that returns with one task after another.

    They are started afresh ("spawn"), share the cores of this process and end with it, however it ends. `make`, tasks
    and results are pickled. Use it with `with`. Raises InvalidInput where `make` cannot be pickled.
    """

    def __init__(self, make: Callable[[], Callable[[Task], Result]], count: int) -> None:
        try:
            pickled = pickle.dumps(make)
        except Exception as fault:  # of the objects that it holds
            raise InvalidInput(
                f"worker processes cannot be given {shown(make, 200)} ({fault}): give names and settings, such as the "
                "name of an embedder in place of an object"
            ) from fault
        self._count = count
        there, here = get_context("spawn").Pipe(duplex=False)
        # When this end is closed, with this process at the latest, the workers end.
        self._lifeline = here
        self._pool = ProcessPoolExecutor(
            count, get_context("spawn"), initializer=_begin, initargs=(there, pickled, max(1, usable_cpus() // count))
        )

    def map(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """The result of each task, in order. Tasks are taken as results are.

        Raises what a worker raised, and WorkerLost where one has ended.
        """
        under_way: deque[Future[Any]] = deque()
        given, failure = iter(tasks), None
        try:
            while True:
                try:
                    task = next(given)
                except StopIteration:
                    break
                except RecollectError as fault:  # the tasks before it are done first
                    failure = fault
                    break
                under_way.append(self._pool.submit(_call, task))
                if len(under_way) >= _AHEAD * self._count:
                    yield _result(under_way.popleft())
            while under_way:
                yield _result(under_way.popleft())
        except BrokenProcessPool as broken:
            raise WorkerLost(
                "a worker process ended before its work was done: it was killed or ran out of memory, or the program "
                'that starts workers has no `if __name__ == "__main__":`. What is stored stays, and the same run again '
                "does the rest"
            ) from broken
        if failure is not None:
            raise failure

    def __enter__(self) -> Workers[Task, Result]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._lifeline.close()  # their work is not wanted any more
        self._pool.shutdown(cancel_futures=True)
        self._lifeline.close()


class _Raised(RecollectError):
    """An error of a worker, which may have no form that can be pickled."""

    def __init__(self, name: str, message: str, place: int | None = None) -> None:
        super().__init__(name, message, place)
        self.name, self.message, self.place = name, message, place


def _result(future: Future[Any]) -> Any:
    try:
        return future.result()
    except _Raised as raised:
        reason = getattr(errors, raised.name, RecollectError)(raised.message)
        raise (reason if raised.place is None else InvalidItem(raised.place, 0, reason)) from None


_made: Any = None


def _begin(lifeline: Connection, pickled: bytes, cores: int) -> None:
    """Make a new process a worker."""
    global _made
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that was asked decides what Ctrl-C ends
    limit_cpus(cores)
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    _made = pickled


def _end_with(lifeline: Connection) -> None:
    try:
        lifeline.recv()
    except (EOFError, OSError):
        os._exit(1)


def _call(task: Any) -> Any:
    global _made
    try:
        if isinstance(_made, bytes):  # here, so that its errors are those of a task
            _made = pickle.loads(_made)()
        return _made(task)
    except InvalidItem as refused:
        raise _Raised(type(refused.reason).__name__, str(refused.reason), refused.position) from None
    except RecollectError as fault:
        raise _Raised(type(fault).__name__, str(fault)) from None
