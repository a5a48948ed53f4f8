"""Ranking kernels (float64): rank fusion, decay and diversity over one query's candidates."""

from __future__ import annotations

import math
from typing import Literal

from recallite_kernels import contract, dispatch
from recallite_kernels.contract import F64, I32, I64, KernelError, array


def reciprocal_rank_fusion(ranks: I64, weights: F64, k: float = 60.0) -> F64:
    """Sum over signals of weight / (k + rank) (Cormack, Clarke and Buettcher, 2009).

    ranks int64 (s, m), 1 is best and 0 is absent; weights float64 (s,), with a finite sum -> float64 (m,).
    """
    array("ranks", ranks, contract.i64, None, None)
    if ranks.size and int(ranks.min()) < 0:
        raise KernelError(f"ranks: holds {int(ranks.min())}; wanted 1 for the best, 0 for absent")
    array("weights", weights, contract.f64, ranks.shape[0])
    contract.finite("weights", weights)
    if weights.size and (float(weights.min()) < 0 or not 0 < sum(weights.tolist()) < math.inf):
        raise KernelError(f"weights: {weights.tolist()}; wanted none negative and a finite sum above 0")
    return dispatch.active.reciprocal_rank_fusion(ranks, weights, contract.real("k", k, low=0.0))


def decay(
    ages_days: F64,
    half_life_days: float,
    floor: float = 0.0,
    form: Literal["half_life", "exp"] = "half_life",
) -> F64:
    """max(floor, 0.5 ** (age / half_life)); with form "exp" max(floor, e ** (-age / half_life)).

    ages_days float64 (m,), a negative age counts as 0; half_life_days above 0; floor in [0, 1] -> float64 (m,).
    """
    _vector("ages_days", ages_days)
    half_life_days = contract.real("half_life_days", half_life_days, above=0.0)
    floor = contract.real("floor", floor, low=0.0, high=1.0)
    if not isinstance(form, str) or form not in ("half_life", "exp"):
        raise KernelError(f'form: {form!r}; wanted "half_life" or "exp"')
    return dispatch.active.decay(ages_days, half_life_days, floor, form == "exp")


def maximal_marginal_relevance(relevance: F64, token_ids: I32, offsets: I64, mmr_lambda: float, k: int) -> I64:
    """Order of selection by MMR (Carbonell and Goldstein, 1998) with Jaccard similarity of token sets.

    Each step takes the item with the greatest mmr_lambda * relevance - (1 - mmr_lambda) * (its greatest similarity
    to those taken), ties by ascending index. relevance float64 (m,); item i holds
    token_ids[offsets[i]:offsets[i + 1]], int32, not negative, strictly ascending; an empty set is similar to
    nothing -> int64 (k',).
    """
    _vector("relevance", relevance)
    m = relevance.shape[0]
    array("token_ids", token_ids, contract.i32, None)
    contract.offsets("offsets", offsets, token_ids.shape[0], m)
    mmr_lambda = contract.real("mmr_lambda", mmr_lambda, low=0.0, high=1.0)
    k = min(contract.whole("k", k, 1), m)
    return dispatch.active.maximal_marginal_relevance(relevance, token_ids, offsets, mmr_lambda, k)


def _vector(name: str, value: F64) -> None:
    array(name, value, contract.f64, None)
    contract.finite(name, value)
