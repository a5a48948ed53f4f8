"""The time of day beside a day: "at 3 pm yesterday", "tomorrow at 15:30", "am Montag um 15 Uhr"."""

from __future__ import annotations

from recallite.text.lazy_patterns import lazily

_HOUR_US, _MINUTE_US = 3_600_000_000, 60_000_000
_BY_24 = frozenset(("uhr", "h", "uur"))
_CLOCK = (
    r"(?:at|around|about|by|from|um|gegen|a|vers|a las?|as|alle|verso le|om|rond) ?"
    r"(?P<hour>\d{1,2})(?:[:.h](?P<minute>\d\d))? ?(?P<half>[ap]\.?m\b\.?|uhr\b|uur\b|h\b)?(?![\d:.]\d|[\w%\u20ac$])"
)
_MORNING = "early morning|morning|morgen|fruh|vormittag|matin|manana|manha|mattina|ochtend"
_EVENING = (
    "afternoon|evening|night|nachmittag|abend|nacht|apres-midi|soir|tarde|noche|noite|pomeriggio|sera|middag|avond"
)
_PART = rf"(?P<part>(?P<morning>{_MORNING})|{_EVENING})"
_AFTER = lazily(rf"(?: (?:(?:de |da |di |in the )?(?:la )?){_PART}\b)?,? {_CLOCK}")
_BEFORE = lazily(rf"\b{_CLOCK}(?: in the {_PART})?,? (?:on |am |el |le |op |the )?$")
_OWN_PART = lazily(rf"\b{_PART}")
_LONGEST_BEFORE = 40


def clock_at(folded: str, start: int, stop: int) -> tuple[int, int] | None:
    """Return the begin and end, in microseconds of the day, of the time of day beside a day from `start` to `stop`.

    An hour lasts an hour, a minute a minute. None if there is none, or if it may be of the morning or evening.
    """
    match = _AFTER.match(folded, stop) or _BEFORE.search(folded, max(0, start - _LONGEST_BEFORE), start)
    if match is None:
        return None
    part = match if match["part"] else _OWN_PART.search(folded, start, stop)
    hour, minute, half = int(match["hour"]), match["minute"], (match["half"] or "").replace(".", "")
    if half in ("am", "pm") or (part is not None and hour <= 12 and half not in _BY_24):
        if not 1 <= hour <= 12:
            return None
        late = half == "pm" if half else part is not None and part["morning"] is None
        hour = hour % 12 + 12 * late
    elif half not in _BY_24 and (minute is None or (hour < 13 and not match["hour"].startswith("0"))):
        return None
    if hour > 23 or int(minute or 0) > 59:
        return None
    begin = hour * _HOUR_US + int(minute or 0) * _MINUTE_US
    return begin, begin + (_MINUTE_US if minute else _HOUR_US)
