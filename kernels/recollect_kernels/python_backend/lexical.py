"""Lexical kernels in NumPy: a slice at a time, in float32 as the JIT does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recollect_kernels.contract import F32, I32, I64, U8
from recollect_kernels.python_backend.vectors import best


def impacts(counts: U8, idf: np.float32, lengths: F32, average_length: float, k1: float, b: float) -> F32:
    """What one slice adds to the score of each of its documents."""
    frequency = counts.astype(np.float32)
    constant, slope = np.float32(k1 * (1 - b)), np.float32(k1 * b / average_length)
    # In place: a temporary of this size costs as much as the arithmetic.
    norm = lengths * slope
    norm += constant
    norm += frequency
    frequency *= idf * np.float32(k1 + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        frequency /= norm
    frequency[counts == 0] = 0
    return frequency


def bm25_scores(
    rows: I32, counts: U8, starts: I64, ends: I64, idf: F32, lengths: F32,
    average_length: float, k1: float, b: float, out: F32,
) -> None:  # fmt: skip
    for slice_ in np.argsort(-idf, kind="stable"):
        part = slice(starts[slice_], ends[slice_])
        documents = rows[part]
        out[documents] += impacts(counts[part], idf[slice_], lengths[documents], average_length, k1, b)


def bm25_top_k(
    rows: I32, counts: U8, starts: I64, ends: I64, idf: F32, lengths: F32,
    average_length: float, k1: float, b: float, mask: U8, scratch: F32, k: int,
) -> tuple[I64, F32] | None:  # fmt: skip
    bm25_scores(rows, counts, starts, ends, idf, lengths, average_length, k1, b, scratch)
    touched: NDArray[np.int32] = np.concatenate(
        [rows[start:end] for start, end in zip(starts, ends, strict=True)] or [rows[:0]]
    )
    scores = scratch[touched]
    scratch[touched] = 0
    if not np.isfinite(scores).all():
        return None
    keep = scores > 0
    if mask.size:
        keep &= mask[touched] != 0
    touched, scores = touched[keep], scores[keep]
    # A document stands in `touched` once per slice that holds it: the best k x slices hold k different ones.
    enough = k * len(starts)
    if enough < len(scores):
        near = scores >= np.partition(scores, len(scores) - enough)[len(scores) - enough]
        touched, scores = touched[near], scores[near]
    found, first = np.unique(touched, return_index=True)
    order = best(scores[first], k)
    return found[order].astype(np.int64), scores[first][order]


def bm25_for_rows(
    rows: I32, counts: U8, starts: I64, ends: I64, idf: F32, lengths: F32,
    average_length: float, k1: float, b: float, candidates: I64,
) -> F32:  # fmt: skip
    out = np.zeros(len(candidates), np.float32)
    lengths = lengths[candidates]
    wanted = candidates.astype(np.int32)
    for slice_ in np.argsort(-idf, kind="stable"):
        part = rows[starts[slice_] : ends[slice_]]
        if not len(part):
            continue
        at = np.minimum(np.searchsorted(part, wanted), len(part) - 1)
        frequency = np.where(part[at] == wanted, counts[starts[slice_] + at], 0).astype(np.uint8)
        out += impacts(frequency, idf[slice_], lengths, average_length, k1, b)
    return out


def scan_forward(
    term_ids: I32, counts: U8, offsets: I64, query_terms: I32, idf: F32, lengths: F32,
    average_length: float, k1: float, b: float,
) -> F32:  # fmt: skip
    documents = np.repeat(np.arange(len(lengths)), np.diff(offsets))
    out = np.zeros(len(lengths))
    for term, weight in zip(query_terms, idf, strict=True):
        hits = np.flatnonzero(term_ids == term)
        found = documents[hits]
        added = impacts(counts[hits], weight, lengths[found], average_length, k1, b)
        out += np.bincount(found, weights=added, minlength=len(out))
    return out.astype(np.float32)


def invert(term_ids: I32, counts: U8, offsets: I64, first_row: int) -> tuple[I32, I64, I32, U8]:
    documents = np.repeat(np.arange(first_row, first_row + len(offsets) - 1, dtype=np.int32), np.diff(offsets))
    order = np.argsort(term_ids, kind="stable")
    sorted_terms = term_ids[order]
    first = np.flatnonzero(np.diff(sorted_terms, prepend=np.int32(-1)))
    starts = np.append(first, len(term_ids)).astype(np.int64, copy=False)
    return sorted_terms[first], starts, documents[order], counts[order]
