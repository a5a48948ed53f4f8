"""Indexing: changed files are found by `stat`, then read, chunked, embedded and written, one transaction per file.

A document is removed only if a listing that began after it was stored does not have its file. Two background threads
index when files change, and at an interval.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from recallite.embedding.remote_embedder import RemoteEmbedder
from recallite.embedding.tokens import measure_of
from recallite.engine import Engine
from recallite.errors import EmbedderError, InvalidInput, StoreClosed
from recallite.model.checks import now_us
from recallite.model.environment import ModelAddress
from recallite.remember.document_writing import (
    CachePolicy,
    DocumentOutcome,
    NewChunk,
    NewDocument,
    delete_documents,
    write_documents,
)
from recallite.remember.pending import embed_pending, start_over
from recallite.store.sql.services import DocumentRow
from recallite.store.store import Progress
from recallite.system.messages import fault_text, install_command
from recallite_documents.chunking import LEAST_TOKENS, ChunkSize, chunk_markdown, with_columns, with_properties
from recallite_documents.front_matter import context_of, decode, front_matter, properties_text, short_name, short_values
from recallite_notes.config import WorkspaceConfig
from recallite_notes.editable.markdown import is_memory_file
from recallite_notes.note_files import (
    ENDINGS,
    FileProblem,
    FoundFile,
    IndexResult,
    Listing,
    Scan,
    Selection,
    Unreadable,
    problem_of,
    read_file,
    source_label,
    written_at,
)

SCOPE = "/"
# Within this time a file can be changed twice without a change of its time stamp.
_RACY_NS = 2_000_000_000
_REFRESHED_TOGETHER = 500
MEDIA_TYPE = "text/markdown"
# The version of the chunking rules: to be raised when they change.
_RULES = 3
# How often the watcher checks for quiet, and for its end.
_TICK_MS = 100
# Some network and container file systems do not report changes that others make.
_TRUSTED_SECONDS = 5.0
# A file that is written to without a pause is indexed after this many times the debounce.
_LONGEST_WAIT = 10


class Plan(NamedTuple):
    """The work of an index run: `read` may differ from what is stored, `gone` has no file any more."""

    stored: dict[str, DocumentRow]
    scanned: int
    read: list[FoundFile]
    changed: int
    gone: list[DocumentRow]
    problems: list[FileProblem]

    @property
    def dirty(self) -> bool:
        """Whether files have changed; a file that is only read again to be sure does not count."""
        return bool(self.changed or self.gone)


class UnchangedListing:
    """The last listing that needed no indexing: an equal listing of the same index needs no comparison.

    A search over 4,000 unchanged files took 97 ms with the comparison.
    """

    def __init__(self) -> None:
        self._key: tuple[object, ...] | None = None
        self._listing: Listing = {}
        self._plan = Plan({}, 0, [], 0, [], [])

    def plan(self, key: tuple[object, ...], listing: Listing) -> Plan | None:
        """An empty plan if nothing has changed, else None."""
        return self._plan if key == self._key and listing == self._listing else None

    def note(self, key: tuple[object, ...], listing: Listing, plan: Plan, scan: Scan) -> None:
        """Remember a listing that leaves the plan nothing to read."""
        unchanged = not (plan.read or plan.gone or scan.unread)
        self._key, self._listing = (key, listing) if unchanged else (None, {})
        self._plan = Plan({}, plan.scanned, [], 0, [], plan.problems)


class _Run(Struct):
    """The outcome of an index run so far."""

    total: int
    force: bool
    on_progress: Progress | None = None
    embed_waiting: bool = True
    done: int = 0
    indexed: int = 0
    created: int = 0
    chunks_kept: int = 0
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

    def count(self, written: DocumentOutcome) -> None:
        if written.outcome == "failed":
            self.problems.append(problem_of(written.source, written.problem))
            if written.source in self.moved:
                former = self.moved.pop(written.source)
                self.gone[former.source] = former
        elif self.force or written.outcome != "unchanged":
            self.indexed += 1
        self.created += written.chunks_created
        self.chunks_kept += written.chunks_kept
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
    unchanged: UnchangedListing | None = None,
) -> Plan:
    """Compare what `stat` says with what is stored. Raises InvalidInput if the folder cannot be read."""
    chunking = chunking_name(config, engine.embedder.spec)
    with engine.store.read() as reader:
        key = (ref(engine), reader.changes.commit(), chunking)
    listing = selection.listing()
    if unchanged is not None and not force and (plan := unchanged.plan(key, listing)) is not None:
        return plan
    with engine.store.read() as reader:
        stored = reader.documents.find_many(SCOPE)
    scan = selection.scan(listing)
    if any(path not in scan.files for path in stored):
        # Another process may have stored it since the listing.
        listing = selection.listing()
        scan = selection.scan(listing)
    read, changed = [], 0
    for path, file in scan.files.items():
        row = stored.get(path)
        if _differs(row, file, chunking):
            read.append(file)
            changed += 1
        elif force or _may_have_changed_since(row, file):
            read.append(file)
    gone = [row for path, row in stored.items() if path not in scan.files and not scan.hides(path)]
    plan = Plan(stored, len(scan.files), read, changed, gone, scan.problems)
    if unchanged is not None:
        unchanged.note(key, listing, plan, scan)
    return plan


def synchronise(
    engine: Engine,
    config: WorkspaceConfig,
    selection: Selection,
    *,
    force: bool = False,
    on_progress: Progress | None = None,
    embed_waiting: bool = True,
    unchanged: UnchangedListing | None = None,
) -> IndexResult:
    """Bring the index up to date with the files.

    `force` also reads files that seem unchanged, and makes everything derived from the chunks anew: it repairs a
    damaged index. `embed_waiting` retries chunks that could not be embedded. `unchanged` remembers earlier runs of
    this workspace. Each file is one transaction, so an interrupted run is completed by the next.
    `on_progress(done, total)` counts files to read.
    """
    began = perf_counter()
    if force:
        engine.store.rebuild()
    plan = make_plan(engine, config, selection, force=force, unchanged=unchanged)
    run = _Run(len(plan.read), force, on_progress, embed_waiting)
    return _carry_out(engine, config, plan, run, began)


def add_file(engine: Engine, config: WorkspaceConfig, file: FoundFile, *, force: bool = False) -> IndexResult:
    """Index one file. Raises InvalidInput if it cannot be read or stored."""
    began = perf_counter()
    with engine.store.read() as reader:
        row = reader.documents.find(SCOPE, file.path)
    chunking = chunking_name(config, engine.embedder.spec)
    read = [file] if force or _differs(row, file, chunking) or _may_have_changed_since(row, file) else []
    plan = Plan({} if row is None else {file.path: row}, 1, read, len(read), [], [])
    result = _carry_out(engine, config, plan, _Run(len(read), force), began)
    if result.problems and not result.problems[0].indexed:
        raise InvalidInput(f"{file.path}: {result.problems[0].reason}")
    return result


def waiting(engine: Engine) -> int:
    """The number of chunks that have no vectors yet although there is an embedder."""
    if not engine.embedder.enabled:
        return 0
    with engine.store.read() as reader:
        return reader.vectors.count_waiting()


def _carry_out(engine: Engine, config: WorkspaceConfig, plan: Plan, run: _Run, began: float) -> IndexResult:
    run.problems = list(plan.problems)
    run.gone = {row.source: row for row in plan.gone}
    unusable = None  # why the configured embedder cannot be used
    if engine.embedder.enabled and (plan.read or engine.embedder.loaded):
        try:
            start_over(engine)  # drops the vectors if another embedder made them
        except EmbedderError as reason:
            unusable = fault_text(reason)
    policy = CachePolicy(config.cache.max_entries) if config.cache.enabled else None
    changed = _documents(engine, config, plan, run)
    for written in write_documents(engine, changed, cache=policy, embed=unusable is None):
        run.count(written)
    # The next run needs only the `stat` of files that were read and are unchanged.
    for begin in range(0, len(run.same), _REFRESHED_TOGETHER):
        with engine.atomic() as writer:
            writer.documents.note_read(run.same[begin : begin + _REFRESHED_TOGETHER])
    deleted = list(run.gone)
    if deleted:
        delete_documents(engine, SCOPE, deleted)
    problem, computed = unusable or run.embedder_problem, 0
    if problem is None and run.embed_waiting:
        computed, problem = _embed_waiting(engine)
    return IndexResult(
        files_scanned=plan.scanned, files_indexed=run.indexed, files_skipped=plan.scanned - run.indexed,
        files_deleted=len(deleted), files_renamed=len(run.moved), chunks_created=run.created,
        chunks_kept=run.chunks_kept, embeddings_cached=run.cached, embeddings_computed=run.computed + computed,
        pending=waiting(engine), duration_ms=(perf_counter() - began) * 1000, problems=tuple(run.problems),
        embedder_problem=problem,
    )  # fmt: skip


def _documents(engine: Engine, config: WorkspaceConfig, plan: Plan, run: _Run) -> Iterator[NewDocument]:
    """Read the files of the plan; yields the ones that differ from what is stored."""
    chunking = chunking_name(config, engine.embedder.spec)
    by_hash: dict[bytes, list[str]] = {}
    for gone in plan.gone:
        by_hash.setdefault(gone.content_hash, []).append(gone.source)
    for file in plan.read:
        row = plan.stored.get(file.path)
        read_at = now_us()
        try:
            data, stamp = read_file(file)
        except Unreadable as reason:
            if row is not None and reason.lasting:
                run.gone[file.path] = row
            run.problems.append(problem_of(file.path, reason, unread=not reason.lasting))
            run.finish_one()
            continue
        digest = hashlib.sha256(data).digest()
        same = row is not None and (digest, chunking, stamp.mtime_ns) == (row.content_hash, row.chunking, row.mtime_ns)
        if row is not None and same and not run.force:
            run.same.append((stamp.inode, read_at, row.id, digest))
            run.finish_one()
            continue
        try:
            document = to_document(
                engine, config, file.path, data, stamp.mtime_ns, content_hash=digest, chunking=chunking,
                size_bytes=stamp.size, inode=stamp.inode, read_at=read_at,
            )  # fmt: skip
        except Exception as fault:  # a malicious file fails only its own indexing
            run.problems.append(problem_of(file.path, f"it cannot be parsed: {type(fault).__name__}: {fault}"))
            run.finish_one()
            continue
        if row is None and by_hash.get(digest):
            document.renamed_from = former = by_hash[digest].pop()
            run.moved[file.path] = run.gone.pop(former)
        if document.problem is not None:
            run.problems.append(problem_of(file.path, document.problem, indexed=True))
        yield document


def _embed_waiting(engine: Engine) -> tuple[int, str | None]:
    """Embed pending chunks; returns how many were embedded, and why not all."""
    before = waiting(engine)
    if not before:
        return 0, None
    try:
        start_over(engine)
        return embed_pending(engine), None
    except EmbedderError as reason:
        return max(0, before - waiting(engine)), fault_text(reason)


def _differs(row: DocumentRow | None, file: FoundFile, chunking: str) -> bool:
    now = (file.size, file.mtime_ns, file.inode, chunking)
    return row is None or (row.size_bytes, row.mtime_ns, row.inode, row.chunking) != now


def _may_have_changed_since(row: DocumentRow | None, file: FoundFile) -> bool:
    """Whether the bytes may have changed while size, time and inode have not: within the clock's resolution, or by a
    program that set the modification time back (which it cannot do to the time of the status change).
    """
    changed_ns = max(file.mtime_ns, file.ctime_ns)
    return row is None or changed_ns > row.read_at * 1000 - _RACY_NS


def chunking_name(config: WorkspaceConfig, spec: object) -> str:
    """Name all that chunks and vectors depend on besides the file's bytes; if it differs, the file is indexed again.

    The configured embedder is named without loading it or calling an endpoint.
    """
    if isinstance(spec, str):
        # Chunks made while the folder of the model was missing are made again with its tokenizer.
        embedder = f"{spec}{'+' if (Path(spec).expanduser() / 'tokenizer.json').is_file() else ''}"
    elif isinstance(spec, ModelAddress | RemoteEmbedder):
        embedder = f"remote:{spec.model if isinstance(spec, ModelAddress) else spec.name}"
    else:
        embedder = str(getattr(spec, "fingerprint", type(spec).__name__))
    return f"{_RULES}:{config.chunking.tokens}:{config.chunking.overlap}:{config.timezone}:{embedder}"


def to_document(
    engine: Engine, config: WorkspaceConfig, path: str, data: bytes, mtime_ns: int, **columns: Any
) -> NewDocument:
    """The document of a file; `columns` identify its bytes."""
    text, problem = decode(data)
    metadata, begin = front_matter(text)
    size = ChunkSize(config.chunking.tokens, config.chunking.overlap, least_tokens=LEAST_TOKENS)

    def token_starts() -> NDArray[np.int64]:
        try:
            return engine.embedder.token_starts([text])[0]
        except EmbedderError:  # its tokenizer is not available
            return measure_of("none")([text])[0]

    chunks = chunk_markdown(text, token_starts, size, begin=begin)
    if not is_memory_file(text.replace("\r\n", "\n")):  # whose fields are not what it says
        chunks = with_properties(chunks, text, properties_text(metadata, without={"title"}), size)
    chunks = [*with_columns(chunks, text, "markdown")]
    stated_title = metadata.get("title")
    own_title = short_name(stated_title) if isinstance(stated_title, str) and stated_title.strip() else None
    title = own_title or next((short_name(chunk.headings[0]) for chunk in chunks if chunk.headings), None)
    shared = short_values(metadata)
    return NewDocument(
        source=path, title=title, media_type=MEDIA_TYPE, mtime_ns=mtime_ns, metadata=metadata, problem=problem,
        # For `source_filter` of a search: a bitmap before the scan.
        tags=(source_label(config.as_memory(path)),),
        created_at=written_at(path, mtime_ns, config.timezone),
        chunks=[
            NewChunk(
                text=chunk.columns + chunk.text,
                # Without the file name, so that a renamed file keeps its vectors.
                context=context_of(own_title, headings, chunk.properties),
                metadata={
                    **shared, "path": path, **({} if title is None else {"title": title}), "headings": headings,
                    "lines": list(chunk.lines), "chars": [chunk.start, chunk.end],
                },
            )
            for chunk in chunks
            for headings in [[short_name(heading) for heading in chunk.headings]]
        ],
        **columns,
    )  # fmt: skip


class Watcher:
    """Runs `sync` when Markdown files change, and at an interval. A failure is kept in `problem`; both go on."""

    def __init__(self, config: WorkspaceConfig, sync: Callable[[], IndexResult]) -> None:
        self._config = config
        self._sync = sync
        self._lock = threading.Lock()
        self._watching: _Thread | None = None
        self._interval: _Thread | None = None
        self.problem: str | None = None
        self.listed_at = -inf
        """The time at which all files were last listed and changes indexed, by `time.monotonic`."""
        self._unseen = True  # whether there are, or may be, changes that the watcher has not indexed

    @property
    def may_be_trusted(self) -> bool:
        """Whether it watches without a problem, has indexed every change that it saw, and all files were listed lately.

        When the system's queue overflows, the last changes still reach the watcher, which then lists every file.
        """
        recently = monotonic() - self.listed_at < _TRUSTED_SECONDS
        return self.active and recently and not self._unseen and self.problem is None

    @property
    def active(self) -> bool:
        """Whether files are watched."""
        return self._watching is not None and self._watching.is_alive()

    @property
    def interval_active(self) -> bool:
        """Whether files are indexed at an interval."""
        return self._interval is not None and self._interval.is_alive()

    def start(self, on_index: Callable[[IndexResult], None] | None = None) -> None:
        """Watch from now on, after one index run. Does nothing where it watches already.

        Raises InvalidInput if watchfiles is not installed.
        """
        try:
            from watchfiles import watch
        except ImportError:
            raise InvalidInput(f"watching needs watchfiles: {install_command('watch')}") from None
        with self._lock:
            if not self.active:
                self._unseen = True
                self._watching = _Thread("recallite-watch", lambda stop: self._watch(watch, stop, on_index))

    def start_interval(self) -> None:
        """Index every `interval_minutes` from now on."""
        with self._lock:
            if self._interval is None:
                self._interval = _Thread("recallite-interval", self._repeat)

    def stop(self) -> None:
        """Stop watching; the interval goes on."""
        with self._lock:
            thread, self._watching = self._watching, None
        if thread is not None:
            thread.stop()

    def close(self) -> None:
        """Stop both."""
        self.stop()
        with self._lock:
            thread, self._interval = self._interval, None
        if thread is not None:
            thread.stop()

    def _watch(
        self, watch: Callable[..., Any], stop: threading.Event, on_index: Callable[[IndexResult], None] | None
    ) -> None:
        root = self._config.folder
        extra = (os.path.join(root, os.path.expanduser(path)) for path in self._config.extra_paths)
        folders = [root, *filter(os.path.exists, extra)]
        quiet_ms = self._config.sync.watch_debounce_ms
        tick_ms = max(1, min(_TICK_MS, quiet_ms))
        while not stop.is_set():
            try:
                changes = watch(
                    *folders, watch_filter=self._concerns, step=tick_ms, debounce=tick_ms, rust_timeout=tick_ms,
                    yield_on_timeout=True, stop_event=stop, raise_interrupt=False,
                )  # fmt: skip
                # After the first tick it watches: the run for earlier changes begins then, so that none is missed.
                due = latest = 0.0
                for change in changes:
                    now = monotonic()
                    if change:
                        self._unseen = True
                        due = now + quiet_ms / 1000
                        latest = min(latest, now + _LONGEST_WAIT * quiet_ms / 1000)
                    if now >= min(due, latest) and not stop.is_set():
                        due = latest = inf
                        # Not before the run: a search meanwhile would not wait for it.
                        self._unseen = not self._run(on_index)
            except Exception as fault:  # the folder is missing for now, or too many are watched
                self._unseen = True
                self.problem = f"watching failed: {fault_text(fault)}"
                stop.wait(1.0)

    def _repeat(self, stop: threading.Event) -> None:
        while not stop.wait(self._config.sync.interval_minutes * 60):
            self._run()

    def _run(self, on_index: Callable[[IndexResult], None] | None = None) -> bool:
        """Whether the run succeeded."""
        began = monotonic()
        try:
            result = self._sync()
            self.listed_at = began
            if on_index is not None:
                on_index(result)
        except StoreClosed:
            return False
        except Exception as fault:
            self._unseen = True
            self.problem = fault_text(fault)
            return False
        return True

    def _concerns(self, _: object, path: str) -> bool:
        """Whether a change may concern the index: of a Markdown file, of a folder, or of something removed."""
        inside = os.path.relpath(path, self._config.folder).split(os.sep)
        if inside[0] != os.pardir and any(name.startswith(".") for name in inside):
            return False
        return path.lower().endswith(ENDINGS) or not os.path.isfile(path)


class _Thread(threading.Thread):
    """A daemon thread that an event stops."""

    def __init__(self, name: str, work: Callable[[threading.Event], None]) -> None:
        self._told = threading.Event()
        super().__init__(name=name, target=work, args=(self._told,), daemon=True)
        self.start()

    def stop(self) -> None:
        """Stop it, and wait for its end unless it is the calling thread."""
        self._told.set()
        if threading.current_thread() is not self:
            self.join()
