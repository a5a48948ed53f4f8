"""What a workspace says of itself: its files, and the state of its index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.checks import fault_text
from recollect.errors import RecollectError
from recollect.store import documents, embedding_cache
from recollect.workspace.files import FileProblem, problem_of
from recollect.workspace.results import FileInfo, StoreStatus
from recollect.workspace.rules import is_evergreen, source_label
from recollect.workspace.sync import SCOPE, Plan, waiting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.engine import Engine
    from recollect.workspace.config import MemoryConfig

__all__ = ["file_infos", "store_status"]


def file_infos(engine: Engine, config: MemoryConfig) -> list[FileInfo]:
    """Every indexed file, by path."""
    with engine.store.read() as connection:
        rows = documents.listed(connection, SCOPE)
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
    config: MemoryConfig,
    plan: Plan,
    *,
    problems: Sequence[FileProblem],
    sync_problem: str | None,
    watching: bool,
) -> StoreStatus:
    """The state of the index beside what a plan says of the files; `problems` are those of the last run."""
    with engine.store.read() as connection:
        cached = embedding_cache.count(connection)
    provider, model, fault = _embedder(engine)
    stored = [problem_of(row.source, row.problem, indexed=True) for row in plan.stored.values() if row.problem]
    return StoreStatus(
        files=len(plan.stored),
        chunks=sum(row.chunks for row in plan.stored.values()),
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
        pending=waiting(engine),
        problems=tuple(dict.fromkeys((*plan.problems, *stored, *problems))),
        embedder_problem=fault,
        sync_problem=sync_problem,
    )


def _embedder(engine: Engine) -> tuple[str, str | None, str | None]:
    """Provider and model, and why nothing can be embedded; a model over HTTP is asked for its dimension."""
    if not engine.embedder.enabled:
        return "none", None, None
    spec = engine.embedder.spec
    named = isinstance(spec, str)
    remote = type(spec).__module__.startswith("recollect.remote")
    provider = "local" if named else "remote" if remote else "custom"
    try:
        return provider, engine.embedder.identity().name, None
    except RecollectError as reason:
        return provider, spec if isinstance(spec, str) else getattr(spec, "model", None), fault_text(reason)
