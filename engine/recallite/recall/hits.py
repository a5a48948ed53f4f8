"""Hits: the chosen candidates with their records, signals and match reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recallite.index.memory_index import MemoryIndex
from recallite.model.checks import optional_datetime, to_datetime
from recallite.model.match_reasons import CHANGE_BIT, reasons_of
from recallite.model.records import Former, Hit, SourceRef
from recallite.recall.candidates import SIGNALS, Candidates, rank_parameters
from recallite.store.protocol import Reader
from recallite.store.supersession_values import FormerRow
from recallite.store.values import Found
from recallite.system.numerics import kernels

if TYPE_CHECKING:
    from datetime import datetime

    from numpy.typing import NDArray

    from recallite.model.profiles import Profile
    from recallite.recall.request import Request


# The signals that a hit shows; the others are intermediate.
_SHOWN = {name: row for name, row in SIGNALS._asdict().items() if name not in ("similarity", "spread_gain", "linked")}
_SHOWN_ROWS = np.array(list(_SHOWN.values()))
_RANKED = ("cosine", "bm25", "fused", "spread")


class ScoredHit(NamedTuple):
    """A hit before its record is loaded: the record's row id, its numbers, and its reasons as bits.

    `successor` is the row id of the record that replaced it, -1 for none.
    """

    key: int
    score: float
    confidence: float
    reasons: int
    signals: dict[str, float]
    successor: int = -1

    @property
    def keys(self) -> tuple[int, ...]:
        """The row ids of the records that it names."""
        return (self.key,) if self.successor < 0 else (self.key, self.successor)


def score_hits(
    candidates: Candidates,
    chosen: Sequence[NDArray[np.int64]],
    confidence: Sequence[NDArray[np.float64]],
    profile: Profile,
    reasons: NDArray[np.int64] | None = None,
) -> list[list[ScoredHit]]:
    """The hits of each query: its candidates at these places, with the bits of their reasons where these are known."""
    sizes = list(map(len, chosen))
    places = candidates.places(chosen)
    signals = candidates.signals.take(places, axis=1)
    if reasons is None:
        reasons = kernels.reason_bits(signals, np.repeat(_best_bm25(candidates), sizes), rank_parameters(profile, 0))
    if candidates.raised is not None:
        reasons = reasons + CHANGE_BIT * candidates.raised[places]
    hits = map(
        ScoredHit,
        candidates.keys[places].tolist(),
        [min(max(score, 0.0), 1.0) for score in signals[SIGNALS.score].tolist()],
        (confidence[0] if len(confidence) == 1 else np.concatenate(confidence)).tolist(),
        reasons.tolist(),
        signals_by_name(signals),
        repeat(-1) if candidates.successors is None else candidates.successors[places].tolist(),
    )
    return [list(islice(hits, size)) for size in sizes]


def _best_bm25(candidates: Candidates) -> NDArray[np.float64]:
    """The best BM25 of each query's candidates, 1 where none has any."""
    if not len(candidates):
        return np.ones(len(candidates.offsets) - 1)
    # numpy's reduceat gives an empty run the value after it; no hit uses that.
    starts = np.minimum(candidates.offsets[:-1], len(candidates) - 1)
    best = np.maximum.reduceat(candidates.signals[SIGNALS.bm25], starts)
    return np.where(best > 0, best, 1.0)


class Replaced(NamedTuple):
    """What hits supersede and what supersedes them, by row id: `Supersessions.formers` and `.successors`."""

    formers: Mapping[int, Sequence[FormerRow]] = {}
    successors: Mapping[int, tuple[int, tuple[str, ...]]] = {}

    @classmethod
    def of(cls, reader: Reader, index: MemoryIndex, keys: Sequence[int], request: Request) -> Replaced:
        """Read at once for all hits, and only where the store has supersessions that the request may show."""
        known_at = request.filter.as_of
        if not keys or (known_at is None and index.commit is not None and not index.table.any_superseded):
            return cls()
        formers = reader.supersessions.formers(keys, request.now, known_at)
        plain = known_at is None and request.filter.held_at is None and not request.filter.include_superseded
        return cls(formers, {} if plain else reader.supersessions.successors(keys, known_at))

    def fields(self, key: int, other: Found | None) -> dict[str, Any]:
        """What a hit shows of it; `other` is the record that recall found to have replaced it."""
        if other is None and not self.formers and not self.successors:
            return {}
        held_until, superseded_by = self.successors.get(key, (None, ()))
        if other is not None and other.public_id not in superseded_by:
            superseded_by = (*superseded_by, other.public_id)
        formers = (
            Former(
                id=each.public_id,
                text=each.text,
                held_from=to_datetime(each.held_from),
                held_until=to_datetime(each.held_until),
            )
            for each in self.formers.get(key, ())
        )
        return {
            "held_until": optional_datetime(held_until), "superseded_by": superseded_by, "supersedes": tuple(formers),
        }  # fmt: skip


def load_hits(
    hits: Sequence[ScoredHit],
    found: Mapping[int, Found],
    replaced: Replaced,
    gaps: tuple[str, ...],
    request: Request,
    candidates: Candidates,
) -> list[Hit]:
    """The hits of one query with their records; records that are gone by now are left out.

    With `request.explain` the signals also give each hit's rank by each, among the candidates and from 1; 0 where it is
    not among them.
    """
    if request.explain:
        for name in _RANKED:
            ranks = _rank_of(candidates.signals[_SHOWN[name]], candidates.keys)
            rank_of = dict(zip(candidates.keys.tolist(), ranks.tolist(), strict=True))
            for hit in hits:
                hit.signals[f"{name}_rank"] = float(rank_of.get(hit.key, 0))
    return [
        Hit(
            id=record.public_id,
            text=record.text,
            score=hit.score,
            confidence=hit.confidence,
            kind=record.kind,
            scope=record.scope,
            context=record.context,
            tags=record.tags,
            importance=record.importance,
            created_at=to_datetime(record.created_at),
            event_at=optional_datetime(record.event_at),
            event_until=optional_datetime(record.event_until),
            updated_at=to_datetime(record.updated_at),
            topic=record.topic,
            metadata=record.metadata,
            source=_source(record),
            match_reasons=reasons_of(hit.reasons, record.importance, request.profile),
            evidence_gaps=gaps,
            signals=hit.signals,
            **replaced.fields(hit.key, found.get(hit.successor)),
        )
        for hit in hits
        if (record := found.get(hit.key)) is not None
    ]


def signals_by_name(signals: NDArray[np.float64]) -> list[dict[str, float]]:
    """Each shown signal's value by candidate, and the score after each stage."""
    columns = signals[_SHOWN_ROWS].T.tolist()
    return [dict(zip(_SHOWN, values, strict=True)) for values in columns]


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


def in_time_order(hits: Sequence[Hit]) -> list[Hit]:
    """Hits by when what they tell happened; those of one moment by source and position."""

    def place(hit: Hit) -> tuple[datetime, str, int, str]:
        source = hit.source
        position = -1 if source is None or source.position is None else source.position
        return hit.event_at or hit.created_at, "" if source is None else source.id, position, hit.id

    return sorted(hits, key=place)


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
