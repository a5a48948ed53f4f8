"""The files of a workspace, and the state of its index."""

from __future__ import annotations

from collections.abc import Sequence

from recallite.engine import Engine
from recallite.errors import RecalliteError
from recallite.model.checks import now_us
from recallite.model.model_address import ModelAddress
from recallite.system.messages import fault_text
from recallite_notes.config import WorkspaceConfig
from recallite_notes.note_files import FileProblem, problem_of
from recallite_notes.opening import moved_aside
from recallite_notes.results import FileInfo, StoreStatus
from recallite_notes.rules import is_evergreen, source_label
from recallite_notes.sync import SCOPE, Plan, waiting

_SHOWN = 5
_ASIDE = "this index was damaged and replaced by a new one: it can be deleted"


def unread(problems: Sequence[FileProblem]) -> tuple[str, ...]:
    """The report of a search on files and folders that it may miss because they could not be read."""
    lines = [f"{problem.path}: {problem.reason}" for problem in problems if problem.unread]
    more = len(lines) - _SHOWN
    return (*lines[:_SHOWN], *([f"and {more:,} more: status() names them"] if more > 0 else ()))


_REFUSED_SHOWN = 20


def file_infos(engine: Engine, config: WorkspaceConfig) -> list[FileInfo]:
    """Every indexed file, by path."""
    with engine.store.read() as reader:
        rows = reader.documents.listed(SCOPE)
    return [
        FileInfo(
            path=row.source,
            size=row.size_bytes,
            hash=row.content_hash.hex(),
            mtime=(row.mtime_ns or 0) / 1e9,
            chunks=row.chunks,
            is_evergreen=is_evergreen(row.source, config.evergreen),
            source=source_label(row.source),
        )
        for row in rows
    ]


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
        files=len(plan.stored),
        chunks=chunks,
        dirty=plan.dirty,
        workspace_dir=str(config.folder),
        db_path=str(config.index_path),
        search_mode="fts-only" if provider == "none" or fault is not None else "hybrid",
        provider=provider,
        model=model,
        fts_available=True,
        vector_available=provider != "none" and fault is None,
        cache_entries=cached,
        cache_max_entries=config.cache.max_entries,
        watcher_active=watching,
        interval_active=at_interval,
        pending=waiting(engine),
        refused=refused,
        problems=tuple(dict.fromkeys((*plan.problems, *stored, *problems, *aside, *refusing))),
        embedder_problem=fault,
        sync_problem=sync_problem,
    )


def _embedder(engine: Engine, chunks: int) -> tuple[str, str | None, str | None]:
    """Provider, model, and why vector search is unavailable, if it is: like a search, this embeds a text."""
    if not engine.embedder.enabled:
        return "none", None, None
    spec = engine.embedder.spec
    named = isinstance(spec, str)
    remote = isinstance(spec, ModelAddress) or type(spec).__module__ == "recallite.embedding.remote"
    provider = "local" if named else "remote" if remote else "custom"
    model = spec if isinstance(spec, str) else getattr(spec, "model", None)
    try:
        model = engine.embedder.identity(queries_first=True).name
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
