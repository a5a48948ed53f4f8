"""memweave: its names for a workspace of Markdown files, and its configuration as dataclasses.

A dataclass has the fields of Recallite's section, with the same defaults and checks: `dataclasses.replace` and `asdict`
work on it, and its attributes can be set.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from recallite.embedding.protocol import Embedder
from recallite.errors import InvalidInput
from recallite.model.configuration import Section, declared
from recallite.remote import LanguageModel
from recallite.system.messages import shown
from recallite_notes import config as own
from recallite_notes.async_workspace import AsyncWorkspace
from recallite_notes.config import WorkspaceConfig
from recallite_notes.note_files import FileInfo, IndexResult, StoreStatus
from recallite_notes.search import RawSearchRow, SearchResult
from recallite_notes.workspace import Workspace

__all__ = [
    "CacheConfig",
    "ChunkingConfig",
    "EmbeddingConfig",
    "EmbeddingProvider",
    "FileInfo",
    "FlushConfig",
    "HybridConfig",
    "IndexResult",
    "MMRConfig",
    "MemWeave",
    "MemoryConfig",
    "QueryConfig",
    "RawSearchRow",
    "SearchResult",
    "StoreStatus",
    "SyncConfig",
    "TemporalDecayConfig",
    "VectorConfig",
]


class _Config:
    """The base of the dataclasses: each field is checked when it is set, what concerns several when it is used."""

    section: ClassVar[type[Section]]

    def __post_init__(self) -> None:
        self.to_section()

    def __setattr__(self, name: str, value: object) -> None:
        field = declared(self.section).get(name)
        if field is None:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}: it has {', '.join(self._names())}")
        label = f"{type(self).__name__}.{name}"
        if field.section is None:
            value = deepcopy(field.check(value, label))
            value = list(value) if isinstance(value, tuple) else value
        elif not isinstance(value, _BY_SECTION[field.section]):
            raise InvalidInput(f"{label} is {shown(value)}: give a {_BY_SECTION[field.section].__name__}")
        super().__setattr__(name, value)

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return cls.section.__struct_fields__

    def to_section(self) -> Any:
        """The section of a `WorkspaceConfig`. Raises InvalidInput for fields that do not go together."""
        fields = {name: getattr(self, name) for name in self._names()}
        return self.section(
            **{
                name: value.to_section() if isinstance(value, _Config)
                else tuple(value) if isinstance(getattr(_DEFAULTS[self.section], name), tuple) else value
                for name, value in fields.items()
            }
        )  # fmt: skip

    @classmethod
    def of(cls, section: Section) -> Self:
        """The dataclass of a section."""
        values = {name: getattr(section, name) for name in cls._names()}
        return cls(
            **{
                name: _BY_SECTION[type(value)].of(value) if isinstance(value, Section) else value
                for name, value in values.items()
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Every field, as `from_dict` and a file take it."""
        table: dict[str, Any] = self.to_section().to_dict()
        return table

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Self:
        """The configuration of a table; what it leaves out has its default. InvalidInput names the wrong key."""
        return cls.of(cls.section.from_dict(table))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a .toml, .json (with comments) or .yaml file."""
        return cls.of(cls.section.load(path))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .toml, .json or .yaml file that `load` reads."""
        self.to_section().save(path)


_BY_SECTION: dict[type[Section], Any] = {}
_DEFAULTS: dict[type[Section], Section] = {}


def _dataclass(section: type[Section], name: str | None = None) -> Any:
    """The dataclass of a section."""
    default = _DEFAULTS[section] = section()
    name = name or section.__name__
    fields: list[tuple[str, Any, Any]] = []
    for field_name, field in declared(section).items():
        value = getattr(default, field_name)
        if field.section is not None:
            options: dict[str, Any] = {"default_factory": _BY_SECTION[field.section]}
        elif isinstance(value, list | tuple):
            options = {"default_factory": list(value).copy}
        else:
            options = {"default": value}
        fields.append((field_name, Any, dataclasses.field(repr=not field.setting.secret, **options)))
    made = dataclasses.make_dataclass(name, fields, bases=(_Config,), namespace={"section": section})
    made.__module__, made.__doc__ = __name__, section.__doc__
    _BY_SECTION[section] = made
    return made


EmbeddingConfig = _dataclass(own.EmbeddingConfig)
ChunkingConfig = _dataclass(own.ChunkingConfig)
HybridConfig = _dataclass(own.HybridConfig)
MMRConfig = _dataclass(own.MMRConfig)
TemporalDecayConfig = _dataclass(own.TemporalDecayConfig)
QueryConfig = _dataclass(own.QueryConfig)
CacheConfig = _dataclass(own.CacheConfig)
SyncConfig = _dataclass(own.SyncConfig)
FlushConfig = _dataclass(own.FlushConfig)
VectorConfig = _dataclass(own.VectorConfig)
MemoryConfig = _dataclass(WorkspaceConfig, "MemoryConfig")


@runtime_checkable
class EmbeddingProvider(Protocol):
    """An embedder as memweave takes it. `model`, if it has one, names what makes its vectors."""

    async def embed_query(self, text: str) -> list[float]:
        """The vector of a query."""
        ...

    async def embed_batch(self, texts: list[str]) -> list[list[float]]:
        """The vectors of texts."""
        ...


class _ProvidedEmbedder:
    """An embedder that asks a provider, on the event loop of the caller."""

    def __init__(self, provider: EmbeddingProvider, finish: Any) -> None:
        self._provider, self._finish, self._dimension = provider, finish, 0
        kind = type(provider)
        self.name = str(getattr(provider, "model", None) or kind.__qualname__)
        self.fingerprint = f"provider:{kind.__module__}.{kind.__qualname__}:{self.name}"

    @property
    def dimension(self) -> int:
        """Components of a vector, as the provider gives them."""
        if not self._dimension:
            self._dimension = len(self._finish(self._provider.embed_query("dimension")))
        return self._dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors float32 of unit length, one row a text."""
        vectors: NDArray[np.float32] = np.array(self._finish(self._provider.embed_batch(list(texts))), np.float32)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(norms > 0, norms, 1.0), np.float32)


class MemWeave(AsyncWorkspace):
    """`AsyncWorkspace` with memweave's arguments. The configuration is read when it is opened."""

    def __init__(
        self,
        config: Any = None,
        *,
        embedding_provider: EmbeddingProvider | None = None,
        embedder: Embedder | str | None = None,
        language_model: LanguageModel | str | None = None,
    ) -> None:
        """`config` is a MemoryConfig, a WorkspaceConfig or a folder."""
        if embedding_provider is not None:
            if not isinstance(embedding_provider, EmbeddingProvider):
                raise InvalidInput(
                    f"embedding_provider is {shown(embedding_provider)}: give one with embed_query and embed_batch"
                )
            if embedder is not None:
                raise InvalidInput("embedding_provider and embedder were both given: give one of them")
        self._given, self._provider = MemoryConfig() if config is None else config, embedding_provider
        super().__init__(embedder=embedder, language_model=language_model)

    def _made(self, _: Any, config: Any, embedder: Any, language_model: Any) -> Workspace:
        given = self._given.to_section() if isinstance(self._given, _Config) else self._given
        if self._provider is not None:
            embedder = _ProvidedEmbedder(self._provider, self._extensions.finish)
        return super()._made(given, config, embedder, language_model)

    @property
    def config(self) -> Any:
        """The configuration that was given."""
        return self._given
