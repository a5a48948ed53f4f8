"""Hits: what is shown of the chosen candidates, and why they are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recollect.checks import optional_datetime, to_datetime
from recollect.records import Hit, SourceRef
from recollect.store.values import Found

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recollect.profiles import Profile
    from recollect.recall.candidates import Candidates
    from recollect.recall.request import Request

__all__ = ["Line", "build_hits", "describe", "fit_budget", "signals_of"]

# A signal is named when it makes up at least this share of the score.
_NAMED_SHARE = 0.1
_SIGNALS = ("cosine", "bm25", "rerank", "fused", "spread", "decay", "score")
_SHOWN = np.array([0, 1, 2, 3, 4, 7, 8])
_RANKED = ("cosine", "bm25", "fused", "spread")
_REASONS = ("semantic", "keyword", "rerank", "session", "link", "recency", "importance")
_SHARE_BITS = np.array([1, 2, 4, 8, 16])
_RECENT, _IMPORTANT = 32, 64
_NAMES = [tuple(name for bit, name in enumerate(_REASONS) if bits >> bit & 1) for bits in range(128)]


class Line(NamedTuple):
    """What recall says of one hit: its record's row id, its numbers, and which signals brought it here, as bits."""

    key: int
    score: float
    confidence: float
    reasons: int
    signals: dict[str, float]


def describe(
    candidates: Candidates,
    offsets: NDArray[np.int64],
    places: NDArray[np.int64],
    confidence: NDArray[np.float64],
    profile: Profile,
) -> list[Line]:
    """A line for each of the candidates at `places`, of which query i has places[offsets[i]:offsets[i + 1]]."""
    # numpy's reduceat gives an empty run the value after it; its share goes to no hit.
    starts = np.minimum(candidates.offsets[:-1], max(len(candidates) - 1, 0))
    best = np.maximum.reduceat(candidates.bm25, starts) if len(candidates) else np.zeros(len(starts))
    shown = candidates.signals[:, places]
    return list(
        map(
            Line,
            candidates.keys[places].tolist(),
            np.minimum(np.maximum(shown[-1], 0.0), 1.0).tolist(),
            confidence.tolist(),
            _reasons(shown, np.repeat(best, np.diff(offsets)), profile).tolist(),
            _by_name(shown),
        )
    )


def build_hits(
    lines: Sequence[Line],
    found: Mapping[int, Found],
    gaps: tuple[str, ...],
    request: Request,
    candidates: Candidates,
    chosen: NDArray[np.int64],
) -> list[Hit]:
    """The hits of one query; records that are gone by now are left out.

    With `request.explain` the signals also say each hit's rank in each, among the candidates and from 1.
    """
    if request.explain:
        for name in _RANKED:
            ranks = _rank_of(getattr(candidates, name), candidates.keys)[chosen]
            for line, rank in zip(lines, ranks.tolist(), strict=True):
                line.signals[f"{name}_rank"] = float(rank)
    weighty = request.profile.importance_weight > 0
    hits = []
    for key, score, sure, reasons, signals in lines:
        record = found.get(key)
        if record is None:
            continue
        if weighty and record.importance > 0.5:
            reasons |= _IMPORTANT
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
                match_reasons=_NAMES[reasons],
                evidence_gaps=gaps,
                signals=signals,
            )
        )
    return hits


def signals_of(candidates: Candidates, places: NDArray[np.int64]) -> list[dict[str, float]]:
    """Each signal's value at these places, and the score after each stage."""
    return _by_name(candidates.signals[:, places])


def _by_name(shown: NDArray[np.float64]) -> list[dict[str, float]]:
    columns = shown[_SHOWN].T.tolist()
    return [dict(zip(_SIGNALS, values, strict=True)) for values in columns]


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


def _reasons(shown: NDArray[np.float64], best_bm25: NDArray[np.float64], profile: Profile) -> NDArray[np.int64]:
    """Bits by hit: whether each of cosine, BM25, second look, neighbours, links and age brought it to its place.

    A share is one of the score before age and importance; where these are added, that has its share in the sum too.
    """
    whole = profile.vector_weight + profile.keyword_weight
    cosine, bm25, look, fused, spread, lift, linked, decay, score = shown
    aging = profile.decay != "none"
    shares = np.empty((5, shown.shape[1]))
    shares[0] = profile.vector_weight / whole * np.maximum(cosine, 0.0)
    shares[1] = profile.keyword_weight / whole * bm25 / np.where(best_bm25 > 0, best_bm25, 1.0)
    if profile.keyword_fallback:  # BM25 is all that a record without a vector has
        shares[1] = np.where(cosine == 0, np.maximum(shares[1], fused - look), shares[1])
    shares[2] = np.maximum(look, 0.0)
    shares[3] = np.maximum(lift - linked, 0.0)
    shares[4] = linked
    named = (shares > 0) & (shares >= _NAMED_SHARE * shares.sum(axis=0))
    if profile.composition == "weighted_sum":
        total = profile.semantic_weight + profile.recency_weight + profile.importance_weight
        relevance = profile.semantic_weight / total * np.minimum(np.maximum(spread, 0.0), 1.0)
        named &= (relevance > 0) & (relevance >= _NAMED_SHARE * score)
        aging = aging and profile.recency_weight > 0
    bits: NDArray[np.int64] = _SHARE_BITS @ named
    if aging:
        bits += _RECENT * (decay > 0.5)
    return bits


def _rank_of(values: NDArray[np.float64], keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rank of each value from 1, best first, ties by ascending key; 0 where the value is not above 0."""
    order = np.lexsort((keys, -values))
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.arange(1, len(values) + 1)
    ranks[values <= 0] = 0
    return ranks


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
