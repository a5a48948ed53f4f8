"""The kernel of a recall, JIT: all steps, query by query, in one call without the GIL."""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect_kernels.arguments import NEVER, NO_VECTORS, Codes, Graph, Lists, Mentions, Postings, Records, Tokens
from recollect_kernels.contract import F64, I64
from recollect_kernels.numba_backend import _jit
from recollect_kernels.numba_backend._jit import exact, kernel
from recollect_kernels.numba_backend.candidates import join, merge, neighbours_of_best
from recollect_kernels.numba_backend.graph import activate
from recollect_kernels.numba_backend.late_interaction import fill_rerank
from recollect_kernels.numba_backend.lexical import bm25_constants, fill_bm25
from recollect_kernels.numba_backend.vectors import fill_cosines
from recollect_kernels.signals import (
    DAY_US,
    SIGNALS,
    RankParameters,
    date_signal,
    later_signals,
    order_by_score,
    rank_fusion,
    weighted_fusion,
)

ROWS = len(SIGNALS)


def rank_candidates(
    lists: Lists, codes: Codes | None, postings: Postings, graph: Graph, records: Records, parameters: RankParameters,
    rerank: F64, mentions: Mentions, tokens: Tokens,
) -> tuple[I64, I64, F64, I64] | None:  # fmt: skip
    offsets, rows, signals, order = _rank_candidates.call(
        lists, codes or NO_VECTORS, postings, graph, records, parameters, rerank, mentions, tokens
    )
    return (offsets, rows, np.ascontiguousarray(signals.T), order) if len(offsets) else None


@exact
def measure(query: Any, rows: Any, cosine: Any, bm25: Any, codes: Any, postings: Any, lengths: Any) -> Any:
    """Fill in the signals that are NaN; False where a record's vectors are out of range."""
    if codes.queries.shape[0] == 0:
        for i in range(rows.shape[0]):
            if cosine[i] != cosine[i]:
                cosine[i] = np.float32(0.0)
    else:
        first_place, parts, places = codes.first_place, codes.parts, codes.codes.shape[0]
        for i in range(rows.shape[0]):
            first, count = first_place[rows[i]], np.int64(parts[rows[i]])
            if count != 0 and (count < 0 or first < 0 or first > places - count):
                return False
        fill_cosines(
            codes.queries[query], rows, first_place, parts, codes.codes, codes.scales, codes.ceilings[query], cosine
        )
    fill_bm25(postings, query, lengths, rows, bm25)
    return True


@exact
def fuse(rows: Any, cosine: Any, bm25: Any, codes: Any, keys: Any, parameters: Any) -> Any:
    """The fused score of each candidate."""
    m = rows.shape[0]
    if parameters.rrf_k >= 0:
        return rank_fusion(cosine.astype(np.float64), bm25.astype(np.float64), keys[rows], parameters)
    parts, measured = codes.parts, codes.queries.shape[0] > 0
    greatest = 0.0
    for i in range(m):
        greatest = max(greatest, np.float64(bm25[i]))
    fused = np.empty(m)
    for i in range(m):
        share = np.float64(bm25[i]) / greatest if greatest > 0 else 0.0
        has_vector = 1.0 if measured and parts[rows[i]] != 0 else 0.0
        fused[i] = weighted_fusion(np.float64(cosine[i]), share, has_vector, parameters)
    return fused


@exact
def gather(query: Any, lists: Any, codes: Any, postings: Any, graph: Any, keys: Any, parameters: Any) -> Any:
    """The candidates of one query, ascending by row, with cosine, BM25 and fused score.

    The first result is False where a row or a place is out of range.
    """
    lengths = bm25_constants(postings)
    good, rows, cosine, bm25 = join(lists, query, keys.shape[0])
    for widen in range(2):
        if not (good and measure(query, rows, cosine, bm25, codes, postings, lengths)):
            return False, rows, cosine, bm25, np.empty(0)
        fused = fuse(rows, cosine, bm25, codes, keys, parameters)
        best = min(parameters.expansion_depth, rows.shape[0])
        if widen == 1 or best == 0:
            break
        # Every link is in the lists of both its ends. Where they do not fit, the search is repeated with enough room.
        beside = np.empty((4 + 2 * graph.targets.shape[0] // max(keys.shape[0], 1)) * best, np.int64)
        count = neighbours_of_best(rows, fused, best, graph, beside)
        if count > beside.shape[0]:
            beside = np.empty(count, np.int64)
            count = neighbours_of_best(rows, fused, best, graph, beside)
        good = count >= 0
        rows, cosine, bm25 = merge(rows, cosine, bm25, np.sort(beside[: max(count, 0)]))
    return True, rows, cosine, bm25, fused


@exact
def mentioned(query: Any, row: Any, records: Any, mentions: Any) -> Any:
    """Whether a query names the speaker of a record, and how well its time fits."""
    speaker, date = 0.0, 0.0
    if mentions.name_offsets.shape[0] > 0:
        first, last = records.speakers[row, 0], records.speakers[row, 1]
        for place in range(mentions.name_offsets[query], mentions.name_offsets[query + 1]):
            if mentions.names[place] == first or mentions.names[place] == last:
                speaker = 1.0
        moment, until = np.float64(records.moments[row]), records.moments_until[row]
        lasting = 0.0 if until == NEVER else np.float64(until) - moment
        told = np.float64(records.created_at[row]) if records.resolved[row] == 1 else moment
        for place in range(mentions.span_offsets[query], mentions.span_offsets[query + 1]):
            begin, end = np.float64(mentions.begins[place]), np.float64(mentions.ends[place])
            fade = np.float64(mentions.fades[place])
            date = max(date, date_signal(moment, lasting, begin, end, fade))
            if told != moment:
                date = max(date, date_signal(told, 0.0, begin, end, fade))
    return speaker, date


@exact
def score(query: Any, rows: Any, cosine: Any, bm25: Any, rerank: Any, fused: Any, graph: Any, records: Any,
          parameters: Any, mentions: Any, signals: Any) -> Any:  # fmt: skip
    """Write all signals of one query's candidates; False where a chain or a link leaves the records."""
    m = rows.shape[0]
    created_at, importance = records.created_at, records.importance
    by_chain, by_link, best_three, neighbourhood = np.zeros(m), np.full(m, -1.0), np.zeros(m), np.ones(m)
    for i in range(m):
        fused[i] += rerank[i]
        signals[i, SIGNALS.rerank] = rerank[i]
    if parameters.neighbor_weight > 0 or parameters.source_weight > 0:
        reached = by_chain, by_link, best_three, neighbourhood
        if not activate(rows, np.maximum(fused, 0.0), graph, parameters.near, parameters.far, reached):
            return False
    for i in range(m):
        age_days = (np.float64(parameters.clock) - np.float64(created_at[rows[i]])) / DAY_US
        speaker, date = mentioned(query, rows[i], records, mentions)
        values = later_signals(
            fused[i], by_chain[i], by_link[i], best_three[i], neighbourhood[i], age_days,
            np.float64(importance[rows[i]]), speaker, date, parameters,
        )  # fmt: skip
        signals[i, SIGNALS.speaker], signals[i, SIGNALS.date] = speaker, date
        signals[i, SIGNALS.cosine], signals[i, SIGNALS.bm25] = np.float64(cosine[i]), np.float64(bm25[i])
        signals[i, SIGNALS.fused] = fused[i]
        for at in range(len(values)):
            signals[i, SIGNALS.spread + at] = values[at]
    return True


@kernel(
    _jit.LISTS, _jit.CODES, _jit.POSTINGS, _jit.GRAPH, _jit.RECORDS, _jit.PARAMETERS, _jit.F64_1,
    _jit.MENTIONS, _jit.TOKENS,
    returns=_jit.results(_jit.OUT_I64, _jit.OUT_I64, _jit.OUT_F64_2, _jit.OUT_I64),
)  # fmt: skip
def _rank_candidates(
    lists: Any, codes: Any, postings: Any, graph: Any, records: Any, parameters: Any, rerank: Any, mentions: Any,
    tokens: Any,
) -> Any:  # fmt: skip
    """Offsets, rows, signals by candidate, and order; without any offset where a row or a place is out of range."""
    queries = lists.vector_counts.shape[0]
    offsets = np.zeros(queries + 1, np.int64)
    all_rows, order, all_signals = np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, ROWS))
    for q in range(queries):
        good, rows, cosine, bm25, fused = gather(q, lists, codes, postings, graph, records.keys, parameters)
        at = offsets[q]
        stop = at + rows.shape[0]
        if stop > all_rows.shape[0]:
            room = stop if queries == 1 else max(2 * all_rows.shape[0], stop * queries)
            all_rows, order, all_signals = resized(all_rows, order, all_signals, at, room)
        own = all_signals[at:stop]
        own[:] = 0.0
        added = np.zeros(stop - at)
        for i in range(min(stop, rerank.shape[0]) - at):
            added[i] = rerank[at + i]
        if good and tokens.offsets.shape[0] > 0:
            good = fill_rerank(q, rows, fused, codes, tokens, parameters, added, own)
        if good:
            good = score(q, rows, cosine, bm25, added, fused, graph, records, parameters, mentions, own)
        if not good:
            return offsets[:0], all_rows, all_signals, order
        places = order_by_score(own[:, SIGNALS.score].copy(), records.keys[rows])
        for i in range(stop - at):
            all_rows[at + i], order[at + i] = rows[i], places[i]
        offsets[q + 1] = stop
    m = offsets[queries]
    return offsets, all_rows[:m], all_signals[:m], order[:m]


@exact
def resized(rows: Any, order: Any, signals: Any, held: Any, room: Any) -> Any:
    """The arrays with room for more candidates."""
    new_rows, new_order, new_signals = np.empty(room, np.int64), np.empty(room, np.int64), np.empty((room, ROWS))
    # Loops: an assignment to a slice takes 2 s to compile, with its error message.
    for i in range(held):
        new_rows[i], new_order[i] = rows[i], order[i]
        for signal in range(ROWS):
            new_signals[i, signal] = signals[i, signal]
    return new_rows, new_order, new_signals
