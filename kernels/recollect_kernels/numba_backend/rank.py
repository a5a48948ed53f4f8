"""The kernel of a recall, JIT: the steps of the other kernels, a query at a time, in one pass without the GIL."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect_kernels.arguments import SIGNALS, Choices, Codes, Graph, Lists, Postings, Records
from recollect_kernels.contract import F32, F64, I8, I64
from recollect_kernels.numba_backend import _jit
from recollect_kernels.numba_backend._heap import push, sort_best_first
from recollect_kernels.numba_backend._jit import exact, kernel
from recollect_kernels.numba_backend.candidates import find_beside, join, merge, order_one
from recollect_kernels.numba_backend.graph import activate
from recollect_kernels.numba_backend.lexical import POSTINGS, fill_bm25
from recollect_kernels.numba_backend.ranking import add_signal, decayed
from recollect_kernels.numba_backend.vectors import fill_cosines

NO_QUERIES: F32 = np.empty((0, 0), np.float32)
NO_CODES: I8 = np.empty((0, 0), np.int8)
NO_SCALES: F32 = np.empty(0, np.float32)
DAY_US = 86_400_000_000.0


def rank_candidates(
    lists: Lists, codes: Codes | None, postings: Postings, graph: Graph, records: Records, choices: Choices, look: F64
) -> tuple[I64, I64, F64, I64] | None:
    queries = len(lists.vector_counts)
    known = lists.vector_rows.shape[1] + lists.keyword_rows.shape[1]
    best = min(choices.expanded, known)
    measured = codes or (NO_QUERIES, NO_SCALES, records.keys[:0], graph.heads[:0], NO_CODES, NO_SCALES)
    *arrays, average_length, k1, b = postings
    weights = np.array([choices.vector_weight, choices.keyword_weight])
    weights /= weights.sum()
    # Every link stands in both its ends' lists. A pass that finds too little room is made again.
    room = (4 + 2 * len(graph.targets) // max(len(records.keys), 1)) * best
    while True:
        most = known + room
        offsets, rows = np.empty(queries + 1, np.int64), np.empty(queries * most, np.int64)
        signals = np.empty((queries * most, len(SIGNALS)))
        order = np.empty(queries * most, np.int64)
        slots = 1 << (2 * most).bit_length()
        needed = _rank_candidates.call(
            *lists, *measured, *arrays, k1, k1 * (1 - b), k1 * b / average_length, *graph, *records, weights,
            choices.rrf_k, best, choices.neighbor_weight, choices.source_weight, choices.near, choices.far,
            choices.lone_share, choices.clock, choices.half_life_days, choices.decay_floor, choices.exponential,
            choices.importance_weight, choices.stand_in, choices.additive, choices.semantic_weight,
            choices.recency_weight, choices.ranked_share, look, np.empty((4, most), np.int64),
            np.empty((6, most), np.float32), np.empty((8, most)), np.empty(room, np.int64),
            np.empty(slots, np.int64), np.empty((slots, 3)),
            offsets, rows, signals, order,
        )  # fmt: skip
        if needed < 0:
            return None
        if needed <= room:
            break
        room = needed  # a record with many links
    m = int(offsets[-1])
    return offsets, rows[:m], np.ascontiguousarray(signals[:m].T), order[:m]


@exact
def fuse(
    m: Any, rows: Any, keys: Any, cosine: Any, bm25: Any, weights: Any, rrf_k: Any, ranked_share: Any,
    heap_scores: Any, heap_keys: Any, out: Any,
) -> None:  # fmt: skip
    """One score of two signals; ranks count from 1."""
    out[:m] = 0.0
    if rrf_k < 0:
        add_signal(cosine, 0, m, weights[0], False, out)
        add_signal(bm25, 0, m, weights[1], True, out)
        return
    by_key = np.argsort(keys[rows[:m]], kind="mergesort")
    nearest = 0.0
    for i in range(m):
        nearest = max(nearest, np.float64(cosine[i]))
    for signal in range(2):
        size = 0
        least = ranked_share * nearest if signal == 0 else 0.0
        for i in range(m if weights[signal] > 0 else 0):
            value = np.float64(cosine[by_key[i]] if signal == 0 else bm25[by_key[i]])
            if value > 0 and value >= least:
                size = push(heap_scores, heap_keys, size, m, value, i)
        sort_best_first(heap_scores, heap_keys, size)
        for rank in range(size):
            out[by_key[heap_keys[rank]]] += weights[signal] / (rrf_k + (rank + 1))
    least, greatest = np.inf, 0.0
    for i in range(m):
        if out[i] > 0:
            least, greatest = min(least, out[i]), max(greatest, out[i])
    for i in range(m):
        if out[i] > 0:
            out[i] = 1.0 if greatest == least else 0.4 + 0.6 * ((out[i] - least) / (greatest - least))
        elif (weights[0] > 0 and cosine[i] > 0) or (weights[1] > 0 and bm25[i] > 0):
            out[i] = 0.4


@exact
def words_alone(
    m: Any, rows: Any, bm25: Any, by_vector: Any, parts: Any, rrf_k: Any, by_words: Any, fused: Any
) -> None:
    """BM25 divided by its maximum for the rows without a vector; `by_words` is scratch."""
    if rrf_k >= 0:
        return
    by_words[:m] = 0.0
    add_signal(bm25, 0, m, 1.0, True, by_words)
    for i in range(m):
        if not by_vector or parts[rows[i]] == 0:
            fused[i] = by_words[i]


@kernel(
    _jit.I64_2, _jit.F32_2, _jit.I64_1, _jit.I64_2, _jit.F32_2, _jit.I64_1,  # lists
    _jit.F32_2, _jit.F32_1, _jit.I64_1, _jit.I32_1, _jit.I8_2, _jit.F32_1,  # codes
    *POSTINGS, _jit.F64, _jit.F64, _jit.F64,
    _jit.I32_1, _jit.I32_1, _jit.I64_1, _jit.I32_1, _jit.I32_1, _jit.I32_1, _jit.F32_1, _jit.U8_1,  # graph
    _jit.I64_1, _jit.I64_1, _jit.F32_1,  # records
    _jit.F64_1, _jit.F64, _jit.I64, _jit.F64, _jit.F64, _jit.F64, _jit.F64, _jit.F64, _jit.I64, _jit.F64, _jit.F64,
    _jit.I64, _jit.F64, _jit.I64, _jit.I64, _jit.F64, _jit.F64, _jit.F64, _jit.F64_1,  # choices, look
    _jit.OUT_I64_2, _jit.OUT_F32_2, _jit.OUT_F64_2, _jit.OUT_I64, _jit.OUT_I64, _jit.OUT_F64_2,  # scratch
    _jit.OUT_I64, _jit.OUT_I64, _jit.OUT_F64_2, _jit.OUT_I64, returns=_jit.I64,
)  # fmt: skip
def _rank_candidates(
    vector_rows: Any, vector_values: Any, vector_counts: Any, word_rows: Any, word_values: Any, word_counts: Any,
    queries: Any, ceilings: Any, first_place: Any, parts: Any, codes: Any, scales: Any,
    posting_rows: Any, counts: Any, starts: Any, ends: Any, idf: Any, slice_offsets: Any, lengths: Any, k1: Any,
    constant: Any, slope: Any,
    previous: Any, following: Any, sources: Any, heads: Any, nexts: Any, targets: Any, strengths: Any, mask: Any,
    keys: Any, created_at: Any, importance: Any,
    weights: Any, rrf_k: Any, best: Any, neighbor: Any, source: Any, near: Any, far: Any, lone_share: Any, clock: Any,
    half_life_days: Any, decay_floor: Any, exponential: Any, importance_weight: Any, by_words: Any, additive: Any,
    semantic_weight: Any, recency_weight: Any, ranked_share: Any, look: Any,
    whole: Any, single: Any, double: Any, beside: Any, slots: Any, slot_best: Any,
    offsets: Any, out_rows: Any, signals: Any, order: Any,
) -> Any:  # fmt: skip
    """Returns how many neighbours a query had at most, -1 where a row or a place is out of range."""
    n = previous.shape[0]
    rows, wider, heap_rows, company = whole[0], whole[1], whole[2], whole[3]
    cosine, bm25 = single[0], single[1]
    fused, own, heap_scores, by_chain = double[0], double[1], double[2], double[3]
    by_link, best_three, score = double[4], double[5], double[6]
    most = 0
    offsets[0] = 0
    for q in range(vector_counts.shape[0]):
        m = join(
            vector_rows[q], vector_values[q], vector_counts[q], word_rows[q], word_values[q], word_counts[q], wider, 0,
            rows, cosine, bm25,
        )  # fmt: skip
        if m < 0:
            return -1
        for step in range(2 if best > 0 else 1):
            if step == 1:
                fuse(m, rows, keys, cosine, bm25, weights, rrf_k, ranked_share, heap_scores, heap_rows, fused)
                if by_words == 1:
                    words_alone(m, rows, bm25, queries.shape[0] > 0, parts, rrf_k, own, fused)
                count = find_beside(
                    0, m, rows, fused, best, previous, following, heads, nexts, targets, mask, heap_scores, heap_rows,
                    beside,
                )  # fmt: skip
                if count < 0:
                    return -1
                most = max(most, count)
                if most > beside.shape[0]:
                    break
                wide_cosine, wide_bm25 = single[2], single[3]
                m = merge(0, m, rows, cosine, bm25, np.sort(beside[:count]), 0, wider, wide_cosine, wide_bm25)
                rows[:m], cosine[:m], bm25[:m] = wider[:m], wide_cosine[:m], wide_bm25[:m]
            for i in range(m):
                if rows[i] < 0 or rows[i] >= n:
                    return -1
                if queries.shape[0] == 0:
                    if cosine[i] != cosine[i]:
                        cosine[i] = np.float32(0.0)
                elif parts[rows[i]] != 0:
                    first, count = first_place[rows[i]], np.int64(parts[rows[i]])
                    if count < 0 or first < 0 or first > codes.shape[0] - count:
                        return -1
            if queries.shape[0] > 0:
                fill_cosines(queries[q], 0, m, rows, first_place, parts, codes, scales, ceilings[q], cosine)
            fill_bm25(
                posting_rows, counts, starts, ends, idf, slice_offsets[q], slice_offsets[q + 1], lengths, k1, constant,
                slope, 0, m, rows, heap_rows, bm25,
            )  # fmt: skip
        if most > beside.shape[0]:
            continue
        fuse(m, rows, keys, cosine, bm25, weights, rrf_k, ranked_share, heap_scores, heap_rows, fused)
        if by_words == 1:
            words_alone(m, rows, bm25, queries.shape[0] > 0, parts, rrf_k, own, fused)
        at = offsets[q]
        looked = look.shape[0] >= at + m
        for i in range(m if looked else 0):
            fused[i] += look[at + i]
        spreading = neighbor > 0 or source > 0
        if spreading:
            for i in range(m):
                own[i] = max(fused[i], 0.0)
            if not activate(
                0, m, rows, own, previous, following, sources, heads, nexts, targets, strengths, mask, near, far,
                slots, slot_best, by_chain, by_link, best_three, company,
            ):  # fmt: skip
                return -1
        for i in range(m):
            row = rows[i]
            spread, lift, linked = fused[i], 0.0, 0.0
            if spreading:
                lonely = company[i] == 1
                link = max(by_link[i], 0.0)
                substitute = lone_share * own[i] if lonely else 0.0
                lift = neighbor * max(by_chain[i], link) + source * (0.0 if lonely else best_three[i] / company[i])
                stand_in = source * substitute + neighbor * (substitute if by_link[i] < 0 else 0.0)
                spread = (fused[i] + lift + stand_in) / (1.0 + neighbor + source)
                linked = neighbor * link if link > by_chain[i] else 0.0
            age_days = np.float64(clock - created_at[row]) / DAY_US
            weight = decayed(age_days, half_life_days, decay_floor, exponential)
            if additive == 1:
                similarity = min(max(spread, 0.0), 1.0)
                score[i] = (
                    semantic_weight * similarity
                    + recency_weight * weight
                    + importance_weight * np.float64(importance[row])
                )
            else:
                score[i] = spread * weight * (1.0 + importance_weight * (2.0 * np.float64(importance[row]) - 1.0))
            out_rows[at + i] = row
            signals[at + i, 0] = np.float64(cosine[i])
            signals[at + i, 1] = np.float64(bm25[i])
            signals[at + i, 2] = look[at + i] if looked else 0.0
            signals[at + i, 3] = fused[i]
            signals[at + i, 4] = spread
            signals[at + i, 5] = lift
            signals[at + i, 6] = linked
            signals[at + i, 7] = weight
            signals[at + i, 8] = score[i]
        order_one(0, m, score, keys[rows[:m]], heap_scores, heap_rows, order[at : at + m])
        offsets[q + 1] = at + m
    return most
