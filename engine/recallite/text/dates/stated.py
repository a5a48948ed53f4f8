"""The time that a statement is about, found when it is written: "I moved two weeks ago", "The party is on Friday".

Precision comes before recall. What recurs, what is asked, supposed or quoted, what two speakers would understand
differently, and a text with several times that do not agree are left alone. Days and times of day are in UTC, as the
moment is of which the text is.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import NamedTuple

from recallite.text.dates.clock import clock_at
from recallite.text.dates.language import Cue, Found, Language, fold
from recallite.text.dates.languages import languages_of, literals_of, terms_of_times
from recallite.text.dates.periods import Period, Time, ranged
from recallite.text.lazy_patterns import lazily

_DAY_US = 86_400_000_000
_EPOCH = date(1970, 1, 1).toordinal()
LONGEST_TEXT = 400
_LIMIT_CHARS = 24
_SENTENCE_END = lazily(r"(?<=[.!?])(?<!\b\w\.)(?<!\b(?:mr|ms|dr|st)\.)(?<!\d\.)\s+|\n+")
_CLAUSE_END = lazily(r"[,;:()\u2013\u2014]|\b(?:and|but|so|because|that|which|who|when|while|then)\b")
_BARE = frozenset(("weekday", "month", "season"))
_WORD_BEFORE = lazily(r"(?<![^\W\d_])[^\W\d_]+ $")
_QUOTED = lazily(r"[\"\u201c\u201d\u00ab\u00bb\u201e]")
# "Saturday Night Live" is a name; "on Saturday Dana came" is not.
_NAMES_ON = lazily(r" [A-Z][a-z]")
_ON = lazily(r"(?:^|\b(?:on|by|until|till|from|since|next|last|this|and|or|to)) $|^$")
# A number alone is a year only where nothing follows that it could count.
_COUNTABLE = lazily(r" ([^\W\d_]+)")


class Interval(NamedTuple):
    """Microseconds since 1970 UTC, `until` excluded; None where it is open."""

    at: int
    until: int | None


def stated_interval(text: str, terms: Collection[str], written_us: int) -> Interval | None:
    """The time that a text with these index terms is about, seen from the moment it is of; None where none is clear."""
    named = terms_of_times(text, terms) if len(text) <= LONGEST_TEXT else None
    if named is None:
        return None
    folded = fold(text)
    if len(folded) != len(text):
        return None
    literals = literals_of(frozenset(named))
    if literals is not None and not any(map(folded.__contains__, literals)):
        return None
    try:
        found = {_resolved(text, folded, named, written_us, each) for each in languages_of(folded, named)}
    except (ValueError, OverflowError):  # far from our years
        return None
    found.discard(None)
    return found.pop() if len(found) == 1 else None


def _resolved(text: str, folded: str, terms: Collection[str], written_us: int, language: Language) -> Interval | None:
    today = date.fromordinal(_EPOCH + written_us // _DAY_US)
    excluded = language.excluded
    kept: list[Found] = []
    for found in language.find(folded, terms, today, asked=False):
        match = excluded.recurring.search(folded, max(0, found.start - _LIMIT_CHARS), found.start)
        if match is not None and (match.lastgroup is None or found.kind in _BARE):
            continue
        if _is_doubtful(text, folded, found, language):
            return None
        kept.append(found)
    if not kept:
        return None
    intervals = set()
    skip = False
    for place, found in enumerate(kept):
        if skip:
            skip = False
            continue
        start, stop = _sentence(folded, found.start)
        sentence, plain = text[start:stop], text[start:stop].lower()
        if sentence.rstrip().endswith("?") or excluded.unsaid.search(plain) or _is_quoted(folded, found.start):
            return None
        limit = language.limits.search(folded, max(0, found.start - _LIMIT_CHARS), found.start)
        word = "" if limit is None else limit.lastgroup or ""
        word = "until" if word == "through" else word
        other = kept[place + 1] if place + 1 < len(kept) else None
        time = found.time
        if other is not None and language.joints.fullmatch(folded, found.stop, other.start):
            if word != "range" or excluded.moving.search(plain):
                return None
            time, word, skip = ranged(found.time, other.time), "", True
        if time.readings is not None and excluded.yearly.search(plain):
            return None
        tense = _tense(sentence, found.start - start, language.cues(sentence))
        onward = language.onwards.match(folded, found.stop) is not None
        interval = _limited(time, word, tense, written_us, folded, found, onward)
        if interval is None:
            return None
        intervals.add(interval)
    return intervals.pop() if len(intervals) == 1 else None


def _limited(
    time: Time, word: str, tense: int, written_us: int, folded: str, found: Found, onward: bool
) -> Interval | None:
    """The interval of a time after "since", "until" and the like; None where that is in doubt."""
    if word in ("after", "before", "joint") or (word == "range" and not onward):
        return None
    onward = onward or word in ("since", "start")
    if word == "since":
        tense = -1
    elif word in ("until", "by"):
        tense = 1
    elif onward:
        tense = tense or 1
    period = _reading(time, tense)
    if period is None:
        return None
    begin, end = _us(period.begin), _us(period.end)
    if end - begin == _DAY_US and (clock := clock_at(folded, found.start, found.stop)):
        begin, end = begin + clock[0], begin + clock[1]
    if onward:
        return Interval(begin, None)
    if word in ("until", "by") and end <= written_us:
        return None
    return Interval(written_us if word == "until" else begin, end)


def _reading(time: Time, tense: int) -> Period | None:
    readings = time.readings
    if readings is None:
        return Period(time.begin, time.end)
    return (readings.plain, readings.ahead, readings.past)[tense]


def _is_doubtful(text: str, folded: str, found: Found, language: Language) -> bool:
    """Whether what looks like a time may be something else: a count, a name, the time of a thing."""
    following = folded[found.stop : found.stop + 2]
    if following in ("'s", "s'") or (following[:1] == "s" and found.kind == "weekday"):
        return True
    if folded.endswith("not ", 0, found.start):
        return True
    if found.kind == "named":  # the song Yesterday
        return text[found.start].isupper() and found.start > _sentence(folded, found.start)[0]
    if found.kind == "weekday":  # Man Friday, Ruby Tuesday, Saturday Night Live
        if language.code == "en" and _NAMES_ON.match(text, found.stop) and not _ON.search(folded, 0, found.start):
            return True
        before = _WORD_BEFORE.search(text, 0, found.start)
        return before is not None and before.start() > _sentence(folded, found.start)[0] and before[0][0].isupper()
    named = ("year", "season", "month") if language.code == "en" else ("year",)
    if found.kind not in named or language.onwards.match(folded, found.stop):
        return False
    match = _COUNTABLE.match(folded, found.stop)
    if match is None:
        return False
    if language.nouns_capital:
        return text[found.stop + 1].isupper()
    return match[1] not in language.function_words and not text[found.stop + 1].isupper()


def _sentence(folded: str, place: int) -> tuple[int, int]:
    start, stop = 0, len(folded)
    for match in _SENTENCE_END.finditer(folded):
        if match.end() <= place:
            start = match.end()
        else:
            stop = match.start()
            break
    return start, stop


def _is_quoted(folded: str, place: int) -> bool:
    return len(_QUOTED.findall(folded, 0, place)) % 2 == 1


def _tense(sentence: str, place: int, cues: list[Cue]) -> int:
    """That of the clause in which the time stands; of the nearest verb before it, else of the first after it."""
    begin, end = 0, len(sentence)
    for match in _CLAUSE_END.finditer(sentence):
        if match.end() <= place:
            begin = match.end()
        elif match.start() > place:
            end = match.start()
            break
    within = [cue for cue in cues if begin <= cue.start < end] or cues
    before = [cue for cue in within if cue.start < place]
    return before[-1].tense if before else within[0].tense if within else 0


def _us(day: date) -> int:
    return (day.toordinal() - _EPOCH) * _DAY_US
