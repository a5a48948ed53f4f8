"""From the files to the index: what has changed is found by stat, read, cut, embedded and written, file by file.

A document without a file is gone only where a look at the files that began after it was stored does not find one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

from msgspec import Struct, field

from recollect.checks import fault_text, now_us
from recollect.errors import EmbedderError, InvalidInput
from recollect.remember.documents import (
    CachePolicy,
    NewDocument,
    Written,
    delete_documents,
    write_documents,
)
from recollect.remember.pending import embed_pending
from recollect.remember.reembed import start_over
from recollect.store.values import DocumentRow
from recollect.workspace.chunks import chunking_name, to_document
from recollect.workspace.files import FileProblem, FoundFile, Scan, Selection, Unreadable, problem_of, read_file
from recollect.workspace.looking import Look
from recollect.workspace.results import IndexResult

if TYPE_CHECKING:
    from recollect.engine import Engine
    from recollect.workspace.config import WorkspaceConfig

__all__ = ["Plan", "Progress", "Settled", "add_file", "make_plan", "synchronise", "waiting"]

Progress = Callable[[int, int | None], None]
SCOPE = "/"
# A file that was changed so shortly before it was read may have been changed again at the same time of its clock.
_RACY_NS = 2_000_000_000
_REFRESHED_TOGETHER = 500


class Plan(NamedTuple):
    """What an index run has to look at: files that may differ from what is stored, and documents without a file."""

    stored: dict[str, DocumentRow]
    scanned: int
    read: list[FoundFile]
    changed: int
    gone: list[DocumentRow]
    problems: list[FileProblem]

    @property
    def dirty(self) -> bool:
        """Whether files have changed; those that are only read again to be sure do not count."""
        return bool(self.changed or self.gone)


class Settled:
    """What the last comparison found in order: an equal look at the same index needs no other one.

    The look and what is stored are compared only once more after each change; a search over 4,000 settled files took
    97 ms with the comparison.
    """

    def __init__(self) -> None:
        self._key: tuple[object, ...] | None = None
        self._look: Look = {}
        self._plan = Plan({}, 0, [], 0, [], [])

    def plan(self, key: tuple[object, ...], look: Look) -> Plan | None:
        """What there is to do: nothing where all is as it was, else that is not known."""
        return self._plan if key == self._key and look == self._look else None

    def note(self, key: tuple[object, ...], look: Look, plan: Plan, found: Scan) -> None:
        """Remember a plan with nothing to read: the times of all files are past doubt."""
        settled = not (plan.read or plan.gone or found.unread)
        self._key, self._look = (key, look) if settled else (None, {})
        self._plan = Plan({}, plan.scanned, [], 0, [], plan.problems)


class _Run(Struct):
    """What an index run has done so far."""

    total: int
    force: bool
    on_progress: Progress | None = None
    embed_waiting: bool = True
    done: int = 0
    indexed: int = 0
    created: int = 0
    kept: int = 0
    cached: int = 0
    computed: int = 0
    embedder_problem: str | None = None
    problems: list[FileProblem] = field(default_factory=list)
    same: list[tuple[int | None, int, int, bytes]] = field(default_factory=list)
    gone: dict[str, DocumentRow] = field(default_factory=dict)
    moved: dict[str, DocumentRow] = field(default_factory=dict)

    def finish_one(self) -> None:
        self.done += 1
        if self.on_progress is not None:
            self.on_progress(self.done, self.total)

    def count(self, written: Written) -> None:
        if written.outcome == "failed":
            self.problems.append(problem_of(written.source, written.problem))
            if written.source in self.moved:
                former = self.moved.pop(written.source)
                self.gone[former.source] = former
        elif self.force or written.outcome != "unchanged":
            self.indexed += 1
        self.created += written.chunks_created
        self.kept += written.chunks_kept
        self.cached += written.embeddings_cached
        self.computed += written.embeddings_computed
        self.embedder_problem = written.embedder_problem
        self.finish_one()


def make_plan(
    engine: Engine,
    config: WorkspaceConfig,
    selection: Selection,
    *,
    force: bool = False,
    settled: Settled | None = None,
) -> Plan:
    """Compare what `stat` says with what is stored. Raises InvalidInput where the folder cannot be read."""
    chunking = chunking_name(config, engine.embedder.spec)
    with engine.store.read() as reader:
        key = (ref(engine), reader.changes.last(), chunking)
    look = selection.look()
    if settled is not None and not force and (plan := settled.plan(key, look)) is not None:
        return plan
    with engine.store.read() as reader:
        stored = reader.documents.find_many(SCOPE)
    found = selection.scan(look)
    if any(path not in found.files for path in stored):
        # Another process may have stored it since the look.
        look = selection.look()
        found = selection.scan(look)
    read, changed = [], 0
    for path, file in found.files.items():
        row = stored.get(path)
        if row is None or not _same_stat(row, file) or row.chunking != chunking:
            read.append(file)
            changed += 1
        elif force or _may_have_changed_since(row, file):
            read.append(file)
    gone = [row for path, row in stored.items() if path not in found.files and not found.hides(path)]
    plan = Plan(stored, len(found.files), read, changed, gone, found.problems)
    if settled is not None:
        settled.note(key, look, plan, found)
    return plan


def synchronise(
    engine: Engine,
    config: WorkspaceConfig,
    selection: Selection,
    *,
    force: bool = False,
    on_progress: Progress | None = None,
    embed_waiting: bool = True,
    settled: Settled | None = None,
) -> IndexResult:
    """Make the index say what the files say; `force` reads files that seem unchanged too, `embed_waiting` asks the
    embedder for what it failed to embed before. `settled` is what earlier runs of this workspace found in order.

    Each file is one transaction: whatever stops a run, the next completes it. `on_progress(done, total)` counts files
    to read.
    """
    began = perf_counter()
    plan = make_plan(engine, config, selection, force=force, settled=settled)
    run = _Run(len(plan.read), force, on_progress, embed_waiting)
    return _carry_out(engine, config, plan, run, began)


def add_file(engine: Engine, config: WorkspaceConfig, file: FoundFile, *, force: bool = False) -> IndexResult:
    """Index one file. Raises InvalidInput where it cannot be read or stored."""
    began = perf_counter()
    with engine.store.read() as reader:
        row = reader.documents.find(SCOPE, file.path)
    chunking = chunking_name(config, engine.embedder.spec)
    unsure = row is None or not _same_stat(row, file) or row.chunking != chunking
    read = [file] if force or unsure or _may_have_changed_since(row, file) else []
    plan = Plan({} if row is None else {file.path: row}, 1, read, len(read), [], [])
    result = _carry_out(engine, config, plan, _Run(len(read), force), began)
    if result.problems and not result.problems[0].indexed:
        raise InvalidInput(f"{file.path}: {result.problems[0].reason}")
    return result


def waiting(engine: Engine) -> int:
    """How many chunks have no vectors though there is an embedder to make them."""
    if not engine.embedder.enabled:
        return 0
    with engine.store.read() as reader:
        return reader.vectors.count_waiting()


def _carry_out(engine: Engine, config: WorkspaceConfig, plan: Plan, run: _Run, began: float) -> IndexResult:
    run.problems = list(plan.problems)
    run.gone = {row.source: row for row in plan.gone}
    adopted = _adopt_embedder(engine) if plan.read or engine.embedder.loaded else None
    policy = CachePolicy(config.cache.max_entries) if config.cache.enabled else None
    changed = _documents(engine, config, plan, run)
    for written in write_documents(engine, changed, cache=policy, embed=adopted is None):
        run.count(written)
    _refresh(engine, run)
    deleted = list(run.gone)
    if deleted:
        delete_documents(engine, SCOPE, deleted)
    problem, computed = adopted or run.embedder_problem, 0
    if problem is None and run.embed_waiting:
        computed, problem = _embed_waiting(engine)
    return IndexResult(
        files_scanned=plan.scanned,
        files_indexed=run.indexed,
        files_skipped=plan.scanned - run.indexed,
        files_deleted=len(deleted),
        files_renamed=len(run.moved),
        chunks_created=run.created,
        chunks_kept=run.kept,
        embeddings_cached=run.cached,
        embeddings_computed=run.computed + computed,
        pending=waiting(engine),
        duration_ms=(perf_counter() - began) * 1000,
        problems=tuple(run.problems),
        embedder_problem=problem,
    )


def _documents(engine: Engine, config: WorkspaceConfig, plan: Plan, run: _Run) -> Iterator[NewDocument]:
    """Read what has to be looked at; yields what differs from what is stored."""
    chunking = chunking_name(config, engine.embedder.spec)
    by_hash: dict[bytes, list[str]] = {}
    for gone in plan.gone:
        by_hash.setdefault(gone.content_hash, []).append(gone.source)
    for file in plan.read:
        row = plan.stored.get(file.path)
        read_at = now_us()
        try:
            held = read_file(file)
        except Unreadable as reason:
            if row is not None and reason.lasting:
                run.gone[file.path] = row
            run.problems.append(problem_of(file.path, reason, unread=not reason.lasting))
            run.finish_one()
            continue
        digest = hashlib.sha256(held.data).digest()
        same = row is not None and (digest, chunking, held.mtime_ns) == (row.content_hash, row.chunking, row.mtime_ns)
        if row is not None and same and not run.force:
            run.same.append((held.inode, read_at, row.id, digest))
            run.finish_one()
            continue
        try:
            document = to_document(
                engine, config, file.path, held.data, held.mtime_ns, content_hash=digest, chunking=chunking,
                size_bytes=held.size, inode=held.inode, read_at=read_at,
            )  # fmt: skip
        except Exception as fault:  # whatever one file makes a parser do, it is that file's alone
            run.problems.append(problem_of(file.path, f"it cannot be parsed: {type(fault).__name__}: {fault}"))
            run.finish_one()
            continue
        if row is None and by_hash.get(digest):
            document.renamed_from = former = by_hash[digest].pop()
            run.moved[file.path] = run.gone.pop(former)
        if document.problem is not None:
            run.problems.append(problem_of(file.path, document.problem, indexed=True))
        yield document


def _adopt_embedder(engine: Engine) -> str | None:
    """Where another embedder is configured than made the vectors, they go: chunks wait for those of the new one.
    Returns why it cannot be had.
    """
    if engine.embedder.enabled:
        try:
            start_over(engine)
        except EmbedderError as reason:
            return fault_text(reason)
    return None


def _embed_waiting(engine: Engine) -> tuple[int, str | None]:
    """Embed chunks that wait; returns how many were, and why not all."""
    before = waiting(engine)
    if not before:
        return 0, None
    try:
        start_over(engine)
        return embed_pending(engine), None
    except EmbedderError as reason:
        return max(0, before - waiting(engine)), fault_text(reason)


def _refresh(engine: Engine, run: _Run) -> None:
    """Note of files that were read and found the same when that was: next time their stat is enough."""
    for begin in range(0, len(run.same), _REFRESHED_TOGETHER):
        with engine.atomic() as writer:
            writer.documents.note_read(run.same[begin : begin + _REFRESHED_TOGETHER])


def _same_stat(row: DocumentRow, file: FoundFile) -> bool:
    return (row.size_bytes, row.mtime_ns, row.inode) == (file.size, file.mtime_ns, file.inode)


def _may_have_changed_since(row: DocumentRow | None, file: FoundFile) -> bool:
    """Whether bytes may have changed though size, time and inode have not: within the clock's grain, or by a program
    that set the time back, which cannot set back the time at which it did.
    """
    changed_ns = max(file.mtime_ns, file.ctime_ns)
    return row is None or changed_ns > row.read_at * 1000 - _RACY_NS
