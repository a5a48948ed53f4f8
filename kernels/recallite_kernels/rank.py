"""The kernel of a recall: from the best by each signal to every candidate's score and their order, in one call.

For each query it joins the two lists, measures the missing cosines and BM25, fuses them, adds the neighbours of the
best and measures those too, reranks, spreads activation, weighs age and importance, and orders. One call instead
of one per step saved 0.2 ms of a recall of 0.8.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from recallite_kernels import contract, dispatch
from recallite_kernels.arguments import NO_MENTIONS, NO_TOKENS, Codes, Graph, Lists, Mentions, Postings, Records, Tokens
from recallite_kernels.contract import F64, I32, I64, KernelError, array
from recallite_kernels.groups import check_group
from recallite_kernels.lexical import check_postings
from recallite_kernels.signals import RankParameters

NO_RERANK: F64 = np.empty(0)
GREATEST_WEIGHT = 1e100
"""Products of weights up to this are far from the end of float64."""
_MOST = {"decay_floor": 1.0, "ranked_share": 1.0}
_WHOLE = {
    "expansion_depth": 2**31, "rerank_depth": 2**31, "clock": 0, "exponential": 1, "keyword_fallback": 1,
    "weighted_sum": 1,
}  # fmt: skip


def rank_candidates(
    lists: Lists, codes: Codes | None, postings: Postings, graph: Graph, records: Records, parameters: RankParameters,
    rerank: F64 | None = None, mentions: Mentions | None = None, tokens: Tokens | None = None,
) -> tuple[I64, I64, F64, I64]:  # fmt: skip
    """Every candidate of each query with its signals.

    Without `codes` cosines that are not known are 0. `rerank`, float64 (m,), is added to the fused scores of the
    candidates, in the order in which they come out; it takes lists that name each of them, and no expansion.
    `mentions` are what the queries name of records; without them nothing is named.

    With `tokens`, which take `codes`, that number is computed. For the best `parameters.rerank_depth` by fused score it
    is `parameters.rerank_weight` times MaxSim minus the mean MaxSim of these candidates; a record without codes and all
    others get 0. MaxSim is the weighted sum over the query's tokens of the similarity of the most similar token of the
    record (Khattab and Zaharia, ColBERT, 2020).

    Returns offsets int64 (q + 1,), rows int64 (m,) ascending within a query, signals float64 (len(SIGNALS), m) in rows
    as `SIGNALS` names them, and order int64 (m,): places of each query's candidates, counted from its first, by
    descending score, ties by ascending key. A signal that is not finite is refused, and so is a link that spreads with
    a strength that is no finite number of 0 or more.
    """
    postings, parameters = check_group(postings, Postings), check_parameters(parameters)
    tokens = None if tokens is None else check_group(tokens, Tokens, "tokens.")
    _check(lists, codes, postings, graph, records, parameters, rerank, mentions, tokens)
    found = dispatch.active.rank_candidates(
        lists, codes, postings, graph, records, parameters, NO_RERANK if rerank is None else rerank,
        NO_MENTIONS if mentions is None else mentions, NO_TOKENS if tokens is None else tokens,
    )  # fmt: skip
    if found is None:
        raise KernelError(
            f"lists, graph, codes, tokens: name a row of {graph.previous.shape[0]} or more, or a place that is not "
            "there, or a link has no strength of 0 or more"
        )
    if rerank is not None and rerank.shape[0] != found[1].shape[0]:
        raise KernelError(f"rerank: {rerank.shape[0]} numbers; wanted one for each of {found[1].shape[0]} candidates")
    contract.finite("signals", found[2])
    return found


def _check(
    lists: Lists, codes: Codes | None, postings: Postings, graph: Graph, records: Records, parameters: RankParameters,
    rerank: F64 | None, mentions: Mentions | None, tokens: Tokens | None,
) -> None:  # fmt: skip
    queries, n = check_group(lists, Lists).vector_counts.shape[0], check_group(graph, Graph).previous.shape[0]
    _check_lists(lists, queries)
    if codes is not None:
        check_codes(codes, queries, n)
    if postings.slice_offsets.shape[0] != queries + 1 or postings.lengths.shape[0] != n:
        raise KernelError(f"postings: of other queries or records; wanted {queries} queries and {n} records")
    check_postings(postings)
    check_graph(graph, n)
    check_records(records, n)
    if mentions is not None:
        _check_mentions(mentions, queries)
    if rerank is not None:
        array("rerank", rerank, contract.f64, None)
        contract.finite("rerank", rerank)
        if parameters.expansion_depth:
            raise KernelError("rerank: with expansion; wanted parameters.expansion_depth of 0")
    if tokens is not None:
        _check_tokens(tokens, queries, codes)
        if rerank is not None:
            raise KernelError("tokens: with rerank; wanted one of them")


def check_records(records: Records, n: int) -> None:
    """Refuse records that are not n."""
    check_group(records, Records)
    array("keys", records.keys, contract.i64, n)
    array("created_at", records.created_at, contract.i64, n)
    array("importance", records.importance, contract.f32, n)
    array("moments", records.moments, contract.i64, n)
    array("moments_until", records.moments_until, contract.i64, n)
    array("resolved", records.resolved, contract.u8, n)
    array("speakers", records.speakers, contract.i32, n if records.speakers.shape[0] else 0, 2)


def check_codes(codes: Codes, queries: int, n: int) -> None:
    """Refuse codes of other queries or records; places are checked where they are read."""
    dimension = check_group(codes, Codes).queries.shape[1]
    array("queries", codes.queries, contract.f32, queries, dimension)
    if np.isnan(array("ceilings", codes.ceilings, contract.f32, queries)).any():
        raise KernelError("ceilings: hold NaN; wanted numbers, or infinity for none")
    contract.finite("queries", codes.queries)
    array("codes", codes.codes, contract.i8, None, dimension)
    array("scales", codes.scales, contract.f32, codes.codes.shape[0])
    if codes.residuals.shape[0]:
        array("residuals", codes.residuals, contract.i8, *codes.codes.shape)
    listed = n if codes.parts.shape[0] else 0
    array("first_place", codes.first_place, contract.i64, listed)
    array("parts", codes.parts, contract.i32, listed)


def check_places(first_place: I64, parts: I32, places: int) -> None:
    """Refuse records whose vectors are at places that are not there."""
    outside = (first_place < 0) | (first_place > places - parts.astype(np.int64))
    if ((parts < 0) | (outside & (parts != 0))).any():
        raise KernelError("first_place, parts: name a place that is not there")


def check_parameters(parameters: RankParameters) -> RankParameters:
    """Refuse parameters that make no finite score; the weights of a sum are divided by their sum."""
    if not isinstance(parameters, RankParameters):
        raise KernelError(f"parameters: {type(parameters).__name__}; wanted RankParameters")
    clock = contract.whole("parameters.clock", parameters.clock, -(2**63), 2**63 - 1)
    try:
        checked = _checked(parameters._replace(clock=0))
    except TypeError:  # a value that cannot be a key, so no number
        checked = _checked.__wrapped__(parameters._replace(clock=0))
    return checked._replace(clock=clock)


# Checking each of 23 numbers takes 10 microseconds, and the same ones come again.
@lru_cache(maxsize=64)
def _checked(parameters: RankParameters) -> RankParameters:
    values: dict[str, Any] = {}
    for field, value in parameters._asdict().items():
        name = f"parameters.{field}"
        if field in _WHOLE:
            values[field] = contract.whole(name, value, 0, _WHOLE[field])
        elif field == "half_life_days":
            values[field] = contract.real_or_infinite(name, value, low=1e-9)
        elif field == "rrf_k":
            values[field] = contract.real(name, value)
        else:
            values[field] = contract.real(name, value, low=0.0, high=_MOST.get(field, GREATEST_WEIGHT))
    checked = RankParameters(**values)
    if checked.vector_weight + checked.keyword_weight <= 0:
        raise KernelError("parameters: vector_weight and keyword_weight are 0; wanted a sum above 0")
    if not checked.weighted_sum:
        return checked
    weights = checked.semantic_weight, checked.recency_weight, checked.importance_weight
    if sum(weights) <= 0:
        raise KernelError("parameters: the weights of the sum are 0; wanted a sum above 0")
    semantic, recency, importance = (weight / sum(weights) for weight in weights)
    return checked._replace(semantic_weight=semantic, recency_weight=recency, importance_weight=importance)


def _check_mentions(mentions: Mentions, queries: int) -> None:
    names = check_group(mentions, Mentions).names
    contract.offsets("name_offsets", mentions.name_offsets, names.shape[0], queries)
    if names.size and int(names.min()) < 0:
        raise KernelError(f"names: holds {int(names.min())}; wanted 0 or more")
    spans = mentions.begins.shape[0]
    array("ends", mentions.ends, contract.i64, spans)
    array("fades", mentions.fades, contract.i64, spans)
    contract.offsets("span_offsets", mentions.span_offsets, spans, queries)


def _check_tokens(tokens: Tokens, queries: int, codes: Codes | None) -> None:
    if codes is None:
        raise KernelError("tokens: without codes; wanted the vectors that they belong to")
    contract.whole("width", tokens.width, 1, 64 * tokens.queries.shape[1])
    array("weights", tokens.weights, contract.f32, tokens.queries.shape[0])
    contract.finite("weights", tokens.weights)
    contract.offsets("offsets", tokens.offsets, tokens.queries.shape[0], queries)
    array("starts", tokens.starts, contract.i64, codes.codes.shape[0] + 1)
    check_token_starts(tokens.starts, tokens.codes.shape[0])


def check_token_starts(starts: I64, total: int) -> None:
    """Refuse codes of tokens that are not there."""
    if starts.size and (starts.item(0) < 0 or starts.item(-1) > total or (starts[1:] < starts[:-1]).any()):
        raise KernelError(f"tokens: name codes that are not there; wanted starts ascending within 0 to {total}")


def check_graph(graph: Graph, n: int) -> None:
    """Refuse a graph of other records, or that leads to others; lists of links are checked as they are read."""
    array("previous", graph.previous, contract.i32, n)
    array("following", graph.following, contract.i32, n)
    array("sources", graph.sources, contract.i32, n)
    array("heads", graph.heads, contract.i32, n if graph.heads.shape[0] else 0)
    array("nexts", graph.nexts, contract.i32, None)
    array("targets", graph.targets, contract.i32, graph.nexts.shape[0])
    array("strengths", graph.strengths, contract.f32, graph.targets.shape[0])
    contract.mask(graph.mask, n if graph.mask.shape[0] else 0)
    for name in ("previous", "following", "targets"):
        rows = getattr(graph, name)
        if rows.size and not -1 <= int(rows.min()) <= int(rows.max()) < n:
            raise KernelError(f"{name}: name a row of {n} or more, or below -1; wanted one, or -1 for none")


def _check_lists(lists: Lists, queries: int) -> None:
    for name, rows, values, counts in (
        ("vector", lists.vector_rows, lists.cosines, lists.vector_counts),
        ("keyword", lists.keyword_rows, lists.bm25, lists.keyword_counts),
    ):
        array(f"{name}_rows", rows, contract.i64, queries, None)
        array(f"{name} values", values, contract.f32, *rows.shape)
        array(f"{name}_counts", counts, contract.i64, queries)
        if queries and not 0 <= int(counts.min()) <= int(counts.max()) <= rows.shape[1]:
            raise KernelError(f"{name}_counts: spans {counts.min()} to {counts.max()}; wanted 0 to {rows.shape[1]}")
    if lists.vector_rows.shape[1] + lists.keyword_rows.shape[1] >= 2**24 or lists.keyword_rows.size >= 2**39:
        raise KernelError("lists: too long; wanted fewer than 2**24 rows a query")
