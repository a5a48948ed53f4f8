"""The exact answer in float64, and how much of it a ranking found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["TOP", "recall", "tenth_best"]

TOP = 10
# Vectors and queries are normalised in float32: cosines that differ by less are equal, and equal ones equally right.
_TOLERANCE = 1e-6
_ROWS = 50_000


def tenth_best(
    vectors: NDArray[np.float32], query_vectors: NDArray[np.float32], mask: Any = None
) -> NDArray[np.float64]:
    """The cosine of each query's tenth best vector, or of its last where there are fewer: float64 (queries,).

    - vectors: float32 (n, d), may be mapped from a file; asked: float32 (queries, d)
    - kept: bool (n,), the vectors a filter leaves; None for all
    """
    queries = _units(query_vectors)
    best = np.full((len(queries), TOP), -np.inf)
    for begin in range(0, len(vectors), _ROWS):
        block = vectors[begin : begin + _ROWS]
        if mask is not None:
            block = block[mask[begin : begin + _ROWS]]
        cosines = queries @ _units(block).T
        if cosines.shape[1] > TOP:
            cosines = -np.partition(-cosines, TOP - 1, axis=1)[:, :TOP]
        best = -np.sort(-np.concatenate([best, cosines], axis=1), axis=1)[:, :TOP]
    return np.array([row[np.isfinite(row)][-1] if np.isfinite(row).any() else np.inf for row in best])


def recall(
    vectors: NDArray[np.float32],
    query_vectors: NDArray[np.float32],
    tenth: NDArray[np.float64],
    answers: Sequence[Sequence[int]],
    expected: int = TOP,
) -> NDArray[np.float64]:
    """The share of the best `expected` that each ranking holds: float64 (queries,), for as many as were asked.

    A place counts, once, when its exact cosine reaches the tenth best.
    """
    shares = []
    for query, least, places in zip(_units(query_vectors[: len(answers)]), tenth, answers, strict=False):
        distinct = list(dict.fromkeys(places))[:expected]
        cosines = _units(np.asarray(vectors[distinct])) @ query if distinct else np.empty(0)
        shares.append(np.count_nonzero(cosines >= least - _TOLERANCE) / expected)
    return np.array(shares)


def _units(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    whole = vectors.astype(np.float64)
    return np.asarray(whole / np.linalg.norm(whole, axis=1, keepdims=True))
