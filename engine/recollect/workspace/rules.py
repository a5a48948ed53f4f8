"""What the place and the name of a file say: its label, and how it ages. Functions of its path in the workspace.

A path has forward slashes. Files outside the folder, which `extra_paths` names, have absolute paths.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from typing import Literal
from zoneinfo import ZoneInfo

from recollect.checks import now_us

__all__ = ["AgeSource", "age_days", "age_source", "dated", "is_evergreen", "source_label", "written_at"]

AgeSource = Literal["evergreen", "name", "mtime"]

_DATED = re.compile(r"(?:^|/)(\d{4})-(\d{2})-(\d{2})\.(?:md|markdown)$", re.ASCII | re.IGNORECASE)
_EVERGREEN = ("MEMORY.md", "memory.md")
_DAY_US = 86_400_000_000


def source_label(path: str) -> str:
    """The first folder below `memory/`; "memory" for what is directly in it, "external" for all else."""
    parts = path.split("/")
    if parts[0] != "memory" or len(parts) < 2:
        return "external"
    return "memory" if len(parts) == 2 else parts[1]


def dated(path: str) -> date | None:
    """The day that names a file `YYYY-MM-DD.md`, at any depth; None where that is no day."""
    found = _DATED.search(path)
    if found is None:
        return None
    try:
        return date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        return None


def is_evergreen(path: str, patterns: tuple[str, ...] = _EVERGREEN) -> bool:
    """Whether a file never ages: one of the patterns, or below `memory/` at any depth and not named for a day."""
    return _matches(path, patterns) or (path.startswith("memory/") and _DATED.search(path) is None)


def age_source(path: str, patterns: tuple[str, ...] = _EVERGREEN) -> AgeSource:
    """What says how old a file is: nothing ("evergreen"), its name, or the time of its last change."""
    if is_evergreen(path, patterns):
        return "evergreen"
    return "mtime" if dated(path) is None else "name"


def written_at(path: str, mtime_ns: int, timezone: str = "UTC") -> int:
    """When what stands in a file was written, in microseconds since 1970: its day's midnight, else its last change."""
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
    mtime_ns: int,
    *,
    patterns: tuple[str, ...] = _EVERGREEN,
    timezone: str = "UTC",
    now: int | None = None,
) -> float | None:
    """How old a file is at `now` (microseconds since 1970), from 0; None for an evergreen one.

    A dated file ages by whole days, others from the moment of their last change.
    """
    if is_evergreen(path, patterns):
        return None
    moment = now_us() if now is None else now
    day = dated(path)
    if day is None:
        return max(0.0, (moment - mtime_ns // 1000) / _DAY_US)
    today = datetime.fromtimestamp(moment / 1_000_000, ZoneInfo(timezone)).date()
    return max(0.0, float((today - day).days))


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether the path, or its last name where a pattern has no slash, is like one of the patterns."""
    name = path.rpartition("/")[2]
    return any(fnmatchcase(path if "/" in pattern else name, pattern) for pattern in patterns)
