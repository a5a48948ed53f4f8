"""The engine's thread pool: kernels release the GIL, so independent parts of a recall run in parallel."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import pairwise
from typing import TypeVar

from recallite.system.cpus import usable_cpus

Result = TypeVar("Result")

_lock = threading.Lock()
_pool: tuple[int, ThreadPoolExecutor | None, int] | None = None
_here = threading.local()


def threads() -> int:
    """Return the number of threads that `run_tasks` would use here: 1 within a task, which cannot wait for its pool."""
    return 1 if getattr(_here, "busy", False) else 1 + _workers()[1]


def blocks(rows: int, smallest: int, per_thread: int = 1) -> list[tuple[int, int]]:
    """Split `rows` into `per_thread` blocks for each thread, fewer if one would have less than `smallest` rows."""
    count = 1 if threads() == 1 else max(1, min(per_thread * threads(), rows // smallest))
    return list(pairwise(rows * block // count for block in range(count + 1)))


def run_tasks(tasks: Sequence[Callable[[], Result]], after_each: Callable[[], object] = lambda: None) -> list[Result]:
    """The results of all tasks, in order. The calling thread takes part, so a busy pool delays nobody; it calls
    `after_each` after each of its own tasks.

    One pool serves every engine of the process; a forked child creates its own. The first exception is raised after
    every started task has ended.
    """
    pool, workers = _workers()
    if pool is None or len(tasks) < 2 or getattr(_here, "busy", False):
        return [_then(task(), after_each) for task in tasks]
    results: list[Result | None] = [None] * len(tasks)
    waiting = deque(range(len(tasks)))

    def drain(after: Callable[[], object]) -> None:
        _here.busy = True
        try:
            while True:
                try:
                    place = waiting.popleft()
                except IndexError:
                    return
                results[place] = _then(tasks[place](), after)
        except BaseException:
            waiting.clear()
            raise
        finally:
            _here.busy = False

    helpers: list[Future[None]] = [pool.submit(drain, lambda: None) for _ in range(min(workers, len(tasks) - 1))]
    try:
        drain(after_each)
    finally:
        # A helper that has not started would find nothing to do: do not wait for it.
        begun = [helper for helper in helpers if not helper.cancel()]
        wait(begun)
    for helper in begun:
        helper.result()
    return results  # type: ignore[return-value]


def _then(result: Result, after: Callable[[], object]) -> Result:
    after()
    return result


def _workers() -> tuple[ThreadPoolExecutor | None, int]:
    """The pool of this process, and how many threads it has besides the caller's."""
    global _pool
    if _pool is None or _pool[0] != os.getpid():
        with _lock:
            if _pool is None or _pool[0] != os.getpid():
                extra = usable_cpus() - 1
                pool = ThreadPoolExecutor(extra, thread_name_prefix="recallite-scan") if extra > 0 else None
                _pool = os.getpid(), pool, extra
    return _pool[1], _pool[2]
