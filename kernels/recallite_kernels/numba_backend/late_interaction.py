"""Token-level reranking, JIT: popcounts, the least distance of each query token kept in a register."""

from __future__ import annotations

from typing import Any

import numpy as np

from recallite_kernels.numba_backend._heap import push
from recallite_kernels.numba_backend._jit import exact, helper
from recallite_kernels.numba_backend._prefetch import LINE, prefetch
from recallite_kernels.numba_backend._sort import sort_whole
from recallite_kernels.numba_backend.hamming import popcount
from recallite_kernels.numba_backend.vectors import first_of, parts_of
from recallite_kernels.signals import SIGNALS

WORDS = LINE // 8
MOST_ASKED = 32 * WORDS  # the first lines of a long record: the machine asks for the following ones itself


@exact
def fill_rerank(rows: Any, codes: Any, tokens: Any, parameters: Any, scratch: Any, signals: Any) -> Any:
    """Write the MaxSim of the candidates and what reranking adds; False if codes are out of range."""
    depth = min(parameters.rerank_depth, rows.shape[0])
    if depth == 0:
        return True
    fused, added, heap = scratch.double[0], scratch.double[1], scratch.double[2]
    best, similarity, size = scratch.whole[2, :depth], scratch.double[3], 0
    for i in range(rows.shape[0]):
        size = push(heap, best, size, depth, fused[i], np.int64(i))
    sort_whole(best, scratch.whole[3], scratch.counts, 0, rows.shape[0])
    ask_for_tokens(rows, best, codes, tokens)
    total, measured = 0.0, 0
    for place in range(depth):
        row = rows[best[place]]
        first, parts = first_of(codes, row), parts_of(codes, row)
        similarity[place] = np.nan
        if parts == 0:
            continue
        # The tokens of a record's parts are side by side.
        start, stop = tokens.starts[first], tokens.starts[first + parts]
        if start < 0 or start > stop or stop > tokens.codes.shape[0]:
            return False
        if start == stop or (stop - start) % tokens.queries.shape[1] != 0:
            continue
        similarity[place] = max_sim(tokens, np.uintp(start), np.uintp(stop))
        total += similarity[place]
        measured += 1
    for place in range(depth):
        if similarity[place] == similarity[place]:
            signals[best[place], SIGNALS.similarity] = similarity[place]
            added[best[place]] = parameters.rerank_weight * (similarity[place] - total / measured)
    return True


@exact
def ask_for_tokens(rows: Any, best: Any, codes: Any, tokens: Any) -> None:
    """Ask for the token codes of the best: half of the 0.07 ms that reranking takes at 100,000 records."""
    last = tokens.starts.shape[0] - 1
    for place in range(best.shape[0]):
        prefetch(tokens.starts, np.uintp(first_of(codes, rows[best[place]])))
    for place in range(best.shape[0]):
        first = first_of(codes, rows[best[place]])
        stop = min(first + parts_of(codes, rows[best[place]]), last)
        if first >= 0 and first < stop:
            most = min(tokens.starts[stop], tokens.starts[first] + MOST_ASKED)
            for at in range(tokens.starts[first], most, WORDS):
                prefetch(tokens.codes, np.uintp(at))


@exact
def max_sim(tokens: Any, start: Any, stop: Any) -> Any:
    """The weighted sum of each query token's similarity to the most similar of some tokens."""
    score = 0.0
    for token in range(np.uintp(tokens.queries.shape[0])):
        distance = np.float64(least_distance(tokens.queries, token, tokens.codes, start, stop))
        score += np.float64(tokens.weights[token]) * (1.0 - 2.0 * distance / tokens.width)
    return score


@helper
def least_distance(queries: Any, token: Any, codes: Any, start: Any, stop: Any) -> Any:
    words = np.uintp(queries.shape[1])
    least = np.uint64(64) * np.uint64(words)
    if words != 2:
        for first in range(start, stop, words):
            total = np.uint64(0)
            for word in range(words):
                total += popcount(queries[token, word] ^ codes[first + word])
            least = min(least, total)
        return least
    # 128 bits: the query's words in registers.
    one, other = queries[token, 0], queries[token, 1]
    for first in range(start, stop, np.uintp(2)):
        least = min(least, popcount(one ^ codes[first]) + popcount(other ^ codes[first + np.uintp(1)]))
    return least
