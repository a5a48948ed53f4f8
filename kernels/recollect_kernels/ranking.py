"""Composite kernels (float64): fusion, decay, diversity and grouping over one query's candidates."""

from __future__ import annotations

from typing import Literal

import numpy as np

from recollect_kernels import contract, dispatch
from recollect_kernels.contract import F64, I32, I64, U8, array
from recollect_kernels.errors import KernelError


def weighted_fusion(signals: F64, weights: F64, normalise: U8, offsets: I64 | None = None) -> F64:
    """Weighted sum of signals, the weights divided by their sum.

    signals float64 (s, m), weights float64 (s,) not negative and not all zero, normalise uint8 (s,): where 1, the
    signal is divided by its maximum first (a maximum of 0 or less makes it zeros), by each query's own maximum where
    offsets int64 (q + 1,) say which columns are whose -> float64 (m,).
    """
    array("signals", signals, contract.f64, None, None)
    contract.finite("signals", signals)
    _weights(weights, signals.shape[0])
    array("normalise", normalise, contract.u8, signals.shape[0])
    if offsets is None:
        offsets = np.array([0, signals.shape[1]], dtype=np.int64)
    contract.offsets("offsets", offsets, signals.shape[1])
    return dispatch.active.weighted_fusion(signals, weights, normalise, offsets)


def reciprocal_rank_fusion(ranks: I64, weights: F64, k: float = 60.0) -> F64:
    """Sum over signals of weight / (k + rank) (Cormack, Clarke and Buettcher, 2009).

    ranks int64 (s, m), 1 is best and 0 is absent; weights float64 (s,) -> float64 (m,).
    """
    array("ranks", ranks, contract.i64, None, None)
    if ranks.size and int(ranks.min()) < 0:
        raise KernelError(f"ranks: holds {int(ranks.min())}; wanted 1 for the best, 0 for absent")
    _weights(weights, ranks.shape[0])
    return dispatch.active.reciprocal_rank_fusion(ranks, weights, contract.real("k", k, low=0.0))


def normalise_scores(scores: F64, low: float = 0.4, high: float = 1.0) -> F64:
    """Linear min-max over the list: the best becomes `high`, the worst `low`; all equal become `high`."""
    _vector("scores", scores)
    low = contract.real("low", low)
    return dispatch.active.normalise_scores(scores, low, contract.real("high", high, low=low))


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
    if form not in ("half_life", "exp"):
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


def _weights(weights: F64, signals: int) -> None:
    array("weights", weights, contract.f64, signals)
    contract.finite("weights", weights)
    if signals and (float(weights.min()) < 0 or float(weights.sum()) <= 0):
        raise KernelError(f"weights: {weights.tolist()}; wanted none negative and a sum above 0")
