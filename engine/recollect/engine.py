"""The parts that every verb and service works on, put together once."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING

from msgspec import structs

from recollect.checks import now_us, shown, to_datetime
from recollect.embedding.handle import EmbedderHandle, Identity
from recollect.errors import EmbedderMismatch, InvalidInput, RecollectError, StoreError
from recollect.index.keeper import Keeper
from recollect.index.memory_index import MemoryIndex
from recollect.numerics import kernel_errors, kernels
from recollect.records import Record
from recollect.settings import Settings, language_model_address
from recollect.store import changing
from recollect.store.lexicon import Lexicon
from recollect.store.store import Store
from recollect.store.vectors import EmbedderRow, active_embedder

if TYPE_CHECKING:
    import apsw

    from recollect.embedding.protocol import Embedder
    from recollect.llm.protocol import LanguageModel
    from recollect.remote.address import ModelAddress

__all__ = ["AccessLog", "Engine"]

_COUNTS_A_WRITE = 256
# From here on loading the index with the python backend takes longer than loading the kernels first: at 100,000
# records 0.4 s more, and the kernels take 0.25 s.
_LARGE = 30_000


class Engine:
    """A store, its words, its index and its embedder."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        embedder: Embedder | ModelAddress | str | None,
        settings: Settings,
        language_model: LanguageModel | None = None,
    ) -> None:
        self.settings = settings
        self.language_model = _named_language_model() if language_model is None else _checked_model(language_model)
        self.store = Store(path, busy_timeout_ms=settings.busy_timeout_ms, durability=settings.durability)
        self.lexicon = Lexicon()
        self.store.on_rollback(lambda: self.lexicon.forget_unsaved())
        self._keeper = Keeper(self.store, enabled=settings.sidecar, low_memory=settings.low_memory)
        self.index = MemoryIndex(self._keeper)
        # Whether records may wait for vectors; unknown at open, so the first write looks.
        self.may_have_pending = True
        self._kernels_started = False
        self.accesses = AccessLog()
        self.embedder = EmbedderHandle(
            settings.embedder_spec if embedder is None else embedder,
            query_cache_size=settings.query_cache_size,
            token_codes=settings.token_codes,
        )

    @contextmanager
    def atomic(self) -> Iterator[apsw.Connection]:
        """A write transaction of the store, which takes some access counts along."""
        counts, accessed_at = self.accesses.take(_COUNTS_A_WRITE)
        try:
            with self.store.atomic() as connection:
                yield connection
                if counts:
                    changing.touch(connection, counts, accessed_at)
        except BaseException:
            self.accesses.put_back(counts)
            raise

    def active_embedder(self) -> EmbedderRow | None:
        """Whose vectors the store holds; None before the first."""
        with self.store.read() as connection:
            return active_embedder(connection)

    def check_embedder(self, active: EmbedderRow | None) -> Identity:
        """The embedder's identity; EmbedderMissing or EmbedderMismatch unless it makes vectors like the store's."""
        identity = self.embedder.identity()
        if active is not None and active.fingerprint != identity.fingerprint:
            raise EmbedderMismatch(
                f"{self.store.path} holds vectors of {active.name} ({active.dimension}, {active.fingerprint}); this "
                f"embedder is {identity.name} ({identity.dimension}, {identity.fingerprint}). "
                f"Run: recollect --db {self.store.path} reembed"
            )
        return identity

    def counted(self, record: Record) -> Record:
        """A record as it is stored, with the accesses that are not written yet."""
        accesses, accessed_at = self.accesses.pending(record.id)
        if not accesses:
            return record
        return structs.replace(
            record, access_count=record.access_count + accesses, accessed_at=to_datetime(accessed_at)
        )

    def start_kernels(self) -> None:
        """Begin to load the JIT kernels, once. Until they are there the python backend answers: no recall waits for
        the compiler. Before a large index is loaded compiled kernels are waited for: they make up for it many times.
        """
        # One recall of a million records takes the python backend 0.1 s; numba alone takes 0.25 s to load.
        if self._kernels_started or self.settings.index == "once":
            return
        self._kernels_started = True
        compiled = kernels.cached()
        loading = kernels.start_background(compile=self.settings.compile_kernels)
        if loading is None or not compiled or self.index.sequence >= 0:
            return
        if self.store.size() > _LARGE and not self._keeper.has_sidecar():
            loading.join()

    def answers_from_sql(self) -> bool:
        """Whether recall takes the cold path: by setting, or once where loading the index would take longer."""
        if self.settings.index != "once":
            return self.settings.index == "cold"
        return self.index.sequence < 0 and self.store.size() > _LARGE and not self._keeper.has_sidecar()

    def kernels(self) -> kernels.KernelStatus:
        """Which kernel backend answers, and why."""
        return kernels.status()

    def warmup(self, on_progress: Callable[[int, int | None], None] | None = None) -> dict[str, float]:
        """Load the embedder, the index and the JIT kernels; returns the seconds each took."""
        seconds = {}
        began = perf_counter()
        # Where there is no embedder keyword recall works, and stats() says why.
        with suppress(RecollectError):
            if self.embedder.enabled:
                self.embedder.queries(["warm up"])
        seconds["embedder"] = perf_counter() - began
        # Before the index: inverting the words of a million records takes the python backend many seconds.
        began = perf_counter()
        each = None if on_progress is None else (lambda _, done, total: on_progress(done, total))
        with kernel_errors():
            kernels.warmup(each)
        seconds["kernels"] = perf_counter() - began
        began = perf_counter()
        with self.store.read() as connection:
            self.index.catch_up(connection)
        seconds["index"] = perf_counter() - began
        return seconds

    def close(self) -> None:
        """Write what is pending and close the store."""
        if not self.store.closed:
            counts, accessed_at = self.accesses.take()
            if counts:
                # Counts are not worth waiting for: where another process writes, they are lost.
                with suppress(StoreError), self.store.atomic(wait=False) as connection:
                    changing.touch(connection, counts, accessed_at)
            self._keeper.close(self.index)
        self.store.close()


def _checked_model(model: LanguageModel) -> LanguageModel:
    if isinstance(model, type) or not callable(getattr(model, "complete", None)):
        raise InvalidInput(
            f"language_model {shown(model)} has no method complete(messages, *, schema=None, max_tokens=None): "
            "give an object that has, such as recollect.llm.OpenAICompatible(base_url, model)"
        )
    return model


def _named_language_model() -> LanguageModel | None:
    """The language model that the environment names; nothing is imported where it names none."""
    if language_model_address() is None:
        return None
    from recollect.llm.client import OpenAICompatible

    return OpenAICompatible()


class AccessLog:
    """Access counts in memory. Recall adds to them and never writes; they go with the next write, and at close."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._accessed_at = 0

    def add(self, public_ids: Iterable[str]) -> None:
        """Count one access of each."""
        with self._lock:
            self._counts.update(public_ids)
            self._accessed_at = now_us()

    def pending(self, public_id: str) -> tuple[int, int]:
        """Accesses of a record that are not written yet, and the time of the last access of any."""
        with self._lock:
            return self._counts.get(public_id, 0), self._accessed_at

    def take(self, most: int | None = None) -> tuple[Counter[str], int]:
        """Take out the counts of at most `most` records, to write them."""
        with self._lock:
            taken = Counter(dict(islice(self._counts.items(), most)))
            for public_id in taken:
                del self._counts[public_id]
            return taken, self._accessed_at

    def put_back(self, counts: Counter[str]) -> None:
        """Return counts that could not be written."""
        with self._lock:
            self._counts.update(counts)
