"""Evidence and what it gives, JIT, in float64 without fastmath."""

from __future__ import annotations

from typing import Any

import numpy as np

from recallite_kernels import composition
from recallite_kernels.arguments import CONTENT, NAMED
from recallite_kernels.numba_backend._jit import exact
from recallite_kernels.numba_backend.lexical import find_row
from recallite_kernels.signals import COMPARED, evidence_of, reason_bits, shares_of

COSINE, BM25, SIMILARITY, SPEAKER = COMPARED
signals_at = exact(composition.signals_at)


@exact
def best_two(values: Any, m: Any) -> Any:
    """The best and the second best of the first values; 0 for one that is missing."""
    if m == 0:
        return 0.0, 0.0
    best, second = values[0], -np.inf
    for i in range(1, m):
        if values[i] > best:
            best, second = values[i], best
        elif values[i] > second:
            second = values[i]
    return best, (second if m > 1 else 0.0)


@exact
def other_than(value: Any, two: Any) -> Any:
    """The best, or the second best for the best itself."""
    return two[1] if value >= two[0] else two[0]


@exact
def mean_measured(values: Any, m: Any) -> Any:
    """The mean of the first values that are not 0."""
    total, count = 0.0, 0
    for i in range(m):
        if values[i] != 0.0:
            total += values[i]
            count += 1
    return total / count if count > 0 else 0.0


@exact
def covered_by(row: Any, slices: Any, met: Any) -> Any:
    """The summed IDF of the question's words that a row contains, by what they are: see `shares_of`; marks them."""
    covered, content, named = 0.0, 0.0, 0.0
    for s in range(slices.starts.shape[0]):
        if find_row(slices.rows, slices.starts[s], slices.ends[s], row) < slices.ends[s]:
            word = np.uintp(slices.words[s])
            idf, role = np.float64(slices.idf[word]), slices.roles[word]
            covered += idf
            content += idf if role == CONTENT else 0.0
            named += idf if role == NAMED else 0.0
            met[word] = 1
    return covered, content, named


@exact
def masses_of(slices: Any) -> Any:
    """The summed IDF of all words of the question, of those that it is about, and of names."""
    mass, content, named = 0.0, 0.0, 0.0
    for word in range(slices.idf.shape[0]):
        idf = np.float64(slices.idf[word])
        mass += idf
        content += idf if slices.roles[word] == CONTENT else 0.0
        named += idf if slices.roles[word] == NAMED else 0.0
    return mass, content, named


@exact
def assess(
    signals: Any, m: Any, weighed: Any, slices: Any, weights: Any, word_weights: Any, parameters: Any, evidence: Any,
    confidence: Any, reasons: Any, words: Any,
) -> None:  # fmt: skip
    """Write the evidence, the confidence and the reasons of some rows, and the words that each contains."""
    answers, kinds, masses = weighed.signals, evidence.shape[0], masses_of(slices)
    cosines, bm25 = best_two(signals[COSINE], m), best_two(signals[BM25], m)
    similarities, speakers = best_two(signals[SIMILARITY], m), best_two(signals[SPEAKER], m)
    mean = mean_measured(signals[SIMILARITY], m)
    for i in range(weighed.rows.shape[0]):
        mine = answers[COSINE, i], answers[BM25, i], answers[SIMILARITY, i], answers[SPEAKER, i]
        other = (
            other_than(mine[0], cosines), other_than(mine[1], bm25), other_than(mine[2], similarities),
            other_than(mine[3], speakers),
        )  # fmt: skip
        covered = covered_by(weighed.rows[i], slices, words[min(i, words.shape[0] - 1)])
        values = evidence_of(
            mine, other, shares_of(covered, masses), np.float64(weighed.lengths[i]), weighed.ranks[i], weighed.words,
            mean, weighed.records,
        )  # fmt: skip
        bare = answers[COSINE, i] == 0.0
        logit = 0.0
        for at in range(len(values)):
            evidence[at, i] = values[at]
            logit += values[at] * (word_weights[at] if bare else weights[at])
        logit += word_weights[kinds] if bare else weights[kinds]
        confidence[i] = 1.0 / (1.0 + np.exp(-logit))
        reasons[i] = reason_bits(signals_at(answers, i), bm25[0] if bm25[0] > 0 else 1.0, parameters)
