"""MaxSim over 1-bit codes in NumPy."""

from __future__ import annotations

import numpy as np

from recollect_kernels.contract import F32, I64, U64
from recollect_kernels.python_backend.hamming import bit_count


def max_sim(query: U64, weights: F32, codes: U64, offsets: I64, dimension: int) -> F32:
    scores = np.zeros(len(offsets) - 1)
    filled = np.flatnonzero(np.diff(offsets))
    for token, weight in zip(query, weights.astype(np.float64), strict=True):
        if len(filled):
            distances = bit_count(codes ^ token).sum(axis=1, dtype=np.int64)
            # Records without tokens take no space: the others are contiguous.
            scores[filled] += weight * (1.0 - 2.0 * np.minimum.reduceat(distances, offsets[filled]) / dimension)
    return scores.astype(np.float32)
