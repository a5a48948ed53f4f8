"""The engine's own threads: kernels release the GIL and are run on blocks of rows by these."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from recollect.cpus import usable_cpus

__all__ = ["in_blocks"]

_lock = threading.Lock()
_pool: tuple[int, ThreadPoolExecutor | None, int] | None = None


def in_blocks(work: Callable[[int, int], None], rows: int, smallest: int) -> None:
    """Call `work(start, stop)` for blocks that cover `rows`, one a processor, none below `smallest` rows.

    The caller's thread takes the first block. One pool serves every engine of the process; a forked child makes its
    own.
    """
    pool, workers = _workers()
    blocks = max(1, min(workers + 1, rows // smallest))
    if pool is None or blocks == 1:
        work(0, rows)
        return
    bounds = [rows * block // blocks for block in range(blocks + 1)]
    waiting: list[Future[None]] = [pool.submit(work, bounds[block], bounds[block + 1]) for block in range(1, blocks)]
    work(bounds[0], bounds[1])
    for each in waiting:
        each.result()


def _workers() -> tuple[ThreadPoolExecutor | None, int]:
    """The pool of this process and its threads beside the caller's."""
    global _pool
    if _pool is None or _pool[0] != os.getpid():
        with _lock:
            if _pool is None or _pool[0] != os.getpid():
                extra = usable_cpus() - 1
                pool = ThreadPoolExecutor(extra, thread_name_prefix="recollect-scan") if extra > 0 else None
                _pool = os.getpid(), pool, extra
    return _pool[1], _pool[2]
