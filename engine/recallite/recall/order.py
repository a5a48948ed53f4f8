"""The order of hits, in the steps in which it is made.

1. The kernel orders candidates by their scores (`recallite_kernels.composition`), and changes among the best.
2. `choose` picks among its hits where they are spread over time or sources, or differ (MMR).
3. `recallite.recall.numbered` brings what has a question's names with numbers, and `bring_related` lets what superseded
   or contradicts a hit join, directly before or after it.
4. When `recallite.recall.judge` has read the texts, `order_by_text` puts the surest first, then the newest, and what
   holds before what it replaced; after the cut `newest_first` does so for a value that changes.
5. `recallite.recall.precedence` puts what a higher authority says before the first hits, by a second plan over the same
   view, and what only repeats it last.

Scores stay with their ranks: a score says how good a hit at this place is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from msgspec import Struct

from recallite.model.filters import CHUNK_KIND
from recallite.model.match_reasons import CHANGE_BIT
from recallite.recall.request import ANSWER_CONFIDENCE, ANSWER_SHARE, Answer, Request
from recallite.store.columns import stated_at
from recallite.store.sql.record_reading import Found
from recallite.system.numerics import kernels
from recallite.text.questions import read_question, recognise
from recallite.text.reading import TAG_ONLY
from recallite.text.standing import ANSWERING, whose
from recallite.text.statements import statement_of
from recallite.text.statements.keys import over_of
from recallite.text.words import QUESTION_TERMS, tokenize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from recallite.recall.plan import Opened


# What was picked out of more: by maximal marginal relevance, one a source, or spread over time or sources.

# MMR chooses among this many times the limit, and at least this many.
_MMR_POOL, _MMR_LEAST = 4, 32
# Hits that are spread have at least this share of the best one's relevance, and come from this number of periods.
RELEVANT_SHARE = 0.2
_PERIODS = 10
# What the words of others count where the user's own are asked for.
_OTHER_WORDS = 0.5


def mmr_pool(limit: int) -> int:
    """The number of the best that MMR chooses among."""
    return max(_MMR_POOL * limit, _MMR_LEAST)


def choose(opened: Opened, request: Request, hits: kernels.Hits, query: int, count: int) -> list[int]:
    """The ranks of the hits to return, of `count`; first the ones that a token budget should keep."""
    ranks = np.arange(count)
    if request.diversify_by is not None:
        ranks = _spread_out(opened, request, hits, query, ranks)
    elif request.profile.mmr_lambda is not None and count > 1:
        ranks = _diversify(opened, request.profile.mmr_lambda, hits, query, ranks, mmr_pool(request.limit))
    if request.one_per_source and request.diversify_by is None:
        _, firsts = np.unique(_sources(opened, hits.rows[query, ranks]), return_index=True)
        ranks = ranks[np.sort(firsts)]
    best: list[int] = ranks[: request.limit].tolist()
    return best


def _diversify(
    opened: Opened, mmr_lambda: float, hits: kernels.Hits, query: int, ranks: NDArray[np.int64], size: int
) -> NDArray[np.int64]:
    """Jaccard MMR on the words of the first hits."""
    pool = ranks[:size]
    row_ids = hits.keys[query, pool]
    block = opened.reader.blocks.terms(row_ids.tolist())
    # The block ascends by record; in the order of the pool MMR breaks ties by score.
    order = np.searchsorted(block.ids, row_ids)
    starts, stops = block.offsets[order].tolist(), block.offsets[order + 1].tolist()
    of_text = block.counts & TAG_ONLY == 0  # texts are compared, not tags
    sets = [block.terms[a:b][of_text[a:b]] for a, b in zip(starts, stops, strict=True)]
    offsets = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    tokens = np.ascontiguousarray(np.concatenate(sets), dtype=np.int32)
    relevance = np.ascontiguousarray(hits.signals[query, pool, kernels.SIGNALS.score])
    picked = kernels.maximal_marginal_relevance(relevance, tokens, offsets, mmr_lambda, len(pool))
    return np.concatenate([pool[picked], ranks[len(pool) :]])


def _spread_out(
    opened: Opened, request: Request, hits: kernels.Hits, query: int, ranks: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The ranks that cover the periods, or the sources, of what is relevant, in the order of what each adds.

    What is relevant has `RELEVANT_SHARE` of the best relevance, before recency: an old event is no less of a story.
    The n-th best of a period or source adds a n-th of its relevance, as seats are shared out by D'Hondt. Taking what
    adds most maximises the sum, a monotone submodular function (Lin and Bilmes, 2011).
    """
    relevance = hits.signals[query, ranks, kernels.SIGNALS.spread]
    if request.own_words:
        contexts = opened.reader.records.contexts(hits.keys[query, ranks])
        of_others = [context is not None and context.strip().lower() in ANSWERING for context in contexts]
        relevance = relevance * np.where(of_others, _OTHER_WORDS, 1.0)
    best_first = np.argsort(-relevance, kind="stable")
    ranks, relevance = ranks[best_first], relevance[best_first]
    ranks = ranks[relevance >= RELEVANT_SHARE * max(relevance.max(initial=0.0), 0.0)]
    relevance = relevance[: len(ranks)]
    rows = hits.rows[query, ranks]
    if request.diversify_by == "source" or not len(rows):
        groups = _sources(opened, rows)
    else:
        # There are ten periods, or as many as hits. A moment's place is the mean of its share of the time and of its
        # rank: neither one record of long ago nor one busy week takes all periods.
        moments, number = opened.memory_index.table.moments[rows], min(_PERIODS, request.limit)
        since = (moments - moments.min()).astype(np.float64)
        earlier = np.searchsorted(np.sort(moments), moments).astype(np.float64)
        places = (since / max(since.max(), 1.0) + earlier / max(earlier.max(), 1.0)) / 2
        groups = np.minimum((places * number).astype(np.int64), number - 1)
    # The number of each hit within its group, from 1.
    order = np.argsort(groups, kind="stable")
    _, starts, counts = np.unique(groups[order], return_index=True, return_counts=True)
    numbers = np.empty(len(groups), dtype=np.int64)
    numbers[order] = 1 + np.arange(len(groups)) - np.repeat(starts, counts)
    spread: NDArray[np.int64] = ranks[np.argsort(-relevance / numbers, kind="stable")]
    return spread


def _sources(opened: Opened, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The source of each row; a record without one is by itself."""
    sources = opened.memory_index.table.sources[rows]
    return np.where(sources >= 0, sources, -1 - np.arange(len(rows)))


# Nothing that is superseded is hidden: it goes after what superseded it. What matches a superseded memory brings what
# holds instead of it, its successor, which takes the better place of both, with the old one directly after it. So a
# successor is found by its predecessor's words, and a wrong supersession costs a line and no answer. Two that
# contradict each other are put in this order too, the one that was told last first.


class Successions(NamedTuple):
    """The successors of superseded hits, by row ids.

    `heads` are the last successors of each old one; `certain` are the old ones that surely hold no longer; `brought`
    are heads that are hits only since an old one is. `steps` is how many times each old one was replaced since.
    `announced` are pairs of an old one and of what will replace it, but does not hold yet.
    """

    heads: Mapping[int, tuple[int, ...]] = {}
    certain: frozenset[int] = frozenset()
    brought: frozenset[int] = frozenset()
    steps: Mapping[int, int] = {}
    announced: tuple[tuple[int, int], ...] = ()


NONE = Successions()


class Relations(Struct, frozen=True):
    """How the hits of answers relate: the successions of each, and pairs of row ids that contradict each other.

    `in_order` says whether these move hits, `former` that the question is about the past instead.
    """

    successions: Sequence[Successions]
    contradictions: Sequence[tuple[int, int, str]]
    in_order: bool
    former: bool


def bring_related(
    opened: Opened, answers: Sequence[Answer], request: Request
) -> tuple[list[Answer], Relations, list[tuple[int, int, str]]]:
    """The answers with the successors of what is superseded among their hits, and with what contradicts these.

    Last come all contradictions of hits, where they move none too.
    """
    answers, successions = [*answers], [NONE] * len(answers)
    moves = request.profile.superseded != "as_ranked" and request.diversify_by is None
    in_order, former = moves and not request.about_past, moves and request.about_past
    if opened.any_superseded and in_order:
        found = _find_heads(opened, answers, request)
        for i, answer in enumerate(answers):
            if found.announced or not found.heads.keys().isdisjoint(answer.row_ids):
                answers[i], successions[i] = _bring(answer, found)
    contradictions: list[tuple[int, int, str]] = []
    links = opened.reader.links
    if opened.memory_index.cached("contradicts", None, links.any_contradiction):
        row_ids = {row_id for answer in answers for row_id in answer.row_ids}
        scopes = request.filter.scopes
        readable = opened.reader.scopes.within(scopes) if scopes else None
        contradictions = links.contradictions(sorted(row_ids), readable)
        if in_order and contradictions:
            answers = [_bring_contradictions(opened, answer, contradictions) for answer in answers]
            brought = {row_id for answer in answers for row_id in answer.row_ids} - row_ids
            contradictions += links.contradictions(sorted(brought), readable) if brought else []
    relations = Relations(successions, contradictions if in_order else (), in_order, former)
    return answers, relations, contradictions


def _find_heads(opened: Opened, answers: Sequence[Answer], request: Request) -> Successions:
    """The last successors of all hits that have some, of those that the filter admits."""
    ids = np.array(sorted({row_id for answer in answers for row_id in answer.row_ids}), dtype=np.int64)
    old_ids = opened.memory_index.table.superseded_among(ids)
    if not old_ids:
        return NONE
    edges = opened.reader.supersessions.ahead(old_ids, request.clock)
    news: dict[int, list[int]] = {}
    for edge in edges:
        if edge.holds_from <= request.clock:
            news.setdefault(edge.old_id, []).append(edge.new_id)
    ends = sorted({new_id for new_ids in news.values() for new_id in new_ids if new_id not in news})
    rows, mask = opened.memory_index.table.rows_of(np.array(ends, dtype=np.int64)), opened.view.graph.mask
    admitted = {end for end, row in zip(ends, rows.tolist(), strict=True) if row >= 0 and (not len(mask) or mask[row])}
    heads: dict[int, tuple[int, ...]] = {}
    steps: dict[int, int] = {}
    for old_id in old_ids:
        reached, current, seen = dict[int, None](), [old_id], {old_id}
        while current:
            current = [new_id for one in current for new_id in news.get(one, ()) if new_id not in seen]
            seen.update(current)
            steps[old_id] = steps.get(old_id, 0) + bool(current)
            reached.update(dict.fromkeys(new_id for new_id in current if new_id in admitted))
        if reached:
            heads[old_id] = tuple(reached)
    certain = frozenset(edge.old_id for edge in edges if edge.certain)
    announced = tuple(edge[:2] for edge in edges if edge.holds_from > request.clock)
    return Successions(heads, certain, frozenset(), steps, announced)


def _bring(answer: Answer, found: Successions) -> tuple[Answer, Successions]:
    """The answer with each group of heads and of what they replaced in one place: the best that one of them has."""
    ranked = len(answer.row_ids) - answer.brought
    rank_of = {row_id: rank for rank, row_id in enumerate(answer.row_ids)}
    heads = {
        row_id: tuple(head for head in found.heads[row_id] if rank_of.get(head, 0) < ranked)
        for row_id in answer.row_ids[:ranked]
        if row_id in found.heads
    }
    heads = {row_id: some for row_id, some in heads.items() if some}
    if not heads:
        return answer, NONE._replace(announced=found.announced)
    order = _grouped(answer.row_ids[:ranked], heads, found.steps)
    first_old = {head: row_id for row_id, some in reversed(heads.items()) for head in some}
    ranks = [rank_of.get(row_id, rank_of[first_old.get(row_id, row_id)]) for row_id in order]
    joined = answer.taken([*ranks, *range(ranked, len(rank_of))])
    joined.row_ids[: len(order)] = order
    for place, row_id in enumerate(order):
        if row_id in heads:
            joined.successors[place] = heads[row_id][0]
        elif row_id in heads.get(joined.successors[place], ()):
            joined.successors[place] = -1  # it was told again since, which its time of creation does not tell
        if row_id in first_old and row_id not in heads and rank_of.get(row_id, ranked) > place:
            joined.reasons[place] |= CHANGE_BIT
    # No score rises from one hit to the next.
    rising = np.maximum.accumulate(np.array(joined.scores[: len(order)])[::-1])[::-1]
    joined.scores[: len(order)] = rising.tolist()
    brought = frozenset(row_id for row_id in order if row_id not in rank_of)
    return joined, found._replace(heads=heads, brought=brought)


def _grouped(row_ids: Sequence[int], heads: Mapping[int, Sequence[int]], steps: Mapping[int, int]) -> list[int]:
    """The row ids with heads before what they replaced, of which the last replaced is first."""
    olds: dict[int, list[int]] = {}
    for row_id in sorted(heads, key=lambda row_id: steps.get(row_id, 0)):
        for head in heads[row_id]:
            olds.setdefault(head, []).append(row_id)
    order: dict[int, None] = {}
    for row_id in row_ids:
        if row_id not in order:
            leading = heads.get(row_id, (row_id,))
            order.update(dict.fromkeys(leading))
            order.update(dict.fromkeys(old for head in leading for old in olds.get(head, ())))
    return [*order]


def _bring_contradictions(opened: Opened, answer: Answer, contradictions: Sequence[tuple[int, int, str]]) -> Answer:
    """The answer with what contradicts its hits, each directly after the first that it contradicts."""
    ranked, mask = len(answer.row_ids) - answer.brought, opened.view.graph.mask
    rank_of = {row_id: rank for rank, row_id in enumerate(answer.row_ids)}
    brought = dict[int, int]()
    for one, other, _ in contradictions:
        rank = rank_of.get(one, ranked)
        if other not in rank_of and rank < brought.get(other, ranked):
            brought[other] = rank
    rows = opened.memory_index.table.rows_of(np.array(sorted(brought), dtype=np.int64))
    for other, row in zip(sorted(brought), rows.tolist(), strict=True):
        if row < 0 or (len(mask) and not mask[row]):
            del brought[other]
    if not brought:
        return answer
    ranks = [*sorted([*range(ranked), *brought.values()]), *range(ranked, len(answer.row_ids))]
    joined = answer.taken(ranks)
    place = {rank: i for i, rank in reversed([*enumerate(ranks)])}
    for other, rank in brought.items():
        place[rank] += 1
        joined.row_ids[place[rank]], joined.reasons[place[rank]], joined.successors[place[rank]] = other, 0, -1
    return joined


def _put_in_succession(
    answer: Answer, successions: Successions, records: Mapping[int, Found],
    contradictions: Sequence[tuple[int, int, str]], read: Set[int],
) -> Answer:  # fmt: skip
    """The answer with each head directly before what it replaced, and the later of two that contradict first.

    An old one goes before a successor that did not surely replace it if both were `read`, it answers, and the other by
    far does not. What contradicts it, as an end does, need not answer.
    """
    ranked = len(answer.row_ids) - answer.brought
    sure = dict(zip(answer.row_ids[:ranked], answer.confidence, strict=False))
    order = [*sure]
    if successions.heads:
        order = _grouped(order, successions.heads, successions.steps)
        for row_id in [row_id for row_id in order if row_id in successions.heads]:
            head = successions.heads[row_id][0]
            unsure = row_id not in successions.certain and {row_id, head} <= read
            if unsure and sure[row_id] >= ANSWER_CONFIDENCE and sure[head] < ANSWER_SHARE * sure[row_id]:
                _move_before(order, row_id, head)
    for old, new in successions.announced:
        if old in sure and new in sure and order.index(new) < order.index(old):
            _move_before(order, old, new)
    for one, other, _ in contradictions:
        replaced = other in successions.heads.get(one, ()) or one in successions.heads.get(other, ())
        if one in sure and other in sure and one in records and other in records and not replaced:
            older, newer = sorted((one, other), key=lambda row_id: told_at(records[row_id]))
            leads = order.index(newer) < order.index(older)
            if told_at(records[older]) < told_at(records[newer]) and not leads:
                _move_before(order, newer, older)
    if order == answer.row_ids[:ranked]:
        return answer
    place = {row_id: rank for rank, row_id in enumerate(answer.row_ids[:ranked])}
    return answer.reordered([place[row_id] for row_id in order])


def _move_before(order: list[int], row_id: int, other: int) -> None:
    order.remove(row_id)
    order.insert(order.index(other), row_id)


def told_at(record: Found) -> tuple[int, int]:
    """The order in which records count: by authority, then by when they were told, or when what they tell was over."""
    moment = stated_at(record.created_at, record.created_at, record.valid_from, resolved=record.valid_resolved)
    return record.authority, moment if (over := _over_at(record)) is None else min(moment, over)


def _over_at(record: Found) -> int | None:
    """When what a text tells was over, as it says: "worked at BP until 2019". None if it may hold: "moved in 2019"."""
    if not record.valid_resolved or record.valid_until is None:
        return None
    clauses = statement_of(record.text, record.context).clauses
    return None if any(clause.change or clause.ends or clause.stopped for clause in clauses) else record.valid_until


# Hits whose texts were read.

# Statements less than an hour apart count as simultaneous.
_AT_ONCE_US = 3_600_000_000


def order_by_text(
    question: str, answer: Answer, better_known: Set[int], read: Set[int], records: Mapping[int, Found],
    relations: Relations, successions: Successions,
) -> Answer:  # fmt: skip
    """The answer with the surest of the hits at `better_known` ranks first, then the newest, then what succeeds others.

    `read` are the row ids of hits that were read beside the question. What is over goes first if the past is asked for.
    """
    if better_known:
        answer = surest_first(answer, better_known, records)
    past = recognise(question).past if relations.former else None
    if relations.in_order or (past is not None and past.which == "former"):
        answer = newest_of_equals(question, answer, records, former=relations.former)
    if relations.in_order and (successions is not NONE or relations.contradictions):
        answer = _put_in_succession(answer, successions, records, relations.contradictions, read)
    return answer


def surest_first(answer: Answer, ranks: Set[int], records: Mapping[int, Found]) -> Answer:
    """The answer with each hit of some ranks before less sure ones, while the scores keep their ranks.

    None is put before one of a higher authority, before what changed it or before a newer one that answers, nor if it
    has been superseded.
    """
    order, row_ids, sure = list[int](), answer.row_ids, answer.confidence
    for rank, row_id in enumerate(row_ids[: len(row_ids) - answer.brought]):
        i = rank
        if rank in ranks and (record := records.get(row_id)) is not None and answer.successors[rank] < 0:
            while i > 0:
                before = order[i - 1]
                if sure[before] >= sure[rank] or answer.reasons[before] & CHANGE_BIT:
                    break
                # Without regard to time LoCoMo's MRR was .655 instead of .650, and an old value went first twice in
                # nine times.
                if (hit := records.get(row_ids[before])) is not None:
                    newer = hit.created_at - record.created_at > _AT_ONCE_US and sure[before] >= ANSWER_CONFIDENCE
                    if newer or hit.authority > record.authority:
                        break
                i -= 1
        order.insert(i, rank)
    return answer if order == sorted(order) else answer.reordered(order)


def _put_newest_first(answer: Answer, ranks: Iterable[int], newest: Sequence[int]) -> Answer:
    """The answer with the hits at some ranks in the order `newest` of these; "change" is why one is further up."""
    order = [*range(len(answer.row_ids))]
    for rank, newer in zip(ranks, newest, strict=True):
        order[rank] = newer
    answer = answer.reordered(order)
    raised = (CHANGE_BIT * (before > rank) for rank, before in enumerate(order))
    return answer._replace(reasons=[bits | up for bits, up in zip(answer.reasons, raised, strict=True)])


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


def newest_first(question: str, answer: Answer, records: Mapping[int, Found]) -> Answer:
    """The answer with the hits that give the value asked for sorted from new to old, within the ranks they hold.

    Only texts of one scope, kind, context (a speaker, a title) and user are compared, and no parts of documents. Those
    of one moment stay in their order, but for turns of one transcript, and so do the scores.
    """
    value = recognise(question).value
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
        position = alike[rank].position
        return *told_at(alike[rank]), position if turns and position is not None else 0

    return _put_newest_first(answer, alike, sorted(alike, key=told, reverse=True))


# Of statements that answer a question about as surely, the newer goes first: no rule knows every way to say that
# something changed. It has to have the words of the question that the older one has. Without rules, the newer one is
# first for 59 of 176 changes of `benchmarks.truth` (dev), with this share for 116; of 256 questions about what still
# holds, the wrong one goes first for 19 instead of 13. With .8 it is 127 and 29; without regard to words, with .9 125
# and 24, with .8 157 and 67.
_EQUALS, _EQUAL_SHARE, _LONGEST_STATEMENT = 5, 0.9, 200
_TOLD_ONCE = frozenset(("episode", "procedure", CHUNK_KIND))
_ASKS = ("?", "？", "؟", ";", "፧")


def terms_of(record: Found) -> set[str]:
    """The index terms of a record's text, context and tags."""
    return set(tokenize(" ".join((record.text, record.context or "", *record.tags))))


def newest_of_equals(text: str, answer: Answer, records: Mapping[int, Found], *, former: bool = False) -> Answer:
    """The answer with the statements among the first hits that answer as surely as the best from new to old.

    `former`: instead, those that tell what was over when the newest was told come first.
    """
    ranked, sure = len(answer.row_ids) - answer.brought, answer.confidence
    if ranked < 2 or sure[0] < ANSWER_CONFIDENCE or not text.rstrip().endswith(_ASKS):
        return answer
    near = [rank for rank in range(min(_EQUALS, ranked)) if sure[rank] >= _EQUAL_SHARE * sure[0]]
    # Short statements, and no turns of a transcript, passages or events.
    stated = {
        rank: record
        for rank in near
        if (record := records.get(answer.row_ids[rank])) is not None
        and record.position is None
        and record.kind not in _TOLD_ONCE
        and len(record.text) <= _LONGEST_STATEMENT
    }
    if 0 not in stated or len(stated) < 2:
        return answer
    about = {
        rank: (record.kind, record.scope, record.context, record.authority, whose(record.metadata))
        for rank, record in stated.items()
    }
    terms = {rank: terms_of(record) for rank, record in stated.items()}
    asked = terms[0].intersection(read_question(text).words) - QUESTION_TERMS
    equals = [rank for rank in stated if about[rank] == about[0] and asked <= terms[rank]]
    if len(equals) < 2 or any(over_of(statement_of(stated[rank].text, stated[rank].context)) for rank in equals):
        return answer  # what says itself that it is over is in its place
    told = {rank: told_at(stated[rank]) for rank in equals}
    newest = sorted(equals, key=told.__getitem__, reverse=True)
    if former:
        latest = told[newest[0]][1]
        newest = sorted(equals, key=lambda rank: (_over_at(stated[rank]) or latest) >= latest)
    return answer if newest == equals else _put_newest_first(answer, equals, newest)
