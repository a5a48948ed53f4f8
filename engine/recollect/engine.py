"""The parts that every verb and service works on, put together once."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterable
from time import perf_counter
from typing import TYPE_CHECKING

from recollect.checks import now_us
from recollect.embedding.handle import EmbedderHandle
from recollect.errors import KernelError, RecollectError, StoreError
from recollect.index.memory_index import MemoryIndex
from recollect.settings import Settings
from recollect.store import writing
from recollect.store.lexicon import Lexicon
from recollect.store.store import Store

try:
    import recollect_kernels as kernels
except ValueError as refused:  # RECOLLECT_KERNELS names no backend, or one that is not installed
    raise KernelError(str(refused)) from None

if TYPE_CHECKING:
    from recollect.embedding.protocol import Embedder

__all__ = ["AccessLog", "Engine"]


class Engine:
    """A store, its words, its index and its embedder."""

    def __init__(self, path: str | os.PathLike[str], embedder: Embedder | None, settings: Settings) -> None:
        self.settings = settings
        self.store = Store(path, busy_timeout_ms=settings.busy_timeout_ms, durability=settings.durability)
        self.lexicon = Lexicon()
        self.index = MemoryIndex()
        self.accesses = AccessLog(self.store)
        self.embedder = EmbedderHandle(
            settings.embedder_name if embedder is None else embedder,
            query_cache_size=settings.query_cache_size,
        )
        # Until the JIT kernels are there the python backend answers: no recall waits for the compiler.
        kernels.start_background(compile=settings.compile_kernels)

    def kernels(self) -> kernels.KernelStatus:
        """Which kernel backend answers, and why."""
        return kernels.status()

    def warmup(self) -> dict[str, float]:
        """Load the embedder, the index and the JIT kernels; returns the seconds each took."""
        seconds = {}
        began = perf_counter()
        try:
            if self.embedder.enabled:
                self.embedder.queries(["warm up"])
        except RecollectError:
            pass  # stats() says why; keyword recall works
        seconds["embedder"] = perf_counter() - began
        began = perf_counter()
        with self.store.read() as connection:
            self.index.catch_up(connection)
        seconds["index"] = perf_counter() - began
        began = perf_counter()
        kernels.warmup()
        seconds["kernels"] = perf_counter() - began
        return seconds

    def close(self) -> None:
        """Write what is pending and close the store."""
        if not self.store.closed:
            self.accesses.flush()
        self.store.close()


class AccessLog:
    """Access counts in memory. Recall adds to them and never writes; other verbs and `close` flush them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._accessed_at = 0

    def add(self, public_ids: Iterable[str]) -> None:
        """Count one access of each."""
        with self._lock:
            self._counts.update(public_ids)
            self._accessed_at = now_us()

    def flush(self) -> None:
        """Write the counts. Where the store cannot be written now, they wait."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
            accessed_at = self._accessed_at
        if not counts:
            return
        try:
            with self._store.atomic() as connection:
                writing.touch(connection, counts, accessed_at)
        except StoreError:
            with self._lock:
                self._counts.update(counts)
