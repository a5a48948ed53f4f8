"""Reactive Agents: its numbered memory tiers, and its names for consolidation."""

from __future__ import annotations

import warnings
from typing import Any

from recallite.model.policies import Consolidation
from recallite.model.settings import Settings

_TIERS = {"1": "standard", "2": "enhanced"}


def settings(tier: str = "enhanced", **fields: Any) -> Settings:
    """Settings whose tier may be "1" or "2", as Reactive Agents once called "standard" and "enhanced"."""
    if tier in _TIERS:
        named = _TIERS[tier]
        warnings.warn(f"tier {tier!r} is deprecated: use tier={named!r}", DeprecationWarning, stacklevel=2)
        tier = named
    return Settings(tier=tier, **fields)  # type: ignore[arg-type]


def consolidation(
    *,
    threshold: int = 10,
    decayFactor: float = 0.95,  # noqa: N803
    pruneThreshold: float = 0.1,  # noqa: N803
    **fields: Any,
) -> Consolidation:
    """A consolidation by the names that Reactive Agents has for its fields."""
    return Consolidation(threshold=threshold, decay_factor=decayFactor, prune_threshold=pruneThreshold, **fields)
