"""The threshold algorithm, JIT: the cheapest bound first, since most rows fail it.

In blocks, a bound at a time: which rows pass cannot be predicted, and a step that keeps them without a branch takes
half the time of one with it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from recallite_kernels.arguments import NO_VECTORS, Codes, Records, Sketches
from recallite_kernels.contract import F32, F64, I64, LANES, U8
from recallite_kernels.numba_backend import _jit
from recallite_kernels.numba_backend._jit import exact, helper, kernel
from recallite_kernels.numba_backend._prefetch import prefetch, prefetch_row
from recallite_kernels.numba_backend.hamming import mark_near, popcount, sketch_distance
from recallite_kernels.numba_backend.vectors import AHEAD, dot_int8, first_of, parts_of
from recallite_kernels.signals import DAY_US, RankParameters, decay

# The decay is looked up in steps of 1/64 of a half-life; each step has the value of its younger end.
STEPS, STEPS_A_LIFE = 2048, 64.0
BLOCK_ROWS = 1024
SLACK, COSINE_SLACK = 1e-9, 1e-5
NO_QUERY: F32 = np.empty(0, np.float32)


class Bound(NamedTuple):
    """What a row of one query needs.

    floor: the score to reach, finite; words, alone: the greatest share of the similarity that BM25 gives a row with a
    vector, and one without; per_similarity, per_cosine: 1 / weight, 0 for a weight of 0; reach: a cosine's error per
    int8 step.
    """

    floor: float
    words: float
    alone: float
    per_similarity: float
    per_cosine: float
    reach: float


def score_bound_candidates(
    offsets: I64, rows: I64, floors: F64, word_ceilings: F64, codes: Codes | None, sketches: Sketches, mask: U8,
    records: Records, parameters: RankParameters,
) -> tuple[I64, I64] | None:  # fmt: skip
    found, ends = [np.empty(0, np.int64)], [0]
    codes = codes or NO_VECTORS
    blocks = np.empty((2, BLOCK_ROWS), np.int64), np.empty(BLOCK_ROWS), np.empty(STEPS)
    marks = np.empty(BLOCK_ROWS // LANES, np.uint16)
    for query, floor in enumerate(floors.tolist()):
        known = rows[offsets[query] : offsets[query + 1]]
        asked = codes.queries[query] if len(codes.queries) else NO_QUERY
        own = np.empty(len(records.created_at), np.int64)
        count = _score_bound_candidates.call(
            query, asked, known, floor, float(word_ceilings[query]), codes, sketches, mask, records, parameters,
            *blocks, marks, own,
        )  # fmt: skip
        if count < 0:
            return None
        found.append(own[:count].copy())
        ends.append(ends[-1] + count)
    return np.array(ends, np.int64), np.concatenate(found)


@exact
def fill_decays(parameters: Any, decays: Any) -> None:
    """Write the decay at each step of age."""
    endless = parameters.half_life_days == np.inf
    for step in range(STEPS):
        age_days = 0.0 if endless else step / STEPS_A_LIFE * parameters.half_life_days
        decays[step] = decay(age_days, parameters.half_life_days, parameters.decay_floor, parameters.exponential)


@exact
def bound_of(query: Any, floor: Any, word_ceiling: Any, parameters: Any) -> Any:
    """The bound of one query, float32 (d,), empty where it has no vector."""
    vector_weight = parameters.vector_weight / (parameters.vector_weight + parameters.keyword_weight)
    reach = 0.0
    for j in range(query.shape[0]):
        reach += 0.5 * abs(np.float64(query[j]))
    words = (1.0 - vector_weight) * word_ceiling
    # Multiplied instead of divided, which changes the last bit; the slack is far more.
    per_similarity = 1.0 / parameters.semantic_weight if parameters.semantic_weight > 0 else 0.0
    per_cosine = 1.0 / vector_weight if vector_weight > 0 else 0.0
    alone = word_ceiling if parameters.keyword_fallback == 1 else words
    floor = max(min(floor, np.float64(1e300)), np.float64(-1e300))  # times a weight of 0 infinity were NaN
    return Bound(floor, words, alone, per_similarity, per_cosine, reach)


@exact
def rest_of(created_at: Any, importance: Any, parameters: Any, decays: Any) -> Any:
    """What age and importance give a record; not less for a younger or a weightier one, NaN for one without end."""
    a_step = STEPS_A_LIFE / (parameters.half_life_days * DAY_US)
    age = max(np.float64(parameters.clock) - np.float64(created_at), 0.0) * a_step
    step = np.uintp(np.int32(min(age, np.float64(STEPS - 1))))
    weight = np.float64(importance) + (np.float64(importance) - np.float64(importance))
    return parameters.recency_weight * decays[step] + parameters.importance_weight * weight


@exact
def greatest_rest(first: Any, size: Any, records: Any, parameters: Any, decays: Any) -> Any:
    """No row of a block has more from age and importance."""
    created_at, importance = records.created_at, records.importance
    newest, weightiest = created_at[np.uintp(first)], np.float32(-np.inf)
    for row in range(np.uintp(first), np.uintp(first + size)):
        newest = max(newest, created_at[row])
        weightiest = importance[row] if importance[row] > weightiest else weightiest  # NaN is passed over
    return rest_of(newest, weightiest, parameters, decays)


@exact
def rows_by_rest(
    first: Any, size: Any, least_rest: Any, records: Any, parameters: Any, decays: Any, rests: Any, kept: Any
) -> Any:
    """Keep the rows that age and importance alone do not rule out; returns how many."""
    count = np.uintp(0)
    for i in range(np.uintp(size)):
        row = np.uintp(first) + i
        rests[i] = rest_of(records.created_at[row], records.importance[row], parameters, decays)
        kept[count] = np.int64(i)
        count += np.uintp(rests[i] >= least_rest)
    return count


@exact
def rows_by_marks(
    first: Any, marks: Any, least_rest: Any, records: Any, parameters: Any, decays: Any, rests: Any, kept: Any
) -> Any:
    """`rows_by_rest` of the marked rows of a block."""
    count, one = np.uintp(0), np.uint64(1)
    for block in range(np.uintp(marks.shape[0])):
        left = np.uint64(marks[block])
        while left:
            i = block * np.uintp(LANES) + np.uintp(popcount((left & (~left + one)) - one))
            left &= left - one
            row = np.uintp(first) + i
            rests[i] = rest_of(records.created_at[row], records.importance[row], parameters, decays)
            kept[count] = np.int64(i)
            count += np.uintp(rests[i] >= least_rest)
    return count


@helper
def mark_block(query: Any, first: Any, greatest: Any, bound: Any, codes: Any, sketches: Any, marks: Any) -> Any:
    """Mark the rows of a block whose sketch is near enough for what its greatest rest leaves.

    Returns the greatest distance that is marked, or -1 where none is: only where each row has one vector, at the place
    of its own number, can 16 sketches be measured at a time.
    """
    steps = sketches.limits.shape[0] - 1
    if steps <= 0 or not bound.per_cosine > 0 or first + BLOCK_ROWS > codes.codes.shape[0]:
        return -1
    # Twice the slack: neighbours in the table of decays may be in the wrong order by a rounding.
    needed = ((bound.floor - greatest) * bound.per_similarity - 2 * SLACK - bound.words) * bound.per_cosine
    if not needed > 0:
        return -1
    aligned = True
    for i in range(np.uintp(BLOCK_ROWS)):
        row = np.uintp(first) + i
        aligned &= parts_of(codes, row) == 1 and first_of(codes, row) == np.int64(row)
    if not aligned:
        return -1
    limit = np.int64(sketches.limits[np.uintp(np.int32(min(needed, 1.0) * steps))])
    block, beyond = first // LANES, np.uint64(limit + 1)
    mark_near(sketches.queries, query, sketches.sketches, block, block + BLOCK_ROWS // LANES, beyond, marks)
    return limit


@exact
def rows_by_sketch(
    query: Any, first: Any, opened: Any, count: Any, bound: Any, codes: Any, sketches: Any, mask: Any, rests: Any,
    within: Any, kept: Any,
) -> Any:  # fmt: skip
    """Keep the allowed rows that words or sketch do not rule out; returns how many, -1 for a place out of range.

    No row's sketch is farther than `within`, unless that is -1.
    """
    places = codes.codes.shape[0]
    limits, sketched = sketches.limits, sketches.sketches
    by_vector, steps = codes.queries.shape[0] > 0, limits.shape[0] - 1
    near = np.uintp(0)
    for i in range(count):
        at = np.uintp(opened[i])
        row = np.uintp(first) + at
        if mask.shape[0] > 0 and mask[row] == 0:
            continue
        similarity = (bound.floor - rests[at]) * bound.per_similarity - SLACK
        kept[near] = np.int64(at)
        if not by_vector or parts_of(codes, row) == 0:
            near += np.uintp(bound.alone > 0 and similarity <= bound.alone)
            continue
        start, some = first_of(codes, row), parts_of(codes, row)
        if some < 0 or start < 0 or start > places - some:
            return -1
        needed = (similarity - bound.words) * bound.per_cosine
        if similarity <= bound.words or (steps <= 0 and bound.per_cosine > 0):
            near += np.uintp(1)
        elif steps > 0 and bound.per_cosine > 0 and needed <= 1.0 + COSINE_SLACK:
            limit = limits[np.uintp(np.int32(min(needed, 1.0) * steps))]
            if limit == within and within >= 0:
                near += np.uintp(1)
                continue
            distance = sketch_distance(sketches.queries, query, sketched, start)
            for place in range(np.uintp(start + 1), np.uintp(start + some)):
                distance = min(distance, sketch_distance(sketches.queries, query, sketched, place))
            near += np.uintp(np.int64(distance) <= limit)
    return np.int64(near)


# A block per call: a call per row takes half as long again.
@exact
def rows_by_codes(
    query: Any, first: Any, near: Any, bound: Any, codes: Any, rests: Any, known: Any, next_known: Any, found: Any,
    count: Any,
) -> Any:  # fmt: skip
    """Add the rows whose words suffice, or the cosine from their codes plus its error, to `found`.

    Returns how many are found, and how many known rows are passed.
    """
    by_vector = query.shape[0] > 0
    ahead, many = np.uintp(0), np.uintp(near.shape[0])
    for i in range(many):
        while by_vector and ahead < many and ahead < i + np.uintp(AHEAD):
            row = np.uintp(first + near[ahead])
            if parts_of(codes, row):
                prefetch_row(codes.codes, first_of(codes, row))
                prefetch(codes.scales, np.uintp(first_of(codes, row)))
            ahead += np.uintp(1)
        row = np.uintp(first + near[i])
        while next_known < known.shape[0] and known[next_known] < np.int64(row):
            next_known += 1
        if next_known < known.shape[0] and known[next_known] == np.int64(row):
            continue
        similarity = (bound.floor - rests[near[i]]) * bound.per_similarity - SLACK
        reaches = not by_vector or parts_of(codes, row) == 0 or similarity <= bound.words
        if not reaches:
            needed = (similarity - bound.words) * bound.per_cosine
            start = first_of(codes, row)
            for place in range(np.uintp(start), np.uintp(start + parts_of(codes, row))):
                scale = np.float64(codes.scales[place])
                cosine = np.float64(dot_int8(query, codes.codes, place)) * scale
                reaches = reaches or not cosine + bound.reach * scale + COSINE_SLACK < needed
        if reaches:
            found[count] = np.int64(row)
            count += 1
    return count, next_known


@kernel(
    _jit.I64, _jit.F32_1, _jit.I64_1, _jit.F64, _jit.F64, _jit.CODES, _jit.SKETCHES, _jit.U8_1, _jit.RECORDS,
    _jit.PARAMETERS, _jit.OUT_I64_2, _jit.OUT_F64, _jit.OUT_F64, _jit.OUT_U16, _jit.OUT_I64, returns=_jit.I64,
)  # fmt: skip
def _score_bound_candidates(
    query: Any, asked: Any, known: Any, floor: Any, word_ceiling: Any, codes: Any, sketches: Any, mask: Any,
    records: Any, parameters: Any, blocks: Any, rests: Any, decays: Any, marks: Any, found: Any,
) -> Any:  # fmt: skip
    """Write the rows of one query; returns how many, -1 where a place is out of range."""
    bound = bound_of(asked, floor, word_ceiling, parameters)
    fill_decays(parameters, decays)
    opened, near = blocks[0], blocks[1]
    least_rest = bound.floor - parameters.semantic_weight - SLACK
    n, count, next_known = records.created_at.shape[0], 0, 0
    for first in range(0, n, BLOCK_ROWS):
        size = min(BLOCK_ROWS, n - first)
        greatest = greatest_rest(first, size, records, parameters, decays)
        if greatest < least_rest - SLACK:  # NaN where an importance is infinite
            continue
        within = -1
        if size == BLOCK_ROWS and asked.shape[0] > 0:
            within = mark_block(query, first, greatest, bound, codes, sketches, marks)
        if within >= 0:
            left = rows_by_marks(first, marks, least_rest, records, parameters, decays, rests, opened)
        else:
            left = rows_by_rest(first, size, least_rest, records, parameters, decays, rests, opened)
        held = rows_by_sketch(query, first, opened, left, bound, codes, sketches, mask, rests, within, near)
        if held < 0:
            return -1
        count, next_known = rows_by_codes(
            asked, first, near[:held], bound, codes, rests, known, next_known, found, count
        )
    return count
