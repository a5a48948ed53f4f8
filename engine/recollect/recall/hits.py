"""Hits: what is shown of a candidate, and why it is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from recollect.checks import optional_datetime, to_datetime
from recollect.records import Hit, SourceRef

if TYPE_CHECKING:
    from recollect.recall.candidates import Candidates
    from recollect.recall.request import Request
    from recollect.store.reading import Found

__all__ = ["build_hit", "fit_budget", "match_reasons", "signals_of"]

# A signal is named when it makes up at least this share of the score.
_NAMED_SHARE = 0.1


def build_hit(
    candidates: Candidates,
    place: int,
    found: Found,
    confidence: float,
    gaps: tuple[str, ...],
    request: Request,
) -> Hit:
    """The hit of one candidate."""
    source = None
    if found.source is not None:
        lines = found.metadata.get("lines")
        source = SourceRef(
            id=found.source,
            position=found.position,
            path=found.metadata.get("path"),
            lines=(lines[0], lines[1]) if isinstance(lines, list) and len(lines) == 2 else None,
        )
    return Hit(
        id=found.public_id,
        text=found.text,
        score=min(max(float(candidates.score[place]), 0.0), 1.0),
        confidence=confidence,
        kind=found.kind,
        scope=found.scope,
        context=found.context,
        tags=found.tags,
        importance=found.importance,
        created_at=to_datetime(found.created_at),
        event_at=optional_datetime(found.event_at),
        metadata=found.metadata,
        source=source,
        match_reasons=match_reasons(candidates, place, found.importance, request),
        evidence_gaps=gaps,
        signals=signals_of(candidates, place),
    )


def signals_of(candidates: Candidates, place: int) -> dict[str, float]:
    """Each signal's value, and the score after each stage."""
    return {
        "cosine": float(candidates.cosine[place]),
        "bm25": float(candidates.bm25[place]),
        "fused": float(candidates.fused[place]),
        "spread": float(candidates.spread[place]),
        "decay": float(candidates.decay[place]),
        "score": float(candidates.score[place]),
    }


def match_reasons(candidates: Candidates, place: int, importance: float, request: Request) -> tuple[str, ...]:
    """The signals that brought this hit to its place."""
    profile = request.profile
    weights = profile.vector_weight + profile.keyword_weight
    semantic = profile.vector_weight / weights * max(float(candidates.cosine[place]), 0.0)
    best_bm25 = float(candidates.bm25.max())
    keyword = profile.keyword_weight / weights * float(candidates.bm25[place]) / best_bm25 if best_bm25 > 0 else 0.0
    linked = profile.spread * float(candidates.linked[place])
    neighbors = float(candidates.lift[place]) - linked
    total = semantic + keyword + linked + max(neighbors, 0.0)
    shares = (("semantic", semantic), ("keyword", keyword), ("link", linked), ("session", neighbors))
    reasons = [name for name, share in shares if total > 0 and share >= _NAMED_SHARE * total]
    if profile.decay != "none" and candidates.decay[place] > 0.5:
        reasons.append("recency")
    if profile.importance_weight > 0 and importance > 0.5:
        reasons.append("importance")
    return tuple(reasons)


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
