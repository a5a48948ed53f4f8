"""Evidence in NumPy, query by query."""

from __future__ import annotations

import numpy as np

from recollect_kernels.arguments import Weighed
from recollect_kernels.contract import F64, I64
from recollect_kernels.signals import COMPARED, EVIDENCE, evidence_of


@np.errstate(all="ignore")
def measure_evidence(signals: F64, offsets: I64, weighed: Weighed) -> F64:
    evidence = np.empty((len(EVIDENCE), weighed.signals.shape[1]))
    compared, own = signals[COMPARED, :], weighed.signals[COMPARED, :]
    for query in range(len(offsets) - 1):
        first, stop = weighed.offsets[query : query + 2]
        several = compared[:, offsets[query] : offsets[query + 1]]
        second, best = np.zeros((2, len(COMPARED)))
        if several.shape[1] > 1:
            second, best = np.partition(several, -2, axis=1)[:, -2:].T
        elif several.shape[1] == 1:
            best = several[:, 0]
        mine = own[:, first:stop]
        other = np.where(mine >= best[:, None], second[:, None], best[:, None])
        values = evidence_of(
            tuple(mine), tuple(other), weighed.coverage[first:stop], weighed.lengths[first:stop],
            weighed.ranks[first:stop], weighed.words[query], _mean_measured(several[2]), weighed.records,
        )  # fmt: skip
        for row, each in zip(evidence[:, first:stop], values, strict=True):
            row[:] = each
    return evidence


def _mean_measured(similarity: F64) -> float:
    """The mean of those that are not 0, added in order as the JIT adds."""
    total, count = 0.0, 0
    for each in similarity[similarity != 0].tolist():
        total, count = total + each, count + 1
    return total / count if count else 0.0
