"""The parameters of a ranking, checked."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from recallite_kernels import contract
from recallite_kernels.contract import KernelError
from recallite_kernels.signals import RankParameters

GREATEST_WEIGHT = 1e100
"""Products of weights up to this are far from the end of float64."""
_MOST = {"decay_floor": 1.0, "ranked_share": 1.0}
_WHOLE = {
    "expansion_depth": 2**31, "rerank_depth": 2**31, "clock": 0, "exponential": 1, "keyword_fallback": 1,
    "weighted_sum": 1,
}  # fmt: skip


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
