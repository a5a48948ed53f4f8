"""The stages of a recall in NumPy: see `recallite_kernels.composition`. Each writes where its last arguments say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recallite_kernels import composition
from recallite_kernels.arguments import (
    Codes,
    Forest,
    Graph,
    Lists,
    Mentions,
    Postings,
    Records,
    Statements,
    Tokens,
    Weighed,
    WordSlices,
)  # fmt: skip
from recallite_kernels.contract import F32, F64, I32, I64, U8
from recallite_kernels.python_backend import changes, evidence, forest, hamming, lexical, rank, vectors
from recallite_kernels.signals import DAY_US, SIGNALS, RankParameters, decay, weighted_fusion
from recallite_kernels.view import SCAN_ALL, Asking, Plan, View, Workspace


def scan(view: View, plan: Plan, asking: Asking, work: Workspace) -> bool:
    """Write the places of the nearest sketches of each question, ascending; False where a vector is not finite."""
    index = view.vectors
    if index.visible <= SCAN_ALL:
        return bool(np.isfinite(asking.vectors).all())
    sketches = hamming.sketch(asking.vectors)
    if sketches is None:
        return False
    size = min(plan.shortlist, index.visible)
    visible = index.places
    if not len(visible):
        lanes = np.unpackbits(index.masks.view(np.uint8), bitorder="little")
        visible = np.flatnonzero(lanes)
    near = hamming.hamming_shortlist(sketches, index.sketches, visible, True, 0, len(visible), size)
    if near is None:
        return False
    work.held_rows[:, :size] = np.sort(near[0], axis=1)
    work.counts[:] = size
    return True


def find_row(rows: NDArray[np.integer], start: int, end: int, row: int) -> int:
    """The place of `row` in rows[start:end], which ascend, or `end`."""
    place = int(start + rows[start:end].searchsorted(row))
    return place if place < end and rows[place] == row else int(end)


def allowed_rows(rows: I32, start: int, stop: int, mask: U8) -> int:
    """The number of rows[start:stop] that have a mask that is not 0."""
    return int(np.count_nonzero(mask[rows[start:stop]]))


def best_by_words(view: View, postings: Postings, work: Workspace) -> int:
    """Write the rows with the best BM25; how many, -1 where a score is not finite."""
    k = len(work.word_rows)
    work.scratch[:] = 0  # the other backend leaves scores there
    best = lexical.bm25_top_k(postings, view.graph.mask, work.scratch, k, True) if k else None
    if best is None:
        return -1 if k else 0
    work.word_rows[:], work.word_scores[:] = best[0][0], best[1][0]
    return int(best[2][0])


@np.errstate(all="ignore")
def best_by_vector(view: View, plan: Plan, query: F32, places: I64, work: Workspace) -> int:
    """Write the rows of the nearest of these places, the first measured exactly; how many, or what is wrong."""
    index, wanted = view.vectors, len(work.near_rows)
    cosines = vectors.dots_int8(query, index.codes, index.scales, places)
    if not np.isfinite(cosines).all():
        return composition.AT_VECTORS
    cosines = np.clip(cosines, -1, 1)
    if len(index.owners):
        order = np.lexsort((places, -cosines))
        rows = index.owners[places[order]]
        order = order[np.sort(np.unique(rows, return_index=True)[1])]
        if len(order) < min(wanted, plan.wanted) and len(places) < index.visible:
            return composition.NARROW
        order = order[:wanted]
        rows, cosines = index.owners[places[order]], cosines[order]
    else:
        order = vectors.best(cosines, wanted)
        rows, cosines = places[order], cosines[order]
    count = len(rows)
    measured = count if plan.exact else min(plan.measured, count)
    work.near_rows[:count], work.near_cosines[:count] = rows, cosines
    if measured:
        codes = Codes(
            query, np.inf, index.first_place, index.parts, index.codes, index.scales, index.residuals
        )  # fmt: skip
        exact = np.full(measured, np.nan, np.float32)
        vectors.fill_cosines(codes, rows[:measured], exact)
        work.near_cosines[:measured] = exact
        if not plan.exact:
            work.ceiling[0] = exact.min()
            np.minimum(cosines[measured:], exact.min(), out=work.near_cosines[measured:count])
    return int(count)


def rank_candidates(
    lists: Lists, codes: Codes, postings: Postings, graph: Graph, records: Records, parameters: RankParameters,
    rerank: F64, mentions: Mentions, tokens: Tokens, work: Workspace, rows: I64, order: I64, ranked: F64, table: F64,
) -> int:  # fmt: skip
    """Write the candidates of the lists, their signals and their order; returns how many, or why not."""
    ranked_rows = rank.rank_candidates(lists, codes, postings, graph, records, parameters, rerank, mentions, tokens)
    if ranked_rows is None or not np.isfinite(ranked_rows[1]).all():
        return composition.AT_RANK
    m = len(ranked_rows[0])
    if m > len(rows):
        work.needed[0] = m + work.beside.shape[1]
        return composition.ROOM
    rows[:m], table[:, :m], order[:m] = ranked_rows
    return m


def rank_by_forest(
    signals: F64, m: int, rows: I64, order: I64, words: WordSlices, trees: Forest, parameters: RankParameters,
    depth: int, features: F64, outputs: F64, met: U8, again: I64, scores: F64,
) -> None:  # fmt: skip
    """Put the best in the order of the forest; without trees write their features alone."""
    ranked = forest.rank_by_forest(signals[:, :m], rows[:m], order[:m], words, trees, parameters, depth)
    features[:, : ranked[0].shape[1]] = ranked[0]
    if len(trees.nodes):
        order[:m], signals[SIGNALS.score, :m] = ranked[2], ranked[3]


def order_changes(statements: Statements, moment: int, former: int, placed: U8, order: I64, leads: I64) -> None:
    """Write the order of the best, and what replaced each."""
    order[:], leads[:] = changes.order_changes(statements, int(moment), int(former))


def assess(
    signals: F64, m: int, weighed: Weighed, words: WordSlices, weights: F64, word_weights: F64,
    parameters: RankParameters, evidences: F64, confidence: F64, reasons: I64, contained: U8,
) -> None:  # fmt: skip
    """Write the evidence, the confidence and the reasons of some rows, and the words that each contains."""
    count = len(weighed.rows)
    weighed = weighed._replace(signals=weighed.signals[:, :count])
    assessed = evidence.assess(signals[:, :m], weighed, words, weights, word_weights, parameters)
    evidences[:, :count], confidence[:count], reasons[:count] = assessed[:3]
    contained[:count, : len(words.idf)] = assessed[3][: len(contained)]


def nearest_standing(view: View, query: F32, least: float, work: Workspace) -> int:
    """Write the standing rows nearest to a question whose cosine is not below `least`; how many."""
    index = view.vectors
    codes = Codes(
        query, np.inf, index.first_place, index.parts, index.codes, index.scales, index.residuals[:0]
    )  # fmt: skip
    rows = view.standing[vectors.parts_of(codes, view.standing) > 0]
    cosines = vectors.dots_int8(query, index.codes, index.scales, vectors.first_of(codes, rows))
    best = vectors.best(cosines, len(work.near_standing))
    near = rows[best[cosines[best] >= least]]
    work.near_standing[: len(near)] = near
    return len(near)


def rows_within_reach(
    view: View, plan: Plan, asking: Asking, query: int, slices: int, m: int, floor: float, best_bm25: float,
    work: Workspace,
) -> int:  # fmt: skip
    """Write the visible rows beyond the first `m` of `known_rows` whose weighted sum reaches `floor`; how many."""
    p, records, codes = plan.parameters, view.records, composition.codes_of(view, plan, asking, query, work)
    allowed = np.ones(len(records.keys), np.bool_) if not view.graph.mask.size else view.graph.mask > 0
    allowed[work.known_rows[:m]] = False
    rows = np.flatnonzero(allowed)
    ages = (float(p.clock) - records.created_at[rows].astype(np.float64)) / DAY_US
    rest = p.recency_weight * decay(ages, p.half_life_days, p.decay_floor, p.exponential)
    rest += p.importance_weight * records.importance[rows].astype(np.float64)
    open_rows = rest + p.semantic_weight >= floor - composition.SLACK
    rows, rest = rows[open_rows], rest[open_rows]
    cosines, bm25 = np.full((2, len(rows)), np.nan, np.float32)
    has_vector, shares = np.zeros((2, len(rows)))
    if len(codes.query):
        vectors.fill_cosines(codes._replace(ceiling=np.inf), rows, cosines)
        has_vector = (vectors.parts_of(codes, rows) != 0).astype(np.float64)
    cosines[has_vector == 0] = 0
    if best_bm25 > 0:
        lexical.fill_bm25(composition.postings_of(view, plan, slices, work), rows, bm25)
        shares = bm25.astype(np.float64) / best_bm25
    similarity = weighted_fusion(cosines.astype(np.float64), shares, has_vector, p)
    total = rest + p.semantic_weight * np.clip(similarity, 0.0, 1.0)
    reached = rows[(total >= floor - composition.SLACK) & ((has_vector > 0) | (similarity > 0))]
    fitting = reached[: len(work.known_rows) - m]
    work.known_rows[m : m + len(fitting)] = fitting
    return len(reached)


def order_by_score(scores: F64, keys: I64, rows: I64, order: I64, spare: I64) -> None:
    """Write places by descending score, ties by ascending key of the row."""
    order[:] = rank.order_by_score(scores, keys[rows[: len(scores)]])


def sort_rows(rows: I64, spare: I64, counts: I64, n: int) -> None:
    """Sort rows below n."""
    rows.sort()


def copied(values: F64, out: F64, count: int) -> None:
    """Copy the first values."""
    out[:count] = values[:count]


def any_above(values: F64, count: int) -> bool:
    """Whether any of the first values is not 0."""
    return bool(values[:count].any())


def sources_of(sources: I32, rows: I64, count: int) -> int:
    """The number of sources of some rows; a row without one is its own."""
    row_sources = sources[rows[:count]]
    return len({*row_sources[row_sources >= 0].tolist()}) + int((row_sources < 0).sum())


recall = np.errstate(all="ignore")(composition.composed(globals(), lambda function: function))
