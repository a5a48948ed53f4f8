"""Vector kernels, JIT: exact cosine, rescoring, quantisation and top-k."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect_kernels.contract import F32, I8, I32, I64, NO_MASK, U8, U16
from recollect_kernels.numba_backend import _jit
from recollect_kernels.numba_backend._heap import push, sort_best_first
from recollect_kernels.numba_backend._jit import helper, kernel
from recollect_kernels.python_backend.vectors import GREATEST_SQUARE, LEAST_SQUARE, cosines

NO_FACTORS = np.empty(0, np.float32)
GREATEST = np.float32(np.finfo(np.float32).max)
# Large, because each product may be shared between threads that wait for one another: blocks of 1,024 rows took
# 100 ms alone and 1,000 ms beside another busy process.
BLOCK_ROWS, BLOCK_QUERIES = 8192, 256
LANES = 32  # scores compared with the threshold at once


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


def row_cosines(
    queries: F32, offsets: I64, rows: I64, first_place: I64, parts: I32, codes: I8, scales: F32, cosines: F32
) -> None:
    _row_cosines.call(queries, offsets, rows, first_place, parts, codes, scales, cosines)


def rescore(query: F32, vectors: F32, rows: I64) -> F32:
    out = np.empty(len(rows), np.float32)
    _rescore.call(query, vectors, rows, out)
    return out


def cosine_top_k(query: F32, vectors: F32, k: int, mask: U8) -> tuple[I64, F32] | None:
    scores = np.empty(len(vectors), np.float32)
    _cosines.call(query, vectors, mask, scores)
    return top_k(scores, k, mask)


def cosine_top_k_many(queries: F32, vectors: F32, k: int, mask: U8) -> tuple[I64, F32] | None:
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


def top_k(scores: F32, k: int, mask: U8) -> tuple[I64, F32] | None:
    rows, best = np.empty(k, np.int64), np.empty(k, np.float32)
    size = _top_k.call(scores, NO_FACTORS, mask, best, rows)
    return None if size < 0 else (rows[:size], best[:size])


# Without fastmath: a reciprocal instead of the division would move codes that lie half way.
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
        # Taken once: a row view made in the loop costs 0.15 microseconds each time.
        query, best_scores, best_rows = queries[q], heap_scores[q], heap_rows[q]
        # Blocks of a scan stand side by side, each with its own nearest: the limit is that of all together.
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
        for at in range(rows.shape[1]):
            row = rows[q, at]
            distance = np.int64(distances[q, at])
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
    query: Any, start: Any, stop: Any, rows: Any, first_place: Any, parts: Any, codes: Any, scales: Any, ceiling: Any,
    cosines: Any,
) -> None:  # fmt: skip
    for at in range(np.uintp(start), np.uintp(stop)):
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


@kernel(_jit.F32_2, _jit.I64_1, _jit.I64_1, _jit.I64_1, _jit.I32_1, _jit.I8_2, _jit.F32_1, _jit.OUT_F32, fast=True)
def _row_cosines(
    queries: Any, offsets: Any, rows: Any, first_place: Any, parts: Any, codes: Any, scales: Any, cosines: Any
) -> None:
    for q in range(queries.shape[0]):
        fill_cosines(queries[q], offsets[q], offsets[q + 1], rows, first_place, parts, codes, scales, GREATEST, cosines)


@helper
def cosine(query: Any, vectors: Any, row: Any) -> Any:
    """Cosine of a unit query with one row; float64 where a float32 square may have lost its digits."""
    d = query.shape[0]
    dot = np.float32(0.0)
    square = np.float32(0.0)
    for j in range(d):
        value = vectors[row, j]
        dot += query[j] * value
        square += value * value
    if square > LEAST_SQUARE and square < GREATEST_SQUARE:
        return dot / np.sqrt(square)
    wide_dot = 0.0
    wide_square = 0.0
    for j in range(d):
        wide = np.float64(vectors[row, j])
        wide_dot += np.float64(query[j]) * wide
        wide_square += wide * wide
    if wide_square == 0.0:
        return np.float32(0.0)
    return np.float32(wide_dot / np.sqrt(wide_square))


@kernel(_jit.F32_1, _jit.F32_2, _jit.I64_1, _jit.OUT_F32, fast=True)
def _rescore(query: Any, vectors: Any, rows: Any, out: Any) -> None:
    for i in range(rows.shape[0]):
        out[i] = cosine(query, vectors, np.uintp(rows[i]))


@kernel(_jit.F32_1, _jit.F32_2, _jit.U8_1, _jit.OUT_F32, fast=True)
def _cosines(query: Any, vectors: Any, mask: Any, out: Any) -> None:
    masked = mask.size > 0
    for i in range(vectors.shape[0]):
        row = np.uintp(i)
        if masked and mask[row] == 0:
            out[row] = np.float32(0.0)
        else:
            out[row] = cosine(query, vectors, row)


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
    scaled = factors.size > 0
    start = 0
    while start < n:
        stop = min(start + LANES, n)
        # Rows ascend, so an equal score can no longer win. Written so that a NaN counts as interesting too.
        threshold = heap_scores[0] if size == k else np.float32(-np.inf)
        interesting = 0
        if scaled:
            for i in range(np.uintp(start), np.uintp(stop)):
                score = scores[i] * factors[i]
                interesting += not (score <= threshold) or not (score >= -GREATEST)
        else:
            for i in range(np.uintp(start), np.uintp(stop)):
                interesting += not (scores[i] <= threshold) or not (scores[i] >= -GREATEST)
        if interesting:
            for i in range(np.uintp(start), np.uintp(stop)):
                if masked and scaled and mask[i] == 0:
                    continue
                score = scores[i] * factors[i] if scaled else scores[i]
                if not (abs(score) <= GREATEST):
                    return -1
                if not masked or mask[i] != 0:
                    size = push(heap_scores, heap_rows, size, k, score, np.int64(first_row + np.int64(i)))
        start = stop
    return size


@kernel(_jit.OUT_F32_2, _jit.OUT_I64_2, _jit.I64_1)
def _sort_each(heap_scores: Any, heap_rows: Any, sizes: Any) -> None:
    for q in range(sizes.shape[0]):
        sort_best_first(heap_scores[q], heap_rows[q], sizes[q])


@kernel(_jit.F32_1, _jit.F32_1, _jit.U8_1, _jit.OUT_F32, _jit.OUT_I64, returns=_jit.I64)
def _top_k(scores: Any, factors: Any, mask: Any, heap_scores: Any, heap_rows: Any) -> Any:
    size = offer_scores(scores, factors, mask, 0, heap_scores, heap_rows, 0, heap_scores.shape[0])
    if size > 0:
        sort_best_first(heap_scores, heap_rows, size)
    return size
