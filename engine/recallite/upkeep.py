"""The maintenance methods of Memory: verification, repair, backup, export, import, audit, judging and evaluation."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, Unpack

from recallite import audit as auditing
from recallite import checks
from recallite.checks import check_flag
from recallite.engine import Engine
from recallite.errors import InvalidInput, StoreAccessDenied
from recallite.filters import Filter, FilterFields, bound_filter
from recallite.numerics import kernels as backend
from recallite.recall.request import RecallOptions
from recallite.remember.judging import judge_waiting
from recallite.remember.pending import Progress, drain_pending, reembed
from recallite.reports import Audit, Evaluation, Exported, Imported, Judged, Restored, Stats, Verification
from recallite.settings import Settings
from recallite.tracing import traced

_REFUSED_SHOWN = 5


class Upkeep:
    """Maintenance of the file of a handle. Most of it works on the whole file, through the handle that opened it."""

    _engine: Engine
    _scope: str
    _owner: bool

    @property
    def path(self) -> str:
        """The file, or ":memory:"."""
        return self._engine.store.path

    @property
    def scope(self) -> str:
        """The scope in the file that this handle is bound to; "/" for the whole file."""
        return self._scope

    @property
    def settings(self) -> Settings:
        """The settings this memory was opened with."""
        return self._engine.settings

    def stats(self) -> Stats:
        """Counts and versions, and the state of embedder, kernels and index; a scoped handle counts its own scope."""
        engine = self._engine
        figures = engine.store.stats(self._scope)
        with engine.store.read() as reader:
            refused = reader.vectors.refused(self._scope, _REFUSED_SHOWN)
            index = engine.describe_index(reader) if self._scope == "/" else {}
        kernels = backend.status()
        notes = [] if engine.embedder.failure is None else [engine.embedder.failure]
        notes += [f"the embedder refuses {public_id}: {reason}" for public_id, _, reason in refused]
        if kernels.active != kernels.chosen or kernels.chosen == "python":
            notes.append(f"kernels run in Python: {kernels.reason}")
        if engine.background.failure is not None:
            notes.append(f"changes are not judged by the language model: {engine.background.failure}")
        if figures["vector_extension"] is None:
            notes.append("sqlite-vec is not importable: SQL has no vector functions; recall does not need them")
        encrypted = engine.store.encrypted
        if encrypted and engine.settings.index_snapshot:
            notes.append("the store is encrypted: no index is kept beside it, every process loads its own")
        if index.get("indexes") == {}:
            notes.append(f"the server has no indexes to find candidates by: recallite --db {figures['path']} warmup")
        searchable = figures["dimension"] is not None and engine.embedder.enabled and not engine.embedder.failure
        return Stats(
            **figures,
            encrypted=encrypted,
            kernels=kernels.active,
            mode="hybrid" if searchable else "keyword",
            index=index,
            notes=tuple(notes),
        )

    @traced("verify", lambda found: {"problems": len(found.problems)})
    def verify(self, *, on_progress: Progress | None = None) -> Verification:
        """Check the file, and compare everything derived with the records. Nothing is changed."""
        self._whole("verify")
        return self._engine.store.verify(on_progress)

    @traced("rebuild", lambda found: {"problems": len(found.problems)})
    def rebuild(self, *, on_progress: Progress | None = None) -> Verification:
        """Derive everything from the records again, embed records without vectors, and verify."""
        self._whole("rebuild")
        self._engine.store.rebuild(on_progress)
        if self._engine.embedder.enabled:
            drain_pending(self._engine, limit=None)
        return self.verify()

    @traced("vacuum", lambda count: {"bytes": count})
    def vacuum(self) -> int:
        """Return unused space to the file system; returns how many bytes."""
        self._whole("vacuum")
        return self._engine.store.vacuum()

    @traced("backup")
    def backup(self, target: str | os.PathLike[str], *, on_progress: Progress | None = None) -> str:
        """Copy the store, as of one commit, to a new file, while others read and write; returns its path."""
        self._whole("backup")
        return self._engine.store.backup(target, on_progress)

    @traced("rekey")
    def rekey(self, key: str | None) -> None:
        """Encrypt the file with `key`, or (None) decrypt it; all of it or nothing.

        `key` is as for `Memory`. Backups keep the key they were made with. Raises StoreLocked if another process, or a
        recall in another thread, has the file open.
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

        Format "jsonl" is complete (versions, links, times, access counts; vectors with `vectors`), "csv" has one row
        per memory and "text" one line; None chooses by the extension of the file. An existing file is replaced only
        after the export has been written completely.
        """
        from recallite import exchange

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
        """Read memories from a file or a text stream, one transaction per batch; formats as for `export`.

        The ids of JSON lines are kept; a memory whose id exists already is skipped and counted. `scope` is put before
        the scopes of the file. InvalidItem names the line at which the import stopped; earlier batches stay.

        A scoped handle replaces an id that exists outside its scope by another, the same at every import, also in the
        links; the result does not reveal it.
        """
        from recallite import exchange

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
        """Write memories as Markdown files for reading and editing, one file per scope and month.

        `import_folder` reads them back. They contain all fields, times and links, but no closed versions and access
        counts. A file that was changed since it was written or imported is a conflict and is kept, unless `overwrite`;
        files of another origin are always kept. Files whose memories are all gone are removed.
        """
        from recallite import exchange

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
        """Read back the files of `export_folder`, with the edits, additions and deletions since.

        Edited memories are updated under their ids; one that has changed in the store too is kept and reported as a
        problem, unless `overwrite`. New sections become memories. Memories deleted from their file are reported as
        missing, and forgotten only with `forget_missing`.
        """
        from recallite import exchange

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
        """Find memories that should not be stored; nothing is changed unless `mend` is True.

        `checks` (all but the last two): "duplicates", "near-duplicates" and "contradictions" within a scope and kind;
        "stale" (relative times that have passed, such as "next week" a month ago, and memories not recalled for a
        year); "expired"; "secrets" (keys, tokens, passwords, card numbers, IBANs; needs the extra `audit`);
        "instructions" to a model; "junk" (small talk); for review, and only by name, "superseded" (what others stand in
        the place of) and "unjudged" (pairs that wait for a language model). Checks of texts are for English.

        Each finding names the method that `mend` calls, or none where a person has to decide: two memories that
        contradict each other may both hold. A pinned memory is never forgotten. The times of a duplicate go to the one
        that stays.

        Raises InvalidInput for an unknown check, for "secrets" if its extra is not installed, and for `mend` without
        `checks`.
        """
        if isinstance(checks, str):
            checks = [checks]
        chosen = bound_filter(self._scope, filter, fields, takes_as_of=False)
        return auditing.audit(self._engine, checks, chosen, mend=check_flag(mend, "mend"), on_progress=on_progress)

    def judge_changes(self, *, limit: int | None = None) -> Judged:
        """Ask the language model about pairs of statements of which the rules leave open how one stands to the other.

        With a language model, each write does so in the background; this waits for it. At most `limit` pairs, all by
        default. The model says whether the newer statement supersedes the older one, contradicts it, or neither; marks
        have the reason "language model", and `restore` undoes them.

        Raises InvalidInput without a language model and LanguageModelError where it fails; the rest still waits.
        """
        self._whole("judge_changes")
        most = None if limit is None else checks.check_count(limit, "limit")
        return judge_waiting(self._engine, limit=most)

    def evaluate(
        self,
        /,
        questions: str | os.PathLike[str] | IO[str] | Iterable[Mapping[str, Any]],
        *,
        k: int = 10,
        against: Mapping[str, Any] | Evaluation | None = None,
        on_progress: Progress | None = None,
        **options: Unpack[RecallOptions],
    ) -> Evaluation:
        """Ask questions whose answers are known, and report what the first `k` hits of each find and miss.

        `questions` are dicts, or a file or text stream of JSON lines: `question`; `expected`, the memories to be found,
        each by its text, a unique part of its text, its id or a unique start or end of that (none: the store has no
        answer); and, if needed, `id` and the fields of a filter, such as `scope` or `as_of`. `options` are those of
        `recall`. `against` are options that differ in a second run, which is compared with the first by question; or it
        is an earlier report, as of another embedder, with which this one is compared.

        An expected text that is not in the store is no miss: `Evaluation.not_stored` lists it. The store does not
        change: hits are not counted as accesses. All questions are asked at one time; give `as_of` to have the same
        ages in a later evaluation.

        Raises InvalidInput for a bad option and a bad question, whose line it names, before any is asked.
        """
        from recallite.evaluation import evaluate

        return evaluate(
            self._engine, questions, base=self._scope, k=k, options=options, against=against, on_progress=on_progress
        )

    @traced("reembed", lambda count: {"memories": count})
    def reembed(self, *, on_progress: Progress | None = None) -> int:
        """Embed all records with the configured embedder, or those that wait or were refused; returns how many.

        It can be interrupted and resumed.
        """
        self._whole("reembed")
        return reembed(self._engine, on_progress=on_progress)

    def warmup(self, *, on_progress: Progress | None = None) -> dict[str, float]:
        """Load the embedder and the index and load or compile the JIT kernels; returns the seconds each took.

        `on_progress(done, total)` counts kernels.
        """
        return self._engine.warmup(on_progress)

    def _whole(self, verb: str) -> None:
        """Raise for a method that works on the whole file: InvalidInput if this handle is scoped.

        StoreAccessDenied if the role that opened the memory is a tenant.
        """
        if (scope := self._engine.store.confined_to) is not None:
            raise StoreAccessDenied(
                f"{verb} works on the whole memory, of which the user of {self.path} has the scope {scope}: ask its "
                "owner"
            )
        if not self._owner:
            raise InvalidInput(f"{verb} works on the whole file: call it on the Memory, not on its scope {self._scope}")
