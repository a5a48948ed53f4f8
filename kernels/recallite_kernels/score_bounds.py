"""Which records may still enter the best by a weighted sum of similarity, recency and importance.

The threshold algorithm of Fagin, Lotem and Naor (PODS 2001): recency and importance are known of every record without
reading its vector, so only those are measured whose sum with the greatest similarity that they can have reaches the
score of the last of the best so far.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from recallite_kernels import contract, dispatch
from recallite_kernels.arguments import NO_SKETCHES, Codes, Records, Sketches
from recallite_kernels.contract import F64, I64, KernelError, Mask, array
from recallite_kernels.groups import check_group
from recallite_kernels.rank import check_codes, check_parameters, check_places, check_records
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

    Nothing spreads. A row whose importance is not finite is left out. Returns offsets int64 (q + 1,) and rows int64,
    ascending within a query.
    """
    n = check_group(records, Records).created_at.shape[0]
    check_records(records, n)
    queries = array("floors", floors, contract.f64, None).shape[0]
    contract.indices("rows", rows, n)
    contract.offsets("offsets", offsets, rows.shape[0], queries)
    for start, stop in pairwise(offsets.tolist()):
        own = rows[start:stop]
        if (own[1:] <= own[:-1]).any():
            raise KernelError("rows: out of order; wanted strictly ascending rows of a query")
    array("word_ceilings", word_ceilings, contract.f64, queries)
    contract.finite("word_ceilings", word_ceilings)
    if queries and not 0 <= float(word_ceilings.min()) <= float(word_ceilings.max()) <= 1:
        raise KernelError("word_ceilings: out of range; wanted shares from 0 to 1")
    if np.isnan(floors).any():
        raise KernelError("floors: holds NaN; wanted numbers, or -inf for every row")
    parameters = check_parameters(parameters)
    if parameters.rrf_k >= 0 or not parameters.weighted_sum:
        raise KernelError("parameters: of ranks or of a product; wanted a sum of weighted signals")
    if codes is not None:
        check_codes(codes, queries, n)
        check_places(codes.first_place, codes.parts, codes.codes.shape[0])
    if sketches is not None:
        if codes is None:
            raise KernelError("sketches: without codes; wanted the vectors that they are of")
        _check_sketches(check_group(sketches, Sketches), queries, codes.codes.shape[0])
    allowed = contract.mask(mask, n)
    found = dispatch.active.score_bound_candidates(
        offsets, rows, floors, word_ceilings, codes, sketches or NO_SKETCHES, allowed, records, parameters
    )
    assert found is not None  # every place is there
    return found


def _check_sketches(sketches: Sketches, queries: int, places: int) -> None:
    words = array("sketched queries", sketches.queries, contract.u64, queries, None).shape[1]
    array("sketches", sketches.sketches, contract.u64, -(-places // contract.LANES), words, contract.LANES)
    check_limits(sketches.limits)


def check_limits(limits: I64) -> None:
    """Refuse distances that are not those of ever greater cosines."""
    if limits.shape[0] < 2 or (limits[1:] > limits[:-1]).any():
        raise KernelError("limits: wanted one for each step of the cosine from 0 to 1, none above the one before it")
