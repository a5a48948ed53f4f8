"""Configuration of a workspace. The defaults are memweave's, with the bundled embedder in place of a service."""

import os
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

from msgspec import Meta, field

from recallite.errors import InvalidInput
from recallite.model.checks import check_name, check_path
from recallite.model.configuration import Count, NonNegative, Positive, Section, Setting, Share
from recallite.system.messages import shown

SKIPPED_FOLDERS = (
    "node_modules", "bower_components", "venv", "virtualenv", "site-packages", "__pycache__", "__pypackages__",
)  # fmt: skip
"""Folders of other people's files."""


def _check_key(value: object, name: str) -> str:
    try:
        return check_name(value, name)
    except InvalidInput:  # whose message shows the value
        raise InvalidInput(f"{name} is blank or not a key: give the key as it was issued, or None") from None


def _check_path(value: object, name: str) -> str:
    check_path(value, name)
    return os.fspath(value)  # type: ignore[call-overload, no-any-return]


def _check_timezone(value: object, name: str) -> str:
    try:
        ZoneInfo(check_name(value, name))
    except (OSError, ValueError, KeyError):
        raise InvalidInput(f"{name} is {shown(value)}: give a name such as 'UTC' or 'Europe/Berlin'") from None
    return str(value)


def _check_extension(value: object, name: str) -> None:
    raise InvalidInput(f"{name} is {shown(value)}: leave it out, Recallite has its own")


Name = Annotated[str, Setting(check=check_name)]
Key = Annotated[str, Setting(check=_check_key, secret=True)]


class EmbeddingConfig(Section, frozen=True, kw_only=True):
    """The embedder.

    - model: `default`, `instant`, `none`, a bundled model's name or a folder with model.onnx; else a model over HTTP:
      `ollama/nomic-embed-text`, `voyage/voyage-3` (providers other than OpenAI and Ollama need the extra `providers`,
      unless they speak OpenAI's protocol at `api_base`), `text-embedding-3-small`, or any at `api_base`. None is the
      environment's, else the bundled model.
    - api_base: Base URL at which the model is served.
    - api_key: Key of the model; None is the environment's. It is in `to_dict` and saved files, but not in the repr.
    - timeout: Seconds a request to a model over HTTP may take.
    - batch_size: Texts in a request to a model over HTTP.
    """

    model: Name | None = None
    api_base: Name | None = None
    api_key: Key | None = None
    timeout: Positive = 60.0
    batch_size: Count = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model is None and self.api_base is not None:
            raise InvalidInput(f"EmbeddingConfig.api_base is {shown(self.api_base)}: name the model there too")


class ChunkingConfig(Section, frozen=True, kw_only=True):
    """Size of the chunks that files are cut into.

    - tokens: Most tokens of a chunk.
    - overlap: Tokens that a chunk shares with the one before; fewer than `tokens`.
    """

    tokens: Count = 400
    overlap: int = 80

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.overlap >= self.tokens:
            raise InvalidInput(f"ChunkingConfig.overlap is {self.overlap}: give fewer than tokens, {self.tokens}")


class HybridConfig(Section, frozen=True, kw_only=True):
    """Fusion of cosine and BM25. The two weights sum to 1.

    - vector_weight: Share of the cosine.
    - text_weight: Share of BM25.
    - candidate_multiplier: Factor by which a search finds more results than asked for.
    """

    vector_weight: Share = 0.7
    text_weight: Share = 0.3
    candidate_multiplier: Count = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if abs(self.vector_weight + self.text_weight - 1.0) > 1e-6:
            raise InvalidInput(
                f"HybridConfig.vector_weight {self.vector_weight} and text_weight {self.text_weight} sum to "
                f"{self.vector_weight + self.text_weight:g}: they sum to 1"
            )


class MMRConfig(Section, frozen=True, kw_only=True):
    """Maximal marginal relevance.

    - enabled: Whether results are diversified.
    - lambda_param: 1 is relevance alone, 0 diversity alone.
    """

    enabled: bool = False
    lambda_param: Share = 0.7


class TemporalDecayConfig(Section, frozen=True, kw_only=True):
    """Decay of scores with the age of a file; evergreen files do not age.

    - enabled: Whether scores decay.
    - half_life_days: Age at which a score is halved; 0 if age does not count.
    """

    enabled: bool = False
    half_life_days: NonNegative = 30.0


class QueryConfig(Section, frozen=True, kw_only=True):
    """Defaults of a search.

    Without `min_score` and `min_confidence`, results below the confidence that keeps 95 % of right answers are dropped:
    0.15, and more with fewer than 100 chunks; so are those whose texts do not answer when they are read, as by
    `recall(relevant=True)`. If confidence is not known, as of a registered strategy, or not fitted on the embedder,
    results below a score of 0.35 are, which is memweave's threshold.

    - strategy: `hybrid`, `vector`, `keyword` or the name of a registered strategy. With `keyword` nothing is embedded.
    - max_results: Most results of a search.
    - min_score: Results with a lower score are dropped, before decay and MMR.
    - min_confidence: Results with a lower confidence are dropped.
    - snippet_max_chars: Longest snippet, in characters.
    """

    strategy: Name = "hybrid"
    max_results: Count = 6
    min_score: Share | None = None
    min_confidence: Share | None = None
    snippet_max_chars: Count = 700
    hybrid: HybridConfig = HybridConfig()
    mmr: MMRConfig = MMRConfig()
    temporal_decay: TemporalDecayConfig = TemporalDecayConfig()


class CacheConfig(Section, frozen=True, kw_only=True):
    """The cache of embeddings of chunks that are no longer in any file.

    - enabled: Whether they are kept.
    - max_entries: Most embeddings kept; the least recently used are dropped first.
    """

    enabled: bool = True
    max_entries: Count | None = None


class SyncConfig(Section, frozen=True, kw_only=True):
    """Checks of files for changes.

    - on_search: Before each search.
    - watch: While the workspace is open, as `start_watching` does.
    - watch_debounce_ms: Milliseconds after the last change until the watcher indexes.
    - interval_minutes: Minutes between two checks; 0 is none.
    """

    on_search: bool = True
    watch: bool = False
    watch_debounce_ms: Annotated[int, Meta(ge=0, le=86_400_000)] = 1500
    interval_minutes: Annotated[int, Meta(ge=0, le=525_600)] = 0


class FlushConfig(Section, frozen=True, kw_only=True):
    """Search of `flush` for facts in a conversation.

    - enabled: False makes `flush` do nothing.
    - model: A model with its provider (`gemini/gemini-2.0-flash`), or one at `api_base`, at the endpoint of the
      workspace's or the environment's language model, or OpenAI's. None is that language model, else `gpt-4o-mini` at
      OPENAI_BASE_URL.
    - api_base: Base URL at which the model is served.
    - api_key: Key of the model. It is in `to_dict` and saved files, but not in the repr.
    - max_tokens: Most tokens of the answer.
    - temperature: Temperature of the answer.
    - system_prompt: Prompt in place of Recallite's own; `YYYY-MM-DD` in it becomes today's date.
    """

    enabled: bool = True
    model: Name | None = None
    api_base: Name | None = None
    api_key: Key | None = None
    max_tokens: Count = 1024
    temperature: Annotated[float, Meta(ge=0, le=2)] = 0.0
    system_prompt: str | None = None


class VectorConfig(Section, frozen=True, kw_only=True):
    """Vector search.

    - enabled: Whether chunks are embedded.
    - extension_path: sqlite-vec comes with Recallite: no other is loaded.
    """

    enabled: bool = True
    extension_path: Annotated[str | None, Setting(check=_check_extension)] = None


class WorkspaceConfig(Section, frozen=True, kw_only=True):
    """Configuration of a workspace. Every field has a default.

    - workspace_dir: The folder. Its folder `memory` holds the memories; if it is itself called so, it holds them.
    - db_path: The index; None is `.recallite/index.db` in the folder.
    - timezone: Time zone in which the day of a dated file begins, as `Europe/Berlin`.
    - progress: Whether the command line draws progress bars.
    - extra_paths: Further files and folders, relative to the folder or absolute; they may be outside of it.
    - skip_folders: Names of folders that are skipped at any depth, besides hidden ones. Unless it is empty, virtual
      environments are skipped under any name.
    - exclude: Patterns of files and folders to skip, as in a .gitignore.
    - bootstrap_files: Files that never age: names, or paths in the folder, with * and ?.
    - evergreen_patterns: Further files that never age.
    - max_file_bytes: Larger files are reported and skipped.
    """

    workspace_dir: Annotated[str, Setting(check=_check_path)] = "."
    db_path: Annotated[str | None, Setting(check=_check_path)] = None
    timezone: Annotated[str, Setting(check=_check_timezone)] = "UTC"
    embedding: EmbeddingConfig = EmbeddingConfig()
    chunking: ChunkingConfig = ChunkingConfig()
    query: QueryConfig = QueryConfig()
    cache: CacheConfig = CacheConfig()
    sync: SyncConfig = SyncConfig()
    flush: FlushConfig = FlushConfig()
    vector: VectorConfig = VectorConfig()
    progress: bool = True
    extra_paths: list[str] = field(default_factory=list)
    skip_folders: tuple[str, ...] = SKIPPED_FOLDERS
    exclude: tuple[str, ...] = ()
    bootstrap_files: tuple[str, ...] = ("MEMORY.md",)
    evergreen_patterns: tuple[str, ...] = ("MEMORY.md", "memory.md")
    max_file_bytes: Count = 10_000_000

    def __post_init__(self) -> None:
        super().__post_init__()
        for i, path in enumerate(self.extra_paths):
            check_path(path, f"WorkspaceConfig.extra_paths[{i}]")

    @property
    def folder(self) -> Path:
        """The folder, absolute."""
        return Path(self.workspace_dir).expanduser().absolute()

    @property
    def index_path(self) -> Path:
        """The path of the index, absolute."""
        if self.db_path is None:
            return self.folder / ".recallite" / "index.db"
        return Path(self.db_path).expanduser().absolute()

    def as_memory(self, path: str) -> str:
        """The path by which a file gets its label and its age: below `memory/`, if the workspace is called so."""
        outside = path.startswith(("memory/", "../")) or os.path.isabs(path)
        return path if outside or self.folder.name != "memory" else f"memory/{path}"

    @property
    def evergreen(self) -> tuple[str, ...]:
        """The patterns of files that never age."""
        return tuple(dict.fromkeys((*self.bootstrap_files, *self.evergreen_patterns)))

    @property
    def embeds(self) -> bool:
        """Whether chunks are embedded: not if vectors are off or search is by keyword."""
        return self.vector.enabled and self.query.strategy != "keyword"
