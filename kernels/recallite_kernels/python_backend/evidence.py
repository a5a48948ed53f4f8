"""Evidence and what it gives, in NumPy, query by query."""

from __future__ import annotations

import numpy as np

from recallite_kernels.arguments import Weighed, WordSlices
from recallite_kernels.contract import F64, I64, U8
from recallite_kernels.python_backend.lexical import coverage
from recallite_kernels.signals import COMPARED, EVIDENCE, SIGNALS, RankParameters, evidence_of, reason_bits


@np.errstate(all="ignore")
def assess(
    signals: F64, offsets: I64, weighed: Weighed, slices: WordSlices, weights: F64, word_weights: F64,
    parameters: RankParameters,
) -> tuple[F64, F64, I64, U8]:  # fmt: skip
    m = len(weighed.rows)
    evidence, confidence, reasons = np.empty((len(EVIDENCE), m)), np.empty(m), np.empty(m, np.int64)
    compared, own = signals[COMPARED, :], weighed.signals
    covered, held = coverage(*slices[:6], weighed.offsets, weighed.rows)
    for query in range(len(offsets) - 1):
        first, stop = weighed.offsets[query : query + 2]
        several = compared[:, offsets[query] : offsets[query + 1]]
        second, best = np.zeros((2, len(COMPARED)))
        if several.shape[1] > 1:
            second, best = np.partition(several, -2, axis=1)[:, -2:].T
        elif several.shape[1] == 1:
            best = several[:, 0]
        mine = own[COMPARED, first:stop]
        other = np.where(mine >= best[:, None], second[:, None], best[:, None])
        words = slice(*slices.word_offsets[query : query + 2])
        mass = weighed.unknown[query] + slices.idf[words].sum(dtype=np.float64)
        values = evidence_of(
            tuple(mine), tuple(other), covered[first:stop] / mass if mass > 0 else np.zeros(stop - first),
            weighed.lengths[first:stop].astype(np.float64), weighed.ranks[first:stop], weighed.words[query],
            _mean_measured(several[2]), weighed.records,
        )  # fmt: skip
        found = evidence[:, first:stop]
        for at, each in enumerate(values):
            found[at] = each
        weight = np.where(mine[0] == 0, word_weights[:, None], weights[query, :, None])
        # Added in order, as the JIT adds.
        logits = np.add.accumulate(found * weight[:-1], axis=0)[-1] + weight[-1]
        confidence[first:stop] = 1.0 / (1.0 + np.exp(-logits))
        greatest = best[COMPARED.index(SIGNALS.bm25)]
        reasons[first:stop] = reason_bits(own[:, first:stop], greatest if greatest > 0 else 1.0, parameters)
    return evidence, confidence, reasons, held


def _mean_measured(similarity: F64) -> float:
    """The mean of those that are not 0, added in order as the JIT adds."""
    total, count = 0.0, 0
    for each in similarity[similarity != 0].tolist():
        total, count = total + each, count + 1
    return total / count if count else 0.0
