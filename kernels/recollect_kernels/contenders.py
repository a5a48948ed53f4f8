"""Which records may still enter the best by a weighted sum of similarity, recency and importance.

The threshold algorithm of Fagin, Lotem and Naor (PODS 2001): recency and importance are known of every record without
a look at its vector, so only those are measured whose sum with the greatest similarity that they can have reaches the
score of the last that is held.
"""

from __future__ import annotations

import numpy as np

from recollect_kernels import contract, dispatch
from recollect_kernels.arguments import Choices, Codes, Records, Sketches
from recollect_kernels.contract import F64, I64, Mask, array
from recollect_kernels.errors import KernelError
from recollect_kernels.rank import normalised

NO_SKETCHES = Sketches(np.empty((0, 0), np.uint64), np.empty((0, 0), np.uint64), np.empty(0, np.int64))


def contenders(
    offsets: I64, rows: I64, floors: F64, word_ceilings: F64, codes: Codes | None, sketches: Sketches | None,
    mask: Mask | None, records: Records, choices: Choices,
) -> tuple[I64, I64]:  # fmt: skip
    """The allowed rows beside those held that may score at least `floors`, float64 (q,), by the sum of `choices`.

    Held are, of query i, rows[offsets[i]:offsets[i + 1]], ascending. A row with codes may have its cosine from them and
    half a step of each code more, and BM25 up to word_ceilings (q,), a share of the query's maximum in [0, 1]; one
    without has its BM25 alone, and is no contender where that is 0. With `sketches` only those rows have their codes
    read whose sketch is not too far away for the cosine that they need.

    Nothing spreads. Returns offsets int64 (q + 1,) and rows int64, ascending within a query.
    """
    n = records.created_at.shape[0]
    queries = array("floors", floors, contract.f64, None).shape[0]
    contract.offsets("offsets", offsets, rows.shape[0], queries)
    contract.indices("rows", rows, n)
    array("word_ceilings", word_ceilings, contract.f64, queries)
    contract.finite("word_ceilings", word_ceilings)
    array("created_at", records.created_at, contract.i64, n)
    array("importance", records.importance, contract.f32, n)
    if np.isnan(floors).any():
        raise KernelError("floors: holds NaN; wanted numbers, or -inf for every row")
    if choices.rrf_k >= 0 or not choices.additive:
        raise KernelError("choices: of ranks or of a product; wanted a sum of weighted signals")
    if codes is not None:
        dimension = codes.queries.shape[1]
        array("queries", codes.queries, contract.f32, queries, dimension)
        contract.finite("queries", codes.queries)
        array("codes", codes.codes, contract.i8, None, dimension)
        array("scales", codes.scales, contract.f32, codes.codes.shape[0])
        array("first_place", codes.first_place, contract.i64, n)
        array("parts", codes.parts, contract.i32, n)
        if sketches is not None:
            array("sketches", sketches.sketches, contract.u64, codes.codes.shape[0], None)
            array("sketched queries", sketches.queries, contract.u64, queries, sketches.sketches.shape[1])
            array("limits", sketches.limits, contract.i64, None)
            if sketches.limits.shape[0] < 2:
                raise KernelError("limits: fewer than two; wanted one for each step of the cosine from 0 to 1")
    checked = contract.mask(mask, n)
    found = dispatch.active.contenders(
        offsets, rows, floors, word_ceilings, codes, sketches or NO_SKETCHES, checked, records, normalised(choices)
    )
    if found is None:
        raise KernelError("first_place, parts: name a place that is not there")
    return found
