"""Token-level reranking in NumPy."""

from __future__ import annotations

import numpy as np

from recallite_kernels.arguments import Codes, Tokens
from recallite_kernels.contract import F64, I64, U64
from recallite_kernels.python_backend.hamming import bit_count
from recallite_kernels.python_backend.vectors import first_of, parts_of
from recallite_kernels.signals import SIGNALS, RankParameters


def fill_rerank(rows: I64, signals: F64, codes: Codes, tokens: Tokens, parameters: RankParameters) -> bool:
    """Write the MaxSim of the candidates and what reranking adds; False if codes are out of range."""
    best = np.sort(np.argsort(-signals[SIGNALS.fused], kind="stable")[: parameters.rerank_depth])
    best = best[parts_of(codes, rows[best]) > 0]
    if not len(best):
        return True
    # The tokens of a record's parts are side by side.
    first = first_of(codes, rows[best])
    starts, stops = tokens.starts[first], tokens.starts[first + parts_of(codes, rows[best])]
    if (starts < 0).any() or (starts > stops).any() or (stops > len(tokens.codes)).any():
        return False
    words = tokens.queries.shape[1]
    coded = (starts < stops) & ((stops - starts) % words == 0)
    if not coded.any():
        return True
    bounds = zip(starts[coded].tolist(), stops[coded].tolist(), strict=True)
    codes_of = [tokens.codes[start:stop].reshape(-1, words) for start, stop in bounds]
    ends = np.cumsum(list(map(len, codes_of)))
    similarity = _max_sim(tokens, np.concatenate(codes_of), np.concatenate(([0], ends[:-1])))
    total = 0.0
    for value in similarity.tolist():  # in order, as the JIT adds: np.mean adds in pairs
        total += value
    signals[SIGNALS.similarity, best[coded]] = similarity
    signals[SIGNALS.rerank, best[coded]] = parameters.rerank_weight * (similarity - total / len(similarity))
    return True


def _max_sim(tokens: Tokens, codes: U64, firsts: I64) -> F64:
    """The weighted sum of each question token's similarity to the most similar code of each group."""
    similarity = np.zeros(len(firsts))
    for token, weight in zip(tokens.queries, tokens.weights.tolist(), strict=True):
        distances = bit_count(codes ^ token).sum(axis=1, dtype=np.int64)
        similarity += weight * (1.0 - 2.0 * np.minimum.reduceat(distances, firsts) / tokens.width)
    return similarity
