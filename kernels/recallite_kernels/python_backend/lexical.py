"""Lexical kernels in NumPy: a slice at a time, in float32 as the JIT does."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recallite_kernels.arguments import CONTENT, NAMED, Postings, WordSlices
from recallite_kernels.contract import F32, F64, I32, I64, U8
from recallite_kernels.python_backend.vectors import best


@np.errstate(all="ignore")
def impacts(counts: U8, idf: F32, lengths: F32, average_length: float, k1: float, b: float) -> F32:
    """The parts that slices add to the scores of their documents; `idf` is that of each, in any shape that fits."""
    frequency = counts.astype(np.float32)
    constant, slope = np.float32(k1 * (1 - b)), np.float32(k1 * b / average_length)
    # In place: a temporary of this size costs as much as the arithmetic.
    norm: F32 = np.empty_like(frequency)
    norm[...] = lengths * slope + constant
    norm += frequency
    frequency *= idf * np.float32(k1 + 1)
    frequency /= norm
    frequency[counts == 0] = 0
    return frequency


def bm25_top_k(postings: Postings, mask: U8, scratch: F32, k: int, in_order: bool) -> tuple[I64, F32, I64] | None:
    queries = len(postings.slice_offsets) - 1
    best_rows, best_scores = np.empty((queries, k), np.int64), np.empty((queries, k), np.float32)
    sizes = np.zeros(queries, np.int64)
    for query in range(queries):
        part = slice(*postings.slice_offsets[query : query + 2].tolist())
        places, slices = _slices_of(postings.starts[part], postings.ends[part])
        if not in_order and not all(
            _in_order(postings.rows[rows_of_slice], len(postings.lengths)) for rows_of_slice in slices
        ):
            return None
        if not slices:
            continue
        # One array of all postings: most slices are short.
        documents = [postings.rows[rows_of_slice] for rows_of_slice in slices]
        touched, counts = (
            np.concatenate(documents),
            np.concatenate([postings.counts[rows_of_slice] for rows_of_slice in slices]),
        )
        ends = np.add.accumulate([len(rows_of_slice) for rows_of_slice in documents])
        idf, lengths = np.repeat(postings.idf[part][places], np.diff(ends, prepend=0)), postings.lengths.take(touched)
        added = impacts(counts, idf, lengths, *postings[7:])
        for rows, end in zip(documents, ends.tolist(), strict=True):
            scratch[rows] += added[end - len(rows) : end]
        # A document of several slices counts once: its score is 0 when it is met again.
        for rows, end in zip(documents, ends.tolist(), strict=True):
            scratch.take(rows, out=added[end - len(rows) : end], mode="clip")
            scratch[rows] = 0
        if not np.isfinite(added).all():
            return None
        if mask.size:
            added[mask.take(touched) == 0] = 0
        least = np.partition(added, len(added) - k)[len(added) - k] if k < len(added) else np.float32(0)
        near = np.flatnonzero((added >= least) & (added > 0))
        near = near.take(touched.take(near).argsort())
        order = near.take(best(added.take(near), k))
        sizes[query] = len(order)
        best_rows[query, : len(order)], best_scores[query, : len(order)] = touched.take(order), added.take(order)
    return best_rows, best_scores, sizes


def _slices_of(starts: I64, ends: I64) -> tuple[I64, list[slice]]:
    """The numbers of the slices that are not empty, and these slices."""
    places = np.flatnonzero(starts < ends)
    return places, list(map(slice, starts[places].tolist(), ends[places].tolist()))


def fill_bm25(postings: Postings, candidates: I64, scores: F32) -> None:
    """Write the BM25 of the candidates of a question whose score is NaN."""
    at = np.flatnonzero(np.isnan(scores))
    if not len(at):
        return
    scores[at] = 0
    places, slices = _slices_of(postings.starts, postings.ends)
    if not slices:
        return
    wanted = candidates.take(at)
    found_at, present = _look_up(postings.rows, slices, wanted)
    frequency = postings.counts.take(found_at) * present
    idf, lengths = postings.idf[places, None], postings.lengths.take(wanted)
    scores[at] = _summed(impacts(frequency, idf, lengths, *postings[7:]))


def coverage(words: WordSlices, candidates: I64) -> tuple[F64, U8]:
    """The summed IDF of the words that each candidate contains, float64 (3, m), and these words, uint8 (m, w).

    Of all words, of those that the question is about, and of names.
    """
    covered, contained = np.zeros((3, len(candidates))), np.zeros((len(candidates), len(words.idf)), np.uint8)
    places, slices = _slices_of(words.starts, words.ends)
    if slices:
        _, present = _look_up(words.rows, slices, candidates)
        roles = words.roles.take(words.words[places])[:, None]
        masses = present * words.idf.take(words.words[places]).astype(np.float64)[:, None]
        for sums, counting in zip(covered, (True, roles == CONTENT, roles == NAMED), strict=True):
            sums[:] = _summed(masses * counting)
        for word, rows in zip(words.words[places].tolist(), present, strict=True):
            contained[:, word] |= rows
    return covered, contained


def _summed(values: NDArray[Any]) -> NDArray[Any]:
    """The sum over the first axis, added in order as the JIT adds: np.sum may add in pairs."""
    sums: NDArray[Any] = np.add.accumulate(values, axis=0)[-1]
    return sums


def _in_order(part: I32, n: int) -> bool:
    """Whether the rows of a slice ascend strictly from 0 to below n."""
    return not len(part) or (part.item(0) >= 0 and part.item(-1) < n and bool((part[1:] > part[:-1]).all()))


def _look_up(rows: I32, slices: list[slice], wanted: I64) -> tuple[I64, NDArray[np.bool_]]:
    """The place in `rows` of each wanted row in each slice, none of them empty, and whether it is there."""
    # Of one type with `rows`, or NumPy would convert each slice.
    narrow = wanted.astype(np.int32)
    places = np.empty((len(slices), len(wanted)), np.int64)
    for slice_places, part in zip(places, slices, strict=True):
        slice_places[:] = rows[part].searchsorted(narrow)
    starts = np.array([part.start for part in slices])[:, None]
    lasts = np.array([part.stop for part in slices])[:, None] - 1
    places += starts
    np.minimum(places, lasts, out=places)
    present: NDArray[np.bool_] = rows.take(places) == narrow
    return places, present


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
