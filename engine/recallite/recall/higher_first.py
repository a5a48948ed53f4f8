"""Hits of a lower authority follow what a higher one says of the same thing, however often they say it.

The kernel of a recall orders changes among the best hits only. Hundreds of copies from the web may leave no place among
these for what the user said: here it is looked up by the keys of the first hits, and put before them. What has no such
keys, as a long text, is recalled alone if the hits are a crowd, and joins them if it answers.

Nor does a text win by asking the question itself: it is most like the question whatever it says after it. What the user
said is recalled alone then, and goes first if it probably answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

from msgspec import structs

from recallite.model.authority import rank_of
from recallite.model.checks import now_us
from recallite.model.filters import And, Comparison
from recallite.model.records import Hit, Hits
from recallite.recall.request import ANSWER_CONFIDENCE, ANSWER_SHARE, Request
from recallite.store.transaction import Reader
from recallite.store.values import CHUNK_KIND, Sought, StatementCandidate
from recallite.text.statements import Pair, Statement, judge_all, statement_of
from recallite.text.statements.keys import record_keys
from recallite.text.words import QUESTION_TERMS, STOP_TERMS, tokenize

# The hits that are looked at, and the statements of each authority that each is compared with.
_FIRST, _COMPARED = 3, 6
# The confidence, read and among the words of higher authorities alone, from which these go before a text that asks the
# question. Of 126 questions of LoCoMo that an agent's text asked and answered wrongly, the user's words went first in
# 40 % (their answer is the best of them in 42 %); of 120 that it answered rightly and they did not, in 8 %. With .4 it
# was 55 % and 18 %.
_ANSWERS = 0.5
# The share of the first hit's confidence from which the user's goes before any other text. Of 49 answers of an agent
# that were first on LoCoMo, 2 % fell behind a turn of the user, with .7 4 % and with .5 27 %.
_AS_SURE = 0.9
_WORD = re.compile(r"\w+")
_ASKING = re.compile(r"[^.!?\n]{1,400}\?")
# The share of a question's words, in their order and from the first, that repeat it without a question mark.
_REPEATED = 0.8
# Characters of a text in which a question is looked for.
_READ_CHARS = 1_000

Ask = Callable[[Request], Sequence[Hit]]
"""A function that recalls the same question with another request."""


def has_lower(hits: Sequence[Hit], request: Request) -> bool:
    """Whether one of the first hits may speak of what a higher authority speaks of."""
    filter = request.filter
    now = filter.as_of is None and filter.valid_at is None and not request.about_past
    return now and request.diversify_by is None and any(map(_may_follow, hits[:_FIRST]))


def _may_follow(hit: Hit) -> bool:
    return hit.authority != "user" and hit.kind != CHUNK_KIND


def put_higher_first(reader: Reader, hits: Hits, request: Request, ask: Ask) -> None:
    """Put what a higher authority says before the first hit that speaks of the same thing, or only asks."""
    places = _places(reader, hits)
    if places:
        _put_stated(hits, places, request, ask)
    if _may_follow(hits[0]):
        _put_answer(hits, request, ask)
    if not places and _may_follow(hits[0]):
        _join_crowd(hits, request, ask)


def _put_stated(hits: Hits, places: dict[str, int], request: Request, ask: Ask) -> None:
    """Put each record before the hit in its place."""
    by_id = {hit.id: hit for hit in hits}
    missing = tuple(id for id in places if id not in by_id)
    if missing:
        by_id |= {hit.id: hit for hit in ask(_narrowed(request, Comparison("id", "in", missing), len(missing)))}
    for id, place in sorted(places.items(), key=lambda item: -item[1]):
        if hit := by_id.get(id):
            _put(hits, hit, place)


def _put_answer(hits: Hits, request: Request, ask: Ask) -> None:
    """Put what a higher authority says first if it is about as sure, or answers what the first hit only repeats."""
    rank = rank_of(hits[0].authority)
    least, higher = _AS_SURE * hits[0].confidence, [hit for hit in hits[:_FIRST] if rank_of(hit.authority) > rank]
    if repeats(hits[0].text, hits.query):
        narrowed = _narrowed(request, Comparison("authority", "gt", rank), _FIRST)
        least, higher = _ANSWERS, [*ask(structs.replace(narrowed, relevant=True))]
    best = max(higher, key=lambda hit: hit.confidence, default=None)
    if best is not None and best.confidence >= least:
        _put(hits, next((hit for hit in hits if hit.id == best.id), best), 0)


def repeats(text: str, question: str) -> bool:
    """Whether a text asks a question again: in its words, or in a sentence that ends as one and shares its terms."""
    text = text[:_READ_CHARS]
    terms = set(tokenize(question)) - STOP_TERMS - QUESTION_TERMS
    for sentence in _ASKING.findall(text):
        if 2 * len(terms.intersection(tokenize(sentence))) >= len(terms) > 0:
            return True
    ours, theirs = _WORD.findall(question.lower()), _WORD.findall(text.lower())
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    return bool(ours) and blocks[0].a == 0 and sum(block.size for block in blocks) >= _REPEATED * len(ours)


def _put(hits: Hits, hit: Hit, place: int) -> None:
    rest = [other for other in hits if other.id != hit.id]
    reasons = dict.fromkeys((*hit.match_reasons, "authority"))
    leading = structs.replace(hit, score=hits[place].score, match_reasons=(*reasons,))
    hits[:] = [*rest[:place], leading, *rest[place:]][: len(hits)]


def _narrowed(request: Request, condition: Comparison, limit: int) -> Request:
    where = condition if request.filter.where is None else And((request.filter.where, condition))
    return structs.replace(request, limit=limit, filter=request.filter.replaced(where=where))


def _join_crowd(hits: Hits, request: Request, ask: Ask) -> None:
    """Put the user's best answer after the first hits, if these leave no place and all of them are of others."""
    crowded = len(hits) > _FIRST and (request.relevant or len(hits) == request.limit)
    if not crowded or not all(map(_may_follow, hits)):
        return
    least = min(ANSWER_CONFIDENCE, ANSWER_SHARE * max(hit.confidence for hit in hits))
    for hit in ask(_narrowed(request, Comparison("authority", "eq", rank_of("user")), 1)):
        if hit.confidence >= least:
            _put(hits, hit, _FIRST)


def _places(reader: Reader, hits: Sequence[Hit]) -> dict[str, int]:
    """The ids of what higher authorities say, each with the place of the first hit that goes before it unduly."""
    lower = [place for place, hit in enumerate(hits[:_FIRST]) if _may_follow(hit)]
    sought = [Sought(record_keys(hits[place].text, hits[place].context).sought, hits[place].scope, hits[place].kind)
              for place in lower]  # fmt: skip
    now = now_us()
    places: dict[str, int] = {}
    for place, candidates in zip(lower, reader.statements.candidates(sought, now, _COMPARED), strict=True):
        hit, ahead = hits[place], {other.id for other in hits[:place]}
        higher = [
            candidate for candidate in candidates if _is_above(candidate, hit) and candidate.public_id not in ahead
        ]
        formers = reader.supersessions.formers([candidate.record_id for candidate in higher], now) if higher else {}
        for candidate in higher:
            texts = [candidate.text, *(former.text for former in formers.get(candidate.record_id, ()))]
            statements = [statement_of(text, candidate.context) for text in texts]
            if _is_about(statement_of(hit.text, hit.context), statements):
                places.setdefault(candidate.public_id, place)
                break
    return places


def _is_above(candidate: StatementCandidate, hit: Hit) -> bool:
    """Whether a record has a higher authority than a hit, and no other topic."""
    another_topic = None not in (candidate.topic, hit.topic) and candidate.topic != hit.topic
    return candidate.authority > rank_of(hit.authority) and not another_topic


def _is_about(statement: Statement, others: Sequence[Statement]) -> bool:
    """Whether a statement repeats or changes any of these, or they change it."""
    pairs = [
        pair for other in others for pair in (Pair(statement, other, None, True), Pair(other, statement, None, True))
    ]
    return any(verdict.outcome != "independent" for verdict in judge_all(pairs))
