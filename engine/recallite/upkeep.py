"""`memory.store`: figures, checks and upkeep of the file or the server's schema."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from recallite.engine import Namespace
from recallite.errors import EmbedderError
from recallite.model import checks
from recallite.model.reports import Forgotten, Stats, Verification
from recallite.recall.query import notes_on
from recallite.store.store import Progress
from recallite.system import numerics
from recallite.system.asynchrony import AsyncService, awaited
from recallite.system.messages import Deferred
from recallite.system.telemetry import traced

if TYPE_CHECKING:
    from recallite.remember import change, pending
else:  # stats and verify load nothing that writes
    change = Deferred("recallite.remember.change")
    pending = Deferred("recallite.remember.pending")

_REFUSED_SHOWN = 5


class MemoryStore(Namespace):
    """Upkeep of a store. A scoped handle has only `stats`, `purge_expired`, `catch_up` and `warmup`."""

    def stats(self) -> Stats:
        """Counts and versions, and the state of embedder, kernels and index; a scoped handle counts its own scope."""
        engine = self._engine
        figures = engine.store.stats(self._scope)
        with engine.store.read() as reader:
            refused = reader.vectors.refused(self._scope, _REFUSED_SHOWN)
            index = engine.index.describe() if self._scope == "/" else {}
            unreadable = reader.comparisons.unreadable() if self._scope == "/" else []
        kernels = numerics.kernels.status()
        notes = [] if engine.embedder.failure is None else [engine.embedder.failure]
        notes += notes_on(figures["embedder"], engine.embedder.cohort)
        ids_by_reason: dict[str, list[str]] = {}
        for public_id, _, reason in refused:
            ids_by_reason.setdefault(reason, []).append(public_id)
        notes += [f"the embedder refuses {', '.join(ids)}: {reason}" for reason, ids in ids_by_reason.items()]
        if kernels.active != kernels.selected or kernels.selected == "python":
            notes.append(f"kernels run in Python: {kernels.reason}")
        behind = {
            "changes are not judged by the language model": engine.background,
            "what was written many at a time is not compared": engine.comparing,
            "facts are not extracted from episodes": engine.consolidating,
        }
        notes += [f"{what}: {work.failure}" for what, work in behind.items() if work.failure is not None]
        if unreadable:
            waiting = sum(entry.last_id - entry.first_id + 1 for entry in unreadable)
            notes.append(f"{waiting} memories wait under a policy that cannot be read: recallite rebuild compares them")
        if figures["vector_extension"] is None and figures["database"].startswith("SQLite"):
            notes.append("sqlite-vec cannot be loaded: SQL has no vector functions; Python measures vectors instead")
        if engine.store.read_only:
            notes.append("the store is where nothing can be written: it is open for reading only")
        encrypted = engine.store.encrypted
        if encrypted and engine.settings.index_snapshot:
            notes.append("the store is encrypted: no index is kept beside it, every process loads its own")
        searchable = figures["dimension"] is not None and engine.embedder.enabled and not engine.embedder.failure
        return Stats(
            **figures,
            encrypted=encrypted,
            kernels=kernels.active,
            mode="hybrid" if searchable else "keyword",
            index=index,
            notes=tuple(notes),
        )

    @traced("verify", lambda verification: {"problems": len(verification.problems)})
    def verify(self, *, on_progress: Progress | None = None) -> Verification:
        """Check the file, and compare everything derived with the records. Nothing is changed."""
        self._require_whole("store.verify")
        return self._engine.store.verify(on_progress)

    @traced("rebuild", lambda verification: {"problems": len(verification.problems)})
    def rebuild(self, *, on_progress: Progress | None = None) -> Verification:
        """Derive everything from the records again, embed records without vectors, and verify."""
        self._require_whole("store.rebuild")
        self._engine.store.rebuild(on_progress)
        if self._engine.embedder.enabled:
            with suppress(EmbedderError):  # they still wait
                pending.embed_pending(self._engine)
        return self.verify()

    @traced("vacuum", lambda count: {"bytes": count})
    def vacuum(self) -> int:
        """Return unused space to the file system; returns how many bytes."""
        self._require_whole("store.vacuum")
        return self._engine.store.vacuum()

    @traced("backup")
    def backup(self, target: str | os.PathLike[str], *, on_progress: Progress | None = None) -> str:
        """Copy the store, as of one commit, to a new file, while others read and write; returns its path."""
        self._require_whole("store.backup")
        return self._engine.store.backup(target, on_progress)

    @traced("rekey")
    def rekey(self, key: str | None) -> None:
        """Encrypt the file with `key`, or (None) decrypt it; all of it or nothing.

        `key` is as for `Memory`. Backups keep the key they were made with. Raises StoreUnavailable if another
        process, or a recall in another thread, has the file open.
        """
        self._require_whole("store.rekey")
        self._engine.rekey(key)

    @traced("reembed", lambda count: {"memories": count})
    def reembed(self, *, on_progress: Progress | None = None) -> int:
        """Embed all records with the configured embedder, or those that wait or were refused; returns how many.

        It can be interrupted and resumed.
        """
        self._require_whole("store.reembed")
        return pending.reembed(self._engine, on_progress=on_progress)

    def warmup(self, *, on_progress: Progress | None = None) -> dict[str, float]:
        """Load the embedder and the index and load or compile the JIT kernels; returns the seconds each took.

        `on_progress(done, total)` counts kernels.
        """
        return self._engine.warmup(on_progress)

    def catch_up(self) -> int:
        """Compare what was written many at a time with other memories, all that is left; returns how many it compared.

        It happens in the background anyway, and goes on where a process ended. Until then `stats().to_compare` tells
        how many wait, recall finds all of them, and may show a memory beside what it replaces.
        """
        return pending.catch_up(self._engine)

    def purge_expired(self, *, scope: str | None = None) -> Forgotten:
        """Purge expired memories, pinned ones too, with their versions and everything derived.

        Until then they stay in the file: recall, list and count do not show them, `get` and `history` do.
        """
        return change.purge_expired(self._engine, scope=checks.join_scopes(self._scope, scope))


class AsyncMemoryStore(AsyncService[MemoryStore]):
    """`MemoryStore` for asyncio: the same methods, awaited."""

    stats = awaited(MemoryStore.stats)
    verify = awaited(MemoryStore.verify)
    rebuild = awaited(MemoryStore.rebuild)
    vacuum = awaited(MemoryStore.vacuum)
    backup = awaited(MemoryStore.backup)
    rekey = awaited(MemoryStore.rekey)
    reembed = awaited(MemoryStore.reembed)
    warmup = awaited(MemoryStore.warmup)
    catch_up = awaited(MemoryStore.catch_up)
    purge_expired = awaited(MemoryStore.purge_expired)
