"""Puts what a higher authority says of a thing before what lower ones say of it, however often they do.

The kernel orders changes among the best hits only. Hundreds of copies from the web may leave no place among these for
what the user said: it is looked up by the keys of the first hits, and put before them. What has no such keys, as a long
text, is recalled alone if all hits are of others, and joins them if it answers.

Nor does a text win by asking the question itself: such a text is most like the question, whatever else it says. What
the user said is then recalled alone, and goes first if it probably answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from msgspec import structs

from recallite.model.authority import rank_of
from recallite.model.checks import now_us
from recallite.model.filters import CHUNK_KIND, And, Comparison
from recallite.model.records import Hit, Hits
from recallite.recall.request import ANSWER_CONFIDENCE, ANSWER_SHARE, Request
from recallite.store.sql.derived import Sought
from recallite.text.patterns import lazily
from recallite.text.statements import Pair, judge_all, statement_of
from recallite.text.statements.keys import record_keys
from recallite.text.topics import topic_of
from recallite.text.words import QUESTION_TERMS, STOP_TERMS, tokenize

if TYPE_CHECKING:
    from recallite.store.transaction import Reader

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
_WORD = lazily(r"\w+")
_ASKING = lazily(r"[^.!?\n]{1,400}\?")
# Hits among which what only repeats others is looked for, and the fewest terms of what is said that one repeats.
MOST_ECHOED, _LEAST_SAID = 30, 2
# The share of a question's words, in their order and from the first, that repeat it without a question mark.
_REPEATED = 0.8
# Characters of a text in which a question is looked for, and of one that may be an echo.
_READ_CHARS = 1_000

RecallNarrowed = Callable[[Request], Sequence[Hit]]
"""A function that recalls the same question with another request."""


def _may_yield(hit: Hit) -> bool:
    return hit.authority != "user" and hit.kind != CHUNK_KIND


def put_higher_first(reader: Reader, hits: Hits, request: Request, recall: RecallNarrowed) -> None:
    """Put what a higher authority says before the first hit that speaks of the same thing, or only asks, and last what
    only repeats it.
    """
    rank_of_id = _find_stated(reader, hits)
    by_id = {hit.id: hit for hit in hits}
    if missing := tuple(id for id in rank_of_id if id not in by_id):
        by_id |= {hit.id: hit for hit in recall(_narrowed(request, Comparison("id", "in", missing), len(missing)))}
    for id, rank in sorted(rank_of_id.items(), key=lambda item: -item[1]):
        if hit := by_id.get(id):
            _put(hits, hit, rank)
    if _may_yield(hits[0]):
        _put_answer(hits, request, recall)
    crowded = len(hits) > _FIRST and (request.relevant or len(hits) == request.limit)
    if not rank_of_id and crowded and all(map(_may_yield, hits)):
        # These leave no place, and all of them are of others: the user's best answer joins them after the first.
        least = min(ANSWER_CONFIDENCE, ANSWER_SHARE * max(hit.confidence for hit in hits))
        for hit in recall(_narrowed(request, Comparison("authority", "eq", rank_of("user")), 1)):
            if hit.confidence >= least:
                _put(hits, hit, _FIRST)
    _put_echoes_last(hits, request, recall)


def _put_echoes_last(hits: Hits, request: Request, recall: RecallNarrowed) -> None:
    """Put what only repeats a hit of a higher authority, or what that superseded, after all others.

    What it repeats takes its place. If the hits are as many as asked for, the next best and what higher authorities say
    take the places of those that are last.
    """
    ranked = [*hits]
    while ranked and "standing" in ranked[-1].match_reasons:  # those that are brought come last, as before
        ranked.pop()
    brought = hits[len(ranked) :]
    others, echoes = _apart(ranked, hits.query)
    if not echoes:
        return
    if len(hits) == request.limit:
        least, known = min(rank_of(echo.authority) for echo in echoes), {hit.id for hit in hits}
        wider = recall(_narrowed(request, None, len(hits) + MOST_ECHOED))
        higher = recall(_narrowed(request, Comparison("authority", "gt", least), len(hits)))
        more = [hit for hit in (*wider, *higher) if hit.id not in known]
        ranked += [structs.replace(hit, match_reasons=(*hit.match_reasons, "authority")) for hit in more]
        others, echoes = _apart(ranked, hits.query)
    order = [*[*others, *echoes][: len(hits) - len(brought)], *brought]
    hits[:] = [structs.replace(hit, score=old.score) for hit, old in zip(order, [*hits], strict=True)]


def _apart(hits: Sequence[Hit], question: str) -> tuple[list[Hit], list[Hit]]:
    """The hits without those that only repeat one of a higher authority, which takes the place of the first, and these.

    Nothing that the question asks for is only a repetition.
    """
    said: dict[str, list[tuple[Hit, str, list[str]]]] = {}
    for hit in hits[: 2 * MOST_ECHOED]:
        for text in (hit.text, *(former.text for former in hit.supersedes)):
            if len(terms := _content_terms(text)) >= _LEAST_SAID and hit.kind != CHUNK_KIND:
                said.setdefault(terms[-1], []).append((hit, text, terms))
    asked, echoes, others = {*tokenize(question)}, list[Hit](), dict[str, Hit]()
    for place, hit in enumerate(hits):
        if _may_yield(hit) and place < 2 * MOST_ECHOED and (ours := _content_terms(hit.text)):
            for other, text, theirs in said.get(ours[-1], ()):
                before = ours[: len(ours) - len(theirs)]
                ends_so = [*before, *theirs] == ours and len(before) <= len(theirs) and asked.isdisjoint(before)
                if ends_so and rank_of(other.authority) > rank_of(hit.authority) and _adds_nothing(hit.text, text):
                    echoes.append(hit)
                    hit = other
                    break
        others.setdefault(hit.id, hit)
    return [*others.values()], echoes


def _adds_nothing(text: str, said: str) -> bool:
    """Whether a text that ends in the words of another has no number, negation, name or side that this lacks."""
    ours, theirs = topic_of(text), topic_of(said)
    facts = [(one.numbers, one.units, one.negations, one.identifiers, one.exclusive) for one in (ours, theirs)]
    return facts[0] == facts[1] and theirs.stems.issuperset(ours.names)


def _content_terms(text: str) -> list[str]:
    """The index terms of a text without stop words, in their order; none of a long one."""
    return [term for term in tokenize(text) if term not in STOP_TERMS] if len(text) <= _READ_CHARS else []


def _find_stated(reader: Reader, hits: Sequence[Hit]) -> dict[str, int]:
    """The ids of what higher authorities say, each with the rank of the first hit that goes before it unduly."""
    lower = [(rank, hit) for rank, hit in enumerate(hits[:_FIRST]) if _may_yield(hit)]
    sought = [Sought(record_keys(hit.text, hit.context).sought, hit.scope, hit.kind) for _, hit in lower]
    now = now_us()
    rank_of_id: dict[str, int] = {}
    for (rank, hit), candidates in zip(lower, reader.statements.candidates(sought, now, _COMPARED), strict=True):
        ahead, authority = {other.id for other in hits[:rank]}, rank_of(hit.authority)
        higher = [
            candidate
            for candidate in candidates
            if candidate.authority > authority
            and (None in (candidate.topic, hit.topic) or candidate.topic == hit.topic)
            and candidate.public_id not in ahead
        ]
        formers = reader.supersessions.formers([candidate.row_id for candidate in higher], now) if higher else {}
        for candidate in higher:
            texts = [candidate.text, *(former.text for former in formers.get(candidate.row_id, ()))]
            statement, others = (
                statement_of(hit.text, hit.context),
                [statement_of(text, candidate.context) for text in texts],
            )
            # The hit repeats or changes one of them, or is changed by one.
            pairs = [Pair(*both, True) for other in others for both in ((statement, other), (other, statement))]
            if any(verdict.outcome != "independent" for verdict in judge_all(pairs)):
                rank_of_id.setdefault(candidate.public_id, rank)
                break
    return rank_of_id


def _put_answer(hits: Hits, request: Request, recall: RecallNarrowed) -> None:
    """Put what a higher authority says first if it is about as sure, or answers what the first hit only repeats."""
    authority = rank_of(hits[0].authority)
    least, higher = _AS_SURE * hits[0].confidence, [hit for hit in hits[:_FIRST] if rank_of(hit.authority) > authority]
    if _repeats(hits[0].text, hits.query):
        narrowed = _narrowed(request, Comparison("authority", "gt", authority), _FIRST)
        least, higher = _ANSWERS, [*recall(structs.replace(narrowed, relevant=True))]
    best = max(higher, key=lambda hit: hit.confidence, default=None)
    if best is not None and best.confidence >= least:
        _put(hits, next((hit for hit in hits if hit.id == best.id), best), 0)


def _repeats(text: str, question: str) -> bool:
    """Whether a text asks a question again: in its words, or in a sentence that ends as one and shares its terms."""
    text = text[:_READ_CHARS]
    terms = set(tokenize(question)) - STOP_TERMS - QUESTION_TERMS
    for sentence in _ASKING.findall(text):
        if 2 * len(terms.intersection(tokenize(sentence))) >= len(terms) > 0:
            return True
    ours, theirs = _WORD.findall(question.lower()), _WORD.findall(text.lower())
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks()
    return bool(ours) and blocks[0].a == 0 and sum(block.size for block in blocks) >= _REPEATED * len(ours)


def _put(hits: Hits, hit: Hit, rank: int) -> None:
    rest = [other for other in hits if other.id != hit.id]
    reasons = dict.fromkeys((*hit.match_reasons, "authority"))
    leading = structs.replace(hit, score=hits[rank].score, match_reasons=(*reasons,))
    hits[:] = [*rest[:rank], leading, *rest[rank:]][: len(hits)]


def _narrowed(request: Request, condition: Comparison | None, limit: int) -> Request:
    where = request.filter.where
    if condition is not None:
        where = condition if where is None else And((where, condition))
    profile = structs.replace(request.profile, standing_instructions=0)
    return structs.replace(request, limit=limit, profile=profile, filter=request.filter.replaced(where=where))
