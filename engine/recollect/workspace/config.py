"""Configuration of a workspace. The defaults are memweave's, with the bundled embedder in place of a service."""

import os
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

from recollect.checks import check_name, check_path, shown
from recollect.configuration import Section, Setting
from recollect.errors import InvalidInput

__all__ = [
    "CacheConfig",
    "ChunkingConfig",
    "EmbeddingConfig",
    "FlushConfig",
    "HybridConfig",
    "MMRConfig",
    "QueryConfig",
    "SyncConfig",
    "TemporalDecayConfig",
    "VectorConfig",
    "WorkspaceConfig",
]

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
    raise InvalidInput(f"{name} is {shown(value)}: leave it out, Recollect has its own")


class EmbeddingConfig(Section, frozen=True, kw_only=True):
    """The embedder."""

    model: Annotated[
        str | None,
        Setting(
            "`default`, `instant`, `none`, a bundled model's name or a folder with model.onnx; else a model over "
            "HTTP: `ollama/nomic-embed-text`, `voyage/voyage-3` (providers other than OpenAI and Ollama need the extra "
            "`providers`), `text-embedding-3-small`, or any at `api_base`. None is the environment's, else the "
            "bundled model.",
            check=check_name,
        ),
    ] = None
    api_base: Annotated[str | None, Setting("Base URL at which the model is served.", check=check_name)] = None
    api_key: Annotated[
        str | None,
        Setting(
            "Key of the model; None is the environment's. It is in `to_dict` and saved files, but not in the repr.",
            check=_check_key,
            secret=True,
        ),
    ] = None
    timeout: Annotated[float, Setting("Seconds a request to a model over HTTP may take.", above=0)] = 60.0
    batch_size: Annotated[int, Setting("Texts in a request to a model over HTTP.", minimum=1)] = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model is None and self.api_base is not None:
            raise InvalidInput(f"EmbeddingConfig.api_base is {shown(self.api_base)}: name the model there too")


class ChunkingConfig(Section, frozen=True, kw_only=True):
    """How files are cut into chunks."""

    tokens: Annotated[int, Setting("Most tokens of a chunk.", minimum=1)] = 400
    overlap: Annotated[int, Setting("Tokens that a chunk shares with the one before; fewer than `tokens`.")] = 80

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.overlap >= self.tokens:
            raise InvalidInput(f"ChunkingConfig.overlap is {self.overlap}: give fewer than tokens, {self.tokens}")


class HybridConfig(Section, frozen=True, kw_only=True):
    """Fusion of cosine and BM25. The two weights sum to 1."""

    vector_weight: Annotated[float, Setting("Share of the cosine.", minimum=0, maximum=1)] = 0.7
    text_weight: Annotated[float, Setting("Share of BM25.", minimum=0, maximum=1)] = 0.3
    candidate_multiplier: Annotated[
        int, Setting("Each search finds so many times the results asked for.", minimum=1)
    ] = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if abs(self.vector_weight + self.text_weight - 1.0) > 1e-6:
            raise InvalidInput(
                f"HybridConfig.vector_weight {self.vector_weight} and text_weight {self.text_weight} sum to "
                f"{self.vector_weight + self.text_weight:g}: they sum to 1"
            )


class MMRConfig(Section, frozen=True, kw_only=True):
    """Maximal marginal relevance."""

    enabled: Annotated[bool, Setting("Whether results are diversified.")] = False
    lambda_param: Annotated[float, Setting("1 is relevance alone, 0 diversity alone.", minimum=0, maximum=1)] = 0.7


class TemporalDecayConfig(Section, frozen=True, kw_only=True):
    """Decay of scores with the age of a file; evergreen files do not age."""

    enabled: Annotated[bool, Setting("Whether scores decay.")] = False
    half_life_days: Annotated[float, Setting("Age at which a score is halved.", above=0)] = 30.0


class QueryConfig(Section, frozen=True, kw_only=True):
    """Defaults of a search.

    Without `min_score` and `min_confidence`, results below a confidence of 0.3 are dropped (0.04 in vector search, 0.02
    in keyword search: `benchmarks.quality.threshold`), and below a score of 0.35, memweave's threshold, where a
    registered strategy gives no confidence.
    """

    strategy: Annotated[
        str,
        Setting(
            "`hybrid`, `vector`, `keyword` or the name of a registered strategy. With `keyword` nothing is embedded.",
            check=check_name,
        ),
    ] = "hybrid"
    max_results: Annotated[int, Setting("Most results of a search.", minimum=1)] = 6
    min_score: Annotated[
        float | None, Setting("Results with a lower score are dropped, before decay and MMR.", minimum=0, maximum=1)
    ] = None
    min_confidence: Annotated[
        float | None, Setting("Results with a lower confidence are dropped.", minimum=0, maximum=1)
    ] = None
    snippet_max_chars: Annotated[int, Setting("Longest snippet, in characters.", minimum=1)] = 700
    hybrid: Annotated[HybridConfig, Setting("Fusion of cosine and BM25.")] = HybridConfig()
    mmr: Annotated[MMRConfig, Setting("Maximal marginal relevance.")] = MMRConfig()
    temporal_decay: Annotated[TemporalDecayConfig, Setting("Decay with age.")] = TemporalDecayConfig()


class CacheConfig(Section, frozen=True, kw_only=True):
    """The cache of embeddings of chunks that are no longer in any file."""

    enabled: Annotated[bool, Setting("Whether they are kept.")] = True
    max_entries: Annotated[
        int | None, Setting("Most embeddings kept; the least recently used are dropped first.", minimum=1)
    ] = None


class SyncConfig(Section, frozen=True, kw_only=True):
    """When files are checked for changes."""

    on_search: Annotated[bool, Setting("Before each search.")] = True
    watch: Annotated[bool, Setting("While the workspace is open, as `start_watching` does.")] = False
    watch_debounce_ms: Annotated[
        int, Setting("The watcher indexes so long after the last change.", minimum=0, maximum=86_400_000)
    ] = 1500
    interval_minutes: Annotated[int, Setting("Every so many minutes; 0 does not.", minimum=0, maximum=525_600)] = 0


class FlushConfig(Section, frozen=True, kw_only=True):
    """How `flush` finds facts in a conversation."""

    enabled: Annotated[bool, Setting("False makes `flush` do nothing.")] = True
    model: Annotated[
        str | None,
        Setting(
            "A model with its provider (`gemini/gemini-2.0-flash`), or one at `api_base`, at the endpoint of the "
            "workspace's or the environment's language model, or OpenAI's. None is that language model, else "
            "`gpt-4o-mini` at OPENAI_BASE_URL.",
            check=check_name,
        ),
    ] = None
    api_base: Annotated[str | None, Setting("Base URL at which the model is served.", check=check_name)] = None
    api_key: Annotated[
        str | None,
        Setting(
            "Key of the model. It is in `to_dict` and saved files, but not in the repr.", check=_check_key, secret=True
        ),
    ] = None
    max_tokens: Annotated[int, Setting("Most tokens of the answer.", minimum=1)] = 1024
    temperature: Annotated[float, Setting("Temperature of the answer.", minimum=0, maximum=2)] = 0.0
    system_prompt: Annotated[
        str | None, Setting("Prompt in place of Recollect's own; `YYYY-MM-DD` in it becomes today's date.")
    ] = None


class VectorConfig(Section, frozen=True, kw_only=True):
    """Vector search."""

    enabled: Annotated[bool, Setting("Whether chunks are embedded.")] = True
    extension_path: Annotated[
        str | None, Setting("sqlite-vec comes with Recollect: no other is loaded.", check=_check_extension)
    ] = None


class WorkspaceConfig(Section, frozen=True, kw_only=True):
    """Configuration of a workspace. Every field has a default."""

    workspace_dir: Annotated[str, Setting("The folder.", check=_check_path)] = "."
    db_path: Annotated[
        str | None, Setting("The index; None is `.recollect/index.db` in the folder.", check=_check_path)
    ] = None
    timezone: Annotated[
        str, Setting("Time zone in which the day of a dated file begins, as `Europe/Berlin`.", check=_check_timezone)
    ] = "UTC"
    embedding: Annotated[EmbeddingConfig, Setting("The embedder.")] = EmbeddingConfig()
    chunking: Annotated[ChunkingConfig, Setting("How files are cut into chunks.")] = ChunkingConfig()
    query: Annotated[QueryConfig, Setting("Defaults of a search.")] = QueryConfig()
    cache: Annotated[CacheConfig, Setting("The cache of embeddings.")] = CacheConfig()
    sync: Annotated[SyncConfig, Setting("When files are checked for changes.")] = SyncConfig()
    flush: Annotated[FlushConfig, Setting("How `flush` finds facts.")] = FlushConfig()
    vector: Annotated[VectorConfig, Setting("Vector search.")] = VectorConfig()
    progress: Annotated[bool, Setting("Whether the command line draws progress bars.")] = True
    extra_paths: Annotated[
        tuple[str, ...],
        Setting("Further files and folders, relative to the folder or absolute; they may be outside of it."),
    ] = ()
    skip_folders: Annotated[
        tuple[str, ...],
        Setting(
            "Names of folders that are skipped at any depth, besides hidden ones. Unless it is empty, virtual "
            "environments are skipped under any name."
        ),
    ] = SKIPPED_FOLDERS
    exclude: Annotated[tuple[str, ...], Setting("Patterns of files and folders to skip, as in a .gitignore.")] = ()
    bootstrap_files: Annotated[
        tuple[str, ...], Setting("Files that never age: names, or paths in the folder, with * and ?.")
    ] = ("MEMORY.md",)
    evergreen_patterns: Annotated[tuple[str, ...], Setting("Further files that never age.")] = (
        "MEMORY.md",
        "memory.md",
    )
    max_file_bytes: Annotated[int, Setting("Larger files are reported and skipped.", minimum=1)] = 10_000_000

    def __post_init__(self) -> None:
        super().__post_init__()
        for place, path in enumerate(self.extra_paths):
            check_path(path, f"WorkspaceConfig.extra_paths[{place}]")

    @property
    def folder(self) -> Path:
        """The folder, absolute."""
        return Path(self.workspace_dir).expanduser().absolute()

    @property
    def index_path(self) -> Path:
        """Where the index is, absolute."""
        if self.db_path is None:
            return self.folder / ".recollect" / "index.db"
        return Path(self.db_path).expanduser().absolute()

    @property
    def evergreen(self) -> tuple[str, ...]:
        """The patterns of files that never age."""
        return tuple(dict.fromkeys((*self.bootstrap_files, *self.evergreen_patterns)))

    @property
    def embeds(self) -> bool:
        """Whether chunks are embedded: not where vectors are off or search is by keyword."""
        return self.vector.enabled and self.query.strategy != "keyword"
