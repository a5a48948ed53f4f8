"""An import from another system: read, compared with what is stored, written in batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from msgspec import structs

from recollect import checks
from recollect.errors import InvalidInput, InvalidItem, NotFound
from recollect.importers.found import Found, FoundLink
from recollect.importers.sources import Source, source_named
from recollect.records import NewRecord, OnExisting, Plain, Record
from recollect.reports import FileTrouble

if TYPE_CHECKING:
    from recollect.memory import Memory

Progress: TypeAlias = Callable[[int, int | None], None]
_MAX_TROUBLES = 1_000
_MAX_ID_CHARS = 200


class ImportReport(Plain, frozen=True, kw_only=True):
    """What an import found: memories stored, changed since an earlier import, and stored already.

    `troubles` are what could not be taken, each with its place, and at most 1,000; `troubles_total` counts all. Of a
    dry run the counts are of what an import would do.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    links: int = 0
    troubles: tuple[FileTrouble, ...] = ()
    troubles_total: int = 0
    dry_run: bool = False


def import_from(
    memory: Memory,
    source: str,
    path: str | os.PathLike[str] | None = None,
    *,
    scope: str = "/",
    dry_run: bool = False,
    batch_size: int = 1024,
    on_progress: Progress | None = None,
) -> ImportReport:
    """Store the memories of another system, named as in `SOURCES`, below a scope.

    A memory's id is that of the source, after the source's name: what is stored already is left as it is, or, where the
    source's memories change, gets the new text as its next version. So an import that was stopped goes on when it is
    run again. What cannot be read is reported with its place, and all else is taken. `on_progress(done, None)` counts
    memories read. InvalidInput for a source or a path that there is not.
    """
    chosen, size = source_named(source), checks.check_count(batch_size, "batch_size")
    run = _Run(memory, source, chosen, checks.check_scope(scope), dry_run=checks.check_flag(dry_run, "dry_run"))
    entries, done = chosen.read(chosen.folder_or_file(path)), 0
    while batch := list(islice(entries, size)):
        run.take(batch)
        done += len(batch)
        if on_progress is not None:
            on_progress(done, None)
    return run.report()


class _Run:
    """The batches of one import, and the counts of those before."""

    def __init__(self, memory: Memory, name: str, source: Source, scope: str, *, dry_run: bool) -> None:
        self._memory, self._name, self._source, self._scope, self._dry_run = memory, name, source, scope, dry_run
        # Stored as they are: what memories say of each other was for the other system to decide.
        self._policy = structs.replace(
            memory.settings.write_policy, supersede_confidence=None, contradict_confidence=None, duplicates="store",
            merge_strategy="append", topic_cosine=None, link_cosine=None, junk="store", recognise_recalled=False,
        )  # fmt: skip
        self._created = self._updated = self._unchanged = self._links = self._troubles_total = 0
        self._troubles: list[FileTrouble] = []

    def take(self, batch: Sequence[Found | FoundLink | FileTrouble]) -> None:
        """Store a batch."""
        found: dict[str, Found] = {}
        for entry in batch:
            if isinstance(entry, FileTrouble):
                self._trouble(entry)
            elif isinstance(entry, Found):
                found[self._id(entry.record.id or "")] = entry
        stored = self._memory.get_many(list(found)) if found else {}
        fresh = {id: entry for id, entry in found.items() if id not in stored}
        changed = {
            id: entry
            for id, entry in found.items()
            if id in stored and self._source.changes and _differs(stored[id], entry.record)
        }
        self._created += self._write(fresh, "error")
        self._updated += self._write(changed, "version")
        self._unchanged += len(found) - len(fresh) - len(changed)
        self._link([entry for entry in batch if isinstance(entry, FoundLink)])

    def report(self) -> ImportReport:
        """The counts of all batches."""
        return ImportReport(
            created=self._created, updated=self._updated, unchanged=self._unchanged, links=self._links,
            troubles=tuple(self._troubles), troubles_total=self._troubles_total, dry_run=self._dry_run,
        )  # fmt: skip

    def _id(self, id: str) -> str:
        """A memory's id here: the source's name and the id there, or its hash where that is too long."""
        own = f"{self._name}:{id}"
        return own if len(own) <= _MAX_ID_CHARS else f"{self._name}:{sha256(id.encode()).hexdigest()}"

    def _write(self, found: dict[str, Found], on_existing: OnExisting) -> int:
        """Store memories, but for those that are refused; returns how many."""
        left = list(found.items())
        if self._dry_run:
            return len(left)
        while left:
            try:
                self._memory.remember_many(
                    [self._placed(id, entry.record) for id, entry in left],
                    batch_size=len(left), policy=self._policy, on_existing=on_existing,
                )  # fmt: skip
            except InvalidItem as fault:
                _, refused = left.pop(fault.position)
                self._trouble(FileTrouble(path=refused.path, line=refused.line, reason=str(fault.reason)))
            else:
                break
        return len(left)

    def _placed(self, id: str, record: NewRecord) -> NewRecord:
        return structs.replace(record, id=id, scope=checks.join_scopes(self._scope, record.scope) or "/")

    def _link(self, links: Sequence[FoundLink]) -> None:
        """Link memories, in one transaction."""
        if self._dry_run or not links:
            self._links += len(links)
            return
        with self._memory.transaction():
            for each in links:
                try:
                    self._memory.link(self._id(each.source), self._id(each.target), type=each.type)
                except (NotFound, InvalidInput) as fault:
                    self._trouble(FileTrouble(path=each.path, line=each.line, reason=str(fault)))
                else:
                    self._links += 1

    def _trouble(self, trouble: FileTrouble) -> None:
        self._troubles_total += 1
        if len(self._troubles) < _MAX_TROUBLES:
            self._troubles.append(trouble)


def _differs(stored: Record, found: NewRecord) -> bool:
    """Whether the source says something else than what was stored."""
    return (
        stored.text != found.text
        or stored.tags != tuple(found.tags)
        or stored.metadata != (found.metadata or {})
        or stored.context != found.context
        or stored.topic != found.topic
    )
