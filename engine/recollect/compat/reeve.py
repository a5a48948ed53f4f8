"""Reeve: the section `memorySearch` of its `reeve.json`."""

from __future__ import annotations

from recollect.compat.sections import Dialect

__all__ = ["DIALECT"]

DIALECT = Dialect(
    "memorySearch",
    profile="reeve",
    keys={
        "temporalDecay.halfLife": ("profile", "half_life_days"),
        "temporalDecay.floor": ("profile", "decay_floor"),
        "mergeStrategy": ("write", "merge_strategy"),
    },
)
