"""Lexical kernels, JIT: BM25 a term at a time, in float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from recallite_kernels.arguments import Postings
from recallite_kernels.contract import F32, I32, I64, U8
from recallite_kernels.numba_backend import _jit
from recallite_kernels.numba_backend._heap import push, sort_best_first
from recallite_kernels.numba_backend._jit import exact, helper, kernel
from recallite_kernels.python_backend import lexical as python_lexical

GREATEST = np.float32(np.finfo(np.float32).max)
FEW = 8  # postings for each row that is looked up: they are walked, where of more they are searched


def bm25_top_k(postings: Postings, mask: U8, scratch: F32, k: int, in_order: bool) -> tuple[I64, F32, I64] | None:
    queries = len(postings.slice_offsets) - 1
    rows, scores = np.empty((queries, k), np.int64), np.empty((queries, k), np.float32)
    sizes = np.empty(queries, np.int64)
    good = _bm25_top_k.call(postings, mask, scratch, int(in_order), scores, rows, sizes)
    return (rows, scores, sizes) if good else None


def invert(
    term_ids: I32, counts: U8, offsets: I64, first_row: int, out: tuple[I32, U8] | None
) -> tuple[I32, I64, I32, U8]:
    total = len(term_ids)
    vocabulary = int(term_ids.max()) + 1 if total else 0
    if vocabulary > 16 * total + 65_536:  # ids far apart: counting them would take longer than sorting
        return python_lexical.invert(term_ids, counts, offsets, first_row, out)
    place = np.zeros(vocabulary + 1, np.int64)
    terms, starts = np.empty(min(vocabulary, total), np.int32), np.empty(min(vocabulary, total) + 1, np.int64)
    rows, inverted = (np.empty(total, np.int32), np.empty(total, np.uint8)) if out is None else out
    unique = _invert.call(term_ids, counts, offsets, first_row, place, terms, starts, rows, inverted)
    return terms[:unique].copy(), starts[: unique + 1].copy(), rows, inverted


# Without fastmath: the same float32 numbers as NumPy's.
@exact
def bm25_constants(postings: Postings) -> Any:
    """k1 + 1, and the length norm as constant + slope * length."""
    k1, b = postings.k1, postings.b
    return np.float32(k1 + 1), np.float32(k1 * (1 - b)), np.float32(k1 * b / postings.average_length)


@helper
def impact(count: Any, weight: Any, length: Any, constant: Any, slope: Any) -> Any:
    frequency = np.float32(count)
    return weight * frequency / (frequency + constant + slope * length)


@helper
def in_order(rows: Any, start: Any, end: Any, n: Any) -> Any:
    """Whether rows[start:end] ascend strictly from 0 to below n: the bounds of every index that is one of them."""
    if start == end:
        return True
    ascend = rows[np.uintp(start)] >= 0 and np.int64(rows[np.uintp(end - 1)]) < n
    for p in range(np.uintp(start + 1), np.uintp(end)):
        ascend &= rows[p - np.uintp(1)] < rows[p]
    return ascend


@kernel(
    _jit.POSTINGS, _jit.U8_1, _jit.OUT_F32, _jit.I64, _jit.OUT_F32_2, _jit.OUT_I64_2, _jit.OUT_I64, returns=_jit.I64,
    fast=True,
)  # fmt: skip
def _bm25_top_k(
    postings: Any, mask: Any, scratch: Any, known: Any, heap_scores: Any, heap_rows: Any, sizes: Any
) -> Any:
    """Returns 0 if a score is not finite or the rows of a slice are out of order."""
    finite = True
    for q in range(heap_scores.shape[0]):
        for s in range(postings.slice_offsets[q], postings.slice_offsets[q + 1]):
            if not known and not in_order(postings.rows, postings.starts[s], postings.ends[s], scratch.shape[0]):
                return 0
        sizes[q] = best_of_words(postings, q, mask, scratch, heap_scores[q], heap_rows[q])
        finite &= sizes[q] >= 0
        scratch[:] = np.float32(0.0)
    return 1 if finite else 0


@helper
def best_of_words(postings: Any, query: Any, mask: Any, scratch: Any, best_scores: Any, best_rows: Any) -> Any:
    """Write the rows with the best BM25; returns how many, -1 where a score is not finite.

    `scratch` is zeros before, and has the negated score of each row with a word of the query afterwards.
    """
    rows, counts, lengths = postings.rows, postings.counts, postings.lengths
    starts, ends = postings.starts, postings.ends
    factor, constant, slope = bm25_constants(postings)
    k, masked = best_scores.shape[0], mask.size > 0
    for s in range(postings.slice_offsets[query], postings.slice_offsets[query + 1]):
        weight = postings.idf[s] * factor
        for p in range(np.uintp(starts[s]), np.uintp(ends[s])):
            if counts[p]:
                row = np.uintp(rows[p])
                scratch[row] += impact(counts[p], weight, lengths[row], constant, slope)
    # The second pass selects, and negates at once: a repeated document is below zero.
    size, finite, threshold = 0, True, np.float32(0.0)
    for s in range(postings.slice_offsets[query], postings.slice_offsets[query + 1]):
        for p in range(np.uintp(starts[s]), np.uintp(ends[s])):
            row = np.uintp(rows[p])
            score = scratch[row]
            if score < 0 or score == 0:
                continue
            scratch[row] = -score
            if score < threshold:
                continue
            if not (score <= GREATEST):
                finite = False
            elif not masked or mask[row] != 0:
                size = push(best_scores, best_rows, size, k, score, np.int64(row))
                if size == k:
                    threshold = best_scores[0]
    sort_best_first(best_scores, best_rows, size)
    return size if finite else -1


@helper
def find_row(rows: Any, start: Any, end: Any, row: Any) -> Any:
    """The place of `row` in rows[start:end], which ascend, or `end`."""
    low, high = start, end
    while low < high:
        middle = (low + high) >> 1
        if rows[np.uintp(middle)] < row:
            low = middle + 1
        else:
            high = middle
    return low if low < end and rows[np.uintp(low)] == row else end


@helper
def fill_bm25(postings: Any, length_norm: Any, candidates: Any, scores: Any, unknown: Any) -> None:
    """Scores that are NaN, slice by slice: candidates ascend, so each search starts where the last one ended.

    `unknown`, int64, has room for as many.
    """
    rows, counts, lengths, idf = postings.rows, postings.counts, postings.lengths, postings.idf
    starts, ends = postings.starts, postings.ends
    factor, constant, slope = length_norm
    many = 0
    ascending = True
    for c in range(candidates.shape[0]):
        if scores[c] != scores[c]:
            scores[c] = np.float32(0.0)
            unknown[many] = c
            ascending &= many == 0 or candidates[c] > candidates[unknown[many - 1]]
            many += 1
    for s in range(postings.starts.shape[0]):
        weight = idf[s] * factor
        at, end = starts[s], ends[s]
        if ascending and end - at <= FEW * many:
            ahead, last = np.uintp(0), np.uintp(many)
            for p in range(np.uintp(at), np.uintp(end)):
                row = np.int64(rows[p])
                while ahead < last and candidates[np.uintp(unknown[ahead])] < row:
                    ahead += np.uintp(1)
                if ahead == last:
                    break
                candidate = np.uintp(unknown[ahead])
                if candidates[candidate] == row and counts[p]:
                    scores[candidate] += impact(counts[p], weight, lengths[np.uintp(row)], constant, slope)
            continue
        for place in range(np.uintp(many)):
            candidate = np.uintp(unknown[place])
            row = candidates[candidate]
            if not ascending:
                at = starts[s]
            # Gallop from the last place before bisecting: a third of the time of bisecting the slice.
            low, stride = at, 1
            while at < end and rows[np.uintp(at)] < row:
                low = at + 1
                at += stride
                stride *= 2
            high = min(at, end)
            while low < high:
                middle = (low + high) >> 1
                if rows[np.uintp(middle)] < row:
                    low = middle + 1
                else:
                    high = middle
            at = low
            if at == end:
                if ascending:
                    break
                continue
            count = counts[np.uintp(at)]
            if rows[np.uintp(at)] == row and count:
                scores[candidate] += impact(count, weight, lengths[np.uintp(row)], constant, slope)


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
            number = np.uintp(term_ids[p])
            at = np.uintp(place[number])
            place[number] += 1
            rows[at] = first_row + i
            out[at] = counts[p]
    return unique
