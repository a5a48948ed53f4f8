"""What the texts of hits change after the kernel: their confidence and the cut, the newest value, the higher authority.

The kernel knows a record by its words and vectors. Only its text shows whether it has the kind of value that is asked
for, and texts are read for hits alone. Confidence is completed by them, hits that a question names or that were read go
before less sure ones, those below the least confidence are cut, and evidence gaps are found. Then a question about a
value that changes has the newest first, and hits of a lower authority follow what a higher one says of the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from difflib import SequenceMatcher
from functools import lru_cache, partial
from itertools import zip_longest
from math import exp
from typing import TYPE_CHECKING

from msgspec import structs

from recallite.model.authority import rank_of
from recallite.model.checks import now_us
from recallite.model.filters import And, Comparison
from recallite.model.match_reasons import CHANGE_BIT
from recallite.model.records import Hit, Hits
from recallite.recall.answer import Answer
from recallite.recall.confidence import (
    MOST_READ,
    SIGNAL_SETS,
    SURE_IF_READ,
    SUREST_BY_NAME,
    Missing,
    Name,
    TextWeights,
    find_gaps,
    load_calibration,
    names_of,
    read_hits,
    surest_of_each,
)
from recallite.recall.request import ANSWER_CONFIDENCE, ANSWER_SHARE, Request
from recallite.recall.slots import lacks, only_asks, slot_of
from recallite.store.transaction import Reader
from recallite.store.values import CHUNK_KIND, Found, Sought, StatementCandidate, stated_at
from recallite.text.questions import asked_value
from recallite.text.standing import whose
from recallite.text.statements import Pair, Statement, judge_all, statement_of
from recallite.text.statements.keys import record_keys
from recallite.text.words import QUESTION_TERMS, STOP_TERMS, query_terms, tokenize

if TYPE_CHECKING:
    from recallite.recall.query import Queries


# What was told within an hour is neither newer nor older.
_AT_ONCE_US = 3_600_000_000
# At most this share of the limit gives way to standing records, as in the kernel.
STANDING_SHARE = 4
_TOKENS, _VECTORS, _MEANING, _WORDS = SIGNAL_SETS
# Later hits have a confidence near 0: their texts would change nothing.
_JUDGED = 64


def judge(
    queries: Queries, answers: Sequence[Answer], records: Mapping[int, Found], request: Request, embedder: str | None
) -> list[Answer]:
    """The answers to questions, judged by the texts of their hits; one made of sub-questions' answers is not."""
    whole = len(answers) == len(queries.texts)
    weights, least = _weights(embedder, _signals(queries, request)), request.profile.min_confidence
    judged = []
    for text, answer in zip(queries.texts, answers, strict=False):
        if not whole:
            judged.append(_reached(text, answer, records, request) if request.relevant or least > 0 else answer)
            continue
        slot, sure, lacking = slot_of(text), answer.confidence, answer.keys != []
        names: list[Name | None] = []
        parts = seen = frozenset[int]()
        # Most questions name no kind of value, and most texts do not ask: they stay as they are.
        for rank, key in enumerate(answer.keys[:_JUDGED]):
            record = records.get(key)
            if record is None:
                continue
            if not names and (record.tags or record.context is not None):
                names = names_of(text, answer.missing, [records.get(key) for key in answer.keys[:_JUDGED]])
            name = names[rank] if names else None
            if slot is not None or name is not None or record.text[-1:] == "?":
                without = lacks(slot, record.text, record.context)
                sure[rank] = completed(sure[rank], record, without, weights, 0.0 if name is None else name.added)
                lacking = lacking and without
        better_known = {rank for rank, name in enumerate(names) if name is not None}
        if request.relevant and queries.vectors is not None:
            # The reader sees no tags: what is found by its name is as sure as it was.
            named = zip_longest(answer.keys[:MOST_READ], names[:MOST_READ])
            unnamed = {key: records[key] for key, name in named if not name and key in records}
            before, sure[:] = [*sure], read_hits(text, answer.keys, sure, unnamed, embedder)
            changed = {rank for rank, confidence in enumerate(before) if sure[rank] != confidence}
            seen, better_known = frozenset(answer.keys[rank] for rank in changed), better_known | changed
        if better_known and request.diversify_by is None:
            parts = surest_of_each(answer, names)
            answer = surest_first(answer, better_known, records)
        answer = _with_gaps(text, answer, slot if lacking else None, request, seen)
        cut = request.relevant or least > 0
        judged.append(_reached(text, answer, records, request, parts, seen) if cut else answer)
    return judged


def judged_alone(
    queries: Queries, confidence: float, record: Found, request: Request, embedder: str | None, missing: Missing | None
) -> tuple[float, float]:  # fmt: skip
    """The confidence of a record as `judge` completes it alone, and the least that it needs; no question of parts."""
    weights, question = _weights(embedder, _signals(queries, request)), queries.texts[0]
    without = lacks(slot_of(question), record.text, record.context)
    (name,) = names_of(question, missing, [record])
    sure = completed(confidence, record, without, weights, 0.0 if name is None else name.added)
    least = request.profile.min_confidence
    if request.relevant and queries.vectors is not None and name is None:
        before, (sure,) = sure, read_hits(question, [0], [sure], {0: record}, embedder)
        least = least if sure == before else max(least, SURE_IF_READ)
    return sure, least


def completed(confidence: float, record: Found, without: bool, weights: TextWeights, named: float = 0.0) -> float:
    """A confidence completed by a text: whether it is without the kind of value asked for, and whether it only asks.

    `named` is what a name of it adds that the question has.
    """
    added = named + (weights.asking if only_asks(record.text) else 0.0)
    if without:
        added += weights.turn_lacking if record.position is not None else weights.lacking
    if added == 0.0:
        return confidence
    result = confidence / (confidence + (1.0 - confidence) * exp(-added))
    return result if named == 0.0 else min(result, max(confidence, SUREST_BY_NAME))


def surest_first(answer: Answer, ranks: Set[int], records: Mapping[int, Found]) -> Answer:
    """The answer with each hit of some ranks before less sure ones, while the scores keep their places.

    None is put before one of a higher authority, before what changed it or before a newer one that answers, nor if it
    has been superseded.
    """
    sure, ranked, order = answer.confidence, len(answer.keys) - answer.brought, list[int]()
    for rank, key in enumerate(answer.keys[:ranked]):
        at = rank
        if rank in ranks and key in records and answer.successors[rank] < 0:
            while at > 0 and _may_follow(answer, order[at - 1], rank, records):
                at -= 1
        order.insert(at, rank)
    order += range(ranked, len(sure))
    columns = ([column[rank] for rank in order] for column in answer[:6])
    return Answer._make((*columns, *answer[6:]))._replace(scores=answer.scores)


def _may_follow(answer: Answer, rank: int, surer: int, records: Mapping[int, Found]) -> bool:
    """Whether a hit may follow one that was ranked after it, which must be surer."""
    sure, hit, other = answer.confidence, records.get(answer.keys[rank]), records[answer.keys[surer]]
    if sure[rank] >= sure[surer] or answer.reasons[rank] & CHANGE_BIT:
        return False
    # Without regard to time LoCoMo's MRR was .655 instead of .650, and an old value went first twice in nine times.
    if hit is None:
        return True
    newer = hit.created_at - other.created_at > _AT_ONCE_US and sure[rank] >= ANSWER_CONFIDENCE
    return hit.authority <= other.authority and not newer


@lru_cache(maxsize=16)
def _weights(embedder: str | None, signals: str) -> TextWeights:
    return load_calibration().text_weights(embedder, signals)


def _signals(queries: Queries, request: Request) -> str:
    """The one of `SIGNAL_SETS` that the questions of a request have."""
    if queries.vectors is None:
        return _WORDS
    return _MEANING if request.mode == "vector" else _VECTORS if queries.tokens is None else _TOKENS


def _with_gaps(text: str, answer: Answer, lacking: str | None, request: Request, seen: frozenset[int]) -> Answer:
    """The answer with its evidence gaps, if no ranked hit closes them; the hits with keys in `seen` were read."""
    if answer.missing is None:
        return answer
    ranked = answer.confidence[: len(answer.confidence) - answer.brought]
    closing = answer.missing.closing
    if closing <= 0 or any(map(partial(_suffices, closing, seen), answer.keys, ranked)):
        return answer
    missing = answer.missing._replace(confidence=max(ranked, default=-1.0))
    return answer._replace(gaps=find_gaps(text, missing, lacking, request))


def _suffices(least: float, seen: frozenset[int], key: int, confidence: float) -> bool:
    return confidence >= (max(least, SURE_IF_READ) if key in seen else least)


def _reached(
    text: str, answer: Answer, records: Mapping[int, Found], request: Request, parts: frozenset[int] = frozenset(),
    seen: frozenset[int] = frozenset(),
) -> Answer:  # fmt: skip
    """The hits that reach the least confidence and, if only those that answer are wanted, a share of the best's.

    What is brought as a standing instruction answers nothing and needs no share; nor do the hits that answer `parts`.
    The hits with keys in `seen` were read.
    """
    least, sure = request.profile.min_confidence, answer.confidence
    if not sure:
        return answer
    ranked = len(sure) - answer.brought
    share = ANSWER_SHARE * max(sure) if request.relevant else 0.0
    words = set(query_terms(text)) if request.keywords else None
    floor = least if words is None else ANSWER_CONFIDENCE
    ranks = [
        rank
        for rank, key in enumerate(answer.keys[:ranked])
        if _suffices(floor if key in parts else max(share, floor), seen, key, sure[rank])
        or (words is not None and _has_all(words, records.get(key)))
    ]
    standing = [rank for rank in range(ranked, len(sure)) if sure[rank] >= least]
    brought = min(len(standing), max(request.limit - len(ranks), request.limit // STANDING_SHARE))
    ranks = [*ranks[: request.limit - brought], *standing[:brought]]
    if len(ranks) == len(sure):
        return answer
    columns = ([column[rank] for rank in ranks] for column in answer[:6])
    return Answer._make((*columns, brought, *answer[7:]))


def _has_all(words: set[str], record: Found | None) -> bool:
    """Whether a record has all of some words, in its text, context or tags."""
    if record is None:
        return False
    return words <= set(tokenize(" ".join((record.text, record.context or "", *record.tags))))


# Questions about a value that changes: of the hits whose texts give one, the newest goes first. "What is the test
# coverage?" is answered by one sentence of a long message in March, "I'm at 65 %", and by one in April, "it has
# improved to 78 %". The kernel compares statements that were parsed when they were written, and long texts have none:
# here the sentence that has most of the question's words counts, of hits that score about the same.

# BEAM's updated values went first for 7 of 10 instead of 4, its MRR fell by .008; LongMemEval-S' newer turn went before
# the older one for 7 of 9 instead of 6; RealMem and LoCoMo stayed. Near shares of .6 to .95 gave 5 to 7 of 10, and to
# ask for a word of change in the newer text gained less.
_DEPTH = 10
_LEAST_SCORE_SHARE = 0.6
# What shorter texts state is known. Without a limit FactConsolidation lost one first place in a hundred.
_LEAST_CHARS = 120
_LEAST_ANSWERED = 0.4
_NEAR_SHARE = 0.8


def newest_first(question: str, answer: Answer, records: Mapping[int, Found]) -> Answer:
    """The answer with the hits that give the value that is asked for from new to old, in the places that they have.

    Only texts of one scope, kind, context (a speaker, a title) and user are compared. Those of one moment stay in their
    order, but for turns of one transcript, and so do the scores.
    """
    value = asked_value(question)
    if value is None:
        return answer
    keys, ranked = answer.keys, len(answer.keys) - answer.brought
    near = [
        place
        for place, key in enumerate(keys[: min(_DEPTH, ranked)])
        if key in records
        and len(records[key].text) > _LEAST_CHARS
        and answer.scores[place] >= _LEAST_SCORE_SHARE * answer.scores[0]
    ]
    if len(near) < 2:
        return answer
    answered = [(place, value.answered_by(records[keys[place]].text)) for place in near]
    least = max(_LEAST_ANSWERED, _NEAR_SHARE * max((share for _, share in answered), default=0.0))
    places = [place for place, share in answered if share >= least]
    if not places:
        return answer
    lead = records[keys[places[0]]]
    places = [place for place in places if _is_alike(records[keys[place]], lead)]
    turns = {records[keys[place]].source for place in places} == {lead.source} and lead.source is not None
    newest = sorted(places, key=lambda place: _told(records[keys[place]], turns=turns), reverse=True)
    order = [*range(len(keys))]
    for place, newer in zip(places, newest, strict=True):
        order[place] = newer
    reasons = [answer.reasons[before] | CHANGE_BIT * (before > place) for place, before in enumerate(order)]
    return answer._replace(
        keys=[keys[before] for before in order],
        confidence=[answer.confidence[before] for before in order],
        reasons=reasons,
        signals=[answer.signals[before] for before in order],
        successors=[answer.successors[before] for before in order],
    )


def _is_alike(record: Found, other: Found) -> bool:
    """Whether two records may tell of one thing at two times: parts of documents do not."""
    one, two = ((turn.kind, turn.scope, turn.context, whose(turn.metadata)) for turn in (record, other))
    return one == two and record.kind != CHUNK_KIND


def _told(record: Found, *, turns: bool) -> tuple[int, int, int]:
    """The authority of a record and when it was told; turns of a transcript that have one moment, by position."""
    moment = stated_at(record.created_at, record.created_at, record.valid_from, resolved=record.valid_resolved)
    return record.authority, moment, record.position if turns and record.position is not None else 0


# Hits of a lower authority follow what a higher one says of the same thing, however often they say it. The kernel
# orders changes among the best hits only. Hundreds of copies from the web may leave no place among these for what the
# user said: here it is looked up by the keys of the first hits, and put before them. What has no such keys, as a long
# text, is recalled alone if the hits are a crowd, and joins them if it answers.
#
# Nor does a text win by asking the question itself: it is most like the question whatever it says after it. What the
# user said is recalled alone then, and goes first if it probably answers.

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
    return now and request.diversify_by is None and any(map(_may_yield, hits[:_FIRST]))


def _may_yield(hit: Hit) -> bool:
    return hit.authority != "user" and hit.kind != CHUNK_KIND


def put_higher_first(reader: Reader, hits: Hits, request: Request, ask: Ask) -> None:
    """Put what a higher authority says before the first hit that speaks of the same thing, or only asks."""
    places = _places(reader, hits)
    if places:
        _put_stated(hits, places, request, ask)
    if _may_yield(hits[0]):
        _put_answer(hits, request, ask)
    if not places and _may_yield(hits[0]):
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
    if not crowded or not all(map(_may_yield, hits)):
        return
    least = min(ANSWER_CONFIDENCE, ANSWER_SHARE * max(hit.confidence for hit in hits))
    for hit in ask(_narrowed(request, Comparison("authority", "eq", rank_of("user")), 1)):
        if hit.confidence >= least:
            _put(hits, hit, _FIRST)


def _places(reader: Reader, hits: Sequence[Hit]) -> dict[str, int]:
    """The ids of what higher authorities say, each with the place of the first hit that goes before it unduly."""
    lower = [place for place, hit in enumerate(hits[:_FIRST]) if _may_yield(hit)]
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
