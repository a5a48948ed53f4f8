"""NumPy for the exact vectors, bm25s for the words, fused by reciprocal rank."""

from __future__ import annotations

from pathlib import Path

import bm25s
import numpy as np
import Stemmer

from benchmarks.dataset import Dataset, parts
from benchmarks.peers.contender import DEPTH, TOP, Mode, Vector, reciprocal_rank_fusion


class NumpyBm25s:
    """A matrix product over all vectors; BM25 of all stemmed words without stop words. Files are written whole."""

    def build(self, data: Dataset, folder: Path) -> None:
        np.save(folder / "vectors.npy", data.vectors)
        (folder / "lines.txt").write_text("\n".join(data.lines), encoding="utf-8")
        words = bm25s.tokenize(data.lines, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)
        index = bm25s.BM25()
        index.index(words, show_progress=False)
        index.save(folder / "bm25s", show_progress=False)

    def open(self, folder: Path) -> dict[str, Mode]:
        self._vectors = np.load(folder / "vectors.npy")
        self._lines = (folder / "lines.txt").read_text(encoding="utf-8").split("\n")
        self._parts = parts(len(self._vectors))
        self._stemmer = Stemmer.Stemmer("english")
        self._index = bm25s.BM25.load(folder / "bm25s", show_progress=False)
        return {
            "hybrid": Mode(
                lambda text, vector: self._hybrid(text, vector),
                filtered=lambda text, vector, below: self._hybrid(text, vector, self._parts < below),
                places=lambda rows: [place for place, _ in rows],
            ),
            "vector": Mode(
                lambda _, vector: _best(self._vectors @ vector, TOP),
                many=lambda _, vectors: [_best(scores, TOP) for scores in vectors @ self._vectors.T],
                filtered=lambda _, vector, below: self._nearest(vector, TOP, self._parts < below),
                exact=True,
            ),
        }

    def warm(self) -> None:
        pass

    def _hybrid(self, text: str, vector: Vector, mask: np.ndarray | None = None) -> list[tuple[int, str]]:
        places = reciprocal_rank_fusion(self._nearest(vector, DEPTH, mask), self._matching(text, mask))
        return [(place, self._lines[place]) for place in places]

    def _nearest(self, vector: Vector, count: int, mask: np.ndarray | None = None) -> list[int]:
        if mask is None:
            return _best(self._vectors @ vector, count)
        places = np.flatnonzero(mask)
        return places[_best(self._vectors[places] @ vector, count)].tolist()

    def _matching(self, text: str, mask: np.ndarray | None) -> list[int]:
        words = bm25s.tokenize(text, stopwords="en", stemmer=self._stemmer, return_ids=False, show_progress=False)
        documents, scores = self._index.retrieve(
            words, k=min(DEPTH, len(self._lines)), n_threads=0, show_progress=False, weight_mask=mask
        )
        return documents[0][scores[0] > 0].tolist()


def _best(scores: Vector, count: int) -> list[int]:
    count = min(count, len(scores))
    best = np.argpartition(scores, len(scores) - count)[len(scores) - count :]
    return best[np.argsort(-scores[best])].tolist()
