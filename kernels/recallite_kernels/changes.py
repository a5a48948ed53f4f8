"""The step of a recall that puts what holds before what it replaced, among the best candidates.

It is part of the source that both backends run: see `recallite_kernels.composition`, which binds it to their stages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from recallite_kernels.arguments import AUTHORITY_STEP, ENDED, NEVER, OVER, OVER_STEP, Statements
from recallite_kernels.signals import SIGNALS

if TYPE_CHECKING:
    from recallite_kernels.python_backend.stages import find_row, order_changes

# Words. Without a limit LoCoMo lost 0.002 of MRR to turns that share a clause and are about other things.
LONGEST_TURN = 12.0
NEAR_SHARE = 0.6
"""The least share of the score of what is over with which something that holds is put before it."""
# Odd, so that scopes stay apart: frames of two scopes are never the same thing.
SCOPE_FACTOR, FRAME_BITS = 0x9E3779B1, 0xFFFFFFFF


def put_changes_first(view: Any, plan: Any, asking: Any, query: Any, m: Any, work: Any) -> Any:
    """Among the best, put what holds at the time asked about before what it replaced; whether anything is compared.

    Writes to `changed`, by rank: whether a candidate was put before another, and the rank of what replaced it or -1.
    """
    count, slots, rows, order = min(plan.changes, m), view.stated.frames.shape[1], work.rows, work.order
    stated, values, compared = work.stated, work.values, 0
    if asking.moments[query] == NEVER:
        place_over(view, count, asking.former[query], work)
    for rank in range(count):
        row = rows[order[rank]]
        much = view.stated.positioned[row] != 0 and view.terms.lengths[row] > LONGEST_TURN
        compared += 0 if much else 1
        for slot in range(slots):
            frame = view.stated.frames[row, slot, 0]
            stated[rank, slot] = 0 if much or frame == OVER else frame
            values[rank, slot] = view.stated.frames[row, slot, 1]
        stated[rank, slots] = values[rank, slots] = 0
    marked = plan.marked == 1 and view.stated.chains.shape[1] > 0
    if marked:
        add_chains(view, count, work)
    elif compared < 2:  # nothing to compare: most questions of transcripts
        return False
    if not stated_twice(stated, count):  # most questions of most stores
        return False
    for rank in range(count):
        row = rows[order[rank]]
        mixed = (np.int64(view.stated.scopes[row]) * SCOPE_FACTOR) & FRAME_BITS
        for slot in range(slots + 1):
            if stated[rank, slot] != 0:
                stated[rank, slot] = np.int64(stated[rank, slot]) ^ mixed
        # What a record states began to hold when it happened, but not after it was told. A time that was found in its
        # text counts only where a moment is asked about, and then by its end: "Dana moved to Bergen last month" comes
        # after what was told this week of where she lives, "Dana worked at BP until 2019" before. What a lower
        # authority says comes before all that a higher one does, and what is over, or holds only later, before what
        # holds.
        happened = view.records.moments[row]
        if view.records.resolved[row] == 1:
            happened = view.records.moments_until[row] if asking.moments[query] != NEVER else NEVER
        work.moments[rank] = min(happened, view.records.created_at[row])
        work.moments[rank] -= np.int64(view.records.authorities[row]) * AUTHORITY_STEP
        work.moments[rank] -= OVER_STEP if is_to_come(view, plan, row) or over_of(view, row) > 0 else 0
        work.keys[rank], work.placed[rank] = view.records.keys[row], 0
    moment, former = asking.moments[query], asking.former[query]
    if asking.before_offsets[query] < asking.before_offsets[query + 1]:
        began = moment_before(view, asking, query, count, work)
        if began >= 0:
            ahead = np.int64(view.records.authorities[rows[order[began]]]) * AUTHORITY_STEP
            moment, former = work.moments[began] + ahead - 1, 0
    return reorder_changes(count, moment, former, work)


def place_over(view: Any, count: Any, former: Any, work: Any) -> None:
    """Put what says itself that it is over after what holds, or, where that is asked for, before it.

    Only what scores about the same, is said as surely and is in one scope is compared. Scores stay where they are.
    """
    rows, order, scores = work.rows, work.order, work.table[SIGNALS.score]
    for step in range(count):
        rank = step if former == 1 else count - 1 - step
        row, score, to = rows[order[rank]], scores[order[rank]], rank
        for other in range(count if over_of(view, row) == ENDED else 0):
            beside, behind = rows[order[other]], other > rank
            if behind == (former == 1) or over_of(view, beside) > 0 or (former == 1 and to < rank):
                continue
            near = min(score, scores[order[other]]) >= NEAR_SHARE * max(score, scores[order[other]])
            sure = view.records.authorities[beside] <= view.records.authorities[row] or former == 1
            if near and sure and view.stated.scopes[beside] == view.stated.scopes[row]:
                to = other
        over, way = order[rank], 1 if to > rank else -1
        for place in range(rank, to, way):
            order[place] = order[place + way]
            scores[order[place]], score = score, scores[order[place]]
        order[to] = over
        scores[over] = score


def is_to_come(view: Any, plan: Any, row: Any) -> Any:
    """Whether what a row says begins to hold only later, by a time that was given for it."""
    return view.records.resolved[row] == 0 and view.records.moments[row] > plan.parameters.clock


def over_of(view: Any, row: Any) -> Any:
    """`ENDED` or `DENIED`, as a row says that it is over; 0 for one that does not."""
    last = view.stated.frames.shape[1] - 1
    return view.stated.frames[row, last, 1] if view.stated.frames[row, last, 0] == OVER else 0


def add_chains(view: Any, count: Any, work: Any) -> None:
    """State that rows of which one superseded the other are one thing with a value each.

    What a superseded record states besides does not matter: all of it was superseded.
    """
    chain, old, slots = work.changed[2], work.placed, view.stated.frames.shape[1]
    for rank in range(count):
        chain[rank], old[rank] = rank, 0
    olds, news, pairs = view.stated.chains[0], view.stated.chains[1], view.stated.chains.shape[1]
    for before in range(count):
        row = work.rows[work.order[before]]
        pair = find_row(olds, 0, pairs, row)
        while pair < pairs and olds[pair] == row:
            for after in range(count):
                if work.rows[work.order[after]] == news[pair]:
                    old[before] = 1
                    earlier, later = chain[before], chain[after]
                    for rank in range(count):
                        chain[rank] = later if chain[rank] == earlier else chain[rank]
            pair += 1
    for rank in range(count):
        members = 0
        for other in range(count):
            members += 1 if chain[other] == chain[rank] else 0
        for slot in range(slots):
            stated = work.stated[rank, slot]
            work.stated[rank, slot] = 0 if old[rank] == 1 else stated
        if members > 1:
            work.stated[rank, slots], work.values[rank, slots] = chain[rank] + 1, rank + 1


def stated_twice(stated: Any, count: Any) -> Any:
    """Whether any thing is stated twice."""
    for one in range(count):
        for slot in range(stated.shape[1]):
            frame = stated[one, slot]
            if frame == 0:
                continue
            for other in range(one + 1):
                for another in range(stated.shape[1] if other < one else slot):
                    if stated[other, another] == frame:
                        return True
    return False


def moment_before(view: Any, asking: Any, query: Any, count: Any, work: Any) -> Any:
    """The rank of the candidate that began what a question names: of those that say it best, the earliest; -1 for none.

    Only candidates that state what another states too are about it.
    """
    best, most = -1, 0
    for rank in range(count):
        about = False
        for other in range(count):
            for slot in range(work.stated.shape[1]):
                for another in range(work.stated.shape[1]):
                    same = work.stated[rank, slot] != 0 and work.stated[rank, slot] == work.stated[other, another]
                    about = about or (same and (rank != other or slot != another))
        met = 0
        for at in range(asking.before_offsets[query], asking.before_offsets[query + 1] if about else 0):
            met += 1 if contains(view.terms, asking.before[at], work.rows[work.order[rank]]) else 0
        if met > most or (met == most and best >= 0 and met > 0 and work.moments[rank] < work.moments[best]):
            best, most = rank, met
    return best


def contains(terms: Any, number: Any, row: Any) -> Any:
    """Whether a row has a term."""
    for segment in range(terms.segments.shape[0] - 1 if number >= 0 else 0):
        end = terms.segments[segment + 1]
        place = find_row(terms.terms, terms.segments[segment], end, number)
        if place < end:
            stop = terms.starts[place + segment + 1]
            if find_row(terms.rows, terms.starts[place + segment], stop, row) < stop:
                return True
    return False


def reorder_changes(count: Any, moment: Any, former: Any, work: Any) -> Any:
    """Give the best the order of changes: candidates and scores, and what `put_changes_first` writes."""
    raised, leads, again, replaced, before, ranks = (
        work.changed[0], work.changed[1], work.changed[2], work.changed[3], work.changed[4], work.changed[5]
    )  # fmt: skip
    statements = Statements(work.stated[:count], work.values[:count], work.moments[:count], work.keys[:count])
    order_changes(statements, moment, former, work.placed[:count], again[:count], replaced[:count])
    for rank in range(count):
        before[rank], work.outputs[rank] = work.order[rank], work.table[SIGNALS.score, work.order[rank]]
        ranks[again[rank]] = rank
    for rank in range(count):
        work.order[rank] = before[again[rank]]
        work.table[SIGNALS.score, work.order[rank]] = work.outputs[rank]
        lead = replaced[again[rank]]
        leads[rank] = ranks[lead] if lead >= 0 else -1
        raised[rank] = 1 if rank < again[rank] else 0
    return True
