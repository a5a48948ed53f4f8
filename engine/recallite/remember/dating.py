"""The event time of a row, found in its text where none is given."""

from __future__ import annotations

from recallite.model.policies import WritePolicy
from recallite.store.values import CHUNK_KIND, Row
from recallite.text.dates.stated import stated_interval

# What a document or procedure says is not about the time at which it was written.
_UNDATED = (CHUNK_KIND, "procedure")


def resolve_times(row: Row, policy: WritePolicy) -> None:
    """Set `event_at` and `event_until` from the text, seen from `created_at`; never where one of them is given."""
    if not policy.resolve_dates or row.kind in _UNDATED:
        return
    if (row.event_at is not None or row.event_until is not None) and not row.event_resolved:
        return
    found = stated_interval(row.text, row.words, row.created_at)
    row.event_at, row.event_until, row.event_resolved = (*found, True) if found else (None, None, False)
