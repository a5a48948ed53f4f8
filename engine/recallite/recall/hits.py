"""Hits: the chosen candidates with their records, signals and match reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recallite.index.memory_index import MemoryIndex
from recallite.model.authority import AUTHORITIES
from recallite.model.checks import EPOCH, optional_datetime, to_datetime
from recallite.model.match_reasons import reasons_by_bits
from recallite.model.records import Former, Hit, SourceRef
from recallite.recall.answering import SHOWN, Answer, Trace
from recallite.recall.plan import SIGNALS
from recallite.store.transaction import Reader
from recallite.store.values import FormerRow, Found

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.recall.request import Request


_RANKED = ("cosine", "bm25", "fused", "spread")
_NOTHING: dict[str, Any] = {}


class Replaced(NamedTuple):
    """The records that hits supersede, and their successors, by row id: `Supersessions.formers` and `.successors`."""

    formers: Mapping[int, Sequence[FormerRow]] = {}
    successors: Mapping[int, tuple[int, tuple[str, ...]]] = {}

    @classmethod
    def of(cls, reader: Reader, index: MemoryIndex, keys: Sequence[int], request: Request) -> Replaced:
        """Read at once for all hits, and only where the store has supersessions that the request may show."""
        known_at = request.filter.as_of
        if not keys or (known_at is None and index.commit is not None and not index.table.any_superseded):
            return cls()
        formers = reader.supersessions.formers(keys, request.now, known_at)
        plain = known_at is None and request.filter.valid_at is None and not request.filter.include_superseded
        return cls(formers, {} if plain else reader.supersessions.successors(keys, known_at))

    def fields(self, key: int, other: Found | None) -> dict[str, Any]:
        """The fields of a hit that show it; `other` is the record that recall found to have replaced it."""
        if other is None and not self.formers and not self.successors:
            return {}
        held_until, superseded_by = self.successors.get(key, (None, ()))
        if other is not None and other.public_id not in superseded_by:
            superseded_by = (*superseded_by, other.public_id)
        formers = (
            Former(
                id=former.public_id,
                text=former.text,
                held_from=to_datetime(former.held_from),
                held_until=to_datetime(former.held_until),
            )
            for former in self.formers.get(key, ())
        )
        return {
            "held_until": optional_datetime(held_until), "superseded_by": superseded_by, "supersedes": tuple(formers),
        }  # fmt: skip


def load_hits(
    answer: Answer, records: Mapping[int, Found], replaced: Replaced, gaps: tuple[str, ...], request: Request
) -> list[Hit]:
    """The hits of one query with their records; records that are gone by now are left out.

    With `request.explain` the signals also give each hit's rank by each, among the candidates and from 1; 0 where it is
    not among them.
    """
    hits, plain = [], not replaced.formers and not replaced.successors
    named, after, epoch = reasons_by_bits(request.profile.importance_weight > 0), timedelta, EPOCH
    for key, score, confidence, reasons, values, successor in zip(*answer[:6], strict=True):
        record = records.get(key)
        if record is None:
            continue
        valid_from, valid_until = record.valid_from, record.valid_until
        hits.append(
            Hit(
                id=record.public_id,
                text=record.text,
                score=score,
                confidence=confidence,
                kind=record.kind,
                scope=record.scope,
                context=record.context,
                tags=record.tags,
                importance=record.importance,
                created_at=epoch + after(0, 0, record.created_at),
                valid_from=None if valid_from is None else epoch + after(0, 0, valid_from),
                valid_until=None if valid_until is None else epoch + after(0, 0, valid_until),
                updated_at=epoch + after(0, 0, record.updated_at),
                authority=AUTHORITIES[-record.authority],
                topic=record.topic,
                metadata=record.metadata,
                source=None if record.source is None else _source(record),
                match_reasons=named[reasons, record.importance > 0.5],
                evidence_gaps=gaps,
                signals=dict(zip(SHOWN, values, strict=True)),
                **(_NOTHING if plain and successor < 0 else replaced.fields(key, records.get(successor))),
            )
        )
    return hits


def add_ranks(hits: Sequence[Hit], answer: Answer, keys: NDArray[np.int64], trace: Trace) -> None:
    """Add each hit's rank by each signal; `keys` are those of the candidates."""
    for name in _RANKED:
        ranks = _rank_of(trace.signals[getattr(SIGNALS, name)], keys)
        rank_of = dict(zip(keys.tolist(), ranks.tolist(), strict=True))
        for key, hit in zip(answer.keys, hits, strict=True):
            hit.signals[f"{name}_rank"] = float(rank_of.get(key, 0))


def fit_budget(hits: list[Hit], budget_tokens: int, count: Callable[[list[str]], list[int]]) -> tuple[list[Hit], int]:
    """The hits that fit, in order, and how many do not; the best is always kept."""
    if not hits:
        return hits, 0
    costs = count([hit.text for hit in hits])
    fitting, used = [hits[0]], costs[0]
    for hit, cost in zip(hits[1:], costs[1:], strict=True):
        if used + cost <= budget_tokens:
            fitting.append(hit)
            used += cost
    return fitting, len(hits) - len(fitting)


def in_time_order(hits: Sequence[Hit]) -> list[Hit]:
    """Hits by when what they tell happened; those of one moment by source and position."""

    def place(hit: Hit) -> tuple[datetime, str, int, str]:
        source = hit.source
        position = -1 if source is None or source.position is None else source.position
        return hit.valid_from or hit.created_at, "" if source is None else source.id, position, hit.id

    return sorted(hits, key=place)


def _rank_of(values: NDArray[np.float64], keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rank of each value from 1, best first, ties by ascending key; 0 where the value is not above 0."""
    order = np.lexsort((keys, -values))
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.arange(1, len(values) + 1)
    ranks[values <= 0] = 0
    return ranks


def _source(record: Found) -> SourceRef:
    assert record.source is not None
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
