"""The stages of a recall, JIT, and the kernel that is composed of them: see `recallite_kernels.composition`.

Most stages are the kernels of the other modules, compiled into this one. Nothing is allocated: with arrays of its own
Numba counted references in 1,400 places, which took a quarter to a half more time, and twice as long to compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recallite_kernels import composition
from recallite_kernels.arguments import RESIDUAL_STEPS
from recallite_kernels.composition import AT_RANK, AT_VECTORS, NARROW, ROOM, SLACK
from recallite_kernels.numba_backend import _jit, hamming, lexical
from recallite_kernels.numba_backend import _sort as sorts
from recallite_kernels.numba_backend import rank as ranking
from recallite_kernels.numba_backend._jit import exact, helper, intrinsic, stage
from recallite_kernels.numba_backend._prefetch import prefetch, prefetch_row
from recallite_kernels.numba_backend.changes import order_changes as order_changes
from recallite_kernels.numba_backend.evidence import assess as assess
from recallite_kernels.numba_backend.forest import rank_by_forest as rank_by_forest
from recallite_kernels.numba_backend.vectors import AHEAD, GREATEST, dot_int8, first_of, parts_of
from recallite_kernels.signals import DAY_US, decay, weighted_fusion
from recallite_kernels.view import (
    BINS,
    SCAN_ALL,
    Asking,
    Hits,
    Plan,
    View,
    Workspace,
)  # fmt: skip

best_of_words, find_row, sketch = lexical.best_of_words, lexical.find_row, stage(hamming._sketch)
referred = intrinsic("referred")
HALF_BINS = np.float32(BINS / 2 - 1)


@exact
def scan(view: Any, plan: Any, asking: Any, work: Any) -> Any:
    """Write the places of the nearest sketches of each question, ascending; False where a vector is not finite."""
    vectors, queries = view.vectors, asking.vectors.shape[0]
    sketches, size = work.sketch, min(plan.shortlist, vectors.visible)
    if sketch(asking.vectors, sketches) == 0:
        return False
    if vectors.visible <= SCAN_ALL:
        return True
    blocks, greatest = vectors.masks.shape[0], 64 * sketches.shape[1] + 1
    for q in range(queries):
        work.limits[q], work.counts[q] = greatest, 0
    if vectors.places.shape[0]:
        hamming.scan_rows(
            sketches, vectors.sketches, vectors.places, 0, vectors.places.shape[0], size, work.held_rows,
            work.held_distances, work.limits, work.counts, work.histogram,
        )  # fmt: skip
    else:
        for q in range(queries if blocks >= 4 * hamming.SAMPLE and vectors.visible >= 4 * size else 0):
            work.limits[q] = hamming.guess_limit(
                sketches, q, vectors.sketches, 0, vectors.masks, vectors.visible, size, work.histogram
            )
        # If the guess was too low, that question alone is scanned again.
        for _ in range(2):
            hamming.scan_blocks(
                sketches, vectors.sketches, 0, vectors.masks, size, work.held_rows, work.held_distances, work.limits,
                work.counts, work.histogram, work.near_blocks,
            )  # fmt: skip
            enough = True
            for q in range(queries):
                enough &= work.counts[q] >= size
                work.limits[q] = 0 if work.counts[q] >= size else greatest  # nothing is nearer than 0
                work.counts[q] = work.counts[q] if work.counts[q] >= size else 0
            if enough:
                break
    for q in range(queries):
        if work.counts[q] > size:
            hamming.keep_nearest(work.held_rows[q], work.held_distances[q], work.counts[q], size, work.histogram)
            work.counts[q] = size
    return True


@exact
def allowed_rows(rows: Any, start: Any, stop: Any, mask: Any) -> Any:
    """The number of rows[start:stop] that have a mask that is not 0."""
    count = 0
    for at in range(np.uintp(start), np.uintp(stop)):
        count += mask[np.uintp(rows[at])] != 0
    return count


@exact
def best_by_words(view: Any, postings: Any, work: Any) -> Any:
    """Write the rows with the best BM25; how many, -1 where a score is not finite. That of every row is kept: the
    neighbours of the best are measured by it.
    """
    work.scratch[:] = np.float32(0.0)
    work.sizes[1] = work.scratch.shape[0]
    return best_of_words(postings, 0, view.graph.mask, work.scratch, work.word_scores, work.word_rows)


# All cosines first, then a counting sort of those that may be among the nearest: a heap of 200 took twice as long.
@helper
def best_by_vector(view: Any, plan: Any, query: Any, places: Any, work: Any) -> Any:
    """Write the rows of the nearest of these places, the first measured exactly; how many, or what is wrong."""
    vectors, rows, nearest = view.vectors, work.near_rows, work.near_cosines
    many, parted = np.uintp(places.shape[0]), vectors.owners.shape[0] > 0
    if not measure_places(query, vectors, places, work.cosines):
        return AT_VECTORS
    wanted = min(rows.shape[0], places.shape[0])
    if parted:
        work.scratch[:] = np.float32(0.0)
    size = sort_nearest(places, many, places.shape[0] if parted else wanted, work)
    count = 0
    for rank in range(size):
        at = work.sorted[rank]
        row = vectors.owners[places[at]] if parted else places[at]
        if count == rows.shape[0]:
            break
        if parted:
            if work.scratch[row] != 0:
                continue
            work.scratch[row] = np.float32(1.0)
        rows[count], nearest[count] = row, work.cosines[at]
        count += 1
    if parted and count < rows.shape[0] and places.shape[0] < vectors.visible:
        return NARROW
    measured, ceiling = count if plan.exact == 1 else min(plan.measured, count), np.float32(np.inf)
    for rank in range(measured):
        nearest[rank] = exact_cosine(query, vectors, rows[rank])
        ceiling = min(ceiling, nearest[rank])
    if plan.exact == 0:
        # int8 may overstate: what was not among the first does not pass them afterwards.
        work.ceiling[0] = ceiling
        for rank in range(measured, count):
            nearest[rank] = min(nearest[rank], ceiling)
    return count


@helper
def measure_places(query: Any, vectors: Any, places: Any, cosines: Any) -> Any:
    """Write the cosine of each place from its int8 code; False where one is not finite."""
    codes, scales, many, finite = vectors.codes, vectors.scales, np.uintp(places.shape[0]), True
    for at in range(many):
        if at + np.uintp(AHEAD) < many:
            prefetch_row(codes, places[at + np.uintp(AHEAD)])
            prefetch(scales, np.uintp(places[at + np.uintp(AHEAD)]))
        place = np.uintp(places[at])
        cosine = dot_int8(query, codes, place) * scales[place]
        finite &= abs(cosine) <= GREATEST
        cosines[at] = min(np.float32(1.0), max(np.float32(-1.0), cosine))
    return finite


@helper
def sort_nearest(places: Any, many: Any, wanted: Any, work: Any) -> Any:
    """Write the places' numbers to `sorted`, best cosine first, ties by place, at least the `wanted` best; how many."""
    cosines, bins, order, counts = work.cosines, work.bins, work.sorted, work.bin_counts
    counts[:] = 0
    for at in range(many):
        bins[at] = np.int64((np.float32(1.0) - cosines[at]) * HALF_BINS)
        counts[np.uintp(bins[at])] += 1
    below, last, size = 0, 0, 0
    while below + counts[last] < wanted:
        below += counts[last]
        last += 1
    for bin_ in range(last + 1):
        counts[bin_], size = size, size + counts[bin_]
    for at in range(many):
        if bins[at] <= last:
            order[np.uintp(counts[np.uintp(bins[at])])] = np.int64(at)
            counts[np.uintp(bins[at])] += 1
    for rank in range(size):
        one, place = order[rank], rank
        while place > 0:
            other = order[place - 1]
            if cosines[other] > cosines[one] or (cosines[other] == cosines[one] and places[other] < places[one]):
                break
            order[place] = other
            place -= 1
        order[place] = one
    return size


@helper
def exact_cosine(query: Any, vectors: Any, row: Any) -> Any:
    """The cosine of a row's best vector from codes and residuals; 0 without one."""
    parts, best = parts_of(vectors, row), np.float32(-1.0)
    if parts == 0:
        return np.float32(0.0)
    first = first_of(vectors, row)
    for place in range(np.uintp(first), np.uintp(first + parts)):
        score = dot_int8(query, vectors.codes, place) * vectors.scales[place]
        score += dot_int8(query, vectors.residuals, place) * vectors.scales[place] / np.float32(RESIDUAL_STEPS)
        best = max(best, min(np.float32(1.0), score))
    return best


@exact
def rank_candidates(
    lists: Any, codes: Any, postings: Any, graph: Any, records: Any, parameters: Any, rerank: Any, mentions: Any,
    tokens: Any, work: Any, rows: Any, order: Any, ranked: Any, table: Any,
) -> Any:  # fmt: skip
    """Write the candidates of the lists, their signals and their order; returns how many, or why not."""
    scratch = ranking.Scratch(
        work.whole, work.single, work.double, work.slots, work.best_three, work.slot_marks, work.beside, work.bytes,
        work.scratch[: work.sizes[1]],
    )  # fmt: skip
    m, neighbours = ranking.rank_candidates(
        lists, codes, postings, graph, records, parameters, rerank, mentions, tokens, scratch, rows, order, ranked
    )
    if neighbours > work.beside.shape[1]:
        work.needed[0] = neighbours
        return ROOM
    finite = m >= 0
    for i in range(m):
        for signal in range(table.shape[0]):
            table[signal, i] = ranked[i, signal]
            finite &= abs(ranked[i, signal]) < np.inf
    return m if finite else AT_RANK


@helper
def nearest_standing(view: Any, query: Any, least: Any, work: Any) -> Any:
    """Write the standing rows nearest to a question whose cosine is not below `least`; how many."""
    vectors, rows, nearest, count = view.vectors, work.near_standing, work.near_scores, 0
    for place_ in range(view.standing.shape[0]):
        row = view.standing[place_]
        if parts_of(vectors, row) == 0:
            continue
        place = np.uintp(first_of(vectors, row))
        cosine = dot_int8(query, vectors.codes, place) * vectors.scales[place]
        if not cosine >= least or (count == rows.shape[0] and not cosine > nearest[count - 1]):
            continue
        at = min(count, rows.shape[0] - 1)
        while at > 0 and nearest[at - 1] < cosine:
            rows[at], nearest[at] = rows[at - 1], nearest[at - 1]
            at -= 1
        rows[at], nearest[at] = row, cosine
        count = min(count + 1, rows.shape[0])
    return count


@helper
def greatest_cosine(query: Any, vectors: Any, row: Any, error: Any) -> Any:
    """The greatest cosine that the int8 codes of a row's vectors allow."""
    first, parts, best = first_of(vectors, row), parts_of(vectors, row), np.float32(-1.0)
    for place in range(np.uintp(first), np.uintp(first + parts)):
        best = max(best, (dot_int8(query, vectors.codes, place) + error) * vectors.scales[place])
    return best


# 100,000 vectors of 384 dimensions take 8 ms of one processor, and so a million some 80 ms: each code is read once, and
# the residual only of what the error of codes leaves open.
@exact
def rows_within_reach(
    view: Any, plan: Any, asking: Any, query: Any, slices: Any, m: Any, floor: Any, best_bm25: Any, work: Any
) -> Any:  # fmt: skip
    """Write the visible rows beyond the first `m` of `known_rows` whose weighted sum reaches `floor`; how many."""
    p, records, mask, rows = plan.parameters, view.records, view.graph.mask, work.known_rows
    vector, clock, least = asking.vectors[query], np.float64(plan.parameters.clock), floor - SLACK
    error, known, count = np.float32(0.0), 0, 0  # of a dot product, in steps of the codes
    for j in range(vector.shape[0]):
        error += np.float32(0.5) * abs(vector[j])
    for row in range(records.keys.shape[0]):
        if known < m and rows[known] == row:
            known += 1
            continue
        age = (clock - np.float64(records.created_at[row])) / DAY_US
        rest = p.recency_weight * decay(age, p.half_life_days, p.decay_floor, p.exponential)
        rest += p.importance_weight * np.float64(records.importance[row])
        if (mask.shape[0] > 0 and mask[row] == 0) or not rest + p.semantic_weight >= least:
            continue
        parts = parts_of(view.vectors, row) if plan.by_vector == 1 else 0
        has_vector, cosine = (1.0 if parts > 0 else 0.0), 0.0
        share = abs(np.float64(work.scratch[row])) / best_bm25 if best_bm25 > 0 else 0.0
        if parts > 0:
            similarity = weighted_fusion(np.float64(greatest_cosine(vector, view.vectors, row, error)), share, 1.0, p)
            if rest + p.semantic_weight * min(max(similarity, 0.0), 1.0) < least:
                continue
            cosine = np.float64(exact_cosine(vector, view.vectors, row))
        similarity = weighted_fusion(cosine, share, has_vector, p)
        if (parts > 0 or similarity > 0) and rest + p.semantic_weight * min(max(similarity, 0.0), 1.0) >= least:
            if m + count < rows.shape[0]:
                rows[m + count] = row
            count += 1
    return count


@exact
def order_by_score(scores: Any, keys: Any, rows: Any, order: Any, spare: Any) -> None:
    """Write places by descending score, ties by ascending key of the row."""
    sorts.order_by_score(scores, keys, rows, order, spare)


@exact
def sort_rows(rows: Any, spare: Any, counts: Any, n: Any) -> None:
    """Sort rows below n."""
    sorts.sort_whole(rows, spare, counts, 0, n)


@exact
def copied(values: Any, out: Any, count: Any) -> None:
    """Copy the first values."""
    for i in range(count):
        out[i] = values[i]


@exact
def any_above(values: Any, count: Any) -> Any:
    """Whether any of the first values is not 0."""
    any_value = False
    for i in range(count):
        any_value |= values[i] != 0.0
    return any_value


@exact
def sources_of(sources: Any, rows: Any, count: Any) -> Any:
    """The number of sources of some rows; a row without one is its own."""
    number = 0
    for i in range(count):
        alone = True
        for before in range(i if sources[rows[i]] >= 0 else 0):
            alone = alone and sources[rows[before]] != sources[rows[i]]
        number += alone
    return number


_composed = exact(composition.composed(globals(), exact))


@_jit.kernel(*map(_jit.type_of, (View, Plan, Asking, Workspace, Hits)), returns=_jit.I64)
def _recall(view: Any, plan: Any, asking: Any, work: Any, hits: Any) -> Any:
    return _composed(referred(view), referred(plan), referred(asking), referred(work), referred(hits))


def recall(view: View, plan: Plan, asking: Asking, work: Workspace, hits: Hits) -> int:
    status: int = _recall.call(view, plan, asking, work, hits)
    return status
