"""The share of the machine that this process may use, and the engine's thread pool.

Kernels release the GIL, so independent parts of a recall run in parallel.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

if sys.platform != "win32":
    import resource


_MAX_THREADS = 16
_most = _MAX_THREADS


def limit_cpus(most: int) -> None:
    """Have this process use at most `most` cores, as one of several that share a machine; call it before the rest."""
    global _most
    _most = max(1, most)


def usable_cpus() -> int:
    """Cores for bulk work: the affinity mask, cut to the cgroup's quota and to `limit_cpus`, at most 16."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):  # cgroup v2, then v1
        with suppress(OSError, ValueError, ZeroDivisionError):
            words = " ".join(Path("/sys/fs/cgroup", name).read_text("ascii") for name in names)
            limit, period = map(float, words.split())
            if limit > 0:
                cores = min(cores, round(limit / period))
            break
    return max(1, min(cores, _most, _MAX_THREADS))


def preemptions() -> int:
    """Count how often threads of this process lost a core that they still wanted; 0 if the system does not say."""
    if sys.platform != "win32":
        return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    return 0


def saturates_int8() -> bool:
    """Whether this CPU's 8-bit products may overflow 16 bits: x86 without VNNI, or x86 that does not say."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    try:
        with Path("/proc/cpuinfo").open(encoding="ascii", errors="replace") as stream:
            flags = next((line for line in stream if line.startswith("flags")), "").split()
    except OSError:
        return True
    return "avx512_vnni" not in flags and "avx_vnni" not in flags


Result = TypeVar("Result")

_lock = threading.Lock()
_pool: tuple[int, ThreadPoolExecutor | None, int] | None = None
_here = threading.local()


def threads() -> int:
    """Return the number of threads that `run_tasks` would use here: 1 within a task, which cannot wait for its pool."""
    return 1 if getattr(_here, "busy", False) else 1 + _workers()[1]


def run_tasks(tasks: Sequence[Callable[[], Result]], after_each: Callable[[], object] = lambda: None) -> list[Result]:
    """The results of all tasks, in order. The calling thread takes part, so a busy pool delays nobody; it calls
    `after_each` after each of its own tasks.

    One pool serves every engine of the process; a forked child creates its own. The first exception is raised after
    every started task has ended.
    """
    pool, workers = _workers()
    if pool is None or len(tasks) < 2 or getattr(_here, "busy", False):
        done: list[Result] = []
        for task in tasks:
            done.append(task())
            after_each()
        return done
    results: list[Result | None] = [None] * len(tasks)
    waiting = deque(range(len(tasks)))

    def drain(after: Callable[[], object]) -> None:
        _here.busy = True
        try:
            while True:
                try:
                    i = waiting.popleft()
                except IndexError:
                    return
                results[i] = tasks[i]()
                after()
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
