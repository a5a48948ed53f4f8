"""Standing instructions and preferences that apply to a query, brought after the hits that answer it."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recallite.model.match_reasons import STANDING_BIT
from recallite.recall.candidates import SIGNALS, Candidates, measure
from recallite.recall.hits import ScoredHit, score_hits
from recallite.recall.select import threshold
from recallite.system.numerics import distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.index.query_batch import QueryBatch
    from recallite.recall.confidence import Judge
    from recallite.recall.record_loader import StandingRows
    from recallite.recall.request import Request


# All 34 instructions and preferences that are found in chats 6 to 15 of BEAM are as near to the question they are for.
_LEAST_COSINE = 0.15
# So many of them are measured: of each query the nearest.
_NEAREST = 16
# At most this share of the limit gives way to them.
_SHARE = 4


class WithStanding(NamedTuple):
    """The hits of a query: how many of those that rank stay, these with their reasons, and those brought after them."""

    kept: int
    hits: list[ScoredHit]
    brought: list[ScoredHit]


def bring_standing(
    batch: QueryBatch,
    judge: Judge,
    hits: Sequence[list[ScoredHit]],
    standing: StandingRows,
    request: Request,
) -> list[WithStanding]:
    """The hits of each query with the standing instructions and preferences that apply to it.

    Those apply that are near the query, and instructions also where there are few. They come last, with their own
    confidence, and score no more than the last hit before them.
    """
    few = standing.rows[standing.instructions]
    if len(few) > request.profile.standing:
        few = few[:0]
    rows = batch.nearest_of(standing.rows, _NEAREST, _LEAST_COSINE)
    if len(few):
        rows = distinct(np.concatenate([rows, few]))
    keys = standing.keys
    if not len(rows):
        return [WithStanding(len(own), _named_among(own, keys), []) for own in hits]
    measured = measure(batch, rows, request.profile, request.clock)
    every = frozenset(few.tolist())
    anyway = [row in every for row in rows.tolist()]
    confidence = judge.of_records(measured) if request.profile.min_confidence > 0 else None
    chosen = [np.empty(0, dtype=np.int64)] * len(batch)
    for place, own in enumerate(hits):
        least = None if confidence is None else confidence[place]
        chosen[place] = _applicable(measured.of(place), least, own, anyway, request)
    if not any(map(len, chosen)):
        return [WithStanding(len(own), _named_among(own, keys), []) for own in hits]
    if confidence is None:
        confidence = judge.of_records(measured)
    shown = [each[places] for each, places in zip(confidence, chosen, strict=True)]
    found = score_hits(measured, chosen, shown, request.profile)
    results = []
    for own, brought in zip(hits, found, strict=False):
        kept = min(len(own), request.limit - len(brought))
        ranked = _named_among(own[:kept], keys)
        most = ranked[-1].score if ranked else 1.0
        results.append(WithStanding(kept, ranked, [_named(hit, most) for hit in brought]))
    return results


def _applicable(
    measured: Candidates,
    confidence: NDArray[np.float64] | None,
    hits: Sequence[ScoredHit],
    anyway: Sequence[bool],
    request: Request,
) -> NDArray[np.int64]:
    """The places of those that apply to one query and are not among its hits, best first, at most as many as fit."""
    # Plain lists: for sixteen records they take a third of the time of arrays.
    profile, keys = request.profile, measured.keys.tolist()
    cosines, fused = measured.signals[[SIGNALS.cosine, SIGNALS.fused]].tolist()
    found = {hit.key for hit in hits}
    room = max(request.limit - len(hits), request.limit // _SHARE)
    best = [
        place
        for place in threshold(measured, confidence, profile).tolist()
        if keys[place] not in found and (anyway[place] or cosines[place] >= _LEAST_COSINE)
    ]
    best.sort(key=fused.__getitem__, reverse=True)
    return np.array(best[: min(room, profile.standing)], dtype=np.int64)


def _named_among(hits: Sequence[ScoredHit], keys: Set[int]) -> list[ScoredHit]:
    """The hits; those of records with these row ids say that they are standing ones."""
    return [_named(hit) if hit.key in keys else hit for hit in hits]


def _named(hit: ScoredHit, most: float = 1.0) -> ScoredHit:
    """A hit that says that it is a standing one, with a score of at most `most`."""
    return hit._replace(score=min(hit.score, most), reasons=hit.reasons | STANDING_BIT)
