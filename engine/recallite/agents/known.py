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
    values a later one of no lower authority has told others. What is superseded and may still hold comes last.
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
    for record in sorted(records, key=lambda record: bool(record.superseded_by)):
        is_turn = _is_turn(record)
        part = stated_part(record.text, record.context) if is_turn and left[is_turn] else record.text
        if left[is_turn] and part and note(record, part):
            left[is_turn] -= 1
            found.append((record, part))
    return found


def _is_turn(record: Record | Hit) -> bool:
    return record.source is not None and record.context in _SPEAKERS
