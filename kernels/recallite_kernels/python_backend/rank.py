"""The kernel of a recall in NumPy, a query at a time."""

from __future__ import annotations

import numpy as np

from recallite_kernels.arguments import NEVER, Codes, Graph, Lists, Mentions, Postings, Records, Tokens
from recallite_kernels.contract import F32, F64, I64
from recallite_kernels.python_backend.candidates import join, merge, neighbours_of_best
from recallite_kernels.python_backend.graph import activate
from recallite_kernels.python_backend.late_interaction import fill_rerank
from recallite_kernels.python_backend.lexical import fill_bm25
from recallite_kernels.python_backend.vectors import fill_cosines, first_of, parts_of
from recallite_kernels.signals import (
    DAY_US,
    SIGNALS,
    RankParameters,
    date_signal,
    later_signals,
    rank_fusion,
    weighted_fusion,
)


@np.errstate(all="ignore")
def rank_candidates(
    lists: Lists, codes: Codes | None, postings: Postings, graph: Graph, records: Records, parameters: RankParameters,
    rerank: F64, mentions: Mentions, tokens: Tokens,
) -> tuple[I64, I64, F64, I64] | None:  # fmt: skip
    offsets, every_rows, order = [0], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    every_signals = [np.empty((len(SIGNALS), 0))]
    for query in range(len(lists.vector_counts)):
        gathered = _gather(query, lists, codes, postings, graph, records.keys, parameters)
        if gathered is None:
            return None
        rows, signals = gathered
        at = offsets[-1]
        offsets.append(at + len(rows))
        if not len(rows):
            continue
        if len(rerank) >= offsets[-1]:
            signals[SIGNALS.rerank] = rerank[at : offsets[-1]]
        if len(tokens.offsets):
            assert codes is not None
            if not fill_rerank(query, rows, signals, codes, tokens, parameters):
                return None
        signals[SIGNALS.fused] += signals[SIGNALS.rerank]
        fused, m = signals[SIGNALS.fused], len(rows)
        reached: tuple[F64, F64, F64, F64] | None = np.zeros(m), np.full(m, -1.0), np.zeros(m), np.ones(m)
        if parameters.neighbor_weight > 0 or parameters.source_weight > 0:
            reached = activate(rows, np.maximum(fused, 0.0), graph, parameters.near, parameters.far)
        if reached is None:
            return None
        age_days = (float(parameters.clock) - records.created_at.take(rows).astype(np.float64)) / DAY_US
        importance = records.importance.take(rows).astype(np.float64)
        if len(mentions.name_offsets):
            signals[SIGNALS.speaker], signals[SIGNALS.date] = _mentioned(query, rows, records, mentions)
        named = signals[SIGNALS.speaker], signals[SIGNALS.date]
        signals[SIGNALS.spread :] = later_signals(fused, *reached, age_days, importance, *named, parameters)
        every_rows.append(rows)
        every_signals.append(signals)
        order.append(order_by_score(signals[SIGNALS.score], records.keys.take(rows)))
    signals = np.concatenate(every_signals, axis=1)
    return np.array(offsets, np.int64), np.concatenate(every_rows), signals, np.concatenate(order)


def order_by_score(scores: F64, keys: I64) -> I64:
    """Places by descending score, ties by ascending key."""
    if (keys[1:] > keys[:-1]).all():
        return np.argsort(-scores, kind="stable")
    return np.lexsort((keys, -scores))


def _mentioned(query: int, rows: I64, records: Records, mentions: Mentions) -> tuple[F64, F64]:
    """Whether a query names the speaker of each record, and how well its time fits."""
    start, stop = mentions.name_offsets[query : query + 2].tolist()
    # Compared one by one: np.isin took four times as long.
    named = np.zeros(len(rows), np.bool_)
    if len(records.speakers):
        named = (records.speakers.take(rows, axis=0)[:, :, None] == mentions.names[start:stop]).any(axis=(1, 2))
    date: F64 = np.zeros(len(rows))
    start, stop = mentions.span_offsets[query : query + 2].tolist()
    if start == stop:
        return named.astype(np.float64), date
    begins, untils = records.moments.take(rows), records.moments_until.take(rows)
    moments = begins.astype(np.float64)
    lasting = np.where(untils == NEVER, 0.0, untils.astype(np.float64) - moments)
    told = np.where(records.resolved.take(rows) == 1, records.created_at.take(rows), begins).astype(np.float64)
    for place in range(start, stop):
        span = mentions.begins[place], mentions.ends[place], mentions.fades[place]
        begin, end, fade = map(float, span)
        np.maximum(date, date_signal(moments, lasting, begin, end, fade), out=date)
        np.maximum(date, (told != moments) * date_signal(told, 0.0, begin, end, fade), out=date)
    return named.astype(np.float64), date


def _gather(
    query: int, lists: Lists, codes: Codes | None, postings: Postings, graph: Graph, keys: I64,
    parameters: RankParameters,
) -> tuple[I64, F64] | None:  # fmt: skip
    """The candidates of one query, ascending by row, and their signals as far as fusion goes."""
    rows, cosine, bm25 = join(lists, query)
    if rows.size and not 0 <= int(rows[0]) <= int(rows[-1]) < len(keys):
        return None
    if not _measure(query, rows, cosine, bm25, codes, postings):
        return None
    signals = _fused_signals(rows, cosine, bm25, codes, keys, parameters)
    if parameters.expansion_depth == 0 or not len(rows):
        return rows, signals
    beside = neighbours_of_best(rows, signals[SIGNALS.fused], parameters.expansion_depth, graph)
    if beside is None:
        return None
    rows, cosine, bm25 = merge(rows, cosine, bm25, beside)
    if not _measure(query, rows, cosine, bm25, codes, postings):
        return None
    return rows, _fused_signals(rows, cosine, bm25, codes, keys, parameters)


def _measure(query: int, rows: I64, cosine: F32, bm25: F32, codes: Codes | None, postings: Postings) -> bool:
    """Fill in the signals that are NaN; False where a record's vectors are out of range."""
    if codes is None:
        cosine[np.isnan(cosine)] = 0
    else:
        parts, first = parts_of(codes, rows), first_of(codes, rows)
        outside = (first < 0) | (first > len(codes.codes) - parts)
        if ((parts < 0) | (outside & (parts != 0))).any():
            return False
        fill_cosines(codes, query, rows, cosine)
    fill_bm25(postings, query, rows, bm25)
    return True


def _fused_signals(
    rows: I64, cosine: F32, bm25: F32, codes: Codes | None, keys: I64, parameters: RankParameters
) -> F64:
    signals = np.zeros((len(SIGNALS), len(rows)))
    signals[SIGNALS.cosine], signals[SIGNALS.bm25] = cosine, bm25
    by_vector, by_keyword = signals[SIGNALS.cosine], signals[SIGNALS.bm25]
    if parameters.rrf_k >= 0:
        own = keys.take(rows)
        # Lists, which a loop reads in a fifth of the time of arrays.
        by_cosine, by_bm25 = order_by_score(by_vector, own).tolist(), order_by_score(by_keyword, own).tolist()
        fused = [0.0] * len(rows)
        rank_fusion(by_vector.tolist(), by_keyword.tolist(), by_cosine, by_bm25, parameters, fused)
        signals[SIGNALS.fused] = fused
        return signals
    greatest = by_keyword.max(initial=0.0)
    share = by_keyword / greatest if greatest > 0 else np.zeros(len(rows))
    has_vector = np.zeros(len(rows)) if codes is None else (parts_of(codes, rows) != 0).astype(np.float64)
    signals[SIGNALS.fused] = weighted_fusion(by_vector, share, has_vector, parameters)
    return signals
