"""Times as people write them: "7d" (seven days ago), "yesterday", "2026-01"."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_LENGTH = re.compile(r"([0-9]{1,9}(?:[.][0-9]{1,9})?) ?(m|h|d|w|(?:minute|hour|day|week)s?)(?: ago)?")
_MONTH = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?")
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
EXAMPLES = "'2026-03-01T09:30:00+00:00', '2026-03-01', '2026-03', 'yesterday' or '7d'"


class Period(NamedTuple):
    """A day, month or year; its end may be that of the calendar."""

    begin: datetime
    length: timedelta


def length_of(text: str) -> timedelta | None:
    """Return the length of "30d", "2 hours" or "1.5w"; None for another text. Raises OverflowError."""
    parts = _LENGTH.fullmatch(text.strip().lower())
    return None if parts is None else timedelta(**{_UNITS[parts[2][0]]: float(parts[1])})


def named_time(text: str) -> datetime | Period | None:
    """Return the moment, or the day, month or year (UTC), that a text means today; None for another text.

    A length is that long ago. Raises ValueError or OverflowError.
    """
    text = text.strip().lower()
    now = datetime.now(UTC)
    if text == "now":
        return now
    if text in _DAYS:
        return day_of(now.date() + timedelta(_DAYS[text]))
    if month := _MONTH.fullmatch(text):
        year, number = int(month[1]), int(month[2] or 1)
        days = sum(monthrange(year, counted)[1] for counted in ((number,) if month[2] else range(1, 13)))
        return Period(datetime(year, number, 1, tzinfo=UTC), timedelta(days))
    length = length_of(text)
    return None if length is None else now - length


def day_of(day: date) -> Period:
    """Return a day of UTC."""
    return Period(datetime(day.year, day.month, day.day, tzinfo=UTC), timedelta(1))
