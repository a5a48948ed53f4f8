"""NumPy for the exact vectors, bm25s for the words, fused by reciprocal rank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import bm25s
import numpy as np
import Stemmer

from benchmarks.dataset import FILTERS, Dataset, parts
from benchmarks.peers.contender import DEPTH, THREADS, TOP, Contender, Vector, best, reciprocal_rank_fusion

_BATCH = 32


class NumpyBm25s(Contender):
    """A matrix product over all vectors; BM25 of all stemmed words without stop words. Files are written whole."""

    takes_stop_words = True

    def build(self, data: Dataset, folder: Path) -> None:
        np.save(folder / "vectors.npy", data.vectors)
        (folder / "lines.txt").write_text("\n".join(data.lines), encoding="utf-8")
        words = bm25s.tokenize(data.lines, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)
        index = bm25s.BM25()
        index.index(words, show_progress=False)
        index.save(folder / "bm25s", show_progress=False)

    def open(self, folder: Path) -> None:
        self._vectors = np.load(folder / "vectors.npy")
        self._lines = (folder / "lines.txt").read_text(encoding="utf-8").split("\n")
        belongs = parts(len(self._vectors))
        self._masks = {below: (belongs < below).astype(np.float32) for below in FILTERS.values()}
        self._allowed = {below: np.flatnonzero(mask) for below, mask in self._masks.items()}
        self._stemmer = Stemmer.Stemmer("english")
        self._index = bm25s.BM25.load(folder / "bm25s", show_progress=False)

    def vector(self, text: str, vector: Vector, below: int | None = None) -> list[tuple[int, str]]:
        return self._with_texts(self._near(vector, TOP, below))

    def hybrid(self, text: str, vector: Vector, below: int | None = None) -> list[tuple[int, str]]:
        (matching,) = self._matching([text], below)
        return self._with_texts(reciprocal_rank_fusion(self._near(vector, DEPTH, below), matching))

    def hybrid_many(self, texts: Sequence[str], vectors: Vector) -> object:
        near: list[list[int]] = []
        for begin in range(0, len(vectors), _BATCH):
            near += [best(scores, DEPTH).tolist() for scores in vectors[begin : begin + _BATCH] @ self._vectors.T]
        matching = self._matching(texts, None, THREADS)
        return [self._with_texts(reciprocal_rank_fusion(*rankings)) for rankings in zip(near, matching, strict=True)]

    def _near(self, vector: Vector, count: int, below: int | None) -> list[int]:
        if below is None:
            return best(self._vectors @ vector, count).tolist()
        allowed = self._allowed[below]
        places: list[int] = allowed[best(self._vectors[allowed] @ vector, count)].tolist()
        return places

    def _matching(self, texts: Sequence[str], below: int | None, threads: int = 0) -> list[list[int]]:
        words = bm25s.tokenize(
            list(texts), stopwords="en", stemmer=self._stemmer, return_ids=False, show_progress=False
        )
        documents, scores = self._index.retrieve(
            words, k=min(DEPTH, len(self._lines)), n_threads=threads, show_progress=False,
            weight_mask=None if below is None else self._masks[below],
        )  # fmt: skip
        return [places[shares > 0].tolist() for places, shares in zip(documents, scores, strict=True)]

    def _with_texts(self, places: Sequence[int]) -> list[tuple[int, str]]:
        return [(place, self._lines[place]) for place in places]
