"""The workspace: a folder of Markdown files that an agent and a person keep, and an index from which it is searched."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Self, TypeVar

from msgspec import structs

from recallite.embedding.protocol import Embedder
from recallite.engine import Engine
from recallite.errors import InvalidInput, NotADatabase, RecalliteError, StoreClosed, StoreCorrupt, StoreError
from recallite.model.checks import check_name, check_path, now_us
from recallite.model.environment import ModelAddress
from recallite.remote import LanguageModel
from recallite.store.store import Progress
from recallite.system.messages import fault_text, shown
from recallite_notes.config import WorkspaceConfig
from recallite_notes.flushing import append_to_day, extract, known_lines, language_model_of, today_in
from recallite_notes.indexing import SCOPE, Plan, UnchangedListing, Watcher, add_file, make_plan, synchronise, waiting
from recallite_notes.note_files import (
    FileInfo,
    FileProblem,
    IndexResult,
    Selection,
    StoreStatus,
    Unreadable,
    is_evergreen,
    problem_of,
    source_label,
)
from recallite_notes.opening import IndexFile, moved_aside
from recallite_notes.search import Extensions, SearchResults, query_settings, search

Result = TypeVar("Result")
# A search does not wait longer for another run: it answers from what is indexed.
_SEARCH_WAITS_SECONDS = 5.0
# An embedder that takes longer than this to fail is asked again by searches only after this many times as long.
_LONG_SECONDS = 0.1
_PATIENCE = 10
_SHOWN, _REFUSED_SHOWN = 5, 20
_ASIDE = "this index was damaged and replaced by a new one: it can be deleted"


class Workspace:
    """A folder of Markdown files as memory. `.recallite/index.db` is an index that is derived from the files.

        with Workspace("notes") as workspace:
            for result in workspace.search("What database are we using?"):
                print(f"{result.path}:{result.start_line}", result.snippet)

    `folder` is created if it is missing; None is the configuration's. Usable from many threads.
    Raises InvalidInput for a wrong configuration, and StoreError if the index cannot be written.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | WorkspaceConfig | None = None,
        config: WorkspaceConfig | None = None,
        *,
        embedder: Embedder | str | None = None,
        language_model: LanguageModel | str | None = None,
    ) -> None:
        self._config = _configured(folder, config)
        self._selection = Selection(self._config)
        self._index = IndexFile(self._config, embedder, language_model)
        self._unchanged = UnchangedListing()
        self._extensions = Extensions()
        self._ask_again_at = 0.0
        self._problems: tuple[FileProblem, ...] = ()
        self._watcher = Watcher(self._config, self.index)
        if self._config.sync.watch:
            self._watcher.start()
        if self._config.sync.interval_minutes:
            self._watcher.start_interval()

    @property
    def config(self) -> WorkspaceConfig:
        """The configuration, with the folder."""
        return self._config

    @property
    def folder(self) -> Path:
        """The folder, absolute."""
        return self._config.folder

    # ── the index ──────────────────────────────────────────────────────────────────────────────────────────────

    def index(self, force: bool = False, on_progress: Progress | None = None) -> IndexResult:
        """Bring the index up to date; only what has changed is read, chunked and embedded.

        `force` reads every file again and repairs a damaged index; unchanged chunks keep their vectors.
        `on_progress(done, total)` counts files to read. Files that cannot be read are listed in `problems`. An
        interrupted run is completed by the next. Waits for another run in this folder.
        """
        result = self._synchronise(None, force=force, on_progress=on_progress)
        news = [problem_of(str(self._index.path), news_item, indexed=True) for news_item in self._index.take_news()]
        return structs.replace(result, problems=(*result.problems, *news))

    def add(self, path: str | os.PathLike[str], force: bool = False) -> IndexResult:
        """Index one file of the folder at once; a relative path is one in the folder, else one from here.

        Raises InvalidInput if it is outside, missing, left out by the configuration, or cannot be read.
        """
        name = self._name_of(path)
        try:
            file = self._selection.find(name)
        except Unreadable as reason:
            raise InvalidInput(f"{name}: {reason}") from None
        with self._index.alone():
            return self._with_engine(lambda engine: add_file(engine, self._config, file, force=force), writing=True)

    def files(self) -> list[FileInfo]:
        """Every indexed file, by path."""
        return self._with_engine(lambda engine: file_infos(engine, self._config))

    def status(self) -> StoreStatus:
        """The state of the index and its embedder, and whether files have changed since they were indexed."""

        def described(engine: Engine) -> StoreStatus:
            plan = make_plan(engine, self._config, self._selection)
            return store_status(
                engine, self._config, plan,
                problems=self._problems, sync_problem=self._watcher.problem, watching=self._watcher.active,
                at_interval=self._watcher.interval_active,
            )  # fmt: skip

        return self._with_engine(described)

    # ── search ─────────────────────────────────────────────────────────────────────────────────────────────────

    def search(
        self,
        /,
        query: str,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        min_confidence: float | None = None,
        strategy: str | None = None,
        source_filter: str | None = None,
        vector_weight: float | None = None,
        text_weight: float | None = None,
        candidate_multiplier: int | None = None,
        mmr_lambda: float | None = None,
        temporal_decay: bool | None = None,
        decay_half_life_days: float | None = None,
        snippet_max_chars: int | None = None,
        **options: Any,
    ) -> SearchResults:
        """The passages that answer a query, best first, with file and lines. Options default to the configuration's.

        - strategy: "hybrid" (keyword only if nothing can be embedded, which `problems` of the results says),
          "vector" (raises EmbedderError there), "keyword", or the name of a registered strategy
        - min_score, min_confidence: results below are dropped, before decay and MMR; one given here replaces both of
          the configuration. See `dropped`, `weak` and `evidence_gaps` of the results
        - source_filter: only files with this label
        - vector_weight, text_weight: shares of cosine and BM25; one implies the other. candidate_multiplier: each
          search finds this many times `max_results`
        - mmr_lambda: 1 is relevance alone, 0 diversity alone
        - decay_half_life_days: age at which scores are halved; 0 is no decay. temporal_decay: False turns decay off,
          True on
        - options: for registered post-processors

        With `SyncConfig.on_search` changed files are indexed first. While a watcher runs, the files are listed only
        after it saw a change or a problem, and at least every 5 seconds, since some network file systems report no
        changes; a change can be missed for up to a quarter of a second.
        """
        settings = query_settings(
            self._config.query, max_results=max_results, min_score=min_score, min_confidence=min_confidence,
            strategy=strategy, vector_weight=vector_weight, text_weight=text_weight,
            candidate_multiplier=candidate_multiplier, mmr_lambda=mmr_lambda, temporal_decay=temporal_decay,
            decay_half_life_days=decay_half_life_days, snippet_max_chars=snippet_max_chars,
        )  # fmt: skip
        label = None if source_filter is None else check_name(source_filter, "source_filter")

        def answered(engine: Engine) -> SearchResults:
            return search(engine, self._config, self._extensions, query, settings, source_filter=label, options=options)

        problem = self._sync_if_due()
        engine = self._index.engine()
        results = self._with_engine(answered)
        if self._index.engine() is not engine:  # the index was damaged: the new one is empty
            problem = self._sync_if_due() if self._config.sync.on_search else "the index was damaged: run index()"
            results = self._with_engine(answered)
        if problem is not None:
            results.problems += (f"what has changed is not indexed: {problem}",)
        results.problems += (*self._index.take_news(), *unread(self._problems))
        return results

    def register_strategy(self, name: str, strategy: object) -> None:
        """Have `search(strategy=name)` call an object's `search(db, query, query_vec, model, limit, *, source_filter)`.

        It returns a list of RawSearchRow, or an awaitable of one. `db.execute(sql, bindings)`, awaited or not, reads in
        a read transaction; the view `chunks` has the text of the files. `query_vec` is a list of float, or None.
        """
        self._extensions.add_strategy(name, strategy)

    def register_postprocessor(self, processor: object) -> None:
        """Have each search call an object's `apply(rows, query, **options)` last, in order of registration.

        It returns a list of RawSearchRow, or an awaitable of one: a selection, other rows, or another order.
        """
        self._extensions.add_postprocessor(processor)

    # ── memories ───────────────────────────────────────────────────────────────────────────────────────────────

    def flush(self, conversation: object, *, model: str | None = None, system_prompt: str | None = None) -> str | None:
        """Have a language model extract lasting facts from a conversation, and append them to today's
        `memory/YYYY-MM-DD.md`.

        `conversation` is a list of {"role", "content"}, treated as data whatever its roles. `model` is one at the
        endpoint of the workspace's language model, else as `FlushConfig.model`; `YYYY-MM-DD` in `system_prompt`
        becomes today's date. Returns what was appended and indexed; None if there is nothing new, or
        `FlushConfig.enabled` is False.

        Raises InvalidInput without a language model, and LanguageModelError if it fails.
        """
        config = self._config
        if not config.flush.enabled:
            return None
        language_model = language_model_of(self._index.engine(), config.flush, model)
        today = today_in(config)
        text = extract(language_model, conversation, config.flush, system_prompt, today)
        if text is None:
            return None
        self._sync_if_due()
        known = self._with_engine(lambda engine: known_lines(engine, text))
        path = f"memory/{today}.md"
        if config.as_memory(path[7:]) == path and not (config.folder / "memory").is_dir():
            path = path[7:]  # the workspace is itself the folder of memories
        fresh = append_to_day(config, path, text, known)
        if fresh is not None:
            self.add(path)
        return fresh

    # ── watching ───────────────────────────────────────────────────────────────────────────────────────────────

    def start_watching(self, on_index: Callable[[IndexResult], None] | None = None) -> None:
        """Index changes in the background, `watch_debounce_ms` after they happen. `status` shows errors.

        The first run begins at once. `on_index` is called after each, in the background thread.
        Raises InvalidInput if the extra `watch` is not installed.
        """
        self._index.engine()  # raises StoreClosed
        self._watcher.start(on_index)

    def stop_watching(self) -> None:
        """Stop watching; a run in progress is completed first."""
        self._watcher.stop()

    def close(self) -> None:
        """Stop watching and close the index. Can be called again."""
        self._watcher.close()
        self._index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Workspace({str(self.folder)!r})"

    # ── inside ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _sync_if_due(self) -> str | None:
        """Index what has changed before a search, if the configuration says so.

        The search goes on with the index as it is if another run takes long, the files cannot be listed, or the
        index cannot be written; returns why. An embedder that is slow to fail is not asked by every search.
        """
        if not self._config.sync.on_search or self._watcher.may_be_trusted:
            return None
        began = monotonic()
        try:
            result = self._synchronise(_SEARCH_WAITS_SECONDS, embed_waiting=began >= self._ask_again_at)
        except StoreClosed:
            raise
        except (InvalidInput, StoreError) as reason:
            self._watcher.problem = fault_text(reason)
            return self._watcher.problem
        if not result.complete:
            return "another run is indexing this folder"
        self._watcher.listed_at = began
        took = monotonic() - began
        if result.embedder_problem is not None and not result.files_indexed and took > _LONG_SECONDS:
            self._ask_again_at = monotonic() + _PATIENCE * took
        return None

    def _synchronise(self, timeout_seconds: float | None, **options: Any) -> IndexResult:
        with self._index.alone(timeout_seconds) as locked:
            if not locked:
                return IndexResult(complete=False)
            result = self._with_engine(
                lambda engine: synchronise(engine, self._config, self._selection, unchanged=self._unchanged, **options),
                writing=True,
            )
        self._problems, self._watcher.problem = result.problems, None
        return result

    def _with_engine(self, work: Callable[[Engine], Result], *, writing: bool = False) -> Result:
        """Do something with the engine, and once more if the file was replaced or seems damaged: on a new index if
        it is.
        """
        engine = self._index.engine(writing=writing)
        try:
            return work(engine)
        except (StoreCorrupt, NotADatabase) as fault:
            if not self._index.replace(engine, fault):
                raise StoreCorrupt(f"{fault}. It is derived: delete it, and the next run makes it again") from fault
        except StoreClosed:
            if self._index.engine() is engine:
                raise
        return work(self._index.engine(writing=writing))

    def _name_of(self, path: str | os.PathLike[str]) -> str:
        """The path of a file in the folder, with forward slashes. Symbolic links are followed above the folder only."""
        check_path(path)
        text = os.fspath(path)
        named = Path(text).expanduser()
        root = Path(os.path.realpath(self.folder))
        candidates = [named] if named.is_absolute() else [self.folder / named, Path.cwd() / named]
        for candidate in candidates:
            plain = Path(os.path.normpath(candidate))
            for base in (self.folder, root):
                if plain.is_relative_to(base) and plain != base and (os.path.lexists(plain) or len(candidates) == 1):
                    return plain.relative_to(base).as_posix()
        inside = Path(os.path.normpath(candidates[0]))
        if inside.is_relative_to(self.folder):
            return inside.relative_to(self.folder).as_posix()
        raise InvalidInput(f"{shown(text)} is outside of the workspace {self.folder}: only files below it are indexed")


def _configured(
    folder: str | os.PathLike[str] | WorkspaceConfig | None, config: WorkspaceConfig | None
) -> WorkspaceConfig:
    if isinstance(folder, WorkspaceConfig):
        if config is not None:
            raise InvalidInput("Workspace was given two configurations: give a folder and one, or one alone")
        folder, config = None, folder
    if config is not None and not isinstance(config, WorkspaceConfig):
        raise InvalidInput(f"config is {shown(config)}: give a WorkspaceConfig")
    configuration = WorkspaceConfig() if config is None else config
    if folder is not None:
        configuration = structs.replace(configuration, workspace_dir=folder)
    # A later change of the working directory has no effect.
    configuration = structs.replace(configuration, workspace_dir=str(configuration.folder))
    try:
        configuration.folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InvalidInput(f"{configuration.folder} is a file: give a folder") from None
    except OSError as fault:
        raise StoreError(f"the folder {configuration.folder} cannot be made: {fault.strerror}", "read_only") from fault
    return configuration


def unread(problems: Sequence[FileProblem]) -> tuple[str, ...]:
    """The report of a search on files and folders that it may miss because they could not be read."""
    lines = [f"{problem.path}: {problem.reason}" for problem in problems if problem.unread]
    more = len(lines) - _SHOWN
    return (*lines[:_SHOWN], *([f"and {more:,} more: status() names them"] if more > 0 else ()))


def file_infos(engine: Engine, config: WorkspaceConfig) -> list[FileInfo]:
    """Every indexed file, by path."""
    with engine.store.read() as reader:
        rows = reader.documents.in_scope(SCOPE)
    return [
        FileInfo(
            path=row.source, size=row.size_bytes, hash=row.content_hash.hex(), mtime=(row.mtime_ns or 0) / 1e9,
            chunks=row.chunks,
            is_evergreen=is_evergreen(row.source, config.evergreen, as_memory=place),
            source=source_label(place),
        )
        for row in rows
        for place in [config.as_memory(row.source)]
    ]  # fmt: skip


def store_status(
    engine: Engine,
    config: WorkspaceConfig,
    plan: Plan,
    *,
    problems: Sequence[FileProblem],
    sync_problem: str | None,
    watching: bool,
    at_interval: bool,
) -> StoreStatus:
    """The state of the index and, by a plan, of the files; `problems` are those of the last run."""
    with engine.store.read() as reader:
        cached = reader.embedding_cache.count()
        refused = reader.vectors.count_refused("/")
        examples = reader.vectors.refused("/", _REFUSED_SHOWN)
    chunks = sum(row.chunks for row in plan.stored.values())
    provider, model, fault = _embedder(engine, chunks)
    stored = [problem_of(row.source, row.problem, indexed=True) for row in plan.stored.values() if row.problem]
    aside = [problem_of(str(path), _ASIDE) for path in moved_aside(config.index_path)]
    refusing = [
        problem_of(source or chunk, f"the embedder refuses a chunk: {reason}", indexed=True)
        for chunk, source, reason in examples
    ]
    return StoreStatus(
        files=len(plan.stored), chunks=chunks, dirty=plan.dirty, workspace_dir=str(config.folder),
        db_path=str(config.index_path), provider=provider, model=model,
        search_mode="fts-only" if provider == "none" or fault is not None else "hybrid",
        fts_available=True, vector_available=provider != "none" and fault is None,
        cache_entries=cached, cache_max_entries=config.cache.max_entries,
        watcher_active=watching, interval_active=at_interval, pending=waiting(engine), refused=refused,
        problems=tuple(dict.fromkeys((*plan.problems, *stored, *problems, *aside, *refusing))),
        embedder_problem=fault, sync_problem=sync_problem,
    )  # fmt: skip


def _embedder(engine: Engine, chunks: int) -> tuple[str, str | None, str | None]:
    """Provider, model, and why vector search is unavailable, if it is: like a search, this embeds a text."""
    if not engine.embedder.enabled:
        return "none", None, None
    spec = engine.embedder.spec
    named = isinstance(spec, str)
    remote = isinstance(spec, ModelAddress) or type(spec).__module__ == "recallite.embedding.remote_embedder"
    provider = "local" if named else "remote" if remote else "custom"
    model = spec if isinstance(spec, str) else getattr(spec, "model", None)
    try:
        model = engine.embedder.identity().name
        if engine.embedder.failure is not None:
            return provider, model, engine.embedder.failure
        active = engine.active_embedder()
        engine.check_embedder(active)
        engine.embedder.queries([f"status {now_us()}"])  # not one from the cache
        if active is None and chunks:
            return provider, model, "nothing is embedded yet: run index()"
    except RecalliteError as reason:
        return provider, model, fault_text(reason)
    return provider, model, None
