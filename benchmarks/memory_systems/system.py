"""The interface of a memory system, and the embedding model that it is given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.cached_embedder import CachedEmbedder, CachedTokens

__all__ = ["Embed", "Said", "System", "by_text"]


class Said(NamedTuple):
    """A record: a turn of a conversation, or all that a user said in a session."""

    text: str
    speaker: str | None
    session: str
    position: int
    moment: Any

    @property
    def line(self) -> str:
        """The text after the name of its speaker, for systems that keep no speaker."""
        return self.text if self.speaker is None else f"{self.speaker}: {self.text}"


class Embed:
    """Texts to unit vectors, by a model of Recallite; of a long text the first part counts."""

    def __init__(self, embedder: CachedEmbedder) -> None:
        self.embedder, self.dimension = embedder, embedder.dimension

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors, owners = self.embedder.embed_documents(list(texts), [None] * len(texts))
        return vectors[np.searchsorted(owners, np.arange(len(texts)))]

    def prepare(self, lines: Sequence[str], questions: Sequence[str]) -> None:
        """Have the vectors at hand, so that times are those of a system."""
        self([*lines, *questions])
        if isinstance(self.embedder, CachedTokens):
            self.embedder.embed_query_tokens(questions)

    def lists(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors as lists of numbers, as most frameworks take them."""
        return [[float(value) for value in row] for row in self(texts)]


class System:
    """A system with a new store in a folder.

    `whole_sessions` is true for systems of files: for them a session is one record if sessions are asked for.
    """

    whole_sessions = False

    def __init__(self, folder: Path, embed: Embed) -> None:
        raise NotImplementedError

    def write(self, records: Sequence[Said]) -> None:
        """Store all records, in the way that the system has for many."""
        raise NotImplementedError

    def recall(self, question: str, limit: int, moment: Any) -> list[int]:
        """The places of the records that answer a question asked at a moment (None: now), best first."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the store."""


def by_text(lines: Sequence[str]) -> dict[str, int]:
    """The place of each line, the first of equal ones: for systems that return texts alone."""
    places: dict[str, int] = {}
    for place, line in enumerate(lines):
        places.setdefault(line, place)
    return places
