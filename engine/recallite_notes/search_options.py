"""The settings of one search: those of the configuration, and what the arguments of the call replace."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from msgspec import structs

from recallite.model.configuration import Section, declared
from recallite_notes.config import QueryConfig

# The setting that an argument replaces: its section of QueryConfig ("" is itself), and its name there.
_SETTINGS = {
    "vector_weight": ("hybrid", "vector_weight"),
    "text_weight": ("hybrid", "text_weight"),
    "candidate_multiplier": ("hybrid", "candidate_multiplier"),
    "mmr_lambda": ("mmr", "lambda_param"),
    "temporal_decay": ("temporal_decay", "enabled"),
    "decay_half_life_days": ("temporal_decay", "half_life_days"),
}


def query_settings(config: QueryConfig, **arguments: object) -> QueryConfig:
    """The settings of a call; what is None is the configuration's. InvalidInput names the argument that is wrong."""
    changes: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for argument, value in arguments.items():
        if value is not None:
            section, name = _SETTINGS.get(argument, ("", argument))
            owner: Section = getattr(config, section) if section else config
            changes[section][name] = declared(type(owner))[name].check(value, argument)
    top, hybrid, decay = changes.pop("", {}), changes["hybrid"], changes["temporal_decay"]
    if not top.keys().isdisjoint(("min_score", "min_confidence")):
        top = {"min_score": None, "min_confidence": None, **top}
    for one, other in (("vector_weight", "text_weight"), ("text_weight", "vector_weight")):
        if one in hybrid:
            hybrid.setdefault(other, 1.0 - hybrid[one])
    if changes["mmr"]:
        changes["mmr"]["enabled"] = True
    if decay:
        decay.setdefault("enabled", True)
    sections = {name: structs.replace(getattr(config, name), **values) for name, values in changes.items()}
    return structs.replace(config, **top, **sections)
