"""The options of one search: the arguments of its call, checked as the configuration is, which gives the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, structs

from recallite.errors import InvalidInput
from recallite.model.checks import check_name
from recallite.model.configuration import Section, declared
from recallite.notes.config import HybridConfig, QueryConfig


class SearchOptions(Struct, frozen=True):
    """The options of one search.

    Where `min_score` and `min_confidence` are both None the threshold is Recallite's own. `mmr_lambda` is None without
    MMR, `half_life_days` without decay. `extra` is for registered post-processors.
    """

    strategy: str
    max_results: int
    min_score: float | None
    min_confidence: float | None
    hybrid: HybridConfig
    source_filter: str | None
    mmr_lambda: float | None
    half_life_days: float | None
    snippet_max_chars: int
    extra: Mapping[str, Any]

    @classmethod
    def of(cls, config: QueryConfig, extra: Mapping[str, Any], **arguments: Any) -> SearchOptions:
        """The options of a call; what is None is the configuration's. InvalidInput names the one that is wrong."""
        thresholds = [_checked(config, name, arguments.get(name)) for name in ("min_score", "min_confidence")]
        if thresholds == [None, None]:
            thresholds = [config.min_score, config.min_confidence]
        source, mmr_lambda = arguments.get("source_filter"), arguments.get("mmr_lambda")
        if mmr_lambda is None:
            mmr_lambda = config.mmr.lambda_param if config.mmr.enabled else None
        return cls(
            strategy=_chosen(config, "strategy", arguments),
            max_results=_chosen(config, "max_results", arguments),
            min_score=thresholds[0],
            min_confidence=thresholds[1],
            hybrid=_weights(config.hybrid, arguments),
            source_filter=None if source is None else check_name(source, "source_filter"),
            mmr_lambda=_checked(config.mmr, "lambda_param", mmr_lambda, "mmr_lambda"),
            half_life_days=_half_life(config, arguments.get("temporal_decay"), arguments.get("decay_half_life_days")),
            snippet_max_chars=_chosen(config, "snippet_max_chars", arguments),
            extra=extra,
        )


def _checked(section: Section, field: str, value: object, name: str | None = None) -> Any:
    """A value that passes the check of a setting; `name` is what the caller calls it. None stays None."""
    return None if value is None else declared(type(section))[field].check(value, name or field)


def _chosen(section: Section, field: str, arguments: Mapping[str, Any]) -> Any:
    value = _checked(section, field, arguments.get(field))
    return getattr(section, field) if value is None else value


def _weights(config: HybridConfig, arguments: Mapping[str, Any]) -> HybridConfig:
    """The weights of a call: the other is the rest of one that is given alone."""
    vector, text = (_checked(config, name, arguments.get(name)) for name in ("vector_weight", "text_weight"))
    if vector is not None and text is not None and abs(vector + text - 1.0) > 1e-6:
        raise InvalidInput(
            f"vector_weight {vector:g} and text_weight {text:g} sum to {vector + text:g}: they sum to 1, one is enough"
        )
    if vector is None:
        vector = config.vector_weight if text is None else 1.0 - text
    multiplier = _chosen(config, "candidate_multiplier", arguments)
    return structs.replace(config, vector_weight=vector, text_weight=1.0 - vector, candidate_multiplier=multiplier)


def _half_life(config: QueryConfig, temporal_decay: object, half_life_days: object) -> float | None:
    """The age at which scores are halved; None without decay."""
    enabled = _checked(config.temporal_decay, "enabled", temporal_decay, "temporal_decay")
    days: float | None = _checked(config.temporal_decay, "half_life_days", half_life_days, "decay_half_life_days")
    if enabled is None:
        enabled = config.temporal_decay.enabled or days is not None
    if not enabled:
        return None
    return config.temporal_decay.half_life_days if days is None else float(days)
