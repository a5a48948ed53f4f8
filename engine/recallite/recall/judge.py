"""Judges hits by their texts after the kernel: their confidence, and so their order, the cut and evidence gaps.

The kernel knows a record by its words and vectors. Only its text shows whether it has the kind of value that is asked
for, and texts are read for hits alone. They adjust confidence; then hits are put in order (`recallite.recall.order`),
those below the least confidence are cut, and evidence gaps are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import lru_cache
from itertools import compress, zip_longest
from math import exp, log2
from operator import attrgetter

from recallite.model.checks import to_datetime
from recallite.model.filters import CHUNK_KIND
from recallite.recall.confidence import (
    MOST_READ,
    SIGNAL_SETS,
    SURE_IF_READ,
    SUREST_BY_NAME,
    Missing,
    Name,
    PassageWeights,
    TextWeights,
    find_gaps,
    lack_of_confidence,
    load_calibration,
    names_of,
    passage_weights,
    read_hits,
    surest_of_each,
    text_weights,
)
from recallite.recall.order import Relations, Successions, newest_first, order_by_text, terms_of, told_at
from recallite.recall.query import Queries
from recallite.recall.request import ANSWER_CONFIDENCE, ANSWER_SHARE, Answer, Request
from recallite.recall.slots import HAS, Named, contradicts, named_in, only_asks, slot_of
from recallite.store.sql.record_reading import Found
from recallite.text.questions import read_question
from recallite.text.words import ASKED_APART, QUESTION_TERMS, query_terms, rarity_of, tokenize

# At most this share of the limit gives way to standing records, as in the kernel.
_STANDING_SHARE = 4
_TOKENS, _VECTORS, _MEANING, _WORDS = SIGNAL_SETS
# Later hits have a confidence near 0: their texts would change nothing.
_ASSESSED = 64
# What the odds of a hit are multiplied by if it is about another one of the kind that the question names.
_CONTRADICTED = 0.01
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
    relations: Relations, size: float,
) -> list[Answer]:  # fmt: skip
    """The answers to questions, assessed by the texts of their hits in a store of `size` records.

    One made of sub-questions' answers is cut, and the confidence of its passages is that of passages.
    """
    cuts = request.relevant or request.profile.min_confidence > 0
    whole, by_vector = len(answers) == len(queries.texts), queries.vectors is not None
    weights, passages = _weights(queries, records, request, embedder)
    by_confidence = queries.cohort is not None and queries.cohort.orders and request.mode != "vector"
    assessed = []
    for text, answer, successions in zip(queries.texts, answers, relations.successions, strict=False):
        parts = read = frozenset[int]()
        better_known: Set[int] = frozenset()
        lacking = None
        if passages is not None:
            weigh_passages(answer, records, passages, size)
        if queries.unread is not None or _is_foreign(text, embedder):
            weigh_by_letters([text] if whole else queries.texts, answer, records)
        if request.relevant and _says_little(text):
            answer.confidence[:] = [0.0] * len(answer.confidence)
        if whole:
            parts, read, better_known, lacking = _assess(
                text, answer, records, request, weights, embedder, by_vector, by_confidence
            )
        answer = left = order_by_text(text, answer, better_known, read, records, relations, successions)
        if cuts or len(answer.row_ids) > request.limit:
            left = _cut(text, answer, records, request, parts, read, successions, relations.contradictions)
        gaps = _gaps(text, answer, left, lacking, request, read)
        if relations.in_order:
            left = newest_first(text, left, records)
        assessed.append(left._replace(gaps=gaps))
    return assessed


def _assess(
    text: str, answer: Answer, records: Mapping[int, Found], request: Request, weights: TextWeights,
    embedder: str | None, by_vector: bool, by_confidence: bool,
) -> tuple[frozenset[int], frozenset[int], Set[int], str | None]:  # fmt: skip
    """Adjust the confidence of hits by their texts, and return the row ids of those that answer a part of the
    question, of those that were read, and the ranks of those whose confidence may put them before others.

    Last comes the kind of value that the question asks for, where no hit has one.
    """
    slot, sure, lacking = slot_of(text), answer.confidence, answer.row_ids != []
    has_value = None if slot is None else HAS[slot]
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
        named_by_context = slot == "person" and record.context is not None
        without = has_value is not None and not named_by_context and not has_value(record.text)
        if without or name is not None or record.text[-1:] == "?":
            sure[rank] = adjust_confidence(sure[rank], record, without, weights, 0.0 if name is None else name.added)
        lacking = lacking and without
    better_known: Set[int] = {rank for rank, name in enumerate(names) if name is not None} if names else set()
    most = request.profile.reading
    most = MOST_READ * request.relevant if most is None else most
    if most and by_vector and not _is_foreign(text, embedder):
        # The reader sees no tags: what is found by its name is as sure as it was.
        named = zip_longest(answer.row_ids[:most], names[:most])
        unnamed = {row_id: records[row_id] for row_id, name in named if not name and row_id in records}
        before, sure[:] = [*sure], read_hits(text, answer.row_ids, sure, unnamed, embedder)
        changed = {rank for rank, confidence in enumerate(before) if sure[rank] != confidence}
        better_known |= changed
        read = frozenset(map(answer.row_ids.__getitem__, changed))
    if request.relevant and (asked := named_in(text)) is not None:
        for rank, row_id in enumerate(answer.row_ids[:_ASSESSED]):
            record = records.get(row_id) if sure[rank] >= ANSWER_CONFIDENCE else None
            if record is not None and contradicts(asked, record.text, _beside(record, asked)):
                sure[rank] *= _CONTRADICTED / (1 - sure[rank] * (1 - _CONTRADICTED))
    if by_confidence:
        # A transcript's turns are known by those around them, which confidence does not weigh: they keep their order.
        ranks = enumerate(answer.row_ids)
        better_known |= {rank for rank, id in ranks if id in records and records[id].position is None}
    if request.diversify_by is not None:
        better_known = frozenset()
    elif better_known:
        parts = surest_of_each(answer, names)
    return parts, read, better_known, slot if lacking else None


def _beside(record: Found, asked: Named) -> tuple[str, ...]:
    """The tags and the context of a record, and the year in which it was told if the question names years."""
    year = (str(to_datetime(told_at(record)[1]).year),) if asked.years else ()
    return (*record.tags, record.context or "", *year)


def weigh_passages(answer: Answer, records: Mapping[int, Found], weights: PassageWeights, size: float) -> None:
    """Give passages of documents the confidence of passages in a store of `size` records."""
    for rank, row_id in enumerate(answer.row_ids):
        if (record := records.get(row_id)) is not None and record.kind == CHUNK_KIND:
            answer.confidence[rank] = weights.confidence(answer.confidence[rank], size)


def weigh_by_letters(questions: Sequence[str], answer: Answer, records: Mapping[int, Found]) -> None:
    """Lower the confidence of hits that lack most letters of the words asked, of the part of a question they have most.

    The weights of words were fitted in English, whose function words are known. In other languages a question shares
    some with any text, but few letters: they are short.
    """
    words_of_each = [read_question(question).words for question in questions]
    letters_of_each = [_letters(words) for words in words_of_each]
    for rank, row_id in enumerate(answer.row_ids[: len(answer.row_ids) - answer.brought]):
        if (record := records.get(row_id)) is not None:
            written = terms_of(record)
            share = max(
                _letters(filter(written.__contains__, words)) / letters if letters else 0.0
                for words, letters in zip(words_of_each, letters_of_each, strict=True)
            )
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


def _letters(words: Iterable[str]) -> float:
    letters = 0.0
    for word in words:
        if word not in ASKED_APART:
            letters += len(word) * (_ASKING_SHARE if word in QUESTION_TERMS else rarity_of(word))
    return letters


def assess_one(
    queries: Queries, confidence: float, record: Found, request: Request, embedder: str | None,
    missing: Missing | None, size: float,
) -> tuple[float, float]:  # fmt: skip
    """The confidence of a record as `assess_by_text` adjusts it alone, and the least that it needs; without parts."""
    alone = Answer([0], [0.0], [confidence], [0], [[]], [-1], 0, (), None, missing)
    weights, passages = _weights(queries, {0: record}, request, embedder)
    if passages is not None:
        weigh_passages(alone, {0: record}, passages, size)
    if queries.unread is not None or _is_foreign(queries.texts[0], embedder):
        weigh_by_letters(queries.texts[:1], alone, {0: record})
    if request.relevant and _says_little(queries.texts[0]):
        alone.confidence[0] = 0.0
    by_vector = queries.vectors is not None
    _, read, *_ = _assess(queries.texts[0], alone, {0: record}, request, weights, embedder, by_vector, False)
    least = request.profile.min_confidence
    return alone.confidence[0], max(least, SURE_IF_READ) if read else least


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


def _weights(
    queries: Queries, records: Mapping[int, Found], request: Request, embedder: str | None
) -> tuple[TextWeights, PassageWeights | None]:
    """The weights of texts by the signals of the questions, and those of passages where there are any."""
    if queries.vectors is None:
        signals = _WORDS
    else:
        signals = _MEANING if request.mode == "vector" else _VECTORS if queries.tokens is None else _TOKENS
    passages = passage_weights(embedder, signals)
    if passages is not None and CHUNK_KIND not in map(attrgetter("kind"), records.values()):
        passages = None
    return text_weights(embedder, signals), passages


def _gaps(
    text: str, answer: Answer, left: Answer, lacking: str | None, request: Request, read: frozenset[int]
) -> tuple[str, ...]:
    """The evidence gaps of an answer: none if a ranked hit closes them, unless no ranked hit is left after the cut."""
    ranked = answer.confidence[: len(answer.confidence) - answer.brought]
    missing, nothing_left = answer.missing, len(left.row_ids) == left.brought < len(answer.row_ids)
    best = max(ranked, default=-1.0)
    if missing is None:  # the gaps are those of its sub-questions
        unsure = nothing_left and not answer.gaps and request.profile.gap_confidence > 0
        return (lack_of_confidence(best),) if unsure else answer.gaps
    if missing.closing <= 0:
        return answer.gaps
    if best >= missing.closing and not nothing_left:
        for row_id, sure in zip(answer.row_ids, ranked, strict=False):
            closing = max(missing.closing, SURE_IF_READ) if row_id in read else missing.closing
            if sure >= closing:
                return answer.gaps
    score = -1.0 if nothing_left else missing.score
    return find_gaps(text, missing._replace(confidence=best, score=score), lacking, request)


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
        wanted = floor if row_id in parts else max(share, floor)
        enough = sure[rank] >= (max(wanted, SURE_IF_READ) if row_id in read else wanted)
        if not enough and words is not None and (record := records.get(row_id)) is not None:
            enough = words <= terms_of(record)
        if enough:
            ranks.append(rank)
    if contradictions:
        ranks = _kept_with_later(answer, ranks, successions, records, contradictions)
    if successions.heads:
        ranks = _kept_with_successors(answer, ranks, successions, relevant=request.relevant)
    standing = [rank for rank in range(ranked, len(sure)) if sure[rank] >= floor]
    brought = min(len(standing), max(request.limit - len(ranks), request.limit // _STANDING_SHARE))
    # Those that were surely replaced by a hit that was found by itself give way first.
    most, kept = request.limit - brought, {answer.row_ids[rank] for rank in ranks} - successions.brought
    for rank in reversed([*ranks]) if len(ranks) > most else ():
        row_id = answer.row_ids[rank]
        if row_id in successions.certain and not kept.isdisjoint(successions.heads.get(row_id, ())):
            ranks.remove(rank)
            if len(ranks) == most:
                break
    ranks = [*ranks[:most], *standing[:brought]]
    if len(ranks) == len(sure):
        return answer
    return answer.taken(ranks)._replace(brought=brought)


def _kept_with_later(
    answer: Answer, ranks: Sequence[int], successions: Successions, records: Mapping[int, Found],
    contradictions: Sequence[tuple[int, int, str]],
) -> list[int]:  # fmt: skip
    """The ranks of hits that are kept, with what contradicts them and was told later by no lower authority."""
    rank_of = {row_id: rank for rank, row_id in enumerate(answer.row_ids) if row_id in records}
    later: dict[int, list[int]] = {}
    for pair in contradictions:
        if rank_of.keys() >= {*pair[:2]}:
            older, newer = sorted(pair[:2], key=lambda row_id: told_at(records[row_id]))
            if newer not in successions.certain and told_at(records[older]) < told_at(records[newer]):
                later.setdefault(rank_of[older], []).append(rank_of[newer])
    kept = dict.fromkeys(ranks)
    waiting = [*kept]
    while waiting:
        waiting = [newer for rank in waiting for newer in later.get(rank, ()) if newer not in kept]
        kept.update(dict.fromkeys(waiting))
    return sorted(kept)


def _kept_with_successors(
    answer: Answer, ranks: Sequence[int], successions: Successions, *, relevant: bool
) -> list[int]:
    """The ranks of hits that are kept, with the successors of old ones.

    `relevant` leaves out what is surely replaced by one that answers.
    """
    rank_of = {row_id: rank for rank, row_id in enumerate(answer.row_ids)}
    enough = {answer.row_ids[rank] for rank in ranks}
    kept = set(ranks)
    for row_id, heads in successions.heads.items():
        if row_id not in enough:
            continue
        kept.update(rank_of[head] for head in heads if head in rank_of)
        if relevant and row_id in successions.certain and not enough.isdisjoint(heads):
            kept.discard(rank_of[row_id])
    return sorted(kept)
