"""The ranking of the candidates of a question, JIT.

It allocates nothing: with arrays of its own Numba counted references in 1,400 places, which took a quarter to a half
more time, and twice as long to compile.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from recallite_kernels.arguments import NEVER
from recallite_kernels.contract import F32, F64, I64, U8
from recallite_kernels.numba_backend._jit import exact
from recallite_kernels.numba_backend._prefetch import prefetch
from recallite_kernels.numba_backend._sort import order_by_score, sort_whole
from recallite_kernels.numba_backend.candidates import join, merge, neighbours_of_best
from recallite_kernels.numba_backend.graph import activate
from recallite_kernels.numba_backend.late_interaction import fill_rerank
from recallite_kernels.numba_backend.lexical import bm25_constants, fill_bm25
from recallite_kernels.numba_backend.vectors import fill_cosines, first_of, parts_of
from recallite_kernels.signals import (
    DAY_US,
    SIGNALS,
    date_signal,
    later_signals,
    rank_fusion,
    weighted_fusion,
)


class Scratch(NamedTuple):
    """Memory for one query of at most c candidates, t slots of sources and r neighbours: int64, float32 and float64
    (k, c), slots int64 (t,), best of a source float64 (t, 3), marks uint8 (2 t,), neighbours int64 (2, r), counts of
    bytes int64 (256,), and the negated BM25 of all rows float32 (n,), or (0,) where that is to be found.
    """

    whole: I64
    single: F32
    double: F64
    slots: I64
    best: F64
    marks: U8
    beside: I64
    counts: I64
    negated: F32


@exact
def ask_for(rows: Any, codes: Any, graph: Any, records: Any, mentions: Any) -> None:
    """Ask for what is read of each candidate, before it is read."""
    by_vector = codes.query.shape[0] > 0
    for i in range(np.uintp(rows.shape[0])):
        row = np.uintp(rows[i])
        if by_vector and codes.parts.shape[0] > 0:
            prefetch(codes.first_place, row)
            prefetch(codes.parts, row)
        prefetch(graph.previous, row)
        prefetch(graph.following, row)
        prefetch(graph.heads, row)
        prefetch(graph.sources, row)
        prefetch(records.keys, row)
        prefetch(records.created_at, row)
        prefetch(records.importance, row)
        if mentions.names.shape[0] > 0:
            prefetch(records.speakers, np.uintp(2) * row)
        if mentions.begins.shape[0] > 0:
            prefetch(records.moments, row)
            prefetch(records.moments_until, row)
            prefetch(records.resolved, row)


@exact
def measure(
    rows: Any, cosine: Any, bm25: Any, codes: Any, postings: Any, lengths: Any, spare: Any, negated: Any
) -> Any:  # fmt: skip
    """Fill in the signals that are NaN; False if a record's vectors are out of range."""
    if codes.query.shape[0] == 0:
        for i in range(rows.shape[0]):
            if cosine[i] != cosine[i]:
                cosine[i] = np.float32(0.0)
    else:
        places = codes.codes.shape[0]
        for i in range(rows.shape[0]):
            first, count = first_of(codes, rows[i]), parts_of(codes, rows[i])
            if count != 0 and (count < 0 or first < 0 or first > places - count):
                return False
        fill_cosines(rows, codes, cosine)
    if negated.shape[0] == 0:
        fill_bm25(postings, lengths, rows, bm25, spare)
        return True
    for i in range(rows.shape[0]):
        if bm25[i] != bm25[i]:
            bm25[i] = abs(negated[rows[i]])
    return True


@exact
def fuse(rows: Any, cosine: Any, bm25: Any, codes: Any, keys: Any, parameters: Any, scratch: Any, fused: Any) -> None:
    """Write the fused score of each candidate."""
    m = rows.shape[0]
    if parameters.rrf_k >= 0:
        by_cosine, by_bm25 = scratch.double[1, :m], scratch.double[2, :m]
        for i in range(m):
            by_cosine[i], by_bm25[i] = np.float64(cosine[i]), np.float64(bm25[i])
        for signal in range(2):
            order_by_score(scratch.double[1 + signal], keys, rows, scratch.whole[3 + signal, :m], scratch.whole[2])
        rank_fusion(by_cosine, by_bm25, scratch.whole[3, :m], scratch.whole[4, :m], parameters, fused)
        return
    measured = codes.query.shape[0] > 0
    greatest = 0.0
    for i in range(m):
        greatest = max(greatest, np.float64(bm25[i]))
    for i in range(m):
        share = np.float64(bm25[i]) / greatest if greatest > 0 else 0.0
        has_vector = 1.0 if measured and parts_of(codes, rows[i]) != 0 else 0.0
        fused[i] = weighted_fusion(np.float64(cosine[i]), share, has_vector, parameters)


@exact
def gather(
    lists: Any, codes: Any, postings: Any, graph: Any, records: Any, parameters: Any, mentions: Any, scratch: Any
) -> Any:  # fmt: skip
    """The candidates in `scratch`: how many, -1 where a row or a place is out of range, at which index of
    its arrays, and how many neighbours there must be room for. Rows ascend; fused scores are `scratch.double[0]`.
    """
    keys, whole, single, beside = records.keys, scratch.whole, scratch.single, scratch.beside[0]
    lengths, count = bm25_constants(postings), 0
    n = keys.shape[0]
    m = join(lists, n, whole[2], whole[3], scratch.counts, whole[0], single[0], single[1])
    if m < 0:
        return -1, 0, 0
    fused = scratch.double[0]
    # In a loop, so that measuring and fusing are compiled once.
    for widened in range(2):
        rows, cosine, bm25 = whole[widened, :m], single[2 * widened, :m], single[2 * widened + 1, :m]
        ask_for(rows, codes, graph, records, mentions)
        if not measure(rows, cosine, bm25, codes, postings, lengths, whole[2], scratch.negated):
            return -1, 0, 0
        fuse(rows, cosine, bm25, codes, keys, parameters, scratch, fused)
        best = min(parameters.expansion_depth, m)
        if widened == 1 or best == 0:
            return m, widened, count
        count = neighbours_of_best(rows, fused, graph, scratch.double[1, :best], whole[2, :best], beside)
        if count < 0 or count > beside.shape[0]:
            return min(count, 0), 0, count
        if m + count > whole.shape[1]:
            return 0, 0, m + count
        sort_whole(beside[:count], scratch.beside[1], scratch.counts, 0, n)
        m = merge(rows, cosine, bm25, beside[:count], whole[1], single[2], single[3])
    return -1, 0, 0


@exact
def mentioned(row: Any, records: Any, mentions: Any) -> Any:
    """Whether the question names the speaker of a record, and how well its time fits."""
    speaker, date = 0.0, 0.0
    if records.speakers.shape[0] > 0:
        first, last = records.speakers[row, 0], records.speakers[row, 1]
        for place in range(mentions.names.shape[0]):
            if mentions.names[place] == first or mentions.names[place] == last:
                speaker = 1.0
    if mentions.begins.shape[0] == 0:
        return speaker, date
    moment, until = np.float64(records.moments[row]), records.moments_until[row]
    lasting = 0.0 if until == NEVER else np.float64(until) - moment
    created = np.float64(records.created_at[row]) if records.resolved[row] == 1 else moment
    for place in range(mentions.begins.shape[0]):
        begin, end = np.float64(mentions.begins[place]), np.float64(mentions.ends[place])
        fade = np.float64(mentions.fades[place])
        date = max(date, date_signal(moment, lasting, begin, end, fade))
        if created != moment:
            date = max(date, date_signal(created, 0.0, begin, end, fade))
    return speaker, date


@exact
def score(
    rows: Any, cosine: Any, bm25: Any, graph: Any, records: Any, parameters: Any, mentions: Any, scratch: Any,
    signals: Any,
) -> Any:  # fmt: skip
    """Write all signals of the candidates; False if a chain or a link leaves the records."""
    m = rows.shape[0]
    created_at, importance, double = records.created_at, records.importance, scratch.double
    fused, added, positive = double[0, :m], double[1, :m], double[2, :m]
    by_chain, by_link, best_three, neighbourhood = double[3, :m], double[4, :m], double[5, :m], double[6, :m]
    for i in range(m):
        fused[i] += added[i]
        positive[i] = max(fused[i], 0.0)
        signals[i, SIGNALS.rerank] = added[i]
        by_chain[i], by_link[i], best_three[i], neighbourhood[i] = 0.0, -1.0, 0.0, 1.0
    if parameters.neighbor_weight > 0 or parameters.source_weight > 0:
        reached = by_chain, by_link, best_three, neighbourhood
        if not activate(rows, positive, graph, parameters.near, parameters.far, scratch, reached):
            return False
    for i in range(m):
        row = rows[i]
        age_days = (np.float64(parameters.clock) - np.float64(created_at[row])) / DAY_US
        speaker, date = mentioned(row, records, mentions)
        values = later_signals(
            fused[i], by_chain[i], by_link[i], best_three[i], neighbourhood[i], age_days, np.float64(importance[row]),
            speaker, date, parameters,
        )  # fmt: skip
        signals[i, SIGNALS.speaker], signals[i, SIGNALS.date] = speaker, date
        signals[i, SIGNALS.cosine], signals[i, SIGNALS.bm25] = np.float64(cosine[i]), np.float64(bm25[i])
        signals[i, SIGNALS.fused] = fused[i]
        for at in range(len(values)):
            signals[i, SIGNALS.spread + at] = values[at]
    return True


@exact
def rank_candidates(
    lists: Any, codes: Any, postings: Any, graph: Any, records: Any, parameters: Any, rerank: Any, mentions: Any,
    tokens: Any, scratch: Any, all_rows: Any, order: Any, signals: Any,
) -> Any:  # fmt: skip
    """Write the candidates, their order and their signals, float64 (c, signals).

    Returns how many, -1 if a row or a place is out of range, and the neighbours that there must be room for.
    """
    m, at, neighbours = gather(lists, codes, postings, graph, records, parameters, mentions, scratch)
    if m < 0 or neighbours > scratch.beside.shape[1]:
        return m, neighbours
    rows, cosine, bm25 = scratch.whole[at, :m], scratch.single[2 * at, :m], scratch.single[2 * at + 1, :m]
    added, totals = scratch.double[1, :m], scratch.double[7, :m]
    for i in range(m):
        all_rows[i] = rows[i]
        added[i] = rerank[i] if i < rerank.shape[0] else 0.0
        signals[i, SIGNALS.similarity] = 0.0
    if tokens.queries.shape[0] > 0 and not fill_rerank(rows, codes, tokens, parameters, scratch, signals):
        return -1, 0
    if not score(rows, cosine, bm25, graph, records, parameters, mentions, scratch, signals):
        return -1, 0
    for i in range(m):
        totals[i] = signals[i, SIGNALS.score]
    order_by_score(totals, records.keys, rows, order[:m], scratch.whole[2])
    return m, neighbours
