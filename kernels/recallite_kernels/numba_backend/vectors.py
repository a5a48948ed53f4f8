"""Vector kernels, JIT: rescoring and quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from recallite_kernels.arguments import RESIDUAL_STEPS
from recallite_kernels.contract import F32, I8, I64, LANES, TILE_QUERIES, TILE_ROWS, U8, U16
from recallite_kernels.numba_backend import _jit
from recallite_kernels.numba_backend._heap import push, sort_best_first
from recallite_kernels.numba_backend._jit import helper, intrinsic, kernel
from recallite_kernels.numba_backend._prefetch import prefetch, prefetch_row
from recallite_kernels.python_backend.vectors import GREATEST_SQUARE, LEAST_SQUARE

GREATEST = np.float32(np.finfo(np.float32).max)
I32 = np.int32
INFINITE_BITS = I32(0x7F800000)  # of float32: those of a NaN are greater
FEW_QUERIES = 2  # one by one: a tile that is filled up took 1.5 times as long for one
AHEAD = 16  # rows asked for before they are read: rescoring 800 of 100,000 took 0.7 of the time


def quantize_int8(vectors: F32) -> tuple[I8, F32]:
    codes = np.empty(vectors.shape, np.int8)
    scales = np.empty(len(vectors), np.float32)
    _quantize_int8.call(vectors, codes, scales)
    return codes, scales


def cosine_top_k(queries: F32, vectors: F32, k: int, mask: U8) -> tuple[I64, F32] | None:
    count, wide = len(queries), -(-len(queries) // LANES) * LANES
    least = np.full(wide, np.inf, np.float32)  # nothing is better for a query that is none
    least[:count] = -np.inf
    allowed = np.flatnonzero(mask) if mask.size else np.arange(len(vectors))
    rows, scores = np.empty((count, k), np.int64), np.empty((count, k), np.float32)
    finite = _cosine_top_k.call(
        np.pad(queries, ((0, -count % TILE_QUERIES), (0, 0))), vectors, allowed, np.empty(TILE_ROWS, np.int64),
        np.empty(TILE_ROWS, np.float32), np.zeros((TILE_ROWS, wide), np.float32), least, scores, rows,
    )  # fmt: skip
    return (rows, scores) if finite else None


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


multiply, multiply_one = intrinsic("multiply"), intrinsic("multiply_one")


@kernel(
    _jit.F32_2, _jit.F32_2, _jit.I64_1, _jit.OUT_I64, _jit.OUT_F32, _jit.OUT_F32_2, _jit.OUT_F32, _jit.OUT_F32_2,
    _jit.OUT_I64_2, returns=_jit.I64, fast=True,
)  # fmt: skip
def _cosine_top_k(
    queries: Any, vectors: Any, allowed: Any, rows: Any, squares: Any, sums: Any, least: Any, heap_scores: Any,
    heap_rows: Any,
) -> Any:  # fmt: skip
    """Returns 0 if a vector is not finite. `least` is what a score has to be above to be among the best."""
    (count, k), many, dimension = heap_rows.shape, allowed.shape[0], vectors.shape[1]
    whole, finite = dimension // LANES * LANES, True
    for first in range(0, many, TILE_ROWS):
        filled = min(TILE_ROWS, many - first)
        for r in range(TILE_ROWS):
            rows[r] = allowed[first + min(r, filled - 1)]
            row, square = np.uintp(rows[r]), np.float32(0.0)
            for j in range(np.uintp(dimension)):
                square += vectors[row, j] * vectors[row, j]
            squares[r] = square
        if whole and count <= FEW_QUERIES:
            for q in range(count):
                multiply_one(queries, q, vectors, rows, whole, sums)
        elif whole:
            for q in range(0, count, TILE_QUERIES):
                multiply(queries, q, vectors, rows, whole, sums)
        for r in range(filled):
            row, square, scores = np.uintp(rows[r]), squares[r], sums[r]
            if LEAST_SQUARE < square < GREATEST_SQUARE:
                if whole < dimension:
                    add_rest(queries, vectors, row, whole, scores)
                length = np.sqrt(square)
                for q in range(np.uintp(scores.shape[0])):
                    scores[q] /= length
            else:
                finite &= score_widely(queries, vectors, row, scores[:count])
            for begin in range(np.uintp(0), np.uintp(scores.shape[0]), np.uintp(LANES)):
                better: Any = False
                for q in range(begin, begin + np.uintp(LANES)):
                    better |= scores[q] > least[q]
                if better:
                    for q in range(begin, begin + np.uintp(LANES)):
                        if scores[q] > least[q]:
                            size = push(heap_scores[q], heap_rows[q], min(first + r, k), k, scores[q], rows[r])
                            if size == k:
                                least[q] = heap_scores[q, 0]
    for q in range(count):
        sort_best_first(heap_scores[q], heap_rows[q], k)
    return 1 if finite else 0


@helper
def add_rest(queries: Any, vectors: Any, row: Any, begin: Any, sums: Any) -> None:
    """Add the products of the last components, fewer than 16; without whole sixteens there are no sums yet."""
    for q in range(queries.shape[0]):
        rest = np.float32(0.0)
        for j in range(begin, vectors.shape[1]):
            rest += queries[q, j] * vectors[row, j]
        sums[q] = sums[q] + rest if begin else rest


@helper
def score_widely(queries: Any, vectors: Any, row: Any, scores: Any) -> Any:
    """Fill in the cosines of a row whose float32 square may over- or underflow, in float64; whether they are finite."""
    square, finite = 0.0, True
    for j in range(vectors.shape[1]):
        square += np.float64(vectors[row, j]) * np.float64(vectors[row, j])
    for q in range(scores.shape[0]):
        dot = 0.0
        for j in range(vectors.shape[1]):
            dot += np.float64(queries[q, j]) * np.float64(vectors[row, j])
        scores[q] = np.float32(dot / (np.sqrt(square) if square != 0 else 1.0))
        finite &= abs(scores[q]) <= GREATEST
    return finite


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
