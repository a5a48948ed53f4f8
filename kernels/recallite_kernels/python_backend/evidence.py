"""Evidence and the confidence that it gives, in NumPy."""

from __future__ import annotations

import numpy as np

from recallite_kernels.arguments import CONTENT, NAMED, Weighed, WordSlices
from recallite_kernels.contract import F64, I64, U8
from recallite_kernels.python_backend.lexical import coverage
from recallite_kernels.signals import COMPARED, EVIDENCE, SIGNALS, RankParameters, evidence_of, reason_bits, shares_of


@np.errstate(all="ignore")
def assess(
    signals: F64, weighed: Weighed, slices: WordSlices, weights: F64, word_weights: F64, parameters: RankParameters
) -> tuple[F64, F64, I64, U8]:  # fmt: skip
    """The evidence, the confidence and the reasons of records, and the words that each contains.

    `signals` are those of the candidates, beside which they are weighed.
    """
    candidates, records = signals[COMPARED, :], weighed.signals[COMPARED, :]
    covered, contained = coverage(slices, weighed.rows)
    second, best = np.zeros((2, len(COMPARED)))
    if candidates.shape[1] > 1:
        second, best = np.partition(candidates, -2, axis=1)[:, -2:].T
    elif candidates.shape[1] == 1:
        best = candidates[:, 0]
    other = np.where(records >= best[:, None], second[:, None], best[:, None])
    values = evidence_of(
        tuple(records), tuple(other), shares_of(tuple(covered), _masses(slices)), weighed.lengths.astype(np.float64),
        weighed.ranks, weighed.words, _mean_measured(candidates[2]), weighed.records,
    )  # fmt: skip
    evidence = np.empty((len(EVIDENCE), len(weighed.rows)))
    for row, value in zip(evidence, values, strict=True):
        row[:] = value
    weight = np.where(records[0] == 0, word_weights[:, None], weights[:, None])
    # Added in order, as the JIT adds.
    logits = np.add.accumulate(evidence * weight[:-1], axis=0)[-1] + weight[-1]
    greatest = best[COMPARED.index(SIGNALS.bm25)]
    reasons = reason_bits(weighed.signals, greatest if greatest > 0 else 1.0, parameters)
    return evidence, 1.0 / (1.0 + np.exp(-logits)), np.asarray(reasons, np.int64), contained


def _masses(slices: WordSlices) -> list[float]:
    """The summed IDF of all words, of those that the question is about, and of names, added in order."""
    every = slices.idf.astype(np.float64)
    parts = (every, every * (slices.roles == CONTENT), every * (slices.roles == NAMED))
    return [float(np.add.accumulate(part)[-1]) if len(part) else 0.0 for part in parts]


def _mean_measured(similarity: F64) -> float:
    """The mean of those that are not 0, added in order as the JIT adds."""
    measured = similarity[similarity != 0]
    return float(np.add.accumulate(measured)[-1]) / len(measured) if len(measured) else 0.0
