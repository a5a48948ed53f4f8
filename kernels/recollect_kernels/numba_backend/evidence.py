"""Evidence, JIT, in float64 without fastmath."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect_kernels.arguments import Weighed
from recollect_kernels.contract import F64, I64
from recollect_kernels.numba_backend import _jit
from recollect_kernels.numba_backend._jit import exact, kernel
from recollect_kernels.signals import COMPARED, EVIDENCE, evidence_of

COSINE, BM25, SIMILARITY, SPEAKER = COMPARED


def measure_evidence(signals: F64, offsets: I64, weighed: Weighed) -> F64:
    evidence = np.empty((len(EVIDENCE), weighed.signals.shape[1]))
    _measure_evidence.call(signals, offsets, weighed, evidence)
    return evidence


@exact
def best_two(values: Any, first: Any, stop: Any) -> Any:
    """The best and the second best; 0 for one that is missing."""
    if stop == first:
        return 0.0, 0.0
    best, second = values[first], -np.inf
    for i in range(first + 1, stop):
        if values[i] > best:
            best, second = values[i], best
        elif values[i] > second:
            second = values[i]
    return best, (second if stop - first > 1 else 0.0)


@exact
def other_than(own: Any, two: Any) -> Any:
    """The best, or the second best for the best itself."""
    return two[1] if own >= two[0] else two[0]


@exact
def mean_measured(values: Any, first: Any, stop: Any) -> Any:
    """The mean of those that are not 0."""
    total, count = 0.0, 0
    for i in range(first, stop):
        if values[i] != 0.0:
            total += values[i]
            count += 1
    return total / count if count > 0 else 0.0


@kernel(_jit.F64_2, _jit.I64_1, _jit.WEIGHED, _jit.OUT_F64_2)
def _measure_evidence(signals: Any, offsets: Any, weighed: Any, evidence: Any) -> None:
    own = weighed.signals
    for query in range(offsets.shape[0] - 1):
        first, stop = offsets[query], offsets[query + 1]
        cosines = best_two(signals[COSINE], first, stop)
        bm25 = best_two(signals[BM25], first, stop)
        similarities = best_two(signals[SIMILARITY], first, stop)
        mean = mean_measured(signals[SIMILARITY], first, stop)
        speakers = best_two(signals[SPEAKER], first, stop)
        for i in range(weighed.offsets[query], weighed.offsets[query + 1]):
            mine = own[COSINE, i], own[BM25, i], own[SIMILARITY, i], own[SPEAKER, i]
            other = (
                other_than(mine[0], cosines), other_than(mine[1], bm25), other_than(mine[2], similarities),
                other_than(mine[3], speakers),
            )  # fmt: skip
            values = evidence_of(
                mine, other, weighed.coverage[i], weighed.lengths[i], weighed.ranks[i], weighed.words[query],
                mean, weighed.records,
            )  # fmt: skip
            for at in range(len(values)):
                evidence[at, i] = values[at]
