"""Which records may be hits, and what each signal says of them.

The best by vector and the best by keyword are joined. The neighbours of the best among them join too, so that
spreading can lift a record that neither signal found. Every candidate then has every signal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from recollect.recall.score import fused

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.index.protocol import Question
    from recollect.settings import Profile

__all__ = ["Candidates", "gather"]


class Candidates(Struct, kw_only=True):
    """Parallel arrays, one entry a candidate, ascending by row. Each stage fills in its own.

    - rows: int64, the question's numbers; keys: int64, row ids in the store
    - cosine, bm25: float32, as measured; fused: float64, of both
    - spread: float64, the score after spreading; lift: what neighbours, links and source added, and linked: the
      links' part of it, both on the scale of `fused`
    - decay: float64, the weight of age; score: float64, what orders the hits
    """

    rows: NDArray[np.int64]
    keys: NDArray[np.int64]
    cosine: NDArray[np.float32]
    bm25: NDArray[np.float32]
    fused: NDArray[np.float64]
    spread: NDArray[np.float64]
    lift: NDArray[np.float64]
    linked: NDArray[np.float64]
    decay: NDArray[np.float64]
    score: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)


def gather(question: Question, profile: Profile) -> Candidates:
    """The candidates of one question, with cosine, BM25 and the fused score of each."""
    found = [np.empty(0, dtype=np.int64)]
    if profile.vector_weight > 0:
        found.append(question.nearest(profile.candidates))
    if profile.keyword_weight > 0:
        found.append(question.best_words(profile.candidates))
    rows = np.unique(np.concatenate(found))
    if profile.spread > 0 and profile.expanded and len(rows):
        first = fused(question.cosines(rows, exact=0), question.words(rows), rows, profile)
        best = rows[np.argsort(-first, kind="stable")[: profile.expanded]]
        rows = np.union1d(rows, question.neighbors(best))
    cosine = question.cosines(rows, exact=profile.rescored)
    bm25 = question.words(rows)
    keys = question.keys(rows)
    score = fused(cosine, bm25, keys, profile)
    nothing = np.zeros(len(rows), dtype=np.float64)
    return Candidates(
        rows=rows,
        keys=keys,
        cosine=cosine,
        bm25=bm25,
        fused=score,
        spread=score,
        lift=nothing,
        linked=nothing,
        decay=np.ones(len(rows), dtype=np.float64),
        score=score,
    )
