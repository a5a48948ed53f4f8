"""Supersessions and repeated statements in files: read, checked and written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.model.filters import Filter
from recallite.model.settings import WritePolicy
from recallite.remember.relations import check_pair, check_reason
from recallite.store.transaction import Reader, Writer
from recallite.store.values import Occurrence, Supersession
from recallite.system.messages import shown
from recallite.transfer.line_types import OccurrenceLine, SupersessionLine, written_time
from recallite.transfer.naming import name_memories


def supersession_lines(reader: Reader, filter: Filter) -> Iterator[SupersessionLine]:
    """The supersessions among the memories of an export, those that were undone too."""
    for pair in reader.supersessions.between(filter):
        yield SupersessionLine(
            pair.old, pair.new, written_time(pair.holds_from), written_time(pair.known_from),
            None if pair.known_until is None else written_time(pair.known_until), pair.reason, pair.strength,
        )  # fmt: skip


def occurrence_lines(repeated: Sequence[Occurrence]) -> tuple[OccurrenceLine, ...]:
    """The further times of a memory."""
    return tuple(OccurrenceLine(written_time(occurrence.at), occurrence.text) for occurrence in repeated)


def check_occurrences(
    repeated: Sequence[OccurrenceLine], max_text_chars: int, policy: WritePolicy
) -> tuple[tuple[int, str | None], ...]:
    """The further times of a memory, checked, and redacted as `policy` says."""
    return tuple(
        (
            checks.time_or(occurrence.at, "repeated.at", 0),
            None
            if occurrence.text is None
            else policy.clean(checks.check_text(occurrence.text, max_text_chars, "repeated.text")),
        )
        for occurrence in repeated
    )


def check_supersession(entry: SupersessionLine) -> Supersession:
    """A supersession of a file, checked; its ends are looked up when it is written."""
    for end in (entry.old, entry.new):
        checks.check_name(end, "an end of a supersession")
    row = Supersession(
        0,
        0,
        checks.time_or(entry.holds_from, "holds_from", 0),
        checks.time_or(entry.known_from, "known_from", 0),
        checks.check_time(entry.known_until, "known_until"),
        check_reason(entry.reason),
        checks.check_unit(entry.strength, "strength"),
    )
    if row.known_until is not None and row.known_until < row.known_from:
        raise InvalidInput("known_until is before known_from")
    return row


def put_supersession(writer: Writer, entry: SupersessionLine, row: Supersession, sight: str) -> None:
    """Store a supersession between memories that are here by now, unless the store has it already."""
    names = name_memories(writer, {entry.old, entry.new}, sight)
    ids = writer.records.find_ids(list(names.values()), sight)
    for end in (entry.old, entry.new):
        if names[end] not in ids:
            raise InvalidInput(f"the end {shown(end)} is no memory here or in a line before")
    row = row._replace(old_id=ids[names[entry.old]], new_id=ids[names[entry.new]])
    if writer.supersessions.missing(row):
        check_pair(writer, row.old_id, row.new_id, standing=row.known_until is None)
        writer.supersessions.put([row])
