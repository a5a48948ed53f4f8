"""Candidate kernels: the best by two signals become one list per query, which is widened by neighbours and ordered.

Candidates of all queries stand in flat arrays: query i has those from offsets[i] to offsets[i + 1], int64 (q + 1,),
ascending by row. A signal that is not known yet is NaN. Chains and links are those of `recollect_kernels.graph`.
"""

from __future__ import annotations

from recollect_kernels import contract, dispatch
from recollect_kernels.contract import F32, F64, I32, I64, Mask, array
from recollect_kernels.errors import KernelError


def join_candidates(
    first_rows: I64, first_values: F32, first_counts: I64, second_rows: I64, second_values: F32, second_counts: I64
) -> tuple[I64, I64, F32, F32]:
    """Union of two lists of rows per query, ascending by row.

    first_rows int64 (q, a) with first_values float32 (q, a), of which the first first_counts[i], int64 (q,), count;
    each row once; the second likewise (q, b). Returns offsets int64 (q + 1,), rows int64 (m,), and both signals
    float32 (m,), NaN where a list does not have the row.
    """
    array("first_rows", first_rows, contract.i64, None, None)
    queries, width = first_rows.shape
    array("first_values", first_values, contract.f32, queries, width)
    _counts("first_counts", first_counts, queries, width)
    array("second_rows", second_rows, contract.i64, queries, None)
    array("second_values", second_values, contract.f32, *second_rows.shape)
    _counts("second_counts", second_counts, queries, second_rows.shape[1])
    found = None
    if width + second_rows.shape[1] < 2**24:
        found = dispatch.active.join_candidates(
            first_rows, first_values, first_counts, second_rows, second_values, second_counts
        )
    if found is None:
        raise KernelError("rows: out of range or too many; wanted 0 to 2**39 - 1, and less than 2**24 a query")
    return found


def expand_candidates(
    offsets: I64, rows: I64, first: F32, second: F32, scores: F64, best: int, previous: I32, following: I32,
    heads: I32, nexts: I32, targets: I32, mask: Mask | None,
) -> tuple[I64, I64, F32, F32]:  # fmt: skip
    """Candidates with the neighbours of the `best` of each query by score (ties by ascending row) added.

    Neighbours are the allowed rows up to two places before and after in the chain, and those linked. scores float64
    (m,), first and second float32 (m,) as from `join_candidates`, whose form the result has; new rows are NaN in both.
    """
    n = _candidates(offsets, rows, previous, following)
    array("first", first, contract.f32, rows.shape[0])
    array("second", second, contract.f32, rows.shape[0])
    contract.finite("scores", array("scores", scores, contract.f64, rows.shape[0]))
    links(heads, nexts, targets, n)
    best = min(contract.whole("best", best, 1), max(rows.shape[0], 1))
    checked = contract.mask(mask, n)
    found = dispatch.active.expand_candidates(
        offsets, rows, first, second, scores, best, previous, following, heads, nexts, targets, checked
    )
    if found is None:
        raise KernelError(f"previous, following, links: name a row of {n} or more, or a place that is not there")
    return found


def order_by_score(offsets: I64, scores: F64, keys: I64) -> I64:
    """Places of each query's candidates, counted from its first, by descending score, ties by ascending key.

    scores float64 (m,), keys int64 (m,) -> int64 (m,).
    """
    contract.finite("scores", array("scores", scores, contract.f64, None))
    array("keys", keys, contract.i64, scores.shape[0])
    contract.offsets("offsets", offsets, scores.shape[0])
    return dispatch.active.order_by_score(offsets, scores, keys)


def links(heads: I32, nexts: I32, targets: I32, n: int) -> None:
    """Refuse link arrays of other shapes; targets are checked where they are followed."""
    array("heads", heads, contract.i32, n)
    array("nexts", nexts, contract.i32, None)
    array("targets", targets, contract.i32, nexts.shape[0])


def _candidates(offsets: I64, rows: I64, previous: I32, following: I32) -> int:
    array("previous", previous, contract.i32, None)
    n: int = previous.shape[0]
    array("following", following, contract.i32, n)
    contract.indices("rows", rows, n)
    contract.offsets("offsets", offsets, rows.shape[0])
    return n


def _counts(name: str, counts: I64, queries: int, width: int) -> None:
    array(name, counts, contract.i64, queries)
    if queries and not 0 <= int(counts.min()) <= int(counts.max()) <= width:
        raise KernelError(f"{name}: spans {counts.min()} to {counts.max()}; wanted 0 to {width}")
