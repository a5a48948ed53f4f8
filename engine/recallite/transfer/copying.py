"""A memory copied to another place, with everything in it: files and PostgreSQL servers, in any direction.

Rows are copied table by table in the order of their keys, with their row ids, a block in each transaction. The target
says in itself that it is an unfinished copy, so that nobody uses it and the same call goes on where it stopped: what is
there is compared with the source, and only what follows is written. Where the source has changed meanwhile, the copy
begins again. When all is there, the target is read back and compared by SHA-256, and questions are asked of both.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import closing
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from recallite.errors import InvalidInput, StoreLocked
from recallite.model.checks import check_flag, check_scope
from recallite.model.environment import named_key
from recallite.model.records import Plain
from recallite.model.settings import Settings
from recallite.store.opening import is_address, open_store, shown_path, store_exists
from recallite.store.protocol.copying import CopiedPart, CopiedRow, CopyMark
from recallite.system.tracing import traced
from recallite.transfer.same_recalls import Sample, differences

if TYPE_CHECKING:
    from recallite.store.protocol import Progress, Store, Writer
    from recallite.store.protocol.copying import PartReader

__all__ = ["CopyReport", "copy_store"]

_encode = msgspec.msgpack.Encoder().encode


class CopyReport(Plain, frozen=True, kw_only=True):
    """What `copy_store` copied and compared.

    - source, target: the two stores, without a password; scope: what was copied of the source
    - records: the memories with all their versions and chunks; rows: how many rows of each table that has any
    - resumed: how many rows an earlier call had copied
    - digests: the SHA-256 of the rows of each table that has any, in the order of their keys
    - recalls: how many questions were asked of both stores; source_changed: whether the source was written to during
      the copy, which has it as it was at the beginning
    - problems: what is not the same in both
    """

    source: str
    target: str
    scope: str
    records: int
    rows: dict[str, int]
    resumed: int
    digests: dict[str, str]
    recalls: int
    source_changed: bool
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if nothing differs."""
        return not self.problems


@traced("copy", lambda done: {"records": done.records})
def copy_store(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    scope: str = "/",
    access_tokens: bool = False,
    verify: bool = True,
    key: str | None = None,
    target_key: str | None = None,
    settings: Settings | None = None,
    on_progress: Progress | None = None,
) -> CopyReport:
    """Copy a memory to another file or server; each is the path of a file or an address `postgresql://...`.

    Everything goes over as it is, without embedding anything: versions, times, ids, links, supersessions, vectors,
    access counts, documents, sessions and the other services. With `scope` only that scope and those below it do, under
    their paths, with the links within. `access_tokens` takes along the tokens that admit to `recallite serve`; without
    it they stay behind, so that a copy does not admit those whom the source admits. The source is only read.

    The target must not exist, or be empty, or be the unfinished copy that an earlier call with these arguments left:
    that is finished. With `verify` the rows are read back and compared, and some texts are asked of both stores; the
    report names what differs. `key` opens or encrypts files, and `target_key` a target with another key. `settings` are
    those of both stores. `on_progress(done, total)` counts rows.

    Raises InvalidInput where there is no source, or the target holds memories, and StoreError for faults of either.
    """
    part = CopiedPart(check_scope(scope), check_flag(access_tokens, "access_tokens"))
    check_flag(verify, "verify")
    if target == ":memory:":
        raise InvalidInput("target is ':memory:': what is copied there is gone when this returns")
    chosen = settings or Settings()
    given = named_key(chosen.key_file) if key is None else key
    if source == ":memory:" or not store_exists(source):
        raise InvalidInput(f"there is no store at {shown_path(source)}: give the source of the copy")
    with closing(_opened(source, chosen, given)) as origin:
        _check_owner(origin)
        _check_scope_is_there(origin, part)
        with closing(_opened(target, chosen, target_key or given, unfinished=True)) as copy:
            _check_owner(copy)
            if copy.path == origin.path:
                raise InvalidInput(f"{origin.path} is source and target: give two places")
            return _Copy(origin, copy, part, on_progress).run(verify=verify)


def _opened(place: str | os.PathLike[str], settings: Settings, key: str | None, *, unfinished: bool = False) -> Store:
    return open_store(
        place,
        busy_timeout_ms=settings.busy_timeout_ms,
        durability=settings.durability,
        vector_type=settings.vectors,
        key=None if is_address(place) else key,
        pool_size=settings.pool_size,
        statement_timeout_ms=settings.statement_timeout_ms,
        server_wait_ms=settings.server_wait_ms,
        standby_lag_ms=settings.standby_lag_ms,
        unfinished=unfinished,
    )


def _check_owner(store: Store) -> None:
    """Words, for one, are nobody's but the owner's."""
    if store.confined_to is not None:
        raise InvalidInput(
            f"{store.path}: this role is confined to {store.confined_to}, and a copy needs the owner of the memory "
            f"(with --scope {store.confined_to}, for that part); export needs no more than the role may read"
        )


def _check_scope_is_there(source: Store, part: CopiedPart) -> None:
    """Before the target is created."""
    with source.read() as reader:
        if part.scope != "/" and not reader.copying.of(part).count("scope"):
            raise InvalidInput(f"{source.path} has no scope {part.scope}: see recallite scopes")


class _SourceChanged(Exception):
    """The target has rows that the source does not have, or no longer."""


class _Copy:
    """One run of a copy."""

    def __init__(self, source: Store, target: Store, part: CopiedPart, on_progress: Progress | None) -> None:
        self._source = source
        self._target = target
        self._part = part
        self._mark = CopyMark(source.path, part, uuid4().hex)
        self._on_progress = on_progress
        self._done = self._total = self._resumed = 0
        self._rows: dict[str, int] = {}
        self._digests: dict[str, str] = {}

    def run(self, *, verify: bool) -> CopyReport:
        """Copy what is not there yet, and compare."""
        with self._source.read() as reader:
            began = reader.changes.commit()
            rows = reader.copying.of(self._part)
            counts = {table: rows.count(table) for table in rows.tables}
            self._total = sum(counts.values()) * (2 if verify else 1)
            sample = Sample(counts["record"]) if verify else None
            found = self._begin()
            try:
                self._copy_tables(rows, sample, resuming=found)
            except _SourceChanged:
                self._begin(anew=True)
                self._copy_tables(rows, sample, resuming=False)
            with self._target.atomic() as writer:
                self._check_mark(writer)
                writer.copying.finish(reader.copying.last_ids())
            problems = self._compare() if verify else []
            if sample is not None:
                sample.load(reader)
        with self._source.read() as reader:
            changed = not reader.changes.matches(began)
        recalls = 0
        if sample is not None and not problems and not changed:
            recalls, problems = differences(self._source, self._target, sample, self._part.scope)
        elif problems:
            return self._report(problems, 0, changed)
        with self._target.atomic() as writer:
            self._check_mark(writer)
            writer.copying.set_mark(None)
        return self._report(problems, recalls, changed)

    def _begin(self, *, anew: bool = False) -> bool:
        """Mark the target; returns whether it has a part of the copy already. InvalidInput if it is another's."""
        with self._target.atomic() as writer:
            found = writer.copying.mark()
            if found is None:
                held = writer.copying.holds(self._part)
                if held is not None:
                    raise InvalidInput(
                        f"{self._target.path} is not empty (it has rows of {held}): give a place where there is no "
                        "memory yet; nothing was changed"
                    )
            elif found[:2] != self._mark[:2]:
                raise InvalidInput(
                    f"{self._target.path} is an unfinished copy of {found.source}, scope {found.part.scope}"
                    f"{', with access tokens' * found.part.access_tokens}: finish that, or give another place"
                )
            resuming = found is not None and not anew
            if not resuming:
                writer.copying.clear(self._part)
            writer.copying.set_mark(self._mark)
            return resuming

    def _copy_tables(self, source: PartReader, sample: Sample | None, *, resuming: bool) -> None:
        self._done = self._resumed = 0
        for table in source.tables:
            digest, count = hashlib.sha256(), 0
            last: CopiedRow | None = None
            behind = resuming
            while True:
                block = source.rows(table, last)
                # A table of which a block is missing has nothing after it.
                there = self._there(table, last) if behind else []
                if there != block[: len(there)]:
                    raise _SourceChanged
                behind = len(there) == len(block) > 0
                if not block:
                    break
                self._put(table, block[len(there) :])
                self._resumed += len(there)
                for row in block:
                    digest.update(_encode(row))
                if table == "record" and sample is not None:
                    sample.take(block)
                count += len(block)
                last = block[-1]
                self._tell(len(block))
            self._rows[table], self._digests[table] = count, digest.hexdigest()

    def _there(self, table: str, after: CopiedRow | None) -> list[CopiedRow]:
        with self._target.read() as reader:
            return reader.copying.of(self._part, everything=True).rows(table, after)

    def _put(self, table: str, rows: list[CopiedRow]) -> None:
        if rows:
            with self._target.atomic() as writer:
                self._check_mark(writer)
                writer.copying.put(table, rows)

    def _check_mark(self, writer: Writer) -> None:
        if writer.copying.mark() != self._mark:
            raise StoreLocked(f"{self._target.path} is written by another copy that began later: let that finish")

    def _compare(self) -> list[str]:
        """What differs between the rows that were read from the source and those that the target has now."""
        problems = []
        with self._target.read() as reader:
            rows = reader.copying.of(self._part, everything=True)
            for table in rows.tables:
                digest, count = hashlib.sha256(), 0
                last: CopiedRow | None = None
                while block := rows.rows(table, last):
                    for row in block:
                        digest.update(_encode(row))
                    count += len(block)
                    last = block[-1]
                    self._tell(len(block))
                if count != self._rows[table]:
                    problems.append(f"{table}: {self._rows[table]:,} rows in the source, {count:,} in the target")
                elif digest.hexdigest() != self._digests[table]:
                    problems.append(f"{table}: {count:,} rows in both, and some are not the same")
        return problems

    def _tell(self, rows: int) -> None:
        self._done += rows
        if self._on_progress is not None:
            self._on_progress(self._done, max(self._total, self._done))

    def _report(self, problems: list[str], recalls: int, changed: bool) -> CopyReport:
        return CopyReport(
            source=self._source.path,
            target=self._target.path,
            scope=self._part.scope,
            records=self._rows["record"],
            rows={table: count for table, count in self._rows.items() if count},
            resumed=self._resumed,
            digests={table: digest for table, digest in self._digests.items() if self._rows[table]},
            recalls=recalls,
            source_changed=changed,
            problems=tuple(problems),
        )
