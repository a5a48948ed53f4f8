"""Vector kernels, JIT: exact cosine, rescoring and quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect_kernels.contract import F32, I8, I64, NO_MASK, U8, U16
from recollect_kernels.numba_backend import _jit
from recollect_kernels.numba_backend._heap import push, sort_best_first
from recollect_kernels.numba_backend._jit import helper, kernel
from recollect_kernels.numba_backend._prefetch import prefetch, prefetch_row
from recollect_kernels.python_backend.vectors import GREATEST_SQUARE, LEAST_SQUARE, cosines

GREATEST = np.float32(np.finfo(np.float32).max)
# Large, because each product may be shared between threads that wait for one another: blocks of 1,024 rows took
# 100 ms alone and 1,000 ms beside another busy process.
BLOCK_ROWS, BLOCK_QUERIES = 8192, 256
LANES = 32  # scores compared with the threshold at once
AHEAD = 16  # rows asked for before they are read: rescoring 800 of 100,000 took half the time


def quantize_int8(vectors: F32) -> tuple[I8, F32]:
    codes = np.empty(vectors.shape, np.int8)
    scales = np.empty(len(vectors), np.float32)
    _quantize.call(vectors, codes, scales)
    return codes, scales


def rescore_shortlist(
    queries: F32, codes: I8, scales: F32, rows: I64, distances: U16, size: int, k: int
) -> tuple[I64, F32]:
    found, cosines = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
    histogram = np.empty(int(distances.max(initial=0)) + 1 if rows.shape[1] > size else 0, np.int64)
    _rescore_shortlist.call(queries, codes, scales, rows, distances, size, histogram, cosines, found)
    return found, cosines


def cosine_top_k(queries: F32, vectors: F32, k: int, mask: U8) -> tuple[I64, F32] | None:
    # The products are NumPy's own matrix product; numba's needs SciPy.
    count = len(queries)
    heap_rows, heap_scores = np.empty((count, k), np.int64), np.empty((count, k), np.float32)
    sizes = np.zeros(count, np.int64)
    inverse = np.empty(BLOCK_ROWS, np.float32)
    for start in range(0, len(vectors) if k else 0, BLOCK_ROWS):
        block = vectors[start : start + BLOCK_ROWS]
        allowed = mask[start : start + BLOCK_ROWS] if mask.size else NO_MASK
        if mask.size and not allowed.any():
            continue
        extreme = _inverse_norms.call(block, allowed, inverse)
        for first in range(0, count, BLOCK_QUERIES):
            some = slice(first, first + BLOCK_QUERIES)
            if extreme:
                dots = np.ascontiguousarray(cosines(queries[some], block))
                inverse[:] = 1
            else:
                dots = queries[some] @ block.T
            if not _offer.call(dots, inverse, allowed, start, heap_scores[some], heap_rows[some], sizes[some]):
                return None
    _sort_each.call(heap_scores, heap_rows, sizes)
    return heap_rows, heap_scores


# Without fastmath: a reciprocal instead of the division would round some codes differently.
@kernel(_jit.F32_2, _jit.OUT_I8_2, _jit.OUT_F32)
def _quantize(vectors: Any, codes: Any, scales: Any) -> None:
    n, d = vectors.shape
    for i in range(n):
        greatest = np.float32(0.0)
        finite = True
        for j in range(d):
            magnitude = abs(vectors[i, j])
            finite &= magnitude <= GREATEST
            greatest = max(greatest, magnitude)
        scale = np.float32(greatest / np.float64(127.0))
        inverse = 1.0 / np.float64(scale) if scale > 0 else 0.0
        if not finite:
            scale, inverse = np.float32(np.nan), 0.0
        scales[i] = scale
        for j in range(d):
            code = np.rint(np.float64(vectors[i, j]) * inverse)
            codes[i, j] = np.int8(min(127.0, max(-127.0, code))) if finite else np.int8(0)


@helper
def dot_int8(query: Any, codes: Any, row: Any) -> Any:
    dot = np.float32(0.0)
    for j in range(query.shape[0]):
        dot += query[j] * np.float32(codes[row, j])
    return dot


@kernel(
    _jit.F32_2, _jit.I8_2, _jit.F32_1, _jit.I64_2, _jit.U16_2, _jit.I64, _jit.OUT_I64, _jit.OUT_F32_2,
    _jit.OUT_I64_2, fast=True,
)  # fmt: skip
def _rescore_shortlist(
    queries: Any, codes: Any, scales: Any, rows: Any, distances: Any, size: Any, histogram: Any,
    heap_scores: Any, heap_rows: Any,
) -> None:  # fmt: skip
    k = heap_rows.shape[1]
    for q in range(queries.shape[0]):
        # Views made once: each takes 0.15 microseconds in a loop.
        query, best_scores, best_rows = queries[q], heap_scores[q], heap_rows[q]
        # The nearest of each block of the scan are side by side: the limit is that of all of them.
        limit, ties = np.int64(65535), size
        if rows.shape[1] > size:
            histogram[:] = 0
            for at in range(rows.shape[1]):
                histogram[np.uintp(distances[q, at])] += 1
            below = 0
            for value in range(histogram.shape[0]):
                limit, ties = np.int64(value), size - below
                below += histogram[value]
                if below >= size:
                    break
        held = 0
        finite = True
        own_rows, own_distances, many = rows[q], distances[q], np.uintp(rows.shape[1])
        for at in range(many):
            if at + np.uintp(AHEAD) < many:
                prefetch_row(codes, own_rows[at + np.uintp(AHEAD)])
                prefetch(scales, np.uintp(own_rows[at + np.uintp(AHEAD)]))
            row = own_rows[at]
            distance = np.int64(own_distances[at])
            if distance > limit or (distance == limit and ties <= 0):
                continue
            ties -= distance == limit
            score = dot_int8(query, codes, np.uintp(row)) * scales[np.uintp(row)]
            finite &= abs(score) <= GREATEST
            score = min(np.float32(1.0), max(np.float32(-1.0), score))
            held = push(best_scores, best_rows, held, k, score, row)
        sort_best_first(best_scores, best_rows, held)
        if held and not finite:
            best_scores[0] = np.float32(np.nan)


@helper
def fill_cosines(
    query: Any, rows: Any, first_place: Any, parts: Any, codes: Any, scales: Any, ceiling: Any, cosines: Any
) -> None:
    """Fill in cosines that are NaN: of the row's best vector, at most the ceiling; 0 without a vector."""
    ahead, many = np.uintp(0), np.uintp(rows.shape[0])
    for at in range(many):
        while ahead < many and ahead < at + np.uintp(AHEAD):
            if cosines[ahead] != cosines[ahead] and parts[np.uintp(rows[ahead])]:
                prefetch_row(codes, first_place[np.uintp(rows[ahead])])
            ahead += np.uintp(1)
        if cosines[at] == cosines[at]:  # known
            continue
        row = np.uintp(rows[at])
        best = np.float32(-1.0) if parts[row] else np.float32(0.0)
        finite = True
        for place in range(np.uintp(first_place[row]), np.uintp(first_place[row] + parts[row])):
            score = dot_int8(query, codes, place) * scales[place]
            finite &= abs(score) <= GREATEST
            best = max(best, min(np.float32(1.0), score))
        cosines[at] = min(best, ceiling) if finite else np.float32(np.nan)


@kernel(_jit.F32_2, _jit.U8_1, _jit.OUT_F32, returns=_jit.I64, fast=True)
def _inverse_norms(vectors: Any, mask: Any, out: Any) -> Any:
    """1 / norm of each row; returns how many allowed rows need more than float32 for it."""
    n, d = vectors.shape
    masked = mask.size > 0
    extreme = 0
    for i in range(n):
        square = np.float32(0.0)
        for j in range(d):
            square += vectors[i, j] * vectors[i, j]
        if square > LEAST_SQUARE and square < GREATEST_SQUARE:
            out[i] = np.float32(1.0) / np.sqrt(square)
        else:
            out[i] = np.float32(0.0)
            if square != 0 or not masked or mask[i] != 0:
                extreme += 1
    return extreme


@kernel(
    _jit.F32_2, _jit.F32_1, _jit.U8_1, _jit.I64, _jit.OUT_F32_2, _jit.OUT_I64_2, _jit.OUT_I64,
    returns=_jit.I64, fast=True,
)  # fmt: skip
def _offer(dots: Any, inverse: Any, mask: Any, first_row: Any, heap_scores: Any, heap_rows: Any, sizes: Any) -> Any:
    """Offer a block of rows to the heap of each query; 0 if a score is not finite."""
    k = heap_scores.shape[1]
    for q in range(dots.shape[0]):
        size = offer_scores(dots[q], inverse, mask, first_row, heap_scores[q], heap_rows[q], sizes[q], k)
        if size < 0:
            return 0
        sizes[q] = size
    return 1


@helper
def offer_scores(
    scores: Any, factors: Any, mask: Any, first_row: Any, heap_scores: Any, heap_rows: Any, size: Any, k: Any
) -> Any:
    """Offer scores x factors to one heap; returns its size, or -1 at an allowed score that is not finite."""
    n = scores.shape[0]
    masked = mask.size > 0
    for start in range(0, n, LANES):
        stop = min(start + LANES, n)
        # Rows ascend, so an equal score cannot enter. Written so that NaN counts as interesting.
        threshold = heap_scores[0] if size == k else np.float32(-np.inf)
        interesting = 0
        for i in range(np.uintp(start), np.uintp(stop)):
            score = scores[i] * factors[i]
            interesting += not (score <= threshold) or not (score >= -GREATEST)
        for i in range(np.uintp(start), np.uintp(stop if interesting else start)):
            if masked and mask[i] == 0:
                continue
            score = scores[i] * factors[i]
            if not (abs(score) <= GREATEST):
                return -1
            size = push(heap_scores, heap_rows, size, k, score, np.int64(first_row + np.int64(i)))
    return size


@kernel(_jit.OUT_F32_2, _jit.OUT_I64_2, _jit.I64_1)
def _sort_each(heap_scores: Any, heap_rows: Any, sizes: Any) -> None:
    for q in range(sizes.shape[0]):
        sort_best_first(heap_scores[q], heap_rows[q], sizes[q])
