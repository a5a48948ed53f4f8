"""Results of the methods of a workspace."""

from __future__ import annotations

from recallite.model.records import Plain
from recallite_notes.note_files import FileProblem


class IndexResult(Plain, frozen=True, kw_only=True):
    """The result of an index run.

    - files_scanned: files found; files_indexed of them were new, changed or, with `force`, all; files_skipped were not
    - files_renamed: files that kept their chunks under another path
    - embeddings_cached: embeddings taken from the cache
    - pending: chunks that are not embedded yet; `embedder_problem` says why
    - complete: False if another run held the folder for too long
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
    """An indexed file: `size` in bytes, `hash` SHA-256 in hex, `mtime` in seconds since 1970, `source` its label."""

    path: str
    size: int
    hash: str
    mtime: float
    chunks: int
    is_evergreen: bool
    source: str


class StoreStatus(Plain, frozen=True, kw_only=True):
    """The state of a workspace and its index.

    - dirty: whether files have changed since they were indexed
    - search_mode: "hybrid", or "fts-only" if the query or all chunks have no vector of this embedder;
      `embedder_problem` says why
    - provider: "local", "remote", "custom" (an object given by the caller) or "none"
    - watcher_active: whether changes are indexed as they happen; interval_active: whether they are every few minutes
    - pending: chunks not embedded yet, for the reason in `embedder_problem`; refused: chunks that the embedder rejects,
      listed in `problems`
    - problems: of files; sync_problem: what stopped the last run of the watcher or the interval
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
    interval_active: bool
    pending: int
    problems: tuple[FileProblem, ...]
    refused: int = 0
    embedder_problem: str | None = None
    sync_problem: str | None = None
