"""An import from another system: read, compared with what is stored, written in batches; or going on as files grow."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from hashlib import sha256

from msgspec import field, structs

from recallite.errors import InvalidInput, InvalidItem, NotFound, RecalliteError
from recallite.memory import Memory
from recallite.model import checks
from recallite.model.authority import Authority, speaking_as
from recallite.model.records import NewRecord, OnExisting, Plain, Record
from recallite.model.reports import FileTrouble
from recallite.plugin import engine_of
from recallite.remember.prepare import as_record, is_to_come, prepare
from recallite.store.store import Progress
from recallite.system.messages import install_command
from recallite.system.turnstile import giving_way
from recallite_connect.importers.reading import Entry, FoundLink, FoundMemory, LeftOut
from recallite_connect.importers.sources import Source, source_named, sources

_MAX_TROUBLES = 1_000
_MAX_ID_CHARS = 200
# Memories of a transaction, which takes some 10 ms.
_BATCH = 128
_MAX_BATCH_CHARS = 8 << 20


class ImportReport(Plain, frozen=True, kw_only=True):
    """The result of an import: memories stored, changed since an earlier import, and stored already.

    `left_out` counts what is no memory there, by kind, and times to come. `troubles` are what could not be taken, each
    with its place, and at most 1,000; `troubles_total` counts all. Of a dry run the counts are of what an import
    would do.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    links: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    troubles: tuple[FileTrouble, ...] = ()
    troubles_total: int = 0
    dry_run: bool = False


def import_from(
    memory: Memory,
    source: str,
    path: str | os.PathLike[str] | None = None,
    *,
    scope: str = "/",
    mapping: Mapping[str, str] | None = None,
    dry_run: bool = False,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> ImportReport:
    """Store the memories of another system, named as in `sources()`, below a scope.

    A memory's id is that of the source, after the source's name; with the scope between them if ids are local
    (`Source`), and that of a scoped handle always. What is stored already is left as it is, or, if the source's
    memories change, gets the new text as its next version. So an import that was stopped goes on when it is run again.
    Secrets are replaced by their kind, whatever `WritePolicy.redact` is. What cannot be read is reported with its
    place, and all else is taken. `on_progress(done, None)` counts memories read. `mapping` says of the source "jsonl"
    which dotted path each field of a memory has there. InvalidInput for a source, a path or a field that there is not.
    """
    source_system = source_named(source)
    run = Run(memory, source, source_system, scope, dry_run=dry_run, batch_size=batch_size)
    run.take(source_system.read(path, mapping), on_progress)
    return run.report()


class Run:
    """One import: the batches it takes, and the counts of earlier ones."""

    def __init__(
        self,
        memory: Memory,
        name: str,
        source: Source,
        scope: str,
        *,
        dry_run: bool = False,
        batch_size: int | None = None,
    ) -> None:
        self._memory, self._name, self._source = memory, name, source
        self._scope, self._dry_run = checks.check_scope(scope), checks.check_flag(dry_run, "dry_run")
        self._batch_size = _BATCH if batch_size is None else checks.check_count(batch_size, "batch_size")
        # Two vaults have a note of the same name, and a scoped handle does not see what is outside.
        id_scope = checks.join_scopes(memory.scope, self._scope) if source.local_ids else memory.scope
        self._id_prefix = "" if id_scope in (None, "/") else f"{id_scope}/"
        # Stored as they are: what memories say of each other was for the other system to decide. Secrets are left out,
        # as the hooks leave them out of the same turns.
        self._policy = structs.replace(
            memory.settings.write_policy, supersede_confidence=None, contradict_confidence=None, duplicates="store",
            merge_strategy="append", topic_cosine=None, link_cosine=None, junk="store", recognise_recalled=False,
            redact="secrets",
        )  # fmt: skip
        self._created = self._updated = self._unchanged = self._links = self._troubles_total = 0
        self._left_out: Counter[str] = Counter()
        self._troubles: list[FileTrouble] = []
        self._planned: dict[str, int] = {}  # of a dry run: what it would have stored, with a hash of what it says
        self._read = 0

    def take(self, entries: Iterable[Entry], on_progress: Progress | None = None) -> None:
        """Store entries, in batches."""
        for batch in _batches(entries, self._batch_size):
            with giving_way(rests=False):
                self._take(batch)
            self._read += sum(isinstance(entry, FoundMemory) for entry in batch)
            if on_progress is not None:
                on_progress(self._read, None)

    def report(self) -> ImportReport:
        """The counts of all batches."""
        return ImportReport(
            created=self._created, updated=self._updated, unchanged=self._unchanged, links=self._links,
            left_out=dict(self._left_out), troubles=tuple(self._troubles), troubles_total=self._troubles_total,
            dry_run=self._dry_run,
        )  # fmt: skip

    def _take(self, batch: Sequence[Entry]) -> None:
        memories: dict[str, FoundMemory] = {}
        for entry in batch:
            if isinstance(entry, FileTrouble):
                self._trouble(entry)
            elif isinstance(entry, LeftOut):
                self._left_out[entry.what] += entry.count
            elif isinstance(entry, FoundMemory):
                entry, id = self._dated(entry), self._id(entry.record.id or "")
                if id not in memories:
                    memories[id] = entry
                elif not self._changes(entry) or _said(memories[id].record) == _said(entry.record):
                    self._unchanged += 1
                else:
                    self._store(memories)
                    memories = {id: entry}
        self._store(memories)
        self._link([entry for entry in batch if isinstance(entry, FoundLink)])

    def _dated(self, entry: FoundMemory) -> FoundMemory:
        """A memory as of now if its source dates it later, as every import takes it."""
        with suppress(InvalidInput):  # what is no time is refused, with its place, as it is written
            created_at = checks.check_time(entry.record.created_at, "created_at")
            if created_at is not None and is_to_come(created_at, checks.now_us()):
                self._left_out["times to come"] += 1
                return structs.replace(entry, record=structs.replace(entry.record, created_at=None))
        return entry

    def _store(self, memories: Mapping[str, FoundMemory]) -> None:
        stored = self._memory.get(list(memories)) if memories else {}
        fresh, changed = {}, {}
        for id, entry in memories.items():
            if id not in stored and id not in self._planned:
                fresh[id] = entry
            elif self._changes(entry) and self._differs(id, stored.get(id), entry):
                changed[id] = entry
        self._created += self._write_each(fresh, "error")
        self._updated += self._write_each(changed, "version")
        self._unchanged += len(memories) - len(fresh) - len(changed)
        self._count_times({id: entry for id, entry in memories.items() if entry.times > 1})

    def _count_times(self, memories: Mapping[str, FoundMemory]) -> None:
        """Store how often memories are said at their source, also for memories stored earlier."""
        if not memories or self._dry_run:
            return
        engine = engine_of(self._memory)
        with engine.write() as writer:
            rows = writer.records.find_ids([*memories], engine.scope)
            known = writer.comparisons.occurrences([*rows.values()])
            for id, row_id in rows.items():
                more = memories[id].times - 1 - len(known.get(row_id, ()))
                said_at = checks.time_or(memories[id].record.created_at, "created_at", checks.now_us())
                writer.comparisons.add_occurrences([(row_id, said_at, None)] * more)

    def _changes(self, entry: FoundMemory) -> bool:
        return self._source.changes if entry.changes is None else entry.changes

    def _differs(self, id: str, stored: Record | None, entry: FoundMemory) -> bool:
        """Whether the source says something else than what is stored, or would be by now."""
        try:
            current = _said(self._as_stored(id, entry))
        except RecalliteError:
            return True  # refused as it is written, with its place
        return self._planned[id] != hash(current) if id in self._planned else stored is None or _said(stored) != current

    def _as_stored(self, id: str, entry: FoundMemory) -> Record:
        """The record that a memory will be: checked and redacted."""
        limit = self._memory.settings.max_text_chars
        return as_record(prepare(self._placed(id, entry.record), base="/", max_text_chars=limit, policy=self._policy))

    def _id(self, id: str) -> str:
        """A memory's id here: the source's name and the id there, or its hash if that is too long."""
        id = self._id_prefix + id
        full_id = f"{self._name}:{id}"
        return full_id if len(full_id) <= _MAX_ID_CHARS else f"{self._name}:{sha256(id.encode()).hexdigest()}"

    def _write_each(self, memories: Mapping[str, FoundMemory], on_existing: OnExisting) -> int:
        """Store memories under the author that their importer names; returns how many."""
        by_authority: dict[Authority | None, dict[str, FoundMemory]] = {}
        for id, entry in memories.items():
            by_authority.setdefault(entry.authority or self._source.authority, {})[id] = entry
        count = 0
        for authority, theirs in by_authority.items():
            with nullcontext() if authority is None else speaking_as(authority, declared=True):
                count += self._write(theirs, on_existing)
        return count

    def _write(self, memories: dict[str, FoundMemory], on_existing: OnExisting) -> int:
        """Store memories, without refused ones; returns how many."""
        left = list(memories.items())
        if self._dry_run:
            return sum(self._plan(id, entry) for id, entry in left)
        while left:
            try:
                self._memory.remember_many(
                    [self._placed(id, entry.record) for id, entry in left],
                    batch_size=len(left), policy=self._policy, on_existing=on_existing,
                )  # fmt: skip
            except InvalidItem as fault:
                if fault.error.reason == "exists":  # another process imports the same
                    there = self._memory.get([id for id, _ in left])
                    left = [(id, entry) for id, entry in left if id not in there]
                    self._unchanged += len(there)
                    if there:
                        continue
                _, refused = left.pop(fault.position)
                self._trouble(FileTrouble(path=refused.path, line=refused.line, reason=str(fault.error)))
            else:
                break
        return len(left)

    def _plan(self, id: str, entry: FoundMemory) -> bool:
        """Note what would be stored; returns whether it would not be refused."""
        try:
            planned = self._as_stored(id, entry)
        except RecalliteError as fault:
            self._trouble(FileTrouble(path=entry.path, line=entry.line, reason=str(fault)))
            return False
        self._planned[id] = hash(_said(planned)) if self._changes(entry) else 0
        return True

    def _placed(self, id: str, record: NewRecord) -> NewRecord:
        return structs.replace(record, id=id, scope=checks.join_scopes(self._scope, record.scope) or "/")

    def _link(self, links: Sequence[FoundLink]) -> None:
        if not links:
            return
        if self._dry_run:
            ends = {self._id(end) for link in links for end in (link.source, link.target)} - self._planned.keys()
            missing = ends - self._memory.get(sorted(ends)).keys()
            for link in links:
                if gone := [id for id in (self._id(link.source), self._id(link.target)) if id in missing]:
                    self._trouble(FileTrouble(path=link.path, line=link.line, reason=f"no memory {gone[0]}"))
                else:
                    self._links += 1
            return
        with self._memory.transaction():
            for link in links:
                try:
                    self._memory.link(self._id(link.source), self._id(link.target), type=link.type)
                except (NotFound, InvalidInput) as fault:
                    self._trouble(FileTrouble(path=link.path, line=link.line, reason=str(fault)))
                else:
                    self._links += 1

    def _trouble(self, trouble: FileTrouble) -> None:
        self._troubles_total += 1
        if len(self._troubles) < _MAX_TROUBLES:
            self._troubles.append(trouble)


def _batches(entries: Iterable[Entry], size: int) -> Iterator[list[Entry]]:
    """Entries in lists of at most `size`, and of as many characters as fit in memory many times."""
    batch: list[Entry] = []
    chars = 0
    for entry in entries:
        batch.append(entry)
        chars += len(entry.record.text) if isinstance(entry, FoundMemory) else 0
        if len(batch) >= size or chars >= _MAX_BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


def _said(record: Record | NewRecord) -> tuple[object, ...]:
    """The fields of a memory that may change at its source."""
    metadata = repr(sorted((record.metadata or {}).items()))
    return record.text, tuple(record.tags), metadata, record.context, record.topic


# Changes that are not reported, as on some network file systems, are found by listing the files so often.
_LIST_EVERY_MS = 5_000
_QUIET_MS = 400
_TICK_MS = 100


def watch_from(
    memory: Memory,
    source: str,
    path: str | os.PathLike[str] | None = None,
    *,
    scope: str = "/",
    batch_size: int | None = None,
    on_import: Callable[[ImportReport], None] | None = None,
    stop: threading.Event | None = None,
) -> ImportReport:
    """Import what there is, as `import_from`, then what is written from now on, until Ctrl-C or `stop`.

    Of sources whose files grow: sessions of coding agents as JSON lines. A last line that is only half written waits
    for its rest. `on_import` is called with the counts so far, first for what there is, then after each change. Returns
    the counts of all. InvalidInput for another source, and if the extra `watch` is not installed.
    """
    try:
        from watchfiles import watch
    except ImportError:
        raise InvalidInput(f"watching needs watchfiles: {install_command('watch')}") from None
    source_system = source_named(source)
    if source_system.growing is None:
        growing = ", ".join(sorted(name for name, other in sources().items() if other.growing))
        raise InvalidInput(f"{source} cannot be watched: files grow of {growing}")
    run = Run(memory, source, source_system, scope, batch_size=batch_size)
    sessions = source_system.growing(source_system.folder_or_file(path))
    folder = sessions.path if sessions.path.is_dir() else sessions.path.parent
    last_report: ImportReport | None = None
    with suppress(KeyboardInterrupt):
        # It yields at once if a change came, else after a while: files are listed either way.
        changes = watch(
            folder, watch_filter=None, debounce=_QUIET_MS, step=_TICK_MS, rust_timeout=_LIST_EVERY_MS,
            yield_on_timeout=True, stop_event=stop, raise_interrupt=False,
        )  # fmt: skip
        while True:
            run.take(sessions.entries(growing=True))
            if on_import is not None and (now := run.report()) != last_report:
                last_report = now
                on_import(now)
            if next(changes, None) is None:
                break
    return run.report()
