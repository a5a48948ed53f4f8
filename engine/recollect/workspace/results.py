"""What a workspace's verbs return."""

from __future__ import annotations

from recollect.records import Plain
from recollect.workspace.files import FileProblem

__all__ = ["FileInfo", "IndexResult", "StoreStatus"]


class IndexResult(Plain, frozen=True, kw_only=True):
    """What an index run did.

    - files_scanned were found; of these files_indexed say something new, with `force` all, and files_skipped do not
    - files_renamed kept their chunks under another path
    - embeddings_cached came from the cache
    - pending chunks wait for an embedder; embedder_problem says why
    - complete is False where another run held the folder for too long
    """

    files_scanned: int = 0
    files_indexed: int = 0
    files_skipped: int = 0
    files_deleted: int = 0
    files_renamed: int = 0
    chunks_created: int = 0
    chunks_kept: int = 0
    embeddings_cached: int = 0
    embeddings_computed: int = 0
    pending: int = 0
    duration_ms: float = 0.0
    problems: tuple[FileProblem, ...] = ()
    embedder_problem: str | None = None
    complete: bool = True


class FileInfo(Plain, frozen=True, kw_only=True):
    """An indexed file: size in bytes, SHA-256 as hex, time of its last change in seconds since 1970, label."""

    path: str
    size: int
    hash: str
    mtime: float
    chunks: int
    is_evergreen: bool
    source: str


class StoreStatus(Plain, frozen=True, kw_only=True):
    """The state of a workspace and its index.

    - dirty: files have changed that are not indexed yet
    - search_mode: what a search does now: "hybrid", or "fts-only" where it has no vector of the query, or none of this
      embedder to compare it with; `embedder_problem` says why
    - provider: "local", "remote", "custom" (an object of the caller's) or "none"
    - pending: chunks that wait for an embedder, which `embedder_problem` says why; refused: chunks that it does not
      take, which `problems` name
    - problems: of files; `sync_problem` is what stopped the last run by the watcher or the interval
    """

    files: int
    chunks: int
    dirty: bool
    workspace_dir: str
    db_path: str
    search_mode: str
    provider: str
    model: str | None
    fts_available: bool
    vector_available: bool
    cache_entries: int
    cache_max_entries: int | None
    watcher_active: bool
    pending: int
    problems: tuple[FileProblem, ...]
    refused: int = 0
    embedder_problem: str | None = None
    sync_problem: str | None = None
