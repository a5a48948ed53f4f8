"""Reactive Agents: its numbered memory tiers, and its names for consolidation."""

from __future__ import annotations

import warnings
from typing import Any

from recallite.errors import InvalidInput
from recallite.model.checks import check_choice
from recallite.model.settings import Consolidation, Settings
from recallite.system.messages import shown

_TIERS = {"1": "standard", "2": "enhanced"}


def settings(tier: str = "enhanced", *, embedder: str | None = None, **fields: Any) -> Settings:
    """Settings of a tier, both with search in SQL: "standard" without an embedder or "enhanced", once "1" and "2"."""
    if tier in _TIERS:
        named = _TIERS[tier]
        warnings.warn(f"tier {tier!r} is deprecated: use tier={named!r}", DeprecationWarning, stacklevel=2)
        tier = named
    if check_choice(tier, "tier", ("standard", "enhanced")) == "standard":
        if embedder not in (None, "none"):
            raise InvalidInput(f"tier 'standard' loads no embedder, but embedder is {shown(embedder)}: leave one out")
        embedder = "none"
    return Settings(embedder=embedder, **{"sql_search": True, **fields})


def consolidation(
    *,
    threshold: int = 10,
    decayFactor: float = 0.95,  # noqa: N803
    pruneThreshold: float = 0.1,  # noqa: N803
    **fields: Any,
) -> Consolidation:
    """A consolidation by the names that Reactive Agents has for its fields."""
    return Consolidation(threshold=threshold, decay_factor=decayFactor, prune_threshold=pruneThreshold, **fields)
