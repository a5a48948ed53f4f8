"""The threshold algorithm, JIT: a row passes from the cheapest bound to the dearest, and most fail at the first.

In blocks, a bound at a time: which rows pass cannot be predicted, and a step that keeps them without a branch takes
half the time of one with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recollect_kernels.arguments import Choices, Codes, Records, Sketches
from recollect_kernels.contract import F64, I64, U8
from recollect_kernels.numba_backend import _jit
from recollect_kernels.numba_backend._jit import exact, kernel
from recollect_kernels.numba_backend.hamming import popcount
from recollect_kernels.numba_backend.rank import DAY_US, NO_CODES, NO_SCALES
from recollect_kernels.numba_backend.ranking import decayed
from recollect_kernels.numba_backend.vectors import dot_int8

# The decay is looked up: of so many steps of 1/64 of a half-life, each as what it is at its younger end.
STEPS, STEPS_A_LIFE = 2048, 64.0
BLOCK_ROWS = 1024


def contenders(
    offsets: I64, rows: I64, floors: F64, word_ceilings: F64, codes: Codes | None, sketches: Sketches, mask: U8,
    records: Records, choices: Choices,
) -> tuple[I64, I64] | None:  # fmt: skip
    n = len(records.created_at)
    vector_weight = choices.vector_weight / (choices.vector_weight + choices.keyword_weight)
    out, decays = np.empty(n, np.int64), np.empty(STEPS)
    rests, kept = np.empty(BLOCK_ROWS), np.empty((2, BLOCK_ROWS), np.int64)
    found, ends = [], [0]
    for query, floor in enumerate(floors.tolist()):
        held = rows[offsets[query] : offsets[query + 1]]
        if codes is None:
            measured: Any = NO_SCALES, records.created_at[:0], np.empty(0, np.int32), NO_CODES, NO_SCALES
        else:
            measured = codes.queries[query], codes.first_place, codes.parts, codes.codes, codes.scales
        asked = sketches.queries[query] if len(sketches.limits) else sketches.queries.ravel()
        count = _contenders.call(
            held, floor, float(word_ceilings[query]), *measured, asked, sketches.sketches, sketches.limits, mask,
            records.created_at, records.importance, vector_weight, choices.stand_in, choices.semantic_weight,
            choices.recency_weight, choices.importance_weight, choices.clock, choices.half_life_days,
            choices.decay_floor, choices.exponential, decays, rests, kept, out,
        )  # fmt: skip
        if count < 0:
            return None
        found.append(out[:count].copy())
        ends.append(ends[-1] + count)
    return np.array(ends, np.int64), np.concatenate([out[:0], *found])


@exact
def sketch_distance(asked: Any, sketches: Any, place: Any) -> Any:
    """In bits; six words, of 384 dimensions, are written out."""
    if asked.shape[0] == 6:
        distance = popcount(asked[0] ^ sketches[place, 0]) + popcount(asked[1] ^ sketches[place, 1])
        distance += popcount(asked[2] ^ sketches[place, 2]) + popcount(asked[3] ^ sketches[place, 3])
        return np.int64(distance + popcount(asked[4] ^ sketches[place, 4]) + popcount(asked[5] ^ sketches[place, 5]))
    distance = np.uint64(0)
    for word in range(np.uintp(asked.shape[0])):
        distance += popcount(asked[word] ^ sketches[place, word])
    return np.int64(distance)


@kernel(
    _jit.I64_1, _jit.F64, _jit.F64, _jit.F32_1, _jit.I64_1, _jit.I32_1, _jit.I8_2, _jit.F32_1,
    _jit.U64_1, _jit.U64_2, _jit.I64_1, _jit.U8_1, _jit.I64_1, _jit.F32_1,
    _jit.F64, _jit.I64, _jit.F64, _jit.F64, _jit.F64, _jit.I64, _jit.F64, _jit.F64, _jit.I64,
    _jit.OUT_F64, _jit.OUT_F64, _jit.OUT_I64_2, _jit.OUT_I64, returns=_jit.I64,
)  # fmt: skip
def _contenders(
    held: Any, floor: Any, word_ceiling: Any, query: Any, first_place: Any, parts: Any, codes: Any, scales: Any,
    asked: Any, sketches: Any, limits: Any, mask: Any, created_at: Any, importance: Any,
    vector_weight: Any, stand_in: Any, semantic: Any, recency: Any, weighty: Any, clock: Any, half_life_days: Any,
    decay_floor: Any, exponential: Any, decays: Any, rests: Any, kept: Any, out: Any,
) -> Any:  # fmt: skip
    """Returns how many were found, -1 where a place is out of range."""
    for step in range(decays.shape[0]):
        age = step / STEPS_A_LIFE * half_life_days if half_life_days < np.inf else 0.0
        decays[step] = decayed(age, half_life_days, decay_floor, exponential)
    by_vector = query.shape[0] > 0
    reach = 0.0
    for j in range(query.shape[0]):
        reach += 0.5 * abs(np.float64(query[j]))
    words = (1.0 - vector_weight) * word_ceiling
    alone = word_ceiling if stand_in == 1 else words
    a_step = STEPS_A_LIFE / (half_life_days * DAY_US)
    last = np.float64(decays.shape[0] - 1)
    least_rest = floor - semantic - 1e-9
    # Multiplied instead of divided, which changes the last bit; the slack of 1e-9 is far more.
    a_similarity = 1.0 / semantic if semantic > 0 else 0.0
    a_cosine = 1.0 / vector_weight if vector_weight > 0 else 0.0
    steps = limits.shape[0] - 1
    count, next_held = 0, 0
    for first in range(0, created_at.shape[0], rests.shape[0]):
        size = min(rests.shape[0], created_at.shape[0] - first)
        open_rows = np.uintp(0)
        for i in range(np.uintp(size)):
            row = np.uintp(first) + i
            age = max(np.float64(clock - created_at[row]), 0.0) * a_step
            rest = recency * decays[np.uintp(np.int32(min(age, last)))] + weighty * np.float64(importance[row])
            rests[i] = rest
            kept[0, open_rows] = np.int64(i)
            open_rows += np.uintp(rest >= least_rest)
        near = np.uintp(0)
        for i in range(open_rows):
            at = np.uintp(kept[0, i])
            row = np.uintp(first) + at
            if mask.shape[0] > 0 and mask[row] == 0:
                continue
            similarity = (floor - rests[at]) * a_similarity - 1e-9
            kept[1, near] = np.int64(at)
            if not by_vector or parts[row] == 0:
                near += np.uintp(alone > 0 and similarity <= alone)
                continue
            start, some = first_place[row], np.int64(parts[row])
            if some < 0 or start < 0 or start > codes.shape[0] - some:
                return -1
            needed = (similarity - words) * a_cosine
            if similarity <= words or (steps <= 0 and vector_weight > 0):
                near += np.uintp(1)
            elif steps > 0 and vector_weight > 0 and needed <= 1.0 + 1e-5:
                limit = limits[np.uintp(np.int32(min(needed, 1.0) * steps))]
                distance = sketch_distance(asked, sketches, np.uintp(start))
                for place in range(np.uintp(start + 1), np.uintp(start + some)):
                    distance = min(distance, sketch_distance(asked, sketches, place))
                near += np.uintp(distance <= limit)
        for i in range(near):
            at = np.uintp(kept[1, i])
            row = np.uintp(first) + at
            while next_held < held.shape[0] and held[next_held] < np.int64(row):
                next_held += 1
            if next_held < held.shape[0] and held[next_held] == np.int64(row):
                continue
            similarity = (floor - rests[at]) * a_similarity - 1e-9
            reaches = not by_vector or parts[row] == 0 or similarity <= words
            if not reaches:
                needed = (similarity - words) * a_cosine
                for place in range(np.uintp(first_place[row]), np.uintp(first_place[row] + parts[row])):
                    scale = np.float64(scales[place])
                    cosine = np.float64(dot_int8(query, codes, place)) * scale
                    reaches = reaches or not cosine + reach * scale + 1e-5 < needed
            if reaches:
                out[count] = np.int64(row)
                count += 1
    return count
