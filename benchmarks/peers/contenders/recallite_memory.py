"""Recallite: hybrid, its vector stage alone, and from the text of the query with either embedder."""

from __future__ import annotations

from pathlib import Path

from benchmarks import corpus
from benchmarks.dataset import FILTERS, Dataset, parts
from benchmarks.peers.contender import TOP, Mode
from recallite import Hit, Memory, Settings

_TAGS = {below: name for name, below in FILTERS.items()}


class Recallite:
    """Full durability, default settings, but no query embedding comes from a cache. Filters are tags."""

    embedder = "default"
    vectors_given = True

    def build(self, data: Dataset, folder: Path) -> None:
        belongs = parts(len(data.lines)).tolist()
        with self._memory(folder) as memory:
            memory.remember_many(
                {**item, "tags": [tag for below, tag in _TAGS.items() if part < below]}
                for item, part in zip(
                    corpus.items(data.lines, data.vectors if self.vectors_given else None), belongs, strict=True
                )
            )

    def open(self, folder: Path) -> dict[str, Mode]:
        memory = self._opened = self._memory(folder)
        return {
            "hybrid": Mode(
                lambda text, vector: memory.recall(text, vector=vector, limit=TOP),
                many=lambda texts, vectors: memory.recall_many(texts, vectors=vectors, limit=TOP),
                filtered=lambda text, vector, below: memory.recall(text, vector=vector, limit=TOP, tags=[_TAGS[below]]),
                places=_places,
            ),
            "vector": Mode(
                lambda text, vector: memory.recall(text, vector=vector, mode="vector", limit=TOP),
                many=lambda texts, vectors: memory.recall_many(texts, vectors=vectors, mode="vector", limit=TOP),
                filtered=lambda text, vector, below: memory.recall(
                    text, vector=vector, mode="vector", limit=TOP, tags=[_TAGS[below]]
                ),
                places=_places,
            ),
            "text": self._text_mode(),
        }

    def warm(self) -> None:
        self._opened.store.warmup()

    def close(self) -> None:
        self._opened.close()

    def _text_mode(self) -> Mode:
        return Mode(
            lambda text, _: self._opened.recall(text, limit=TOP),
            many=lambda texts, _: self._opened.recall_many(texts, limit=TOP),
            places=_places,
        )

    def _memory(self, folder: Path) -> Memory:
        return Memory(folder / "memory.db", settings=Settings(embedder=self.embedder))


class RecalliteInstant(Recallite):
    """With the embedder `instant`, texts in, texts asked: the time to build includes embedding them."""

    embedder = "instant"
    vectors_given = False

    def open(self, folder: Path) -> dict[str, Mode]:
        self._opened = self._memory(folder)
        return {"text": self._text_mode()}


def _places(hits: list[Hit]) -> list[int]:
    places = []
    for hit in hits:
        assert hit.source is not None
        assert hit.source.position is not None
        places.append(int(hit.source.id.split()[1]) * corpus.SOURCE_LINES + hit.source.position)
    return places
