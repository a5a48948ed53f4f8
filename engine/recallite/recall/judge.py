"""What the texts of hits change after the kernel: their confidence and the cut, the newest value, the higher authority.

The kernel knows a record by its words and vectors. Only its text shows whether it has the kind of value that is asked
for, and texts are read for hits alone. They adjust confidence; then hits that a question names or that were read go
before less sure ones, evidence gaps are found, and hits below the least confidence are cut. Last, a question about a
value that changes gets the newest first, and hits of a lower authority follow what a higher one says of the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from difflib import SequenceMatcher
from functools import lru_cache, partial
from itertools import compress, zip_longest
from math import exp, log2

from msgspec import structs

from recallite.model.authority import rank_of
from recallite.model.checks import now_us
from recallite.model.filters import And, Comparison
from recallite.model.match_reasons import CHANGE_BIT
from recallite.model.records import Hit, Hits
from recallite.recall.answer import Answer
from recallite.recall.calibration import SIGNAL_SETS, TextWeights, load_calibration, text_weights
from recallite.recall.confidence import (
    MOST_READ,
    SURE_IF_READ,
    SUREST_BY_NAME,
    Missing,
    Name,
    find_gaps,
    lack_of_confidence,
    names_of,
    read_hits,
    surest_of_each,
)
from recallite.recall.query import Queries, read_question
from recallite.recall.request import ANSWER_CONFIDENCE, ANSWER_SHARE, Request
from recallite.recall.slots import lacks, only_asks, slot_of
from recallite.recall.succession import (
    NONE,
    Relations,
    Successions,
    giving_way,
    kept_with_later,
    kept_with_successors,
    put_in_order,
    told_at,
)
from recallite.store.transaction import Reader
from recallite.store.values import CHUNK_KIND, Found, Sought, stated_at
from recallite.text.questions import asked_value
from recallite.text.standing import whose
from recallite.text.statements import Pair, judge_all, statement_of
from recallite.text.statements.keys import over_of, record_keys
from recallite.text.words import ASKED_APART, QUESTION_TERMS, STOP_TERMS, query_terms, rarity_of, tokenize

# Statements less than an hour apart count as simultaneous.
_AT_ONCE_US = 3_600_000_000
# At most this share of the limit gives way to standing records, as in the kernel.
_STANDING_SHARE = 4
_TOKENS, _VECTORS, _MEANING, _WORDS = SIGNAL_SETS
# Later hits have a confidence near 0: their texts would change nothing.
_ASSESSED = 64
# The power of the odds of a letter being shared that lowers a confidence where the model does not read the question.
_LETTER_WEIGHT = 2.0
# What the letters of words that ask count as; nothing in Chinese and Thai, where pairs of characters count each twice.
# With nothing everywhere 2 of 23 unrelated questions in Hindi were answered, with half none; in Chinese 28 of 31 kept
# their answer with nothing, 26 with half.
_ASKING_SHARE = 0.5
# The words of all of LoCoMo's questions tell 21 bits or more, by their frequency; of "add a test for this" they do 14.
_FEWEST_BITS = 15.0
_POINTING = frozenset(tokenize("it this that these those them here"))
_PERSONAL = frozenset(tokenize("i me my mine we us our"))


def assess_by_text(
    queries: Queries, answers: Sequence[Answer], records: Mapping[int, Found], request: Request, embedder: str | None,
    relations: Relations,
) -> list[Answer]:  # fmt: skip
    """The answers to questions, assessed by the texts of their hits; one made of sub-questions' answers is only cut."""
    cuts = request.relevant or request.profile.min_confidence > 0
    whole, by_vector = len(answers) == len(queries.texts), queries.vectors is not None
    weights = text_weights(embedder, _signals(queries, request))
    by_confidence = queries.cohort is not None and queries.cohort.orders and request.mode != "vector"
    assessed = []
    for text, answer, successions in zip(queries.texts, answers, relations.successions, strict=False):
        parts, read, lacking = frozenset[int](), frozenset[int](), None
        if queries.unread is not None or _is_foreign(text, embedder):
            weigh_by_letters([text] if whole else queries.texts, answer, records)
        if request.relevant and _says_little(text):
            answer.confidence[:] = [0.0] * len(answer.confidence)
        if whole:
            answer, parts, read, lacking = _assess(
                text, answer, records, request, weights, embedder, by_vector, by_confidence
            )
        if relations.in_order:
            answer = newest_of_equals(text, answer, records)
        if successions is not NONE or relations.contradictions:
            answer = put_in_order(answer, successions, records, relations.contradictions, read)
        left = answer
        if cuts or len(answer.row_ids) > request.limit:
            left = _cut(text, answer, records, request, parts, read, successions, relations.contradictions)
        assessed.append(left._replace(gaps=_gaps(text, answer, left, lacking, request, read)))
    return assessed


def _assess(
    text: str, answer: Answer, records: Mapping[int, Found], request: Request, weights: TextWeights,
    embedder: str | None, by_vector: bool, by_confidence: bool,
) -> tuple[Answer, frozenset[int], frozenset[int], str | None]:  # fmt: skip
    """The answer assessed by texts, with the row ids of its hits that answer a part of the question, and were read.

    Last comes the kind of value that the question asks for, where no hit has one.
    """
    slot, sure, lacking = slot_of(text), answer.confidence, answer.row_ids != []
    names: list[Name | None] = []
    parts = read = frozenset[int]()
    # Most questions name no kind of value, and most texts do not ask: they stay as they are.
    for rank, row_id in enumerate(answer.row_ids[:_ASSESSED]):
        record = records.get(row_id)
        if record is None:
            continue
        if not names and (record.tags or record.context is not None):
            names = names_of(text, answer.missing, [records.get(row_id) for row_id in answer.row_ids[:_ASSESSED]])
        name = names[rank] if names else None
        if slot is not None or name is not None or record.text[-1:] == "?":
            without = lacks(slot, record.text, record.context)
            sure[rank] = adjust_confidence(sure[rank], record, without, weights, 0.0 if name is None else name.added)
            lacking = lacking and without
    better_known = {rank for rank, name in enumerate(names) if name is not None}
    most = request.profile.reading
    if by_vector and (most := MOST_READ * request.relevant if most is None else most):
        # The reader sees no tags: what is found by its name is as sure as it was.
        named = zip_longest(answer.row_ids[:most], names[:most])
        unnamed = {row_id: records[row_id] for row_id, name in named if not name and row_id in records}
        before, sure[:] = [*sure], read_hits(text, answer.row_ids, sure, unnamed, embedder)
        changed = {rank for rank, confidence in enumerate(before) if sure[rank] != confidence}
        read, better_known = frozenset(answer.row_ids[rank] for rank in changed), better_known | changed
    if by_confidence:
        # A transcript's turns are known by those around them, which confidence does not weigh: they keep their order.
        ranks = enumerate(answer.row_ids)
        better_known |= {rank for rank, id in ranks if id in records and records[id].position is None}
    if better_known and request.diversify_by is None:
        parts = surest_of_each(answer, names)
        answer = surest_first(answer, better_known, records)
    return answer, parts, read, slot if lacking else None


def weigh_by_letters(questions: Sequence[str], answer: Answer, records: Mapping[int, Found]) -> None:
    """Lower the confidence of hits that lack most letters of the words asked, of the part of a question they have most.

    The weights of words were fitted in English, whose function words are known. In other languages a question shares
    some with any text, but few letters: they are short.
    """
    words_of_each = [read_question(question).words for question in questions]
    for rank, row_id in enumerate(answer.row_ids[: len(answer.row_ids) - answer.brought]):
        if (record := records.get(row_id)) is not None:
            written = _terms_of(record)
            share = max(_share_of_letters(words, written) for words in words_of_each)
            if share < 0.5:
                odds = (share / (1 - share)) ** _LETTER_WEIGHT
                sure = answer.confidence[rank]
                answer.confidence[rank] = sure * odds / (sure * odds + 1 - sure) if sure < 1 else odds


def _is_foreign(question: str, embedder: str | None) -> bool:
    """Whether a model made for English is asked in another language."""
    return embedder in load_calibration().embedders and read_question(question).foreign


@lru_cache(maxsize=1024)
def _says_little(question: str) -> bool:
    """Whether a question points at what is at hand and says hardly more: "fix it", "why did that fail?"."""
    read = read_question(question)
    if _POINTING.isdisjoint(read.terms) or not _PERSONAL.isdisjoint(read.terms):
        return False
    bits = -sum(map(log2, compress(read.shares, read.roles)))
    return bits < _FEWEST_BITS


def _share_of_letters(words: Sequence[str], written: Set[str]) -> float:
    letters = sum(map(_letters, words))
    return sum(_letters(word) for word in words if word in written) / letters if letters else 0.0


def _letters(word: str) -> float:
    return len(word) * (0.0 if word in ASKED_APART else _ASKING_SHARE if word in QUESTION_TERMS else rarity_of(word))


def _terms_of(record: Found) -> set[str]:
    return set(tokenize(" ".join((record.text, record.context or "", *record.tags))))


def assess_one(
    queries: Queries, confidence: float, record: Found, request: Request, embedder: str | None, missing: Missing | None
) -> tuple[float, float]:  # fmt: skip
    """The confidence of a record as `assess_by_text` adjusts it alone, and the least that it needs; without parts."""
    alone = Answer([0], [0.0], [confidence], [0], [[]], [-1], 0, (), None, missing)
    if queries.unread is not None or _is_foreign(queries.texts[0], embedder):
        weigh_by_letters(queries.texts[:1], alone, {0: record})
    if request.relevant and _says_little(queries.texts[0]):
        alone.confidence[0] = 0.0
    weights, by_vector = text_weights(embedder, _signals(queries, request)), queries.vectors is not None
    answer, _, read, _ = _assess(queries.texts[0], alone, {0: record}, request, weights, embedder, by_vector, False)
    least = request.profile.min_confidence
    return answer.confidence[0], max(least, SURE_IF_READ) if read else least


def adjust_confidence(
    confidence: float, record: Found, without: bool, weights: TextWeights, named: float = 0.0
) -> float:
    """A confidence adjusted by a text: whether it is without the kind of value asked for, and whether it only asks.

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
    """The answer with each hit of some ranks before less sure ones, while the scores keep their ranks.

    None is put before one of a higher authority, before what changed it or before a newer one that answers, nor if it
    has been superseded.
    """
    sure, ranked, order = answer.confidence, len(answer.row_ids) - answer.brought, list[int]()
    for rank, row_id in enumerate(answer.row_ids[:ranked]):
        i = rank
        if rank in ranks and row_id in records and answer.successors[rank] < 0:
            while i > 0 and _may_follow(answer, order[i - 1], rank, records):
                i -= 1
        order.insert(i, rank)
    return _reordered(answer, [*order, *range(ranked, len(sure))])


def _may_follow(answer: Answer, rank: int, surer: int, records: Mapping[int, Found]) -> bool:
    """Whether a hit may follow one that was ranked after it, which must be surer."""
    sure, hit, other = answer.confidence, records.get(answer.row_ids[rank]), records[answer.row_ids[surer]]
    if sure[rank] >= sure[surer] or answer.reasons[rank] & CHANGE_BIT:
        return False
    # Without regard to time LoCoMo's MRR was .655 instead of .650, and an old value went first twice in nine times.
    if hit is None:
        return True
    newer = hit.created_at - other.created_at > _AT_ONCE_US and sure[rank] >= ANSWER_CONFIDENCE
    return hit.authority <= other.authority and not newer


def _reordered(answer: Answer, ranks: Sequence[int]) -> Answer:
    """The answer with its hits in the order of `ranks`; the scores stay."""
    columns = ([column[rank] for rank in ranks] for column in answer[:6])
    return Answer._make((*columns, *answer[6:]))._replace(scores=answer.scores)


def _raised(answer: Answer, order: Sequence[int]) -> Answer:
    """The answer with the reason "change" for hits that were put before others, given the ranks that they had."""
    raised = [before > rank for rank, before in enumerate(order)]
    return answer._replace(reasons=[bits | CHANGE_BIT * up for bits, up in zip(answer.reasons, raised, strict=True)])


def _signals(queries: Queries, request: Request) -> str:
    """The one of `SIGNAL_SETS` that the questions of a request have."""
    if queries.vectors is None:
        return _WORDS
    return _MEANING if request.mode == "vector" else _VECTORS if queries.tokens is None else _TOKENS


def _gaps(
    text: str, answer: Answer, left: Answer, lacking: str | None, request: Request, read: frozenset[int]
) -> tuple[str, ...]:  # fmt: skip
    """The evidence gaps of an answer: none if a ranked hit closes them, unless no ranked hit is left after the cut."""
    ranked = answer.confidence[: len(answer.confidence) - answer.brought]
    missing, nothing_left = answer.missing, len(left.row_ids) == left.brought < len(answer.row_ids)
    best = max(ranked, default=-1.0)
    if missing is None:  # the gaps are those of its sub-questions
        unsure = nothing_left and not answer.gaps and request.profile.gap_confidence > 0
        return (lack_of_confidence(best),) if unsure else answer.gaps
    closed = any(map(partial(_suffices, missing.closing, read), answer.row_ids, ranked))
    if missing.closing <= 0 or (closed and not nothing_left):
        return answer.gaps
    score = -1.0 if nothing_left else missing.score
    return find_gaps(text, missing._replace(confidence=best, score=score), lacking, request)


def _suffices(least: float, read: frozenset[int], row_id: int, confidence: float) -> bool:
    return confidence >= (max(least, SURE_IF_READ) if row_id in read else least)


def _cut(
    text: str, answer: Answer, records: Mapping[int, Found], request: Request, parts: frozenset[int],
    read: frozenset[int], successions: Successions, contradictions: Sequence[tuple[int, int, str]],
) -> Answer:  # fmt: skip
    """The hits that reach the least confidence and, with `relevant`, a share of the best's.

    A standing instruction answers nothing and needs no share, nor does a hit that answers one of `parts`. What ended or
    contradicts a hit comes with it.
    """
    least, sure = request.profile.min_confidence, answer.confidence
    if not sure:
        return answer
    ranked = len(sure) - answer.brought
    share = ANSWER_SHARE * max(sure) if request.relevant else 0.0
    words = set(query_terms(text)) if request.keywords else None
    floor = least if words is None else ANSWER_CONFIDENCE
    ranks = []
    for rank, row_id in enumerate(answer.row_ids[:ranked]):
        enough = _suffices(floor if row_id in parts else max(share, floor), read, row_id, sure[rank])
        if not enough and words is not None and (record := records.get(row_id)) is not None:
            enough = words <= _terms_of(record)
        if enough:
            ranks.append(rank)
    if contradictions:
        ranks = kept_with_later(answer, ranks, successions, records, contradictions)
    if successions.heads:
        ranks = kept_with_successors(answer, ranks, successions, relevant=request.relevant)
    standing = [rank for rank in range(ranked, len(sure)) if sure[rank] >= floor]
    brought = min(len(standing), max(request.limit - len(ranks), request.limit // _STANDING_SHARE))
    ranks = [*giving_way(answer, ranks, successions, request.limit - brought), *standing[:brought]]
    if len(ranks) == len(sure):
        return answer
    columns = ([column[rank] for rank in ranks] for column in answer[:6])
    return Answer._make((*columns, brought, *answer[7:]))


# Questions about a value that changes: of the hits with a value in their text, the newest goes first. "What is the test
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
_asked_value = lru_cache(maxsize=1024)(asked_value)


def newest_first(question: str, answer: Answer, records: Mapping[int, Found]) -> Answer:
    """The answer with the hits that give the value asked for sorted from new to old, within the ranks they hold.

    Only texts of one scope, kind, context (a speaker, a title) and user are compared, and no parts of documents. Those
    of one moment stay in their order, but for turns of one transcript, and so do the scores.
    """
    value = _asked_value(question)
    if value is None:
        return answer
    row_ids, ranked = answer.row_ids, len(answer.row_ids) - answer.brought
    near = [
        (rank, records[row_id])
        for rank, row_id in enumerate(row_ids[: min(_DEPTH, ranked)])
        if row_id in records
        and len(records[row_id].text) > _LEAST_CHARS
        and answer.scores[rank] >= _LEAST_SCORE_SHARE * answer.scores[0]
    ]
    if len(near) < 2:
        return answer
    shares = [value.answered_by(record.text) for _, record in near]
    least = max(_LEAST_ANSWERED, _NEAR_SHARE * max(shares))
    near = [hit for hit, share in zip(near, shares, strict=True) if share >= least]
    if not near or near[0][1].kind == CHUNK_KIND:
        return answer
    same = [(turn.kind, turn.scope, turn.context, whose(turn.metadata)) for _, turn in near]
    alike = {rank: record for (rank, record), fields in zip(near, same, strict=True) if fields == same[0]}
    sources = {record.source for record in alike.values()}
    turns = len(sources) == 1 and None not in sources

    def told(rank: int) -> tuple[int, int, int]:
        record = alike[rank]
        moment = stated_at(record.created_at, record.created_at, record.valid_from, resolved=record.valid_resolved)
        return record.authority, moment, record.position if turns and record.position is not None else 0

    order = [*range(len(row_ids))]
    for rank, newer in zip(alike, sorted(alike, key=told, reverse=True), strict=True):
        order[rank] = newer
    return _raised(_reordered(answer, order), order)


# Of statements that answer a question about as surely, the newer goes first: no rule knows every way to say that
# something changed. It has to have the words of the question that the older one has. Without rules, the newer one is
# first for 59 of 176 changes of `benchmarks.truth` (dev), with this share for 116; of 256 questions about what still
# holds, the wrong one goes first for 19 instead of 13. With .8 it is 127 and 29; without regard to words, with .9 125
# and 24, with .8 157 and 67.
_EQUALS, _EQUAL_SHARE, _LONGEST_STATEMENT = 5, 0.9, 200
_TOLD_ONCE = frozenset(("episode", "procedure", CHUNK_KIND))
_ASKS = ("?", "？", "؟", ";", "፧")


def newest_of_equals(text: str, answer: Answer, records: Mapping[int, Found]) -> Answer:
    """The answer with the statements among the first hits that answer as surely as the best from new to old."""
    ranked, sure = len(answer.row_ids) - answer.brought, answer.confidence
    if ranked < 2 or sure[0] < ANSWER_CONFIDENCE or not text.rstrip().endswith(_ASKS):
        return answer
    near = [rank for rank in range(min(_EQUALS, ranked)) if sure[rank] >= _EQUAL_SHARE * sure[0]]
    stated = {rank: records[row_id] for rank in near if (row_id := answer.row_ids[rank]) in records}
    stated = {rank: record for rank, record in stated.items() if _states(record)}
    if 0 not in stated or len(stated) < 2:
        return answer
    about = {
        rank: (record.kind, record.scope, record.context, record.authority, whose(record.metadata))
        for rank, record in stated.items()
    }
    terms = {rank: _terms_of(record) for rank, record in stated.items()}
    asked = terms[0].intersection(read_question(text).words) - QUESTION_TERMS
    equals = [rank for rank in stated if about[rank] == about[0] and asked <= terms[rank]]
    if len(equals) < 2 or any(over_of(statement_of(stated[rank].text, stated[rank].context)) for rank in equals):
        return answer  # what says itself that it is over is in its place
    newest = sorted(equals, key=lambda rank: told_at(stated[rank]), reverse=True)
    if newest == equals:
        return answer
    order = [*range(len(answer.row_ids))]
    for rank, newer in zip(equals, newest, strict=True):
        order[rank] = newer
    return _raised(_reordered(answer, order), order)


def _states(record: Found) -> bool:
    """Whether a record is a short statement, and no turn of a transcript, passage or event."""
    return record.position is None and record.kind not in _TOLD_ONCE and len(record.text) <= _LONGEST_STATEMENT


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

RecallNarrowed = Callable[[Request], Sequence[Hit]]
"""A function that recalls the same question with another request."""


def has_lower(hits: Sequence[Hit], request: Request) -> bool:
    """Whether one of the first hits may speak of what a higher authority speaks of."""
    filter = request.filter
    now = filter.as_of is None and filter.valid_at is None and not request.about_past
    return now and request.diversify_by is None and any(map(_may_yield, hits[:_FIRST]))


def _may_yield(hit: Hit) -> bool:
    return hit.authority != "user" and hit.kind != CHUNK_KIND


def put_higher_first(reader: Reader, hits: Hits, request: Request, recall: RecallNarrowed) -> None:
    """Put what a higher authority says before the first hit that speaks of the same thing, or only asks."""
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


def _narrowed(request: Request, condition: Comparison, limit: int) -> Request:
    where = condition if request.filter.where is None else And((request.filter.where, condition))
    return structs.replace(request, limit=limit, filter=request.filter.replaced(where=where))
