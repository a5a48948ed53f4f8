"""What is known: memories, and what the turns of conversations state, once each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recallite.model.authority import rank_of
from recallite.model.records import Hit, Record
from recallite.text.standing import ANSWERING
from recallite.text.statements.keys import stated_part, things_of

_SPEAKERS = ANSWERING | {"user", "human"}


def known(records: Sequence[Record], limit: int, *, told: Iterable[Record | Hit] = ()) -> list[tuple[Record, str]]:
    """At most `limit` memories and as many turns that state something, each with what it says, in the order given.

    Give the newest first: what an earlier one states again, or was `told`, is left out, and so is a turn of whose
    values a later one of no lower authority has told others. A memory comes after those of a higher authority that
    give the same thing another value. What is superseded and may still hold comes last.
    """
    ranks: dict[tuple[object, object], int] = {}

    def note(record: Record | Hit, text: str) -> bool:
        """Whether a text adds something; it is told from now on."""
        rank, states = rank_of(record.authority), things_of(text, record.context)
        told_before = all(
            (thing, value) in ranks or (_is_turn(record) and ranks.get((thing, None), rank - 1) >= rank)
            for thing, value in states
        )
        for thing, value in states:
            ranks[thing, value] = ranks[thing, None] = max(rank, ranks.get((thing, None), rank))
        return not told_before

    for record in told:
        note(record, record.text)
    left = {True: limit, False: limit}
    found = []
    for record in _higher_first(sorted(records, key=lambda record: bool(record.superseded_by))):
        is_turn = _is_turn(record)
        part = stated_part(record.text, record.context) if is_turn and left[is_turn] else record.text
        if left[is_turn] and part and note(record, part):
            left[is_turn] -= 1
            found.append((record, part))
    return found


def _higher_first(records: Sequence[Record]) -> list[Record]:
    """The records in their order, but each memory after those of a higher authority that state the same thing."""
    if len({record.authority for record in records}) < 2:
        return [*records]
    memories = [record for record in records if not _is_turn(record)]
    about = {record.id: {thing for thing, _ in things_of(record.text, record.context)} for record in memories}
    stating: dict[object, list[Record]] = {}
    for record in memories:
        if not record.superseded_by:
            for thing in about[record.id]:
                stating.setdefault(thing, []).append(record)
    order: dict[str, Record] = {}
    for record in records:
        rank = rank_of(record.authority)
        same = {other.id: other for thing in about.get(record.id, ()) for other in stating.get(thing, ())}
        higher = [other for other in same.values() if rank_of(other.authority) > rank]
        for each in (*sorted(higher, key=lambda other: -rank_of(other.authority)), record):
            order.setdefault(each.id, each)
    return [*order.values()]


def _is_turn(record: Record | Hit) -> bool:
    return record.source is not None and record.context in _SPEAKERS
