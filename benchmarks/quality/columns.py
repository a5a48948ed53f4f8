"""The columns of the table: one signal, two fused, the engine without one of its parts, and as it comes.

Every store has codes of tokens; a column with a rerank weight of 0 ignores them. Learned ranking is off in each column
that sets a weight, as it is for a user who does.
"""

from __future__ import annotations

from typing import Any

__all__ = ["COLUMNS"]

_NO_NAMES = {"speaker_weight": 0.0, "date_weight": 0.0}
_FUSION_ALONE = {
    "neighbor_boost": 0.0, "half_life_days": 0, "importance_weight": 0.0, "rerank_weight": 0.0, "adaptive": False,
    **_NO_NAMES,
}  # fmt: skip

COLUMNS: dict[str, dict[str, Any]] = {
    "vector": {"mode": "vector"},
    "keyword": {"mode": "keyword"},
    "RRF": {"fusion": "rrf", **_FUSION_ALONE},
    "weighted": {"fusion": "weighted", **_FUSION_ALONE},
    "no reranking": {"rerank_weight": 0.0},
    "no names, dates": _NO_NAMES,
    "no forest": {"learned_ranking": False},
    "default": {},
}
"""Options of `Memory.recall` for each column. Every column gets the same filters, limit and grouping."""
