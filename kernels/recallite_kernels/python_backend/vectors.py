"""Vector kernels in NumPy; large matrices are read in blocks that fit the cache."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recallite_kernels.arguments import RESIDUAL_STEPS, Codes
from recallite_kernels.contract import F32, I8, I32, I64, U8, U16

BLOCK_ROWS = 8192
# Outside these a float32 sum of squares may have lost digits to under- or overflow.
LEAST_SQUARE, GREATEST_SQUARE = 1e-30, 1e30


def quantize_int8(vectors: F32) -> tuple[I8, F32]:
    n, d = vectors.shape
    codes = np.empty((n, d), np.int8)
    scales = np.empty(n, np.float32)
    for start in range(0, n, BLOCK_ROWS):
        block = vectors[start : start + BLOCK_ROWS]
        greatest = np.maximum(block.max(axis=1, initial=0), -block.min(axis=1, initial=0))
        scale = (greatest / np.float64(127)).astype(np.float32)
        scales[start : start + len(block)] = scale
        # In float64, as the JIT, so that halves round alike. A denormal scale has few digits: clip.
        wide = scale.astype(np.float64)
        inverse = np.divide(1.0, wide, out=np.zeros(len(block)), where=wide > 0)
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = np.rint(block * inverse[:, None])
            codes[start : start + len(block)] = np.nan_to_num(np.clip(scaled, -127, 127))
    return codes, scales


@np.errstate(all="ignore")
def rescore_shortlist(
    queries: F32, codes: I8, scales: F32, rows: I64, distances: U16, size: int, k: int
) -> tuple[I64, F32]:
    nearest, cosines = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
    for place, query in enumerate(queries):
        shortlist = rows[place]
        if len(shortlist) > size:
            shortlist = shortlist[np.argsort(distances[place], kind="stable")[:size]]
        shortlist = np.sort(shortlist)
        scores = dots_int8(query, codes, scales, shortlist)
        if not np.isfinite(scores).all():
            nearest[place], cosines[place] = 0, np.nan
            continue
        scores = np.clip(scores, -1, 1)
        order = best(scores, k)
        nearest[place], cosines[place] = shortlist[order], scores[order]
    return nearest, cosines


def first_of(codes: Codes, rows: I64) -> I64:
    """The place of the first vector of each record."""
    return codes.first_place.take(rows) if len(codes.first_place) else rows


def parts_of(codes: Codes, rows: I64) -> I32:
    """The number of vectors of each record."""
    return codes.parts.take(rows) if len(codes.parts) else (rows < len(codes.codes)).astype(np.int32)


def fill_cosines(codes: Codes, rows: I64, cosines: F32) -> None:
    """Fill in cosines that are NaN: of the row's best vector, at most the ceiling; 0 without a vector."""
    at = np.flatnonzero(np.isnan(cosines))
    if not len(at):
        return
    wanted = rows.take(at)
    counts, ceiling = parts_of(codes, wanted), np.float32(codes.ceiling)
    cosines[at] = np.minimum(np.float32(0), ceiling)
    has_vector = counts > 0
    if not has_vector.all():
        at, counts, wanted = at[has_vector], counts[has_vector], wanted[has_vector]
        if not len(at):
            return
    places, several = first_of(codes, wanted), int(counts.max()) > 1
    if several:
        wide = counts.astype(np.int64)
        starts = np.add.accumulate(wide) - wide
        places = np.repeat(places - starts, wide) + np.arange(wide.sum())
    scores = dots_int8(codes.query, codes.codes, codes.scales, places)
    if len(codes.residuals):
        rest = dots_int8(codes.query, codes.residuals, codes.scales, places)
        scores = scores + rest / np.float32(RESIDUAL_STEPS)
    finite = np.isfinite(scores)
    scores = np.minimum(np.maximum(scores, np.float32(-1)), np.float32(1))
    scores[~finite] = np.nan
    cosines[at] = np.minimum(np.maximum.reduceat(scores, starts) if several else scores, ceiling)


@np.errstate(all="ignore")
def dots_int8(query: F32, codes: I8, scales: F32, places: I64) -> F32:
    # Not a BLAS product: there the last bit of a dot depends on its place, and equal vectors would not tie.
    dots: F32 = np.einsum("ij,j->i", codes.take(places, axis=0).astype(np.float32), query)
    dots *= scales.take(places)
    return dots


def cosine_top_k(queries: F32, vectors: F32, k: int, mask: U8) -> tuple[I64, F32] | None:
    # BLAS finds candidates: the last bits of its products depend on the batch. These are measured again one by one.
    slack = np.float32((2 * vectors.shape[1] + 8) * 2.0**-24)
    allowed = np.flatnonzero(mask) if mask.size else np.arange(len(vectors))
    found = [(np.empty(0, np.int64), np.empty(0, np.float32))] * len(queries)
    for start in range(0, len(allowed), BLOCK_ROWS):
        rows = allowed[start : start + BLOCK_ROWS]
        scores = cosines(queries, vectors[rows] if mask.size else vectors[start : start + len(rows)])
        if not np.isfinite(scores).all():
            return None
        for query, (own_rows, own_scores) in enumerate(found):
            own_rows, own_scores = np.concatenate([own_rows, rows]), np.concatenate([own_scores, scores[query]])
            if len(own_rows) > k:
                near = own_scores >= np.partition(own_scores, -k)[-k] - slack
                own_rows, own_scores = own_rows[near], own_scores[near]
            found[query] = own_rows, own_scores
    best_rows, best_scores = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
    for place, (rows, _) in enumerate(found):
        wide = vectors[rows].astype(np.float64)
        norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
        scores = np.einsum("ij,j->i", wide, queries[place].astype(np.float64)) / np.where(norms > 0, norms, 1.0)
        order = best(scores.astype(np.float32), k)
        best_rows[place], best_scores[place] = rows[order], scores[order]
    return best_rows, best_scores


def best(scores: F32, k: int) -> I64:
    """Indices of the k greatest, descending, ties by ascending index."""
    n = len(scores)
    k = min(k, n)
    if k == 0:
        return np.empty(0, np.int64)
    places: NDArray[np.int64]
    if k == n:
        places = np.arange(n, dtype=np.int64)
    else:
        least = np.partition(scores, n - k)[n - k]
        above = np.flatnonzero(scores > least)
        equal = np.flatnonzero(scores == least)[: k - len(above)]
        places = np.sort(np.concatenate([above, equal])).astype(np.int64, copy=False)
    return places[np.argsort(-scores[places], kind="stable")]


def cosines(queries: F32, block: F32) -> F32:
    """Cosines of unit queries with the rows of a block: (rows,) for one query, (queries, rows) for many."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        squares = np.einsum("ij,ij->i", block, block)
        dots: F32 = queries @ block.T
        safe = (squares > LEAST_SQUARE) & (squares < GREATEST_SQUARE)
        if safe.all():
            dots /= np.sqrt(squares)
            return dots
        scores: F32 = np.divide(dots, np.sqrt(squares), out=np.zeros_like(dots), where=safe)
        wide = block[~safe].astype(np.float64)
        norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
        scores[..., ~safe] = (queries.astype(np.float64) @ wide.T) / np.where(norms == 0, 1.0, norms)
    return scores
