"""Questions about a value that changes: of the hits whose texts give one, the newest goes first.

"What is the test coverage?" is answered by one sentence of a long message in March, "I'm at 65 %", and by one in April,
"it has improved to 78 %". `order_changes` compares statements that were parsed when they were written, and long texts
have none: here the sentence that has most of the question's words counts, of hits that score about the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from recollect.match_reasons import CHANGE_BIT
from recollect.recall.hits import ScoredHit
from recollect.store.values import Found
from recollect.text.asked_value import asked_value

# BEAM's updated values went first for 6 of 10 instead of 4, LongMemEval-S' newer turn before the older one for 8 of 9
# instead of 6, RealMem's MRR rose by .002 and LoCoMo's stayed. With shares of .6 and .85 the gains were about the same.
_DEPTH = 10
_LEAST_SCORE_SHARE = 0.6
# What shorter texts state is known. Without a limit FactConsolidation lost one first place in a hundred.
_LEAST_CHARS = 120
_LEAST_ANSWERED = 0.4
_NEAR_SHARE = 0.75


def newest_first(question: str, hits: Sequence[ScoredHit], found: Mapping[int, Found]) -> list[ScoredHit]:
    """The hits with those that give the value that is asked for from new to old, in the places that they have.

    Only texts of one context (a speaker, a title) are compared. Scores stay in their order.
    """
    asked = asked_value(question)
    if asked is None:
        return [*hits]
    answered = [
        (place, asked.answered_by(found[hit.key].text))
        for place, hit in enumerate(hits[:_DEPTH])
        if hit.key in found
        and len(found[hit.key].text) > _LEAST_CHARS
        and hit.score >= _LEAST_SCORE_SHARE * hits[0].score
    ]
    least = max(_LEAST_ANSWERED, _NEAR_SHARE * max((share for _, share in answered), default=0.0))
    places = [place for place, share in answered if share >= least]
    if not places:
        return [*hits]
    context = found[hits[places[0]].key].context
    places = [place for place in places if found[hits[place].key].context == context]
    newest = sorted((hits[place] for place in places), key=lambda hit: _told(hit, found[hit.key]), reverse=True)
    ordered = [*hits]
    for place, hit in zip(places, newest, strict=True):
        reasons = hit.reasons | CHANGE_BIT if hits.index(hit) > place else hit.reasons
        ordered[place] = hit._replace(score=hits[place].score, reasons=reasons)
    return ordered


def _told(hit: ScoredHit, record: Found) -> tuple[int, int, int]:
    """When a record was told; those of one moment by position."""
    given = record.event_at if not record.event_resolved else None
    return record.created_at if given is None else given, -1 if record.position is None else record.position, hit.key
