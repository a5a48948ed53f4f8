"""Hermes: the section `memory.recall` of its `config.yaml`."""

from __future__ import annotations

from recollect.compat.sections import Dialect

__all__ = ["DIALECT"]

DIALECT = Dialect(
    "memory",
    profile="hermes",
    keys={
        "recall.semantic_weight": ("profile", "semantic_weight"),
        "recall.recency_weight": ("profile", "recency_weight"),
        "recall.importance_weight": ("profile", "importance_weight"),
        "recall.recency_half_life_days": ("profile", "half_life_days"),
    },
    part="recall",
)
