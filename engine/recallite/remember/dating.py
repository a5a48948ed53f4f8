"""The valid time of a text, if it names one."""

from __future__ import annotations

from collections.abc import Sequence

from recallite.model.policies import WritePolicy
from recallite.store.values import CHUNK_KIND
from recallite.text.dates.stated import Interval, stated_interval

# What a document or procedure says is not about the time at which it was written.
_UNDATED = (CHUNK_KIND, "procedure")


def read_times(kind: str, text: str, words: Sequence[str], written_us: int, policy: WritePolicy) -> Interval | None:
    """Return the time that a text is about, seen from `written_us`; None if none is clear or none is looked for."""
    if not policy.resolve_dates or kind in _UNDATED:
        return None
    return stated_interval(text, words, written_us)
