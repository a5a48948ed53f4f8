"""Which records may still enter the best by a weighted sum of similarity, recency and importance.

The threshold algorithm of Fagin, Lotem and Naor (PODS 2001): recency and importance are known of every record without
reading its vector, so only those are measured whose sum with the greatest similarity that they can have reaches the
score of the last of the best so far.
"""

from __future__ import annotations

import numpy as np

from recallite_kernels import contract, dispatch
from recallite_kernels.arguments import NO_SKETCHES, Codes, Records, Sketches
from recallite_kernels.contract import F64, I64, KernelError, Mask, array
from recallite_kernels.rank import check_codes, check_parameters
from recallite_kernels.signals import RankParameters


def score_bound_candidates(
    offsets: I64, rows: I64, floors: F64, word_ceilings: F64, codes: Codes | None, sketches: Sketches | None,
    mask: Mask | None, records: Records, parameters: RankParameters,
) -> tuple[I64, I64]:  # fmt: skip
    """The allowed rows, other than the known ones, that may score at least `floors`, float64 (q,), by a weighted sum.

    The known rows of query i are rows[offsets[i]:offsets[i + 1]], ascending. A row with codes may have the cosine that
    they give plus half a step of each code, and BM25 up to word_ceilings (q,), a share of the query's maximum in
    [0, 1]; one without has BM25 alone, and is left out where that is 0. With `sketches` codes are read only of rows
    whose sketch is near enough for the cosine that they need.

    Nothing spreads. A row whose importance is NaN is left out. Returns offsets int64 (q + 1,) and rows int64,
    ascending within a query.
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
    parameters = check_parameters(parameters)
    if parameters.rrf_k >= 0 or not parameters.weighted_sum:
        raise KernelError("parameters: of ranks or of a product; wanted a sum of weighted signals")
    if codes is not None:
        check_codes(codes, queries, n)
        if sketches is not None:
            words = array("sketched queries", sketches.queries, contract.u64, queries, None).shape[1]
            blocks = -(-codes.codes.shape[0] // contract.LANES)
            array("sketches", sketches.sketches, contract.u64, blocks, words, contract.LANES)
            array("limits", sketches.limits, contract.i64, None)
            if sketches.limits.shape[0] < 2:
                raise KernelError("limits: fewer than two; wanted one for each step of the cosine from 0 to 1")
    checked = contract.mask(mask, n)
    found = dispatch.active.score_bound_candidates(
        offsets, rows, floors, word_ceilings, codes, sketches or NO_SKETCHES, checked, records, parameters
    )
    if found is None:
        raise KernelError("first_place, parts: name a place that is not there")
    return found
