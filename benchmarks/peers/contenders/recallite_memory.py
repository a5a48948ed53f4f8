"""Recallite: as it comes, and with the parts of its ranking off that no other contender has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.dataset import FILTERS, Dataset, parts
from benchmarks.peers.contender import TOP, Contender, Vector
from recallite import Memory
from recallite.model.records import Hits, NewRecord
from recallite.model.settings import WritePolicy

_TAGS = {below: name for name, below in FILTERS.items()}


class Recallite(Contender):
    """Full durability and default settings; vectors are given, so there are no token codes. Filters are tags.

    Its vector search is tuned by the candidates that are scored.
    """

    efforts: Sequence[Any] = (20, 50, 100, 200, 300, 400, 600, 800, 1000, 1500, 2000, 3000)
    takes_stop_words = True
    profile: Mapping[str, Any] = {}
    policy: WritePolicy | None = None

    def build(self, data: Dataset, folder: Path) -> None:
        belongs = parts(len(data.lines)).tolist()
        with Memory(folder / "memory.db") as memory:
            items = zip(corpus.items(data.lines, data.vectors), belongs, strict=True)
            memory.remember_many(
                ({**item, "tags": [tag for below, tag in _TAGS.items() if part < below]} for item, part in items),
                policy=self.policy,
            )
            memory.store.catch_up()

    def open(self, folder: Path) -> None:
        self._memory = Memory(folder / "memory.db")

    def vector(self, text: str, vector: Vector, below: int | None = None) -> Hits:
        profile = {**self.profile, **({} if self.effort is None else {"candidates": self.effort})}
        return self._memory.recall(text, vector=vector, mode="vector", limit=TOP, profile=profile, tags=_tags(below))

    def hybrid(self, text: str, vector: Vector, below: int | None = None) -> Hits:
        return self._memory.recall(text, vector=vector, limit=TOP, profile=self.profile or None, tags=_tags(below))

    def hybrid_many(self, texts: Sequence[str], vectors: Vector) -> object:
        return self._memory.recall_many(texts, vectors=vectors, limit=TOP, profile=self.profile or None)

    def insert(self, place: int, text: str, vector: Vector) -> None:
        self._memory.remember(NewRecord(text, vector=vector), policy=self.policy)

    def places(self, answer: Hits) -> list[int]:
        places = []
        for hit in answer:
            assert hit.source is not None
            assert hit.source.position is not None
            places.append(int(hit.source.id.split()[1]) * corpus.SOURCE_LINES + hit.source.position)
        return places

    def close(self) -> None:
        self._memory.close()


class RecallitePlain(Recallite):
    """An index of texts and vectors: two signals fused, nothing compared when writing."""

    profile: Mapping[str, Any] = {
        "rerank_weight": 0.0, "speaker_weight": 0.0, "date_weight": 0.0, "neighbor_boost": 0.0, "adaptive": False,
        "learned_ranking": False, "superseded": "as_ranked", "standing_instructions": 0, "hops": 0,
    }  # fmt: skip
    policy = WritePolicy(supersede_confidence=None, contradict_confidence=None, duplicates="store", resolve_dates=False)


def _tags(below: int | None) -> list[str] | None:
    return None if below is None else [_TAGS[below]]
