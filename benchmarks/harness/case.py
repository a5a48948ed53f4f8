"""A benchmark's question, its data, and the ways that are timed to answer it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import dataset
from benchmarks.cached_embedder import CachedEmbedder
from recallite.embedding import load

__all__ = ["Case", "Context", "Figures", "Timing"]

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Context:
    """The options of a run: sizes, folders, and the data made from them."""

    records: int
    rounds: int
    folder: Path
    """A folder for stores, removed after the run."""
    corpus: Path | None = None
    cache: Path | None = None
    work: Path | None = None
    data: Path | None = None
    embedder: str = "default"
    address: str | None = None
    few: int | None = None
    """A smaller count for the parts of a case that repeat much; None for the case's own."""

    @cached_property
    def model(self) -> CachedEmbedder:
        """The embedder with the vectors that `--cache` keeps."""
        return CachedEmbedder(load(self.embedder), self.cache)

    @cached_property
    def dataset(self) -> dataset.Dataset:
        """Lines, vectors and questions, prepared once in `--work`."""
        folder = (self.work or self.folder) / f"records-{self.records}"
        return dataset.prepare(folder, self.corpus, self.records, self.model, self._progress)

    def count(self, usual: int) -> int:
        """The usual count of repetitions, or `--few` if it is lower."""
        return usual if self.few is None else min(usual, self.few)

    def need(self, name: str) -> Any:
        """Value of an option that the case cannot do without; ends the program if it is missing."""
        if (value := getattr(self, name)) is None:
            raise SystemExit(f"this case needs --{name}")
        return value

    def log(self, text: object) -> None:
        """Tell how far the run is, on stderr."""
        Console(stderr=True).log(text)

    def _progress(self, done: int, total: int) -> None:
        if done % 16_384 < 2048:
            self.log(f"embedded {done:,} of {total:,}")


@dataclass(frozen=True)
class Timing:
    """Ways that are timed in turn.

    - ways: by name, a call with the number of the round; the first is what the others are compared with
    - check: gets the answers of all rounds by way, raises if they disagree, and returns further columns by way
    """

    title: str
    ways: Mapping[str, Callable[[int], Any]]
    rounds: int
    warm_up: int = 20
    check: Callable[[dict[str, list[Any]]], Mapping[str, Row]] | None = None


@dataclass(frozen=True)
class Figures:
    """A table that the case computed itself: columns by row."""

    title: str
    rows: Mapping[str, Row]


@dataclass(frozen=True)
class Case:
    """A question about the engine's cost.

    - setup: a context manager with the state, such as an open store; what it does is not timed
    - tables: from the state, timings to run and figures, in the order in which they are reported
    - records: sizes that are run unless `--records` names others; rounds: how often each way is timed
    """

    name: str
    answers: str
    setup: Callable[[Context], AbstractContextManager[Any]]
    tables: Callable[[Any, Context], Iterator[Timing | Figures]]
    records: Sequence[int] = (100_000,)
    rounds: int = 200
    unit: str = "records"
    """The unit of `records`, such as files."""
