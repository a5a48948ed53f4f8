"""The kernel of a recall: from the best by each signal to every candidate's score and their order.

It is `join_candidates`, `row_cosines`, `bm25_for_rows`, `expand_candidates`, `spread_activation`, `decay` and
`order_by_score` one after the other for each query, in one call: apart they take thirteen calls with their checks,
0.2 ms of a recall of 0.8.
"""

from __future__ import annotations

import math

import numpy as np

from recollect_kernels import contract, dispatch
from recollect_kernels.arguments import Choices, Codes, Graph, Lists, Postings, Records
from recollect_kernels.candidates import links
from recollect_kernels.contract import F64, I64, array
from recollect_kernels.errors import KernelError
from recollect_kernels.lexical import check_postings

NO_LOOK: F64 = np.empty(0)


def rank_candidates(
    lists: Lists, codes: Codes | None, postings: Postings, graph: Graph, records: Records, choices: Choices,
    look: F64 | None = None,
) -> tuple[I64, I64, F64, I64]:  # fmt: skip
    """Every candidate of each query with its signals.

    Without `codes` cosines that are not known are 0. `look`, float64 (m,), is added to the fused scores of the
    candidates, in the order in which they come out; it takes lists that name each of them, and no expansion.

    Returns offsets int64 (q + 1,), rows int64 (m,) ascending within a query, signals float64 (9, m) in the order of
    `arguments.SIGNALS`, and order int64 (m,): places of each query's candidates, counted from its first, by descending
    score, ties by ascending key.
    """
    queries = lists.vector_counts.shape[0]
    _lists(lists, queries)
    n = graph.previous.shape[0]
    dimension = 0
    if codes is not None:
        dimension = codes.queries.shape[1]
        array("queries", codes.queries, contract.f32, queries, dimension)
        contract.finite("queries", codes.queries)
        array("ceilings", codes.ceilings, contract.f32, queries)
        array("codes", codes.codes, contract.i8, None, dimension)
        array("scales", codes.scales, contract.f32, codes.codes.shape[0])
        array("first_place", codes.first_place, contract.i64, n)
        array("parts", codes.parts, contract.i32, n)
    if postings.slice_offsets.shape[0] != queries + 1 or postings.lengths.shape[0] != n:
        raise KernelError(f"postings: of other queries or records; wanted {queries} queries and {n} records")
    check_postings(*postings)
    array("previous", graph.previous, contract.i32, n)
    array("following", graph.following, contract.i32, n)
    array("sources", graph.sources, contract.i64, n)
    links(graph.heads, graph.nexts, graph.targets, n)
    array("strengths", graph.strengths, contract.f32, graph.targets.shape[0])
    contract.mask(graph.mask, n if graph.mask.shape[0] else 0)
    array("keys", records.keys, contract.i64, n)
    array("created_at", records.created_at, contract.i64, n)
    array("importance", records.importance, contract.f32, n)
    if choices.vector_weight < 0 or choices.keyword_weight < 0 or choices.vector_weight + choices.keyword_weight <= 0:
        raise KernelError("choices: weights of vector and keyword; wanted none negative and a sum above 0")
    if choices.additive:
        choices = normalised(choices)
    if choices.expanded < 0:
        raise KernelError(f"choices: expanded of {choices.expanded}; wanted 0 or more")
    if look is not None:
        array("look", look, contract.f64, None)
        contract.finite("look", look)
        if choices.expanded:
            raise KernelError("look: with expansion; wanted choices.expanded of 0")
    found = dispatch.active.rank_candidates(
        lists, codes, postings, graph, records, choices, NO_LOOK if look is None else look
    )
    if found is not None and look is not None and look.shape[0] != found[1].shape[0]:
        raise KernelError(f"look: {look.shape[0]} numbers; wanted one for each of {found[1].shape[0]} candidates")
    if found is None:
        raise KernelError(f"lists, graph, codes: name a row of {n} or more, or a place that is not there")
    contract.finite("score", found[2][-1])  # in which every other signal has a part
    return found


def normalised(choices: Choices) -> Choices:
    """The weights of the sum, of sum 1."""
    weights = choices.semantic_weight, choices.recency_weight, choices.importance_weight
    total = sum(weights)
    if not math.isfinite(total) or min(weights) < 0 or total <= 0:
        raise KernelError("choices: weights of the sum; wanted finite ones, none negative and a sum above 0")
    semantic, recency, importance = (weight / total for weight in weights)
    return choices._replace(semantic_weight=semantic, recency_weight=recency, importance_weight=importance)


def _lists(lists: Lists, queries: int) -> None:
    for name, rows, values, counts in (
        ("vector", lists.vector_rows, lists.cosines, lists.vector_counts),
        ("keyword", lists.keyword_rows, lists.bm25, lists.keyword_counts),
    ):
        array(f"{name}_rows", rows, contract.i64, queries, None)
        array(f"{name} values", values, contract.f32, *rows.shape)
        array(f"{name}_counts", counts, contract.i64, queries)
        if queries and not 0 <= int(counts.min()) <= int(counts.max()) <= rows.shape[1]:
            raise KernelError(f"{name}_counts: spans {counts.min()} to {counts.max()}; wanted 0 to {rows.shape[1]}")
