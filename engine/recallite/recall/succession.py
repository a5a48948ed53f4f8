"""Successions among hits: nothing that is superseded is hidden, it goes after what superseded it.

What matches a superseded memory brings what holds instead of it, its successor, which takes the better place of both,
with the old one directly after it. So a successor is found by its predecessor's words, and a wrong supersession costs a
line and no answer. Two that contradict each other are put in this order too, the one that was told last first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recallite.model.match_reasons import CHANGE_BIT
from recallite.recall.answer import Answer
from recallite.recall.request import ANSWER_CONFIDENCE, ANSWER_SHARE, Request
from recallite.store.values import Found, stated_at

if TYPE_CHECKING:
    from recallite.recall.pipeline import Opened


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


class Relations(NamedTuple):
    """How the hits of answers relate: the successions of each, and pairs of row ids that contradict each other."""

    successions: Sequence[Successions]
    contradictions: Sequence[tuple[int, int, str]]
    in_order: bool


def bring_successors(
    opened: Opened, answers: Sequence[Answer], request: Request
) -> tuple[list[Answer], list[Successions]]:
    """The answers with the successors of what is superseded among their hits, each directly before it."""
    found = _find_heads(opened, answers, request)
    if not found.heads and not found.announced:
        return [*answers], [NONE] * len(answers)
    brought = [_bring(answer, found) for answer in answers]
    return [answer for answer, _ in brought], [successions for _, successions in brought]


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
    columns: list[list[Any]] = [
        [column[rank] for rank in (*ranks, *range(ranked, len(rank_of)))] for column in answer[:6]
    ]
    columns[0][: len(order)] = order
    for place, row_id in enumerate(order):
        columns[5][place] = heads[row_id][0] if row_id in heads else columns[5][place]
        if row_id in first_old and row_id not in heads and rank_of.get(row_id, ranked) > place:
            columns[3][place] |= CHANGE_BIT
    columns[1] = _descending(columns[1], len(order))
    brought = frozenset(row_id for row_id in order if row_id not in rank_of)
    return Answer._make((*columns, *answer[6:])), found._replace(heads=heads, brought=brought)


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


def _descending(scores: Sequence[float], ranked: int) -> list[float]:
    """Scores that do not rise from one hit to the next: each is at least that of the hits after it."""
    rising = np.maximum.accumulate(np.array(scores[:ranked])[::-1])[::-1]
    return [*rising.tolist(), *scores[ranked:]]


def bring_contradictions(opened: Opened, answer: Answer, contradictions: Sequence[tuple[int, int, str]]) -> Answer:
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
    columns: list[list[Any]] = [[column[rank] for rank in ranks] for column in answer[:6]]
    place = {rank: at for at, rank in reversed([*enumerate(ranks)])}
    for other, rank in brought.items():
        place[rank] += 1
        columns[0][place[rank]], columns[3][place[rank]], columns[5][place[rank]] = other, 0, -1
    return Answer._make((*columns, *answer[6:]))


def put_in_order(
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
            if unsure and _outdoes(sure[row_id], sure[head]):
                _move_before(order, row_id, head)
    for old, new in successions.announced:
        if old in sure and new in sure and order.index(new) < order.index(old):
            _move_before(order, old, new)
    for one, other, _ in contradictions:
        if one in sure and other in sure and one in records and other in records:
            older, newer = sorted((one, other), key=lambda row_id: told_at(records[row_id]))
            leads = order.index(newer) < order.index(older)
            if told_at(records[older]) < told_at(records[newer]) and not leads:
                _move_before(order, newer, older)
    if order == answer.row_ids[:ranked]:
        return answer
    place = {row_id: rank for rank, row_id in enumerate(answer.row_ids[:ranked])}
    ranks = [*(place[row_id] for row_id in order), *range(ranked, len(answer.row_ids))]
    columns: list[list[Any]] = [[column[rank] for rank in ranks] for column in answer[:6]]
    columns[1] = answer.scores
    return Answer._make((*columns, *answer[6:]))


def _outdoes(one: float, other: float) -> bool:
    """Whether something answers, and something else by far does not."""
    return one >= ANSWER_CONFIDENCE and other < ANSWER_SHARE * one


def _move_before(order: list[int], row_id: int, other: int) -> None:
    order.remove(row_id)
    order.insert(order.index(other), row_id)


def told_at(record: Found) -> tuple[int, int]:
    """The order in which records count: by authority, then by when they were told, in microseconds."""
    moment = stated_at(record.created_at, record.created_at, record.valid_from, resolved=record.valid_resolved)
    return record.authority, moment


def giving_way(answer: Answer, ranks: Sequence[int], successions: Successions, most: int) -> list[int]:
    """At most so many of the ranks: what is surely replaced by a hit that was found by itself gives way first."""
    left = [*ranks]
    kept = {answer.row_ids[rank] for rank in left} - successions.brought
    for rank in reversed(ranks):
        row_id = answer.row_ids[rank]
        if len(left) <= most:
            break
        if row_id in successions.certain and not kept.isdisjoint(successions.heads.get(row_id, ())):
            left.remove(rank)
    return left[:most]


def kept_with_later(
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


def kept_with_successors(
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
