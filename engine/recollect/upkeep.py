"""Upkeep: the verbs of Memory that look after the file, its index and its models."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Unpack

from recollect import audit as auditing
from recollect import checks, exchange
from recollect.engine import Engine
from recollect.errors import InvalidInput
from recollect.filters import Filter, FilterFields, bound_filter
from recollect.remember.pending import Progress, drain_pending
from recollect.remember.prepare import check_flag
from recollect.remember.reembed import reembed
from recollect.reports import Audit, Exported, Imported, Restored, Stats, Verification
from recollect.settings import Settings

__all__ = ["Upkeep"]

_REFUSED_SHOWN = 5


class Upkeep:
    """What every handle can do for its file; most of it only the handle that opened it, for the whole file."""

    _engine: Engine
    _scope: str
    _owner: bool

    @property
    def path(self) -> str:
        """The file, or ":memory:"."""
        return self._engine.store.path

    @property
    def settings(self) -> Settings:
        """The settings this memory was opened with."""
        return self._engine.settings

    def stats(self) -> Stats:
        """The state of the store and of the machinery that serves it; a scoped handle counts what it may see."""
        engine = self._engine
        figures = engine.store.stats(self._scope)
        with engine.store.read() as reader:
            refused = reader.vectors.refused(self._scope, _REFUSED_SHOWN)
        kernels = engine.kernels()
        notes = [] if engine.embedder.failure is None else [engine.embedder.failure]
        notes += [f"the embedder refuses {public_id}: {reason}" for public_id, _, reason in refused]
        if kernels.active != kernels.chosen or kernels.chosen == "python":
            notes.append(f"kernels run in Python: {kernels.reason}")
        if figures["sqlite_vec"] is None:
            notes.append("sqlite-vec is not importable: SQL has no vector functions; recall does not need them")
        encrypted = engine.store.encrypted
        if encrypted and engine.settings.index_snapshot:
            notes.append("the store is encrypted: no index is kept beside it, every process loads its own")
        searchable = figures["dimension"] is not None and engine.embedder.enabled and not engine.embedder.failure
        return Stats(
            **figures,
            encrypted=encrypted,
            kernels=kernels.active,
            mode="hybrid" if searchable else "keyword",
            index=engine.index.describe() if self._scope == "/" else {},
            notes=tuple(notes),
        )

    def verify(self, *, on_progress: Progress | None = None) -> Verification:
        """Check the file and everything derived against the records; names every divergence, changes nothing."""
        self._whole("verify")
        return self._engine.store.verify(on_progress)

    def rebuild(self, *, on_progress: Progress | None = None) -> Verification:
        """Make everything derived afresh from the records, embed what lacks vectors, and verify."""
        self._whole("rebuild")
        self._engine.store.rebuild(on_progress)
        if self._engine.embedder.enabled:
            drain_pending(self._engine, limit=None)
        return self.verify()

    def vacuum(self) -> int:
        """Give unused space back to the file system; returns how many bytes."""
        self._whole("vacuum")
        return self._engine.store.vacuum()

    def backup(self, target: str | os.PathLike[str], *, on_progress: Progress | None = None) -> str:
        """Copy the store, as of one commit, to a new file, while others read and write; returns its path."""
        self._whole("backup")
        return self._engine.store.backup(target, on_progress)

    def rekey(self, key: str | None) -> None:
        """Encrypt the file anew with `key`, or write it without encryption (None); all of it or nothing.

        `key` is as for `Memory`; a file that is not encrypted gets its first. Backups keep the key they were made with.
        Raises StoreLocked where another process, or another thread's recall, has the file open.
        """
        self._whole("rekey")
        self._engine.rekey(key)

    def export(
        self,
        target: str | os.PathLike[str] | IO[str],
        *,
        format: str | None = None,
        filter: Filter | None = None,
        vectors: bool = False,
        on_progress: Progress | None = None,
        **fields: Unpack[FilterFields],
    ) -> int:
        """Write memories to a file or a text stream; returns how many.

        Format "jsonl" loses nothing (versions, links, times, access counts; vectors if asked for), "csv" has a row a
        memory, "text" a line a memory; None goes by the file's ending. An existing file is replaced only when the
        whole export has been written.
        """
        chosen = bound_filter(self._scope, filter, fields, takes_as_of=False)
        return exchange.export(self._engine, target, chosen, format=format, vectors=vectors, on_progress=on_progress)

    def import_(
        self,
        source: str | os.PathLike[str] | IO[str],
        *,
        format: str | None = None,
        scope: str = "/",
        batch_size: int = 1024,
        on_progress: Progress | None = None,
    ) -> Imported:
        """Read memories from a file or a text stream, a transaction a batch; formats as for `export`.

        Ids that JSON lines carry are kept; a memory whose id is here already is skipped and counted. `scope` is put
        before the scopes of the file. InvalidItem names the line that stopped it; the batches before it stay.

        Through a scoped handle an id that stands in the file outside its scope is given as another, the same at every
        import; links of the import lead to it, and nothing in the answer tells.
        """
        return exchange.import_(
            self._engine,
            source,
            base=checks.join_scopes(self._scope, scope) or "/",
            sight=self._scope,
            format=format,
            batch_size=checks.check_count(batch_size, "batch_size"),
            on_progress=on_progress,
        )

    def export_folder(
        self,
        folder: str | os.PathLike[str],
        *,
        filter: Filter | None = None,
        overwrite: bool = False,
        on_progress: Progress | None = None,
        **fields: Unpack[FilterFields],
    ) -> Exported:
        """Write memories as Markdown that a person can read and edit, a file a scope and month.

        `import_folder` reads them back. They hold every field, time and link; closed versions and access counts are
        for `export`. A file that was changed since it was written or imported is a conflict and stays, unless
        `overwrite`; one that is none of ours always stays. Files whose memories are all gone are removed.
        """
        chosen = bound_filter(self._scope, filter, fields, takes_as_of=False)
        place = exchange.Folder(folder, create=True)
        return exchange.export_folder(self._engine, place, chosen, overwrite=overwrite, on_progress=on_progress)

    def import_folder(
        self,
        folder: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        forget_missing: bool = False,
        on_progress: Progress | None = None,
    ) -> Restored:
        """Read back what `export_folder` wrote, and what a person has changed in it, added and taken out since.

        Changed memories are updated under their ids; one that the store has changed too stands as it is and is among
        the problems, unless `overwrite`. New sections become memories. Memories that were taken out of their file are
        listed as missing, and forgotten only with `forget_missing`.
        """
        return exchange.import_folder(
            self._engine, exchange.Folder(folder), base=self._scope, overwrite=overwrite,
            forget_missing=forget_missing, on_progress=on_progress,
        )  # fmt: skip

    def audit(
        self,
        checks: Sequence[str] | None = None,
        *,
        filter: Filter | None = None,
        mend: bool = False,
        on_progress: Progress | None = None,
        **fields: Unpack[FilterFields],
    ) -> Audit:
        """What is in the memory that should not be: nothing changes, unless `mend` is True.

        `checks` (all): "duplicates", "near-duplicates" and "contradictions" compare memories of one scope and kind;
        "stale" are times that have passed ("next week", a month ago) and what nobody recalled in a year; "expired";
        "secrets" are keys, tokens, passwords, card numbers and IBANs (with the extra `audit`);
        "instructions" address a model; "junk" is small talk. Those that read texts know English. Each finding names
        the verb that `mend` carries out; a pinned memory is never taken away.

        Raises InvalidInput for an unknown check, for "secrets" by name where that is not installed, and for `mend`
        without `checks`.
        """
        if isinstance(checks, str):
            checks = [checks]
        chosen = bound_filter(self._scope, filter, fields, takes_as_of=False)
        return auditing.audit(self._engine, checks, chosen, mend=check_flag(mend, "mend"), on_progress=on_progress)

    def reembed(self, *, on_progress: Progress | None = None) -> int:
        """Move to the configured embedder, or embed what still waits and what it has refused; resumable. Returns how
        many were embedded.
        """
        self._whole("reembed")
        return reembed(self._engine, on_progress=on_progress)

    def warmup(self, *, on_progress: Progress | None = None) -> dict[str, float]:
        """Load the embedder and the index and load or compile the JIT kernels; returns the seconds each took.

        `on_progress(done, total)` counts kernels.
        """
        return self._engine.warmup(on_progress)

    def _whole(self, verb: str) -> None:
        """Refuse a verb that works on the whole file through a handle that may see only a part of it."""
        if not self._owner:
            raise InvalidInput(f"{verb} works on the whole file: call it on the Memory, not on its scope {self._scope}")
