"""Lexical kernels, JIT: BM25 a term at a time, in float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect_kernels import python_backend
from recollect_kernels.contract import F32, I32, I64, U8
from recollect_kernels.numba_backend import _jit
from recollect_kernels.numba_backend._heap import push, sort_best_first
from recollect_kernels.numba_backend._jit import helper, kernel

GREATEST = np.float32(np.finfo(np.float32).max)
_POSTINGS = (_jit.I32_1, _jit.U8_1, _jit.I64_1, _jit.I64_1, _jit.F32_1, _jit.F32_1)


def bm25_scores(
    rows: I32, counts: U8, starts: I64, ends: I64, idf: F32, lengths: F32,
    average_length: float, k1: float, b: float, out: F32,
) -> None:  # fmt: skip
    starts, ends, idf = by_weight(starts, ends, idf)
    _accumulate.call(rows, counts, starts, ends, idf, lengths, k1, k1 * (1 - b), k1 * b / average_length, out)


def bm25_top_k(
    rows: I32, counts: U8, starts: I64, ends: I64, idf: F32, lengths: F32,
    average_length: float, k1: float, b: float, mask: U8, scratch: F32, k: int,
) -> tuple[I64, F32] | None:  # fmt: skip
    starts, ends, idf = by_weight(starts, ends, idf)
    found, scores = np.empty(k, np.int64), np.empty(k, np.float32)
    size = _bm25_top_k.call(
        rows, counts, starts, ends, idf, lengths, k1, k1 * (1 - b), k1 * b / average_length,
        mask, scratch, scores, found,
    )  # fmt: skip
    return None if size < 0 else (found[:size], scores[:size])


def bm25_for_rows(
    rows: I32, counts: U8, starts: I64, ends: I64, idf: F32, lengths: F32,
    average_length: float, k1: float, b: float, candidates: I64,
) -> F32:  # fmt: skip
    starts, ends, idf = by_weight(starts, ends, idf)
    out = np.zeros(len(candidates), np.float32)
    _look_up.call(rows, counts, starts, ends, idf, lengths, k1, k1 * (1 - b), k1 * b / average_length, candidates, out)
    return out


def scan_forward(
    term_ids: I32, counts: U8, offsets: I64, query_terms: I32, idf: F32, lengths: F32,
    average_length: float, k1: float, b: float,
) -> F32:  # fmt: skip
    out = np.empty(len(lengths), np.float32)
    _scan_forward.call(
        term_ids, counts, offsets, query_terms, idf, lengths, k1, k1 * (1 - b), k1 * b / average_length, out
    )
    return out


def invert(term_ids: I32, counts: U8, offsets: I64, first_row: int) -> tuple[I32, I64, I32, U8]:
    total = len(term_ids)
    vocabulary = int(term_ids.max()) + 1 if total else 0
    if vocabulary > 16 * total + 1_000_000:  # ids far apart: counting them would take more memory than sorting
        return python_backend.invert(term_ids, counts, offsets, first_row)
    place = np.zeros(vocabulary + 1, np.int64)
    terms, starts = np.empty(min(vocabulary, total), np.int32), np.empty(min(vocabulary, total) + 1, np.int64)
    rows, out = np.empty(total, np.int32), np.empty(total, np.uint8)
    unique = _invert.call(term_ids, counts, offsets, first_row, place, terms, starts, rows, out)
    return terms[:unique].copy(), starts[: unique + 1].copy(), rows, out


def by_weight(starts: I64, ends: I64, idf: F32) -> tuple[I64, I64, F32]:
    """Slices by descending idf: documents that hold the same terms add them up in the same order and tie exactly."""
    order = np.argsort(-idf, kind="stable")
    return starts[order], ends[order], idf[order]


@helper
def impact(count: Any, weight: Any, length: Any, constant: Any, slope: Any) -> Any:
    frequency = np.float32(count)
    return weight * frequency / (frequency + constant + slope * length)


@helper
def accumulate(
    rows: Any, counts: Any, starts: Any, ends: Any, idf: Any, lengths: Any, k1: Any, constant: Any, slope: Any, out: Any
) -> None:
    for s in range(starts.shape[0]):
        weight = idf[s] * np.float32(k1 + 1)
        for p in range(np.uintp(starts[s]), np.uintp(ends[s])):
            if counts[p]:
                row = np.uintp(rows[p])
                out[row] += impact(counts[p], weight, lengths[row], np.float32(constant), np.float32(slope))


@kernel(*_POSTINGS, _jit.F64, _jit.F64, _jit.F64, _jit.OUT_F32, fast=True)
def _accumulate(
    rows: Any, counts: Any, starts: Any, ends: Any, idf: Any, lengths: Any, k1: Any, constant: Any, slope: Any, out: Any
) -> None:
    accumulate(rows, counts, starts, ends, idf, lengths, k1, constant, slope, out)


@kernel(
    *_POSTINGS, _jit.F64, _jit.F64, _jit.F64, _jit.U8_1, _jit.OUT_F32, _jit.OUT_F32, _jit.OUT_I64,
    returns=_jit.I64, fast=True,
)  # fmt: skip
def _bm25_top_k(
    rows: Any, counts: Any, starts: Any, ends: Any, idf: Any, lengths: Any, k1: Any, constant: Any, slope: Any,
    mask: Any, scratch: Any, heap_scores: Any, heap_rows: Any,
) -> Any:  # fmt: skip
    accumulate(rows, counts, starts, ends, idf, lengths, k1, constant, slope, scratch)
    # The second walk over the postings selects and clears at once: a document met again is already zero.
    k = heap_scores.shape[0]
    masked = mask.size > 0
    size = 0
    finite = True
    threshold = np.float32(0.0)
    for s in range(starts.shape[0]):
        for p in range(np.uintp(starts[s]), np.uintp(ends[s])):
            row = np.uintp(rows[p])
            score = scratch[row]
            scratch[row] = np.float32(0.0)
            if not (score < threshold or score == 0):
                if not (score <= GREATEST):
                    finite = False
                elif score > 0 and (not masked or mask[row] != 0):
                    size = push(heap_scores, heap_rows, size, k, score, np.int64(row))
                    if size == k:
                        threshold = heap_scores[0]
    if not finite:
        return -1
    sort_best_first(heap_scores, heap_rows, size)
    return size


@kernel(*_POSTINGS, _jit.F64, _jit.F64, _jit.F64, _jit.I64_1, _jit.OUT_F32, fast=True)
def _look_up(
    rows: Any, counts: Any, starts: Any, ends: Any, idf: Any, lengths: Any, k1: Any, constant: Any, slope: Any,
    candidates: Any, out: Any,
) -> None:  # fmt: skip
    for s in range(starts.shape[0]):
        weight = idf[s] * np.float32(k1 + 1)
        for c in range(candidates.shape[0]):
            row = candidates[c]
            low, high = starts[s], ends[s]
            while low < high:
                middle = (low + high) >> 1
                if rows[np.uintp(middle)] < row:
                    low = middle + 1
                else:
                    high = middle
            at = np.uintp(low)
            if low < ends[s] and rows[at] == row and counts[at]:
                length = lengths[np.uintp(row)]
                out[c] += impact(counts[at], weight, length, np.float32(constant), np.float32(slope))


@kernel(
    _jit.I32_1, _jit.U8_1, _jit.I64_1, _jit.I32_1, _jit.F32_1, _jit.F32_1, _jit.F64, _jit.F64, _jit.F64,
    _jit.OUT_F32, fast=True,
)  # fmt: skip
def _scan_forward(
    term_ids: Any, counts: Any, offsets: Any, query_terms: Any, idf: Any, lengths: Any,
    k1: Any, constant: Any, slope: Any, out: Any,
) -> None:  # fmt: skip
    for i in range(lengths.shape[0]):
        total = np.float32(0.0)
        for p in range(np.uintp(offsets[i]), np.uintp(offsets[i + 1])):
            if counts[p]:
                for q in range(query_terms.shape[0]):
                    if query_terms[q] == term_ids[p]:
                        weight = idf[q] * np.float32(k1 + 1)
                        total += impact(counts[p], weight, lengths[i], np.float32(constant), np.float32(slope))
        out[i] = total


@kernel(
    _jit.I32_1, _jit.U8_1, _jit.I64_1, _jit.I64, _jit.OUT_I64, _jit.OUT_I32, _jit.OUT_I64, _jit.OUT_I32,
    _jit.OUT_U8, returns=_jit.I64,
)  # fmt: skip
def _invert(
    term_ids: Any, counts: Any, offsets: Any, first_row: Any, place: Any, terms: Any, starts: Any, rows: Any, out: Any
) -> Any:
    """Count each term, turn counts into places, then put every posting in its place; documents stay in order."""
    for p in range(term_ids.shape[0]):
        place[np.uintp(term_ids[p])] += 1
    total = 0
    unique = 0
    for term in range(place.shape[0] - 1):
        count = place[term]
        place[term] = total
        if count:
            terms[unique] = term
            starts[unique] = total
            unique += 1
            total += count
    starts[unique] = total
    for i in range(offsets.shape[0] - 1):
        for p in range(np.uintp(offsets[i]), np.uintp(offsets[i + 1])):
            own = np.uintp(term_ids[p])
            at = np.uintp(place[own])
            place[own] += 1
            rows[at] = first_row + i
            out[at] = counts[p]
    return unique
