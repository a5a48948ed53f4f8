"""Vector kernels, JIT: rescoring and quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from recallite_kernels.arguments import RESIDUAL_STEPS
from recallite_kernels.contract import F32, I8, I64, U8, U16
from recallite_kernels.numba_backend import _jit
from recallite_kernels.numba_backend._heap import push, sort_best_first
from recallite_kernels.numba_backend._jit import helper, kernel
from recallite_kernels.numba_backend._prefetch import prefetch, prefetch_row
from recallite_kernels.python_backend import vectors as python_backend
from recallite_kernels.python_backend.vectors import GREATEST_SQUARE, LEAST_SQUARE

GREATEST = np.float32(np.finfo(np.float32).max)
I32 = np.int32
INFINITE_BITS = I32(0x7F800000)  # of float32: those of a NaN are greater
# From here on BLAS, which keeps tiles of both matrices in registers, multiplies faster than a row is read for all
# queries: 30,000 rows of 384 took 35 ms of one core with 32 queries either way, and 59 instead of 38 ms with 64.
MANY_QUERIES = 32
AHEAD = 16  # rows asked for before they are read: rescoring 800 of 100,000 took 0.7 of the time


def quantize_int8(vectors: F32) -> tuple[I8, F32]:
    codes = np.empty(vectors.shape, np.int8)
    scales = np.empty(len(vectors), np.float32)
    _quantize_int8.call(vectors, codes, scales)
    return codes, scales


def cosine_top_k(queries: F32, vectors: F32, k: int, mask: U8) -> tuple[I64, F32] | None:
    if len(queries) >= MANY_QUERIES:
        return python_backend.cosine_top_k(queries, vectors, k, mask)
    rows, scores = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
    return (rows, scores) if _cosine_top_k.call(queries, vectors, mask, scores, rows) else None


def rescore_shortlist(
    queries: F32, codes: I8, scales: F32, rows: I64, distances: U16, size: int, k: int
) -> tuple[I64, F32]:
    nearest, cosines = np.empty((len(queries), k), np.int64), np.empty((len(queries), k), np.float32)
    histogram = np.empty(int(distances.max(initial=0)) + 1 if rows.shape[1] > size else 0, np.int64)
    _rescore_shortlist.call(queries, codes, scales, rows, distances, size, histogram, cosines, nearest)
    return nearest, cosines


# Without fastmath: a reciprocal instead of the division would round some codes differently.
@kernel(_jit.F32_2, _jit.OUT_I8_2, _jit.OUT_F32)
def _quantize_int8(vectors: Any, codes: Any, scales: Any) -> None:
    n, d = vectors.shape
    # Magnitudes are in the order of their bits as integers, whose maximum the compiler vectorises: a quarter of the
    # time.
    bits, greatest_bits = vectors.view(I32), scales.view(I32)
    for i in range(n):
        greatest = I32(0)
        for j in range(d):
            greatest = max(greatest, bits[i, j] & I32(0x7FFFFFFF))
        greatest_bits[i] = greatest
        if greatest >= INFINITE_BITS:
            scales[i], codes[i] = np.float32(np.nan), 0
            continue
        scale = np.float32(scales[i] / np.float64(127.0))
        inverse = 1.0 / np.float64(scale) if scale > 0 else 0.0
        scales[i] = scale
        for j in range(d):
            code = np.rint(np.float64(vectors[i, j]) * inverse)
            codes[i, j] = np.int8(I32(min(127.0, max(-127.0, code))))


@helper
def dot_int8(query: Any, codes: Any, row: Any) -> Any:
    dot = np.float32(0.0)
    for j in range(query.shape[0]):
        dot += query[j] * np.float32(codes[row, j])
    return dot


@kernel(_jit.F32_2, _jit.F32_2, _jit.U8_1, _jit.OUT_F32_2, _jit.OUT_I64_2, returns=_jit.I64, fast=True)
def _cosine_top_k(queries: Any, vectors: Any, mask: Any, heap_scores: Any, heap_rows: Any) -> Any:
    """Returns 0 if a vector is not finite. Each row is read once for all queries."""
    k, size = heap_rows.shape[1], 0
    finite: Any = True
    for row in range(np.uintp(vectors.shape[0])):
        if mask.shape[0] > 0 and mask[row] == 0:
            continue
        square = np.float32(0.0)
        for j in range(vectors.shape[1]):
            square += vectors[row, j] * vectors[row, j]
        safe = LEAST_SQUARE < square < GREATEST_SQUARE
        length = np.sqrt(np.float64(square)) if safe else wide_length(vectors, row)
        for q in range(np.uintp(queries.shape[0])):
            if safe:
                dot = np.float32(0.0)
                for j in range(vectors.shape[1]):
                    dot += queries[q, j] * vectors[row, j]
                score = np.float32(dot / np.float32(length))
            else:
                score = np.float32(wide_dot(queries, q, vectors, row) / (length if length != 0 else 1.0))
            finite &= abs(score) <= GREATEST
            push(heap_scores[q], heap_rows[q], size, k, score, np.int64(row))
        size = min(size + 1, k)
    for q in range(queries.shape[0]):
        sort_best_first(heap_scores[q], heap_rows[q], size)
    return 1 if finite else 0


@helper
def wide_length(vectors: Any, row: Any) -> Any:
    """The length of a row in float64, where a float32 square may over- or underflow."""
    square = 0.0
    for j in range(vectors.shape[1]):
        square += np.float64(vectors[row, j]) * np.float64(vectors[row, j])
    return np.sqrt(square)


@helper
def wide_dot(queries: Any, q: Any, vectors: Any, row: Any) -> Any:
    dot = 0.0
    for j in range(vectors.shape[1]):
        dot += np.float64(queries[q, j]) * np.float64(vectors[row, j])
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
        filled = 0
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
            filled = push(best_scores, best_rows, filled, k, score, row)
        sort_best_first(best_scores, best_rows, filled)
        if filled and not finite:
            best_scores[0] = np.float32(np.nan)


@helper
def first_of(codes: Any, row: Any) -> Any:
    """The place of a record's first vector."""
    return codes.first_place[row] if codes.first_place.shape[0] else np.int64(row)


@helper
def parts_of(codes: Any, row: Any) -> Any:
    """The number of vectors of a record."""
    return np.int64(codes.parts[row]) if codes.parts.shape[0] else np.int64(row < codes.codes.shape[0])


@helper
def fill_cosines(rows: Any, of_records: Any, cosines: Any) -> None:
    """Fill in cosines that are NaN: of the row's best vector, at most the ceiling; 0 without a vector."""
    query, ceiling = of_records.query, of_records.ceiling
    codes, scales = of_records.codes, of_records.scales
    ahead, many = np.uintp(0), np.uintp(rows.shape[0])
    for at in range(many):
        while ahead < many and ahead < at + np.uintp(AHEAD):
            if cosines[ahead] != cosines[ahead] and parts_of(of_records, np.uintp(rows[ahead])):
                prefetch_row(codes, first_of(of_records, np.uintp(rows[ahead])))
            ahead += np.uintp(1)
        if cosines[at] == cosines[at]:  # known
            continue
        row = np.uintp(rows[at])
        first, parts = first_of(of_records, row), parts_of(of_records, row)
        best = np.float32(-1.0) if parts else np.float32(0.0)
        finite = True
        for place in range(np.uintp(first), np.uintp(first + parts)):
            score = dot_int8(query, codes, place) * scales[place]
            if of_records.residuals.shape[0]:
                score += dot_int8(query, of_records.residuals, place) * scales[place] / np.float32(RESIDUAL_STEPS)
            finite &= abs(score) <= GREATEST
            best = max(best, min(np.float32(1.0), score))
        cosines[at] = min(best, ceiling) if finite else np.float32(np.nan)
