"""The label of a file in the workspace, and how it ages, by its path.

Paths have forward slashes; those of files outside of the folder, from `extra_paths`, are absolute.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from zoneinfo import ZoneInfo

from recallite.model.checks import now_us
from recallite.text.dates.written import time_in_name

# The names of OpenClaw's daily files; any other file below memory/ is kept for good.
_DAILY = re.compile(r"(?:^|/)\d{4}-\d{2}-\d{2}\.(?:md|markdown)$", re.ASCII | re.IGNORECASE)
_EVERGREEN = ("MEMORY.md", "memory.md")
_DAY_US = 86_400_000_000


def source_label(path: str) -> str:
    """The first folder below `memory/`; "memory" for a file directly in it, "external" for any other."""
    parts = path.split("/")
    if parts[0] != "memory" or len(parts) < 2:
        return "external"
    return "memory" if len(parts) == 2 else parts[1]


def dated(path: str) -> date | None:
    """The day that the name of a file says, at any depth; None for other names."""
    moment = time_in_name(path.rpartition(".")[0])
    return None if moment is None else moment.date()


def is_evergreen(path: str, patterns: tuple[str, ...] = _EVERGREEN) -> bool:
    """Whether a file never ages: it matches a pattern, or is below `memory/` and its name is not a day."""
    return _matches(path, patterns) or (path.startswith("memory/") and _DAILY.search(path) is None)


def written_at(path: str, mtime_ns: int, timezone: str = "UTC") -> int:
    """The time of a file in microseconds since 1970: midnight of the day in its name, else its last change."""
    day = dated(path)
    if day is None:
        return mtime_ns // 1000
    try:
        midnight = datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(timezone))
        return round(midnight.timestamp() * 1_000_000)
    except (OverflowError, ValueError):  # the first and the last day of the calendar, in some zones
        return round(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1_000_000)


def age_days(
    path: str,
    mtime_ns: int | None,
    *,
    patterns: tuple[str, ...] = _EVERGREEN,
    timezone: str = "UTC",
    now: int | None = None,
) -> float | None:
    """The age in days of a file at `now` (microseconds since 1970), at least 0; None for an evergreen file.

    A dated file ages by whole days, any other from its last change, if that is known.
    """
    if is_evergreen(path, patterns):
        return None
    moment = now_us() if now is None else now
    day = dated(path)
    if day is None:
        return None if mtime_ns is None else max(0.0, (moment - mtime_ns // 1000) / _DAY_US)
    today = datetime.fromtimestamp(moment / 1_000_000, ZoneInfo(timezone)).date()
    return max(0.0, float((today - day).days))


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a pattern matches the path, or the file name if the pattern has no slash."""
    name = path.rpartition("/")[2]
    return any(fnmatchcase(path if "/" in pattern else name, pattern) for pattern in patterns)
