"""The time that a statement is about, found when it is written: "I moved two weeks ago", "The party is on Friday".

Precision comes before recall. Left alone are recurring events, questions, suppositions and quotations, times that two
speakers would understand differently, and texts with several times that do not agree. Days and times of day are in UTC.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection
from datetime import date
from typing import NamedTuple

from recallite.text.dates.languages import (
    FUTURE,
    OPEN,
    PAST,
    Cue,
    Language,
    Mention,
    fold,
    languages_of,
    literals_of,
    terms_of_times,
)
from recallite.text.dates.periods import Days, Time, ranged
from recallite.text.patterns import lazily

# The time of day beside a day: "at 3 pm yesterday", "tomorrow at 15:30", "am Montag um 15 Uhr".
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


_DAY_US = 86_400_000_000
_EPOCH = date(1970, 1, 1).toordinal()
LONGEST_TEXT = 400
_LIMIT_CHARS = 24
_SENTENCE_END = lazily(r"(?<=[.!?])(?<!\b\w\.)(?<!\b(?:mr|ms|dr|st)\.)(?<!\d\.)\s+|\n+")
_CLAUSE_END = lazily(r"[,;:()\u2013\u2014]|\b(?:and|but|so|because|that|which|who|when|while|then)\b")
_WORD_BEFORE = lazily(r"(?<![^\W\d_])[^\W\d_]+ $")
_QUOTED = lazily(r"[\"\u201c\u201d\u00ab\u00bb\u201e]")
# "Saturday Night Live" is a name; "on Saturday Dana came" is not.
_NAMES_ON = lazily(r" [A-Z][a-z]")
_ON = lazily(r"(?:^|\b(?:on|by|until|till|from|since|next|last|this|and|or|to)) $|^$")
# A number before a noun that it could count is no year.
_COUNTABLE = lazily(r" ([^\W\d_]+)")


class Interval(NamedTuple):
    """Microseconds since 1970 UTC, `until` excluded; None if it is open."""

    at: int
    until: int | None


def stated_interval(text: str, terms: Collection[str], written_us: int) -> Interval | None:
    """Return the time that a text with these index terms is about, seen from `written_us`; None if none is clear."""
    timely = terms_of_times(text, terms) if len(text) <= LONGEST_TEXT else None
    if timely is None:
        return None
    folded = fold(text)
    if len(folded) != len(text):
        return None
    literals = literals_of(frozenset(timely))
    if literals is not None and not any(map(folded.__contains__, literals)):
        return None
    try:
        intervals = {_resolved(text, folded, timely, written_us, lang) for lang in languages_of(folded, timely)}
    except (ValueError, OverflowError):  # far from our years
        return None
    intervals.discard(None)
    return intervals.pop() if len(intervals) == 1 else None


def _resolved(text: str, folded: str, terms: Collection[str], written_us: int, language: Language) -> Interval | None:
    """Return the interval on which all times of a text in a language agree; None if there is none, or a doubt."""
    context, intervals = language.context, set()
    mentions: deque[Mention] = deque()
    for mention in language.find(folded, terms, date.fromordinal(_EPOCH + written_us // _DAY_US), question=False):
        match = context.recurring.search(folded, max(0, mention.start - _LIMIT_CHARS), mention.start)
        if match is not None and (match.lastgroup is None or mention.kind in ("weekday", "month", "season")):
            continue
        if _is_doubtful(text, folded, mention, language):
            return None
        mentions.append(mention)
    while mentions:
        mention = mentions.popleft()
        start, stop = _part_around(folded, mention.start, _SENTENCE_END)
        sentence, lower = text[start:stop], text[start:stop].lower()
        quoted = len(_QUOTED.findall(folded, 0, mention.start)) % 2 == 1
        if quoted or sentence.rstrip().endswith("?") or context.unsaid.search(lower):
            return None
        limit = context.limit.search(folded, max(0, mention.start - _LIMIT_CHARS), mention.start)
        time, word = mention.time, (limit and limit.lastgroup) or ""
        if mentions and context.joint.fullmatch(folded, mention.stop, mentions[0].start):
            if word != "range" or context.moving.search(lower):
                return None
            time, word = ranged(time, mentions.popleft().time), ""
        if time.readings is not None and context.yearly.search(lower):
            return None
        tense = _tense(sentence, mention.start - start, language.cues(sentence))
        onward = context.onward.match(folded, mention.stop) is not None
        interval = _limited(time, word, tense, written_us, clock_at(folded, mention.start, mention.stop), onward)
        if interval is None:
            return None
        intervals.add(interval)
    return intervals.pop() if len(intervals) == 1 else None


def _limited(
    time: Time, word: str, tense: int, written_us: int, clock: tuple[int, int] | None, onward: bool
) -> Interval | None:
    """Return the interval of a time after "since", "until" and the like; None if it is in doubt."""
    if word in ("after", "before", "joint") or (word == "range" and not onward):
        return None
    onward = onward or word in ("since", "start")
    until = word in ("until", "through")
    if word == "since":
        tense = PAST
    elif until or word == "by" or (onward and tense == OPEN):
        tense = FUTURE
    period: Days | None = Days(time.begin, time.end)
    if time.readings is not None:
        period = {PAST: time.readings.past, OPEN: time.readings.plain, FUTURE: time.readings.ahead}[tense]
    if period is None:
        return None
    begin, end = _us(period.begin), _us(period.end)
    if clock and end - begin == _DAY_US:
        begin, end = begin + clock[0], begin + clock[1]
    if onward:
        return Interval(begin, None)
    if end <= written_us and word == "by":
        return None
    # What held until a time that has passed began at a time that is not said: its end is what is known of it.
    return Interval(written_us if until and end > written_us else begin, end)


def _is_doubtful(text: str, folded: str, mention: Mention, language: Language) -> bool:
    """Whether what looks like a time may be something else: a count, a name, the time of a thing."""
    start, stop, kind, _ = mention
    following = folded[stop : stop + 2]
    if following in ("'s", "s'") or (following[:1] == "s" and kind == "weekday"):
        return True
    if folded.endswith("not ", 0, start):
        return True
    if kind == "named":  # the song Yesterday
        return text[start].isupper() and start > _part_around(folded, start, _SENTENCE_END)[0]
    english = language.code == "en"
    if kind == "weekday":  # Man Friday, Ruby Tuesday, Saturday Night Live
        if english and _NAMES_ON.match(text, stop) and not _ON.search(folded, 0, start):
            return True
        before = _WORD_BEFORE.search(text, 0, start)
        begin, _ = _part_around(folded, start, _SENTENCE_END)
        return before is not None and before.start() > begin and before[0][0].isupper()
    names = ("year", "season", "month") if english else ("year",)
    if kind not in names or language.context.onward.match(folded, stop):
        return False
    match = _COUNTABLE.match(folded, stop)
    if match is None:
        return False
    capital = text[stop + 1].isupper()
    return capital if language.capital_nouns else match[1] not in language.function_words and not capital


def _part_around(text: str, position: int, separator: re.Pattern[str]) -> tuple[int, int]:
    """The begin and end of the sentence, or the clause, around a position."""
    start, stop = 0, len(text)
    for match in separator.finditer(text):
        if match.end() <= position:
            start = match.end()
        elif match.start() > position:
            stop = match.start()
            break
    return start, stop


def _tense(sentence: str, position: int, cues: list[Cue]) -> int:
    """Return the tense of the nearest verb before the time in its clause, else of the first after it."""
    begin, end = _part_around(sentence, position, _CLAUSE_END)
    within = [cue for cue in cues if begin <= cue.start < end] or cues
    before = [cue for cue in within if cue.start < position]
    return before[-1].tense if before else within[0].tense if within else OPEN


def _us(day: date) -> int:
    return (day.toordinal() - _EPOCH) * _DAY_US
