"""The threshold algorithm in NumPy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from recallite_kernels.arguments import Codes, Records, Sketches
from recallite_kernels.contract import F64, I64, LANES, U8
from recallite_kernels.python_backend.hamming import bit_count
from recallite_kernels.python_backend.vectors import first_of, parts_of
from recallite_kernels.signals import DAY_US, RankParameters, decay


@np.errstate(all="ignore")
def score_bound_candidates(
    offsets: I64, rows: I64, floors: F64, word_ceilings: F64, codes: Codes | None, sketches: Sketches, mask: U8,
    records: Records, parameters: RankParameters,
) -> tuple[I64, I64] | None:  # fmt: skip
    n = len(records.created_at)
    weight = parameters.vector_weight / (parameters.vector_weight + parameters.keyword_weight)
    ages = (float(parameters.clock) - records.created_at.astype(np.float64)) / DAY_US
    recency = decay(ages, parameters.half_life_days, parameters.decay_floor, parameters.exponential)
    importance = np.where(np.isfinite(records.importance), records.importance, np.nan).astype(np.float64)
    rest = parameters.recency_weight * recency + parameters.importance_weight * importance
    allowed = np.ones(n, np.bool_) if not mask.size else mask > 0
    has_vector = np.zeros(n, np.bool_)
    if codes is not None:
        has_vector = parts_of(codes, np.arange(n)) != 0
    found, ends = [np.empty(0, np.int64)], [0]
    for query, (start, stop) in enumerate(pairwise(offsets.tolist())):
        left = allowed.copy()
        left[rows[start:stop]] = False
        similarity = np.where(rest >= floors[query] - 1e-9, 0.0, np.inf)
        if parameters.semantic_weight > 0:
            similarity = (floors[query] - rest) / parameters.semantic_weight
        similarity -= 1e-9
        words = (1.0 - weight) * word_ceilings[query]
        alone = word_ceilings[query] if parameters.keyword_fallback == 1 else words
        chosen = left & ~has_vector & (similarity <= alone) & (alone > 0)
        within = left & has_vector & (similarity <= words)
        open_rows = np.flatnonzero(left & has_vector & ~within & (similarity <= 1.0 + 1e-5))
        chosen |= within
        if weight > 0 and codes is not None and len(open_rows):
            needed = (similarity[open_rows] - words) / weight
            chosen[open_rows[_reaches(query, open_rows, needed, codes, sketches)]] = True
        found.append(np.flatnonzero(chosen))
        ends.append(ends[-1] + len(found[-1]))
    return np.array(ends, np.int64), np.concatenate(found)


def _reaches(query: int, rows: I64, needed: F64, codes: Codes, sketches: Sketches) -> np.ndarray:
    """Whether any vector of each row may reach the cosine that the row needs."""
    counts = parts_of(codes, rows).astype(np.int64)
    starts = np.cumsum(counts) - counts
    places = np.repeat(first_of(codes, rows) - starts, counts) + np.arange(counts.sum())
    needed = np.repeat(needed, counts)
    may = needed <= 1.0 + 1e-5
    if len(sketches.limits):
        steps = len(sketches.limits) - 1
        limits = sketches.limits[(np.minimum(needed, 1.0) * steps).astype(np.int64)]
        words = sketches.sketches[places // LANES, :, places % LANES]
        may &= bit_count(words ^ sketches.queries[query]).sum(axis=1, dtype=np.int64) <= limits
        may = np.repeat(np.logical_or.reduceat(may, starts), counts)
    at = np.flatnonzero(may)
    asked = codes.queries[query]
    scales = codes.scales[places[at]].astype(np.float64)
    cosines = np.einsum("ij,j->i", codes.codes[places[at]].astype(np.float32), asked) * scales
    may[at] = ~(cosines + 0.5 * np.abs(asked.astype(np.float64)).sum() * scales + 1e-5 < needed[at])
    return np.logical_or.reduceat(may, starts)
