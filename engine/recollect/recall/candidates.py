"""Which records may be hits, and what each signal says of them.

The best by vector and the best by keyword are joined. The neighbours of the best among them join too, so that
spreading can lift a record that neither signal found. Every candidate then has every signal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from recollect.numerics import kernels
from recollect.recall.score import fused

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.index.protocol import Question
    from recollect.settings import Profile

__all__ = ["Candidates", "gather", "measure"]


class Candidates(Struct, kw_only=True):
    """Parallel arrays, one entry a candidate, ascending by row. Each stage fills in its own.

    - rows: int64, the question's numbers; keys: int64, row ids in the store
    - cosine, bm25: float32, as measured; fused: float64, of both
    - look: float64, what the second look has added to it
    - spread: float64, the score after spreading; lift: what neighbours, links and source added, and linked: the
      links' part of it, both on the scale of `fused`
    - decay: float64, the weight of age; score: float64, what orders the hits
    """

    rows: NDArray[np.int64]
    keys: NDArray[np.int64]
    cosine: NDArray[np.float32]
    bm25: NDArray[np.float32]
    fused: NDArray[np.float64]
    look: NDArray[np.float64]
    spread: NDArray[np.float64]
    lift: NDArray[np.float64]
    linked: NDArray[np.float64]
    decay: NDArray[np.float64]
    score: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)


def gather(question: Question, profile: Profile, wanted: int) -> tuple[Candidates, bool]:
    """The candidates of one question: the best `wanted` by each signal, and whether there may be more."""
    found = [np.empty(0, dtype=np.int64)]
    if profile.vector_weight > 0:
        found.append(question.nearest(wanted))
    if profile.keyword_weight > 0:
        found.append(question.best_words(wanted))
    rows = sorted_unique(np.concatenate(found))
    if profile.spread > 0 and profile.expanded and len(rows):
        score = fused(question.cosines(rows), question.words(rows), rows, profile)
        best = rows[np.argsort(-score, kind="stable")[: profile.expanded]]
        rows = sorted_unique(np.concatenate([rows, question.neighbors(best)]))
    return measure(question, rows, profile), any(len(each) >= wanted for each in found)


def measure(question: Question, rows: NDArray[np.int64], profile: Profile) -> Candidates:
    """Every signal of these rows, which ascend, and the fused score."""
    cosine, bm25, keys = question.cosines(rows), question.words(rows), question.keys(rows)
    if profile.rescored and profile.vector_weight > 0 and len(rows):
        head, _ = kernels.top_k(cosine, profile.rescored)
        exact = question.exact_cosines(rows[head])
        # int8 may overstate: what was not in the head does not pass it now.
        cosine = np.minimum(cosine, exact.min())
        cosine[head] = exact
    score = fused(cosine, bm25, keys, profile)
    nothing = np.zeros(len(rows), dtype=np.float64)
    return Candidates(
        rows=rows,
        keys=keys,
        cosine=cosine,
        bm25=bm25,
        fused=score,
        look=np.zeros(len(rows), dtype=np.float64),
        spread=score,
        lift=nothing,
        linked=nothing,
        decay=np.ones(len(rows), dtype=np.float64),
        score=score,
    )


def sorted_unique(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """`np.unique` without its hash table: 12 against 40 microseconds for a few hundred rows."""
    values = np.sort(values)
    if len(values) < 2:
        return values
    kept = np.empty(len(values), dtype=np.bool_)
    kept[0] = True
    np.not_equal(values[1:], values[:-1], out=kept[1:])
    return values[kept]
