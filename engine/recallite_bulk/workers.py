"""Worker processes of one machine: batches go to them and come back in order, a bounded number at a time."""

from __future__ import annotations

import os
import pickle
import queue
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import get_context, resource_tracker
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from recallite.errors import InvalidInput, RecalliteError, WorkerLost, plain
from recallite.system.cpus import limit_cpus, usable_cpus
from recallite.system.messages import shown
from recallite.system.processes import ignore_interrupts, interrupts_held, safe_start

Task = TypeVar("Task")
Result = TypeVar("Result")
# Batches under way for each process: one in work and one that waits for it.
_AHEAD = 2


class _Pipe(Protocol):
    """One end of a pipe; those of Windows are of another class."""

    def send_bytes(self, data: bytes, /) -> None: ...
    def recv_bytes(self) -> bytes: ...
    def close(self) -> None: ...


class Workers(Generic[Task, Result]):
    """`count` processes, each of which calls `make()` once and what that returns with one task after another.

    They are started afresh ("spawn"), when there are tasks for them, share the cores of this process and end with it,
    however it ends. `make`, tasks and results are pickled. Use it with `with`. Raises InvalidInput if `make` cannot
    be pickled.

    A thread and a pipe for each: a ProcessPoolExecutor whose process ends while a task is written to it hangs before
    Python 3.11.6 (https://github.com/python/cpython/issues/94777).
    """

    def __init__(self, make: Callable[[], Callable[[Task], Result]], count: int) -> None:
        try:
            pickled = pickle.dumps(make)
        except Exception as fault:  # of the objects that it holds
            raise InvalidInput(
                f"worker processes cannot be given {shown(make, 200)} ({fault}): give names and settings, such as the "
                "name of an embedder in place of an object"
            ) from fault
        self._workers = [_Worker(pickled, max(1, usable_cpus() // count)) for _ in range(count)]
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="recallite-worker")

    def map(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the result of each task, in order. Tasks are taken as results are.

        Raises what a worker raised, and WorkerLost if one has ended.
        """
        under_way: deque[Future[Any]] = deque()
        stream, failure = iter(tasks), None
        while True:
            try:
                task = next(stream)
            except StopIteration:
                break
            except RecalliteError as fault:  # the tasks before it are done first
                failure = fault
                break
            under_way.append(self._threads.submit(self._call, task))
            if len(under_way) >= _AHEAD * len(self._workers):
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
        if failure is not None:
            raise failure

    def _call(self, task: Task) -> Any:
        worker = self._idle.get()
        try:
            return worker.call(task)
        finally:
            self._idle.put(worker)

    def __enter__(self) -> Workers[Task, Result]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:  # their work is not wanted any more
            self._threads.shutdown(wait=False, cancel_futures=True)
            for worker in self._workers:
                worker.kill()
        self._threads.shutdown()
        for worker in self._workers:
            worker.close()


class _Worker:
    """One process and the pipe to it; a thread at a time calls it."""

    _starting = threading.Lock()

    def __init__(self, pickled: bytes, cores: int) -> None:
        self._pickled, self._cores = pickled, cores
        self._process: SpawnProcess | None = None
        self._pipe: _Pipe | None = None
        self._killed = False

    def call(self, task: object) -> Any:
        """Return what the process returns for a task. Raises what it raises, and WorkerLost if it has ended."""
        data = pickle.dumps(task)
        try:
            pipe = self._pipe or self._start()
            pipe.send_bytes(data)
            answer = pipe.recv_bytes()
        except (EOFError, OSError) as ended:
            raise WorkerLost(
                "a worker process ended before its work was done: it was killed or ran out of memory, or the program "
                'that starts workers has no `if __name__ == "__main__":`. What is stored stays, and the same run again '
                "does the rest"
            ) from ended
        result, raised = pickle.loads(answer)
        if raised is not None:
            raise raised
        return result

    def kill(self) -> None:
        """End the process at once; whoever waits for it gets WorkerLost."""
        with self._starting:
            self._killed = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """Let the process end, which waits for tasks or was killed."""
        if self._pipe is not None and self._process is not None:
            self._pipe.close()
            self._process.join()

    def _start(self) -> _Pipe:
        context = get_context("spawn")
        with self._starting:
            if self._killed:
                raise EOFError
            here, there = context.Pipe()
            # Daemonic: if `with` is never left, this process does not wait for them as it ends.
            process = context.Process(target=_serve, args=(there, self._pickled, self._cores), daemon=True)
            # Ctrl-C is for this process alone, also while the other starts and has no handler of its own yet. The
            # tracker, which multiprocessing starts with the first process, would let the signal through again.
            with safe_start():
                resource_tracker.ensure_running()
                with interrupts_held():
                    process.start()
            there.close()
            self._process, self._pipe = process, here
        return here


def _serve(pipe: _Pipe, pickled: bytes, cores: int) -> None:
    """Answer tasks until the pipe ends, which it does with the process at its other end."""
    ignore_interrupts()
    limit_cpus(cores)
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(pipe, tasks), daemon=True).start()
    made: list[Callable[[Any], Any]] = []

    def call(task: bytes) -> Any:
        if not made:  # here, so that its errors are those of a task
            made.append(pickle.loads(pickled)())
        return made[0](pickle.loads(task))

    while True:
        pipe.send_bytes(_answer(call, tasks.get()))


def _receive(pipe: _Pipe, tasks: queue.SimpleQueue[bytes]) -> None:
    try:
        while True:
            tasks.put(pipe.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)


def _answer(call: Callable[[bytes], Any], task: bytes) -> bytes:
    """The pickle of what a call returned and what it raised, one of which is None."""
    try:
        return pickle.dumps((call(task), None))
    except RecalliteError as fault:
        return pickle.dumps((None, plain(fault)))
    except Exception as fault:
        fault.add_note(f"In a worker process:\n{''.join(traceback.format_exception(fault))}")
        try:
            answer = pickle.dumps((None, fault))
            pickle.loads(answer)
        except Exception:  # of a class that cannot be pickled
            return pickle.dumps((None, RuntimeError(*fault.__notes__)))
        return answer
