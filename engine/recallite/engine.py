"""The parts that every method and service uses: store, index, embedder."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Literal, Protocol
from weakref import WeakMethod

from msgspec import structs

from recallite.embedding.handle import EmbedderHandle, Identity
from recallite.embedding.load import bundled_name
from recallite.embedding.protocol import Prefixes
from recallite.errors import EmbedderMismatch, InvalidInput, RecalliteError, StoreError
from recallite.index.memory_index import MemoryIndex
from recallite.index.snapshot import SnapshotManager
from recallite.model.checks import now_us, to_datetime
from recallite.model.environment import (
    ModelAddress,
    language_model_address,
    named_embedder,
    named_language_model,
    tuning,
)
from recallite.model.records import Record
from recallite.model.settings import Settings
from recallite.store.opening import open_store
from recallite.store.sql.records import Access
from recallite.store.sql.vectors import EmbedderRow
from recallite.store.store import Store
from recallite.store.transaction import Writer
from recallite.system.messages import Deferred, shown
from recallite.system.numerics import kernel_errors, kernels
from recallite.system.telemetry import logger
from recallite.system.turnstile import Background, StepSize, giving_way

if TYPE_CHECKING:
    from recallite import derivation
    from recallite.embedding.protocol import Embedder
    from recallite.remote import LanguageModel
else:  # who only reads loads nothing that reads texts
    derivation = Deferred("recallite.derivation")


_log = logger(__name__)
# The accesses of ten hits are rows on ten pages: saved together they share pages. So a small write leaves them alone if
# some were saved in the last minute and no more than these wait, which take it 10 ms.
_ACCESSES_TOGETHER, _ACCESSES_EVERY_S = 2048, 60.0
_RECALLS_KEPT = 256
_SCOPES_KEPT = 64
# The index follows a write of at most this many changes at once: a hundred take hardly longer than one.
_FOLLOWED = 64
# Above this, loading the kernels before the index is faster: at 100,000 records the Python backend takes 0.4 s longer,
# and the kernels 0.1 s.
_LARGE = 30_000


class Engine:
    """A store, its index and its embedder; the store is opened at `path`, unless an open one is given."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        embedder: Embedder | ModelAddress | str | None,
        settings: Settings,
        language_model: LanguageModel | str | None = None,
        *,
        key: str | None = None,
        store: Store | None = None,
    ) -> None:
        self.settings, self.tuning, self.write_policy = settings, tuning(), settings.write_policy
        if key is not None:
            self._refuse_low_memory()
        self.language_model = _language_model(language_model)
        spec = settings.embedder_spec if embedder is None else embedder
        if isinstance(spec, str):
            spec = named_embedder(spec)
        self.store = store or open_store(
            path, busy_timeout_ms=settings.busy_timeout_ms, durability=settings.durability,
            vector_type=settings.vectors, sql_search=settings.sql_search, key=key,
            derive=lambda texts: derivation.derive(texts),
        )  # fmt: skip
        self._snapshots = SnapshotManager(
            self.store, enabled=settings.index_snapshot, low_memory=self.tuning.low_memory
        )
        self.index = MemoryIndex(self._snapshots)
        # Those of single scopes, of a store that can read them by themselves; the one that was asked for last is last.
        self._of_scopes: dict[str, MemoryIndex] = {}
        self._choosing = threading.Lock()
        self._forget_what_was_read()
        forget = WeakMethod(self._forget_what_was_read)
        self.store.on_let_go = lambda: (forget() or bool)()
        self._kernels_started = self._has_recalled = False
        self.accesses = AccessLog()
        # The access counts that each thread has written in the `transaction` that it is inside.
        self._undone_with: dict[int, list[Mapping[str, Access]]] = {}
        self.background = Background("judging by the language model")
        self.comparing = Background("comparing memories")
        self.consolidating = Background("extracting facts from episodes")
        self.embedding = Background("embedding memories that wait")
        self._backgrounds = self.comparing, self.background, self.consolidating, self.embedding
        self.embedder = EmbedderHandle(
            spec, query_cache_size=self.tuning.query_cache_size, token_codes=settings.token_codes,
            prefixes=Prefixes(settings.query_prefix or "", settings.document_prefix or ""),
        )  # fmt: skip
        _log.info("opened %s%s", self.store.path, " (encrypted)" if self.store.encrypted else "")

    def _forget_what_was_read(self) -> None:
        """Know nothing of the store, as at first: its file may be another one when it is opened again."""
        # The store's embedder, which is this engine's, once a recall has found it with codes of tokens.
        self.queried_embedder: EmbedderRow | None = None
        # The embedder of the stored vectors when it was last read; another process may have changed it since.
        self.last_embedder: EmbedderRow | None = None
        # Whether records may wait for vectors; not known at open, so the first write or recall checks.
        self.may_have_pending = True
        # Whether many records may have been written that are not compared yet.
        self.may_have_uncompared = True

    @contextmanager
    def atomic(
        self,
        locks: Sequence[str] | None = None,
        *,
        step: StepSize | None = None,
        counts: Literal["all", "many", "due"] = "many",
    ) -> Iterator[Writer]:
        """A write transaction of the store, which also writes access counts; `locks`: see `Store.atomic`.

        With `step` it is a turn of work in the background, whose length tells how much to do in the next. One that
        purges writes `all` counts first, so that a new record with the id of an old one does not get them.
        """
        most = None if counts == "all" else _ACCESSES_TOGETHER
        accesses = {} if counts == "due" and not self.accesses.due else self.accesses.take(most)
        try:
            with (
                nullcontext() if step is None else giving_way(rests=step.rests),
                self.store.atomic(locks=locks) as writer,
            ):
                if self._snapshots.last_before is None:
                    self._snapshots.before_write(writer)
                if accesses:
                    writer.records.touch(accesses)  # before what is read here and returned
                with nullcontext() if step is None else step.turn():
                    yield writer
        except BaseException:
            self.accesses.put_back(accesses)
            raise
        if accesses and (undone_with := self._undone_with.get(threading.get_ident())) is not None:
            undone_with.append(accesses)
        if self.index.recalled and not self.store.reads_scopes and not self.store.writing:
            # The index of a file follows its writes at once, so that the next recall need not.
            with self.afterwards("updating the index"), self.store.read() as reader:
                self.index.follow(reader, _FOLLOWED)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """`Store.transaction`; the access counts that are written in it wait again if it is undone."""
        written: list[Mapping[str, Access]] = []
        thread = threading.get_ident()
        around, self._undone_with[thread] = self._undone_with.get(thread), written
        try:
            with self.store.transaction():
                yield
        except BaseException:
            for accesses in written:
                self.accesses.put_back(accesses)
            raise
        else:
            if around is not None:
                around += written
        finally:
            if around is None:
                del self._undone_with[thread]
            else:
                self._undone_with[thread] = around

    @contextmanager
    def afterwards(self, what: str) -> Iterator[None]:
        """Do what serves a write after its commit. The write is stored, so what fails here is left to a later call.

        Inside a transaction a failure is raised, as one of the transaction, which SQLite may have rolled back for it.
        """
        try:
            yield
        except Exception as failure:
            if self.store.writing:
                raise
            _log.debug("%s after a write failed with %s", what, type(failure).__name__)

    def finds_waiting(self) -> bool:
        """Whether memories wait for vectors that can be made now: a recall looks, so that they need no write for it.

        An embedder whose last request failed is asked by writes and recalls, at its own intervals, and not for this.
        """
        if self.embedding.runs or self.store.writing or self.embedder.failure is not None:
            return False
        self.may_have_pending = False
        waits = self.embedder.enabled and not self.store.read_only
        if waits:
            with self.afterwards("looking for memories to embed"), self.store.read() as reader:
                waits = bool(reader.vectors.waiting(1))
        self.may_have_pending |= waits
        return waits

    def index_within(self, scope: str) -> MemoryIndex:
        """The index that has the records of a scope: the smallest that is loaded, or one of this scope alone.

        A file's is of the whole file: to read it takes little longer than to find what belongs to a scope.
        """
        if scope == "/" or not self.store.reads_scopes or self.index.commit is not None:
            return self.index
        with self._choosing:
            around = [indexed for indexed in self._of_scopes if scope == indexed or scope.startswith(f"{indexed}/")]
            name = max(around, key=len, default=scope)
            index = self._of_scopes.pop(name, None) or MemoryIndex(self._snapshots, name)
            while len(self._of_scopes) >= _SCOPES_KEPT:
                del self._of_scopes[next(iter(self._of_scopes))]
            self._of_scopes[name] = index
        return index

    def active_embedder(self) -> EmbedderRow | None:
        """The embedder of the stored vectors; None before the first vector."""
        with self.store.read() as reader:
            self.last_embedder = reader.vectors.active_embedder()
        return self.last_embedder

    def check_embedder(self, active: EmbedderRow | None) -> Identity:
        """The embedder's identity. Raises EmbedderError, and EmbedderMismatch if `active` is another embedder."""
        identity = self.embedder.identity()
        if active is not None and active.fingerprint != identity.fingerprint:
            bundled = bundled_name(active.fingerprint)
            keep = f"; or open it with Settings(embedder={bundled!r})" if bundled else ""
            raise EmbedderMismatch(
                f"{self.store.path} holds vectors of {active.name} ({active.dimension}, {active.fingerprint}); this "
                f"embedder is {identity.name} ({identity.dimension}, {identity.fingerprint}). "
                f"Run: recallite --db {self.store.path} reembed{keep}"
            )
        if active is not None and active.dimension != identity.dimension:
            raise EmbedderMismatch(
                f"{self.store.path} holds vectors of {active.name} with {active.dimension} dimensions; now it gives "
                f"{identity.dimension} by the same fingerprint {active.fingerprint}: give it another, then run "
                f"recallite --db {self.store.path} reembed"
            )
        return identity

    def counted(self, record: Record) -> Record:
        """A stored record with the accesses that are not written yet; a closed version has none."""
        pending = self.accesses.pending(record.id)
        if pending is None or record.recorded_until is not None:
            return record
        count, accessed_at = record.access_count + pending.times, to_datetime(pending.last_at)
        return structs.replace(record, access_count=count, accessed_at=accessed_at)

    def require_whole(self, verb: str, *, owner: bool) -> None:
        """Raise InvalidInput for a scoped handle and StoreError for a tenant; `verb` names what needs more."""
        if (confined := self.store.confined_to) is not None:
            raise StoreError(
                f"{verb} works on the whole memory, of which the user of {self.store.path} has the scope {confined}: "
                "ask its owner",
                "denied",
            )
        if not owner:
            raise InvalidInput(f"{verb} works on the whole file: call it on the Memory that opened it, not on a scope")

    def rekey(self, key: str | None) -> None:
        """Encrypt the store with another key, or decrypt it."""
        if key is not None:
            self._refuse_low_memory()
        self.store.rekey(key)

    def _refuse_low_memory(self) -> None:
        if self.tuning.low_memory:
            raise InvalidInput(
                "RECALLITE_LOW_MEMORY keeps codes of vectors in a file that is not encrypted: leave it out with a key"
            )

    def start_kernels(self, queries: int = 1) -> None:
        """Start loading the JIT kernels, once. Until they are ready, the Python backend answers.

        Only the load of a large index from the store waits for compiled kernels, when it has read the words: they save
        many times that time. The first query does not load them: a process that asks one query does not pay for them.
        """
        if self._kernels_started:
            return
        # A recall from a million records takes the Python backend 0.1 s; loading the kernels takes as long. For a small
        # store they are not worth their memory.
        least = self.tuning.kernels_from
        if least and (self.store.size() if self.index.commit is None else len(self.index.table)) < least:
            return
        load_index = self.index.commit is None and self.store.size() > _LARGE and not self._snapshots.exists()
        first, self._has_recalled = not self._has_recalled, True
        if first and queries == 1 and not load_index:
            return
        self._kernels_started = True
        try:
            compiled = kernels.cached()
            loading = kernels.start_background(compile=self.tuning.compile_kernels)
        except OSError:  # e.g. no file descriptors left: a later recall tries again
            self._kernels_started = False
            return
        if loading is not None and compiled and load_index:
            self.index.before_inverting = loading.join

    def warmup(self, on_progress: Callable[[int, int | None], None] | None = None) -> dict[str, float]:
        """Load the embedder, the index and the JIT kernels; returns the seconds each took."""
        seconds, began = {}, perf_counter()
        # Without an embedder recall uses keywords, and memory.store.stats() says why.
        with suppress(RecalliteError):
            if self.embedder.enabled:
                self.embedder.queries(["warm up"])
        seconds["embedder"] = perf_counter() - began
        # Before the index: the Python backend takes many seconds to invert the words of a million records.
        began = perf_counter()
        of_kernel = None if on_progress is None else (lambda _, done, total: on_progress(done, total))
        with kernel_errors():
            kernels.warmup(of_kernel)
        seconds["kernels"] = perf_counter() - began
        began = perf_counter()
        with self.store.read() as reader:
            self.index.catch_up(reader)
        seconds["index"] = perf_counter() - began
        return seconds

    def let_go(self) -> bool:
        """Close the connections of a file that nobody uses just now, until the next use; False where it is in use.

        Index and model stay. The next use opens the file again, and compares the index with its change feed.
        """
        idle = all(background.wait(0) for background in self._backgrounds)
        return idle and self.store.let_go()

    def close(self) -> None:
        """Stop the background, write pending access counts and the index snapshot, and close the store."""
        for background in self._backgrounds:
            background.stop()
        if not self.store.closed:
            if accesses := self.accesses.take():
                # Not worth waiting for: if another process is writing, the counts are lost.
                with suppress(StoreError), self.store.atomic(wait=False) as writer:
                    writer.records.touch(accesses)
            with suppress(StoreError):  # the file may be gone
                if self._snapshots.is_worth_loading(self.index):
                    self.start_kernels(2)
            self._snapshots.close(self.index)
            _log.info("closes %s", self.store.path)
        self.store.close()


def _language_model(model: LanguageModel | str | None) -> LanguageModel | None:
    """The given language model, or the one that the name or the environment names; imports nothing without one."""
    if model is not None and not isinstance(model, str):
        if isinstance(model, type) or not callable(getattr(model, "complete", None)):
            raise InvalidInput(
                f"language_model {shown(model)} has no method complete(messages, *, schema=None, max_tokens=None): "
                "give an object that has, such as recallite.remote.OpenAICompatible(base_url, model), "
                "or the name of a model with its provider, as 'ollama/llama3.2'"
            )
        return model
    address = language_model_address() if model is None else named_language_model(model)
    if address is None:
        return None
    from recallite.remote import OpenAICompatible

    return OpenAICompatible(address=address)


class AccessLog:
    """Access counts in memory: recall does not write, so they are written with a later write and at close."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._accesses: dict[str, Access] = {}
        self._taken_at = perf_counter()
        # What was recalled when, not counted yet: a recall waits for no lock.
        self._recalled: deque[tuple[int, Sequence[tuple[str, int]]]] = deque()

    def add(self, recalled: Sequence[tuple[str, int]]) -> None:
        """Count one access of each, given by public id and row id."""
        self._recalled.append((now_us(), recalled))
        if len(self._recalled) > _RECALLS_KEPT:
            with self._lock:
                self._count()

    def pending(self, public_id: str) -> Access | None:
        """Accesses of a record that are not written yet."""
        with self._lock:
            if self._recalled:
                self._count()
            return self._accesses.get(public_id)

    def _count(self) -> None:
        while self._recalled:
            now, recalled = self._recalled.popleft()
            for public_id, row_id in recalled:
                self._add(public_id, Access(row_id, 1, now))

    def _add(self, public_id: str, access: Access) -> None:
        """Add accesses; those of a record that another has followed under its id are dropped."""
        before = self._accesses.get(public_id)
        if before is not None and before.row_id >= access.row_id:
            if before.row_id > access.row_id:
                return
            access = Access(access.row_id, before.times + access.times, max(before.last_at, access.last_at))
        self._accesses[public_id] = access

    @property
    def due(self) -> bool:
        """Whether even a small write should take them: many wait, or none were taken for a minute."""
        return len(self._accesses) >= _ACCESSES_TOGETHER or perf_counter() > self._taken_at + _ACCESSES_EVERY_S

    def take(self, most: int | None = None) -> dict[str, Access]:
        """Remove and return the accesses of at most `most` records, for writing."""
        if not self._recalled and not self._accesses:
            return {}
        with self._lock:
            self._taken_at = perf_counter()
            self._count()
            return {public_id: self._accesses.pop(public_id) for public_id in [*islice(self._accesses, most)]}

    def put_back(self, accesses: Mapping[str, Access]) -> None:
        """Add accesses that could not be written."""
        with self._lock:
            for public_id, access in accesses.items():
                self._add(public_id, access)


class Handle(Protocol):
    """A memory, whole or bound to a scope, as its namespaces see it."""

    _engine: Engine
    _scope: str
    _owner: bool


class Namespace:
    """Methods of a memory under a common name, confined to the scope of its handle."""

    def __init__(self, memory: Handle) -> None:
        self._engine, self._scope, self._owner = memory._engine, memory._scope, memory._owner

    def _require_whole(self, verb: str) -> None:
        """Raise InvalidInput or StoreError if the handle has a part of the store alone."""
        self._engine.require_whole(verb, owner=self._owner)
