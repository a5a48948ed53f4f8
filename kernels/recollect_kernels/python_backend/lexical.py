"""Lexical kernels in NumPy: a slice at a time, in float32 as the JIT does."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from recollect_kernels.arguments import Postings
from recollect_kernels.contract import F32, F64, I32, I64, U8
from recollect_kernels.python_backend.vectors import best


@np.errstate(all="ignore")
def impacts(counts: U8, idf: np.float32, lengths: F32, average_length: float, k1: float, b: float) -> F32:
    """What one slice adds to the score of each of its documents."""
    frequency = counts.astype(np.float32)
    constant, slope = np.float32(k1 * (1 - b)), np.float32(k1 * b / average_length)
    # In place: a temporary of this size costs as much as the arithmetic.
    norm = lengths * slope
    norm += constant
    norm += frequency
    frequency *= idf * np.float32(k1 + 1)
    frequency /= norm
    frequency[counts == 0] = 0
    return frequency


def bm25_top_k(postings: Postings, mask: U8, scratch: F32, k: int, in_order: bool) -> tuple[I64, F32, I64] | None:
    rows, counts, starts, ends, idf, slice_offsets, lengths, *numbers = postings
    queries = len(slice_offsets) - 1
    found, best_scores = np.empty((queries, k), np.int64), np.empty((queries, k), np.float32)
    sizes = np.zeros(queries, np.int64)
    for query in range(queries):
        slices = range(slice_offsets[query], slice_offsets[query + 1])
        if not in_order and not all(_in_order(rows[starts[each] : ends[each]], len(lengths)) for each in slices):
            return None
        for slice_ in slices:
            part = slice(starts[slice_], ends[slice_])
            documents = rows[part]
            scratch[documents] += impacts(counts[part], idf[slice_], lengths[documents], *numbers)
        touched: NDArray[np.int32] = np.concatenate([rows[starts[each] : ends[each]] for each in slices] or [rows[:0]])
        scores = scratch[touched]
        scratch[touched] = 0
        if not np.isfinite(scores).all():
            return None
        keep = scores > 0
        if mask.size:
            keep &= mask[touched] != 0
        touched, scores = touched[keep], scores[keep]
        # A document is in `touched` once per slice that holds it: the best k x slices hold k different ones.
        enough = k * len(slices)
        if enough < len(scores):
            near = scores >= np.partition(scores, len(scores) - enough)[len(scores) - enough]
            touched, scores = touched[near], scores[near]
        documents, first = np.unique(touched, return_index=True)
        order = best(scores[first], k)
        sizes[query] = len(order)
        found[query, : len(order)], best_scores[query, : len(order)] = documents[order], scores[first][order]
    return found, best_scores, sizes


def bm25_for_rows(postings: Postings, offsets: I64, candidates: I64, scores: F32) -> None:
    for query, (start, stop) in enumerate(pairwise(offsets.tolist())):
        fill_bm25(postings, query, candidates[start:stop], scores[start:stop])


def fill_bm25(postings: Postings, query: int, candidates: I64, scores: F32) -> None:
    """BM25 of one query where `scores` is NaN."""
    rows, counts, starts, ends, idf, slice_offsets, lengths, *numbers = postings
    at = np.flatnonzero(np.isnan(scores))
    wanted, length = candidates[at].astype(np.int32), lengths[candidates[at]]
    totals = np.zeros(len(at), np.float32)
    for slice_ in range(slice_offsets[query], slice_offsets[query + 1]):
        part = slice(starts[slice_], ends[slice_])
        if part.start < part.stop:
            places, held = _look_up(rows[part], wanted)
            frequency = np.where(held, counts[part][places], 0).astype(np.uint8)
            totals += impacts(frequency, idf[slice_], length, *numbers)
    scores[at] = totals


def word_coverage(
    rows: I32, starts: I64, ends: I64, words: I64, slice_offsets: I64, idf: F32, offsets: I64, candidates: I64
) -> tuple[F64, U8]:
    covered, met = np.zeros(len(candidates)), np.zeros(len(idf), np.uint8)
    for query in range(len(offsets) - 1):
        asked = slice(offsets[query], offsets[query + 1])
        for slice_ in range(slice_offsets[query], slice_offsets[query + 1]):
            _, held = _look_up(rows[starts[slice_] : ends[slice_]], candidates[asked].astype(np.int32))
            covered[asked] += held * np.float64(idf[words[slice_]])
            met[words[slice_]] |= held.any()
    return covered, met


def allowed_in_slices(rows: I32, starts: I64, ends: I64, mask: U8) -> I64 | None:
    parts = [rows[start:end] for start, end in zip(starts, ends, strict=True)]
    if not all(_in_order(part, len(mask)) for part in parts):
        return None
    return np.array([np.count_nonzero(mask[part]) for part in parts], np.int64)


def _in_order(part: I32, n: int) -> bool:
    """Whether the rows of a slice ascend strictly from 0 to below n."""
    return not len(part) or (part.item(0) >= 0 and part.item(-1) < n and bool((part[1:] > part[:-1]).all()))


def _look_up(part: I32, wanted: I32) -> tuple[I64, NDArray[np.bool_]]:
    """The place of each wanted row in a slice, and whether it is there."""
    if not len(part):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    places = np.minimum(np.searchsorted(part, wanted), len(part) - 1)
    return places, part[places] == wanted


def invert(
    term_ids: I32, counts: U8, offsets: I64, first_row: int, out: tuple[I32, U8] | None
) -> tuple[I32, I64, I32, U8]:
    documents = np.repeat(np.arange(first_row, first_row + len(offsets) - 1, dtype=np.int32), np.diff(offsets))
    # Number and place in one key: NumPy sorts 200,000 of them in a seventh of the time of a stable argsort.
    keys = np.sort((term_ids.astype(np.int64) << 32) | np.arange(len(term_ids)))
    order, sorted_terms = keys & 0xFFFFFFFF, (keys >> 32).astype(np.int32)
    first = np.flatnonzero(np.diff(sorted_terms, prepend=np.int32(-1)))
    starts = np.append(first, len(term_ids)).astype(np.int64, copy=False)
    rows, inverted = (np.empty_like(documents), np.empty_like(counts)) if out is None else out
    rows[:], inverted[:] = documents[order], counts[order]
    return sorted_terms[first], starts, rows, inverted
