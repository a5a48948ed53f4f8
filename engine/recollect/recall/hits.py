"""Hits: what is shown of the chosen candidates, and why they are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from recollect.checks import optional_datetime, to_datetime
from recollect.recall.score import rank_of
from recollect.records import Hit, SourceRef

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.recall.candidates import Candidates
    from recollect.recall.request import Request
    from recollect.settings import Profile
    from recollect.store.reading import Found

__all__ = ["build_hits", "fit_budget", "signals_of"]

# A signal is named when it makes up at least this share of the score.
_NAMED_SHARE = 0.1
_SIGNALS = ("cosine", "bm25", "look", "fused", "spread", "decay", "score")
_RANKED = ("cosine", "bm25", "fused", "spread")
_REASONS = ("semantic", "keyword", "look", "session", "link")


def build_hits(
    candidates: Candidates,
    chosen: NDArray[np.int64],
    found: Mapping[int, Found],
    confidence: NDArray[np.float64],
    gaps: tuple[str, ...],
    request: Request,
) -> list[Hit]:
    """The hits at the places `chosen`, in that order; records that are gone by now are left out.

    With `request.explain` the signals also say each hit's rank in each, among the candidates and from 1.
    """
    profile = request.profile
    signals_by_hit = signals_of(candidates, chosen)
    if request.explain:
        for name in _RANKED:
            ranks = rank_of(np.asarray(getattr(candidates, name), dtype=np.float64), candidates.keys)[chosen]
            for signals, rank in zip(signals_by_hit, ranks.tolist(), strict=True):
                signals[f"{name}_rank"] = float(rank)
    columns = zip(
        candidates.keys[chosen].tolist(),
        np.clip(candidates.score[chosen], 0.0, 1.0).tolist(),
        confidence.tolist(),
        _named(candidates, chosen, profile).tolist(),
        candidates.decay[chosen].tolist(),
        signals_by_hit,
        strict=True,
    )
    hits = []
    for key, score, sure, named, decay, signals in columns:
        record = found.get(key)
        if record is None:
            continue
        reasons = [name for name, is_named in zip(_REASONS, named, strict=True) if is_named]
        if profile.decay != "none" and decay > 0.5:
            reasons.append("recency")
        if profile.importance_weight > 0 and record.importance > 0.5:
            reasons.append("importance")
        hits.append(
            Hit(
                id=record.public_id,
                text=record.text,
                score=score,
                confidence=sure,
                kind=record.kind,
                scope=record.scope,
                context=record.context,
                tags=record.tags,
                importance=record.importance,
                created_at=to_datetime(record.created_at),
                event_at=optional_datetime(record.event_at),
                metadata=record.metadata,
                source=_source(record),
                match_reasons=tuple(reasons),
                evidence_gaps=gaps,
                signals=signals,
            )
        )
    return hits


def signals_of(candidates: Candidates, places: NDArray[np.int64]) -> list[dict[str, float]]:
    """Each signal's value at these places, and the score after each stage."""
    columns = [getattr(candidates, name)[places].tolist() for name in _SIGNALS]
    return [dict(zip(_SIGNALS, values, strict=True)) for values in zip(*columns, strict=True)]


def fit_budget(hits: list[Hit], budget_tokens: int, count: Callable[[list[str]], list[int]]) -> tuple[list[Hit], int]:
    """The hits that fit, in order, and how many do not; the best is always kept."""
    if not hits:
        return hits, 0
    costs = count([hit.text for hit in hits])
    kept, used = [hits[0]], costs[0]
    for hit, cost in zip(hits[1:], costs[1:], strict=True):
        if used + cost <= budget_tokens:
            kept.append(hit)
            used += cost
    return kept, len(hits) - len(kept)


def _named(candidates: Candidates, chosen: NDArray[np.int64], profile: Profile) -> NDArray[np.bool_]:
    """(hits, reasons): whether cosine, BM25, the second look, neighbours, links each brought the hit to its place."""
    whole = profile.vector_weight + profile.keyword_weight
    best = float(candidates.bm25.max()) if len(candidates) else 0.0
    linked = candidates.linked[chosen]
    shares = np.stack(
        [
            profile.vector_weight / whole * np.maximum(candidates.cosine[chosen], 0.0),
            profile.keyword_weight / whole * candidates.bm25[chosen] / (best or 1.0),
            np.maximum(candidates.look[chosen], 0.0),
            np.maximum(candidates.lift[chosen] - linked, 0.0),
            linked,
        ],
        axis=1,
    )
    total = shares.sum(axis=1, keepdims=True)
    return np.asarray((total > 0) & (shares >= _NAMED_SHARE * total) & (shares > 0), dtype=np.bool_)


def _source(record: Found) -> SourceRef | None:
    if record.source is None:
        return None
    path, lines = record.metadata.get("path"), record.metadata.get("lines")
    span = None
    if isinstance(lines, list) and len(lines) == 2 and all(type(line) is int for line in lines):
        span = (lines[0], lines[1])
    return SourceRef(
        id=record.source,
        position=record.position,
        path=path if isinstance(path, str) else None,
        lines=span,
    )
