"""The kernel of a recall in NumPy: the other kernels, one after the other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from recollect_kernels.arguments import Choices, Codes, Graph, Lists, Postings, Records
from recollect_kernels.contract import F32, F64, I64
from recollect_kernels.python_backend.candidates import expand_candidates, join_candidates, order_by_score
from recollect_kernels.python_backend.graph import spread_activation
from recollect_kernels.python_backend.lexical import bm25_for_rows
from recollect_kernels.python_backend.ranking import (
    decay,
    normalise_scores,
    reciprocal_rank_fusion,
    weighted_fusion,
)
from recollect_kernels.python_backend.vectors import row_cosines

DAY_US = 86_400_000_000.0
ONLY_BM25 = np.array([0, 1], np.uint8)


def rank_candidates(
    lists: Lists, codes: Codes | None, postings: Postings, graph: Graph, records: Records, choices: Choices, look: F64
) -> tuple[I64, I64, F64, I64] | None:
    joined = join_candidates(*lists)
    if joined is None:
        return None
    n = len(graph.previous)
    rows = joined[1]
    if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < n:
        return None
    spreading = choices.neighbor_weight > 0 or choices.source_weight > 0
    if not _measure(joined, codes, postings):
        return None
    if choices.expanded > 0:
        score = _fuse(joined, records.keys, codes, choices)
        wider = expand_candidates(
            *joined, score, choices.expanded, graph.previous, graph.following, graph.heads, graph.nexts, graph.targets,
            graph.mask,
        )  # fmt: skip
        if wider is None or not _measure(wider, codes, postings):
            return None
        joined = wider
    offsets, rows, cosine, bm25 = joined
    fused = _fuse(joined, records.keys, codes, choices)
    added = look if len(look) == len(rows) else np.zeros(len(rows))
    fused = fused + added
    spread, lift, linked = fused, np.zeros(len(rows)), np.zeros(len(rows))
    if spreading:
        spread_to = _spread(joined, fused, graph, choices)
        if spread_to is None:
            return None
        spread, lift, linked = spread_to
    ages = (choices.clock - records.created_at[rows]) / DAY_US
    weight = decay(ages, choices.half_life_days, choices.decay_floor, choices.exponential == 1)
    importance = records.importance[rows].astype(np.float64)
    if choices.additive == 1:
        score = (
            choices.semantic_weight * np.minimum(np.maximum(spread, 0.0), 1.0)
            + choices.recency_weight * weight
            + choices.importance_weight * importance
        )
    else:
        score = spread * weight * (1.0 + choices.importance_weight * (2.0 * importance - 1.0))
    signals = np.stack([cosine, bm25, added, fused, spread, lift, linked, weight, score]).astype(np.float64, copy=False)
    return offsets, rows, signals, order_by_score(offsets, score, records.keys[rows])


def _measure(joined: tuple[I64, I64, F32, F32], codes: Codes | None, postings: Postings) -> bool:
    """Fill in every signal that is not known; False where a place is out of range."""
    offsets, rows, cosine, bm25 = joined
    unknown = np.isnan(cosine)
    if codes is None:
        cosine[unknown] = 0
    else:
        parts, first = codes.parts[rows], codes.first_place[rows]
        held = parts > 0
        if (parts < 0).any() or (first[held] < 0).any() or (first[held] > len(codes.codes) - parts[held]).any():
            return False
        row_cosines(codes.queries, offsets, rows, codes.first_place, codes.parts, codes.codes, codes.scales, cosine)
        ceilings = np.repeat(codes.ceilings, np.diff(offsets))
        cosine[unknown] = np.minimum(cosine[unknown], ceilings[unknown])
    bm25_for_rows(*postings, offsets, rows, bm25)
    return True


def _fuse(joined: tuple[I64, I64, F32, F32], keys: I64, codes: Codes | None, choices: Choices) -> F64:
    offsets, rows, cosine, bm25 = joined
    signals = np.stack([cosine, bm25]).astype(np.float64)
    weights = np.array([choices.vector_weight, choices.keyword_weight])
    if choices.rrf_k < 0:
        fused = weighted_fusion(signals, weights, ONLY_BM25, offsets)
        if choices.stand_in == 1:
            unmeasured = np.ones(len(rows), np.bool_) if codes is None else codes.parts[rows] == 0
            by_words = weighted_fusion(signals[1:], np.ones(1), ONLY_BM25[1:], offsets)
            fused[unmeasured] = by_words[unmeasured]
        return fused
    scores = [np.empty(0)]
    for start, stop in pairwise(offsets.tolist()):
        ranks = np.zeros((2, stop - start), np.int64)
        held = np.zeros(stop - start, np.bool_)
        least = choices.ranked_share * signals[0, start:stop].max(initial=0.0), 0.0
        for signal, weight, lowest, rank in zip(signals, weights, least, ranks, strict=True):
            if weight > 0:
                values = signal[start:stop]
                rank[np.lexsort((keys[rows[start:stop]], -values))] = np.arange(1, stop - start + 1)
                rank[(values <= 0) | (values < lowest)] = 0
                held |= values > 0
        fused = reciprocal_rank_fusion(ranks, weights / weights.sum(), choices.rrf_k)
        ranked = fused > 0
        score = np.where(held, 0.4, 0.0)
        if ranked.any():
            score[ranked] = normalise_scores(fused[ranked], 0.4, 1.0)
        scores.append(score)
    return np.concatenate(scores)


def _spread(
    joined: tuple[I64, I64, F32, F32], fused: F64, graph: Graph, choices: Choices
) -> tuple[F64, F64, F64] | None:
    """The score after spreading, what neighbours and source added to it, and the links' part of that."""
    offsets, rows, _, _ = joined
    own = np.maximum(fused, 0.0)
    reached = spread_activation(offsets, rows, own, *graph, choices.near, choices.far)
    if reached is None:
        return None
    by_chain, by_link, best_three, company = reached
    linked, lonely = np.maximum(by_link, 0.0), company == 1
    neighbor, source = choices.neighbor_weight, choices.source_weight
    lift = neighbor * np.maximum(by_chain, linked) + source * np.where(lonely, 0.0, best_three / company)
    substitute = np.where(lonely, choices.lone_share * own, 0.0)
    stand_in = source * substitute + neighbor * np.where(by_link < 0, substitute, 0.0)
    spread = (fused + lift + stand_in) / (1.0 + neighbor + source)
    return spread, lift, np.where(linked > by_chain, neighbor * linked, 0.0)
