"""Confidence completed by the texts of hits, their order by it, the cut below the least confidence, and evidence gaps.

The kernel knows a record by its words and vectors. Only its text shows whether it has the kind of value that is asked
for, and texts are read for hits alone. Hits that a question names or that were read go before less sure ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import lru_cache, partial
from itertools import zip_longest
from math import exp
from typing import TYPE_CHECKING

from recallite.model.match_reasons import CHANGE_BIT
from recallite.recall.answering import Answer
from recallite.recall.confidence import SIGNAL_SETS, TextWeights, load_calibration
from recallite.recall.evidence_gaps import Missing, find_gaps
from recallite.recall.hit_reading import READ, SURE, read
from recallite.recall.named import SUREST, Name, names_of, surest_of_each
from recallite.recall.request import ANSWER_CONFIDENCE, ANSWER_SHARE
from recallite.recall.slots import lacks, only_asks, slot_of
from recallite.text.words import query_terms, tokenize

if TYPE_CHECKING:
    from recallite.recall.query import Queries
    from recallite.recall.request import Request
    from recallite.store.values import Found

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
            named = zip_longest(answer.keys[:READ], names[:READ])
            unnamed = {key: records[key] for key, name in named if not name and key in records}
            before, sure[:] = [*sure], read(text, answer.keys, sure, unnamed, embedder)
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
        before, (sure,) = sure, read(question, [0], [sure], {0: record}, embedder)
        least = least if sure == before else max(least, SURE)
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
    return result if named == 0.0 else min(result, max(confidence, SUREST))


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
    return confidence >= (max(least, SURE) if key in seen else least)


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
