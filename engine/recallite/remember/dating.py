"""The valid time of a text, if it names one."""

from __future__ import annotations

from collections.abc import Sequence

from recallite.model.settings import WritePolicy
from recallite.store.values import CHUNK_KIND
from recallite.text.dates.stated import Interval, stated_interval

# What a document or procedure says is not about the time at which it was written.
_UNDATED = (CHUNK_KIND, "procedure")


def read_times(
    kind: str, text: str, words: Sequence[str], written_us: int, policy: WritePolicy, offset_us: int = 0
) -> Interval | None:
    """Return the time that a text is about, seen from `written_us` at an offset from UTC.

    None if none is clear or none is looked for.
    """
    if not policy.resolve_dates or kind in _UNDATED:
        return None
    stated = stated_interval(text, words, written_us + offset_us)
    if stated is None or not offset_us:
        return stated
    return Interval(stated.at - offset_us, None if stated.until is None else stated.until - offset_us)
