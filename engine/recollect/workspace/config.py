"""What a workspace is told: memweave's fields and defaults, with the bundled embedder where it asks a service."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from msgspec import Struct, structs

from recollect.checks import check_count, check_finite, check_name, check_path, check_unit, shown
from recollect.errors import InvalidInput
from recollect.settings_files import check_keys, naming, read_table, write_table

__all__ = [
    "CacheConfig",
    "ChunkingConfig",
    "EmbeddingConfig",
    "FlushConfig",
    "HybridConfig",
    "MMRConfig",
    "MemoryConfig",
    "QueryConfig",
    "SyncConfig",
    "TemporalDecayConfig",
    "VectorConfig",
]

Built = TypeVar("Built")
LEFT_OUT = ("node_modules", "bower_components", "venv", "virtualenv", "site-packages", "__pycache__", "__pypackages__")
"""Folders of other people's files."""


def _check_bool(part: Struct, *names: str) -> None:
    for name in names:
        if not isinstance(getattr(part, name), bool):
            raise InvalidInput(f"{type(part).__name__}.{name} is {shown(getattr(part, name))}: True or False")


def _check_positive(part: Struct, name: str) -> None:
    label = f"{type(part).__name__}.{name}"
    if check_finite(getattr(part, name), label) <= 0:
        raise InvalidInput(f"{label} is {shown(getattr(part, name))}: give a number above 0")


def _check_optional_name(part: Struct, name: str) -> None:
    value, label = getattr(part, name), f"{type(part).__name__}.{name}"
    try:
        if value is not None:
            check_name(value, label)
    except InvalidInput:
        if name != "api_key":
            raise
        raise InvalidInput(f"{label} is blank or no key: give the key as it was issued, or None") from None


def _repr_without_key(part: Struct) -> str:
    shown_fields = {
        name: "'…'" if name == "api_key" and value is not None else repr(value)
        for name, value in structs.asdict(part).items()
    }
    return f"{type(part).__name__}({', '.join(f'{name}={value}' for name, value in shown_fields.items())})"


def _check_parts(part: Struct, **kinds: type[Struct]) -> None:
    for name, kind in kinds.items():
        if not isinstance(getattr(part, name), kind):
            raise InvalidInput(
                f"{type(part).__name__}.{name} is {shown(getattr(part, name))}: give {kind.__name__}(...)"
            )


def _checked_path(value: object, label: str) -> str:
    check_path(value, label)
    return os.fspath(value)  # type: ignore[call-overload, no-any-return]


def _checked_paths(values: object, label: str) -> tuple[str, ...]:
    if not isinstance(values, list | tuple):
        raise InvalidInput(f"{label} is {shown(values)}: give a list of str")
    for place, value in enumerate(values):
        text = os.fspath(value) if isinstance(value, str | os.PathLike) else value
        if not isinstance(text, str) or not text or "\x00" in text:
            raise InvalidInput(f"{label}[{place}] is {shown(value)}: give a path")
        if label.endswith("extra_paths"):  # the others may be patterns, such as ~$*
            check_path(value, f"{label}[{place}]")
    return tuple(map(os.fspath, values))


class EmbeddingConfig(Struct, frozen=True, kw_only=True):
    """Who embeds.

    - model: None is what the environment names, else the bundled model; "default", "instant", "none", a bundled
      model's name or a folder with model.onnx; else a model over HTTP, as "ollama/nomic-embed-text", "voyage/voyage-3"
      (providers but OpenAI and Ollama: the extra `providers`) or OpenAI's "text-embedding-3-small"; any at `api_base`.
    - api_key: None is the environment's. It does not show in the repr, but does in `to_dict` and saved files.
    - timeout, batch_size: seconds a request, and texts in it, of a model over HTTP.
    """

    model: str | None = None
    api_base: str | None = None
    api_key: str | None = None
    timeout: float = 60.0
    batch_size: int = 64

    def __post_init__(self) -> None:
        for name in ("model", "api_base", "api_key"):
            _check_optional_name(self, name)
        if self.model is None and self.api_base is not None:
            raise InvalidInput(f"EmbeddingConfig.api_base is {shown(self.api_base)}: name the model there too")
        _check_positive(self, "timeout")
        check_count(self.batch_size, "EmbeddingConfig.batch_size")

    def __repr__(self) -> str:
        return _repr_without_key(self)


class ChunkingConfig(Struct, frozen=True, kw_only=True):
    """Tokens of a chunk at most, and tokens that it shares with the one before."""

    tokens: int = 400
    overlap: int = 80

    def __post_init__(self) -> None:
        check_count(self.tokens, "ChunkingConfig.tokens")
        check_count(self.overlap, "ChunkingConfig.overlap", minimum=0)
        if self.overlap >= self.tokens:
            raise InvalidInput(
                f"ChunkingConfig.overlap is {self.overlap}: give fewer than ChunkingConfig.tokens, {self.tokens}"
            )


class HybridConfig(Struct, frozen=True, kw_only=True):
    """Shares of cosine and of BM25, which sum to 1; each finds `candidate_multiplier` times the results asked for."""

    vector_weight: float = 0.7
    text_weight: float = 0.3
    candidate_multiplier: int = 4

    def __post_init__(self) -> None:
        check_unit(self.vector_weight, "HybridConfig.vector_weight")
        check_unit(self.text_weight, "HybridConfig.text_weight")
        if abs(self.vector_weight + self.text_weight - 1.0) > 1e-6:
            raise InvalidInput(
                f"HybridConfig.vector_weight {self.vector_weight} and text_weight {self.text_weight} sum to "
                f"{self.vector_weight + self.text_weight:g}: they sum to 1"
            )
        check_count(self.candidate_multiplier, "HybridConfig.candidate_multiplier")


class MMRConfig(Struct, frozen=True, kw_only=True):
    """Maximal marginal relevance: 1 is pure relevance, 0 pure diversity."""

    enabled: bool = False
    lambda_param: float = 0.7

    def __post_init__(self) -> None:
        _check_bool(self, "enabled")
        check_unit(self.lambda_param, "MMRConfig.lambda_param")


class TemporalDecayConfig(Struct, frozen=True, kw_only=True):
    """Whether scores halve every `half_life_days`; evergreen files do not age."""

    enabled: bool = False
    half_life_days: float = 30.0

    def __post_init__(self) -> None:
        _check_bool(self, "enabled")
        _check_positive(self, "half_life_days")


class QueryConfig(Struct, frozen=True, kw_only=True):
    """What a search does unless its call says otherwise.

    - strategy: "hybrid", "vector", "keyword" or the name of a registered one. With "keyword" nothing is embedded.
    - min_score, min_confidence: results below are dropped, before age and diversity. Where neither is given, those of a
      confidence below 0.3 are, by meaning alone 0.04 and by keyword alone 0.02 (`benchmarks.quality.threshold`).
      memweave drops by score, at 0.35; so does a registered strategy's search, whose rows have no confidence.
    - snippet_max_chars: the longest snippet, in characters.
    """

    strategy: str = "hybrid"
    max_results: int = 6
    min_score: float | None = None
    min_confidence: float | None = None
    snippet_max_chars: int = 700
    hybrid: HybridConfig = HybridConfig()
    mmr: MMRConfig = MMRConfig()
    temporal_decay: TemporalDecayConfig = TemporalDecayConfig()

    def __post_init__(self) -> None:
        check_name(self.strategy, "QueryConfig.strategy")
        check_count(self.max_results, "QueryConfig.max_results")
        for name in ("min_score", "min_confidence"):
            if getattr(self, name) is not None:
                check_unit(getattr(self, name), f"QueryConfig.{name}")
        check_count(self.snippet_max_chars, "QueryConfig.snippet_max_chars")
        _check_parts(self, hybrid=HybridConfig, mmr=MMRConfig, temporal_decay=TemporalDecayConfig)


class CacheConfig(Struct, frozen=True, kw_only=True):
    """Whether vectors of texts that are gone are kept, and of how many; the least recently used go first."""

    enabled: bool = True
    max_entries: int | None = None

    def __post_init__(self) -> None:
        _check_bool(self, "enabled")
        if self.max_entries is not None:
            check_count(self.max_entries, "CacheConfig.max_entries")


class SyncConfig(Struct, frozen=True, kw_only=True):
    """When files are looked at.

    - on_search: before each search.
    - watch: from the opening on, as `start_watching` does; what changes is indexed `watch_debounce_ms` after the last
      change.
    - interval_minutes: every so many minutes; 0 does not.
    """

    on_search: bool = True
    watch: bool = False
    watch_debounce_ms: int = 1500
    interval_minutes: int = 0

    def __post_init__(self) -> None:
        _check_bool(self, "on_search", "watch")
        check_count(self.watch_debounce_ms, "SyncConfig.watch_debounce_ms", minimum=0, maximum=86_400_000)
        check_count(self.interval_minutes, "SyncConfig.interval_minutes", minimum=0, maximum=525_600)


class FlushConfig(Struct, frozen=True, kw_only=True):
    """How `flush` finds facts in a conversation.

    - model: a model with its provider before it ("gemini/gemini-2.0-flash"), or one at `api_base`, at the endpoint of
      the workspace's or the environment's language model, or OpenAI's. None is that language model, else "gpt-4o-mini"
      at OPENAI_BASE_URL with OPENAI_API_KEY.
    - api_base, api_key: where it is served, and its key. The key does not show in the repr, but does in `to_dict` and
      saved files.
    - enabled: False keeps `flush` from doing anything.
    - max_tokens, temperature: of the answer.
    - system_prompt: None is Recollect's own; `YYYY-MM-DD` in it stands for today.
    """

    enabled: bool = True
    model: str | None = None
    api_base: str | None = None
    api_key: str | None = None
    max_tokens: int = 1024
    temperature: float = 0.0
    system_prompt: str | None = None

    def __post_init__(self) -> None:
        _check_bool(self, "enabled")
        for name in ("model", "api_base", "api_key"):
            _check_optional_name(self, name)
        check_count(self.max_tokens, "FlushConfig.max_tokens")
        if check_finite(self.temperature, "FlushConfig.temperature", minimum=0.0) > 2.0:
            raise InvalidInput(f"FlushConfig.temperature is {self.temperature}: give a number from 0 to 2")
        if self.system_prompt is not None and (
            not isinstance(self.system_prompt, str) or not self.system_prompt.strip()
        ):
            raise InvalidInput(f"FlushConfig.system_prompt is {shown(self.system_prompt)}: give a text or None")

    def __repr__(self) -> str:
        return _repr_without_key(self)


class VectorConfig(Struct, frozen=True, kw_only=True):
    """Whether chunks are embedded. sqlite-vec comes with Recollect: no other `extension_path` is loaded."""

    enabled: bool = True
    extension_path: None = None

    def __post_init__(self) -> None:
        _check_bool(self, "enabled")
        if self.extension_path is not None:
            raise InvalidInput(
                f"VectorConfig.extension_path is {shown(self.extension_path)}: leave it out, Recollect has its own"
            )


class MemoryConfig(Struct, frozen=True, kw_only=True):
    """Everything a workspace is told; each field has a default.

    - workspace_dir: the folder.
    - db_path: the index; None is `.recollect/index.db` in the folder.
    - timezone: in which a dated file's day begins, as "Europe/Berlin".
    - progress: whether the command line draws progress bars.
    - extra_paths: further files and folders, from the folder or absolute. Those outside it are read because they are
      named here.
    - left_out: names of folders that are left out at any depth, besides hidden ones; () leaves out only these. Unless
      it is empty, virtual environments are left out under any name.
    - exclude: patterns of files and folders that are left out, as in a .gitignore.
    - bootstrap_files, evergreen_patterns: files that never age: names, or paths in the folder, with * and ?.
    - max_file_bytes: larger files are reported and left out.
    """

    workspace_dir: str = "."
    db_path: str | None = None
    timezone: str = "UTC"
    embedding: EmbeddingConfig = EmbeddingConfig()
    chunking: ChunkingConfig = ChunkingConfig()
    query: QueryConfig = QueryConfig()
    cache: CacheConfig = CacheConfig()
    sync: SyncConfig = SyncConfig()
    flush: FlushConfig = FlushConfig()
    vector: VectorConfig = VectorConfig()
    progress: bool = True
    extra_paths: tuple[str, ...] = ()
    left_out: tuple[str, ...] = LEFT_OUT
    exclude: tuple[str, ...] = ()
    bootstrap_files: tuple[str, ...] = ("MEMORY.md",)
    evergreen_patterns: tuple[str, ...] = ("MEMORY.md", "memory.md")
    max_file_bytes: int = 10_000_000

    def __post_init__(self) -> None:
        for name in ("workspace_dir", "db_path"):
            value = getattr(self, name)
            if value is not None or name == "workspace_dir":
                structs.force_setattr(self, name, _checked_path(value, f"MemoryConfig.{name}"))
        _check_parts(
            self, embedding=EmbeddingConfig, chunking=ChunkingConfig, query=QueryConfig, cache=CacheConfig,
            sync=SyncConfig, flush=FlushConfig, vector=VectorConfig,
        )  # fmt: skip
        _check_bool(self, "progress")
        for name in ("extra_paths", "left_out", "exclude", "bootstrap_files", "evergreen_patterns"):
            structs.force_setattr(self, name, _checked_paths(getattr(self, name), f"MemoryConfig.{name}"))
        check_count(self.max_file_bytes, "MemoryConfig.max_file_bytes")
        check_name(self.timezone, "MemoryConfig.timezone")
        try:
            ZoneInfo(self.timezone)
        except (OSError, ValueError, KeyError):
            raise InvalidInput(
                f"MemoryConfig.timezone is {shown(self.timezone)}: give a name such as 'UTC' or 'Europe/Berlin'"
            ) from None

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

    def to_dict(self) -> dict[str, Any]:
        """Every field, as `from_dict` and a file take it."""
        return _as_table(self)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> MemoryConfig:
        """The configuration of a table; what it leaves out has its default.

        Raises InvalidInput, which names the path of an unknown key or the field that is wrong.
        """
        return _built(cls, table, "")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MemoryConfig:
        """Read a .toml, .json (with comments) or .yaml file. Raises InvalidInput, which names the file."""
        try:
            return cls.from_dict(read_table(path))
        except InvalidInput as fault:
            raise naming(path, fault) from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .toml, .json or .yaml file that `load` reads, for the owner's eyes only: it may hold a key."""
        write_table(path, self.to_dict())


_PARTS: dict[str, type[Struct]] = {
    "embedding": EmbeddingConfig, "chunking": ChunkingConfig, "query": QueryConfig, "cache": CacheConfig,
    "sync": SyncConfig, "flush": FlushConfig, "vector": VectorConfig,
    "query.hybrid": HybridConfig, "query.mmr": MMRConfig, "query.temporal_decay": TemporalDecayConfig,
}  # fmt: skip


def _built(kind: Callable[..., Built], table: Mapping[str, Any], path: str) -> Built:
    fields = dict(check_keys(table, path, kind.__struct_fields__))  # type: ignore[attr-defined]
    for name, value in fields.items():
        at = f"{path}.{name}".lstrip(".")
        if at in _PARTS:
            fields[name] = _built(_PARTS[at], value, at)
    return kind(**fields)


def _as_table(value: Struct) -> dict[str, Any]:
    return {
        name: _as_table(held) if isinstance(held, Struct) else list(held) if isinstance(held, tuple) else held
        for name, held in structs.asdict(value).items()
    }
