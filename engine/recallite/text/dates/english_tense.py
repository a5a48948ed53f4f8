"""The tense of an English sentence, as far as its verbs tell: of what was, of what will be, or neither."""

from __future__ import annotations

from recallite.text.dates.language import Cue, words
from recallite.text.lazy_patterns import lazily

_WORD = lazily(r"let's\b|[a-z]+n't\b|'(?:ll|re|ve|m|s|d)\b|[a-z]+")

_FUTURE = words(
    "will 'll won't shall gonna must should can needs need plans plan intends intend hopes hope wants want"
    " let's lets due"
    " deadline upcoming appointment starts begins leaves arrives departs opens returns ends expires launches"
    " ships lands"
    " flies remind tomorrow"
)
_OPEN = words("would could might wouldn't couldn't 'd supposed")
_PRESENT = words("is are am isn't aren't 's 're 'm be being get gets")
_PAST = words("""
    was were wasn't weren't did didn't had hadn't became began bit blew bought broke brought built burnt came caught
    chose cost dealt drank drew drove fell felt flew forgot fought found froze gave got grew heard held hid hurt kept
    knew laid learnt left lent lost made meant met paid ran rang rode rose said sang sat saw sent shook shot showed
    slept sold spent spoke spilt stole stood stuck struck swam swore taught told thought threw took understood went
    woke won wore wrote ate
    """)
# Of these, done in the past, the time that follows may be that of what was decided.
_PROSPECTIVE = words("""
    agreed arranged asked booked decided expected hoped intended invited meant offered planned promised
    registered reserved scheduled set supposed told wanted said announced
    confirmed bought ordered thought reminded
    """)
_LEADING = words("to for that on")
_NOT_PAST = words("hundred sacred naked wicked rugged aged red bed shed wed sled need feed seed weed speed")
_IMPERATIVE = words("""
    add ask attend book bring buy call cancel check clean collect complete confirm email finish fix get give go invite
    join mail make meet order pay phone pick plan prepare print register renew reply return review schedule send ship
    sign start submit take text visit wash write remember don't
    """)
# "We leave on Monday".
_SCHEDULED = words("start begin leave arrive open return fly depart move travel land end finish")
_SEVERAL = words("i we they you kids children parents and friends")
_BETWEEN = words("not also already just still only now always soon probably definitely all both n't been")
# So many words after an auxiliary a participle belongs to it.
_REACH = 4


_PARTICIPLES = words("""
    been begun bitten blown broken chosen come done drawn drunk driven eaten fallen flown forgotten frozen given gone
    gotten grown hidden known lain ridden risen rung run sung seen shaken shown spoken stolen sworn swum taken thrown
    woken won worn written
    """)
_HAVE = words("have has 've haven't hasn't")
_PAST_AUXILIARIES = words("was were had did wasn't weren't didn't hadn't")
_TELLING = frozenset().union(_HAVE, _FUTURE, _OPEN, _PRESENT, _SCHEDULED, _IMPERATIVE, _PAST, ("see",))


def cues(sentence: str) -> list[Cue]:
    """The places of a sentence that tell its tense, in order."""
    plain = sentence.lower().replace("\u2019", "'")
    spoken = [match[0] for match in _WORD.finditer(plain)]
    starts = [match.start() for match in _WORD.finditer(plain)]
    found: list[Cue] = []
    governed = 0
    for place, word in enumerate(spoken):
        if word not in _TELLING and not word.endswith("ed"):
            continue
        told = _told(spoken, place, governed=place < governed)
        if told is not None:
            tense, reach = told
            governed = place + reach
            found.append(Cue(starts[place], tense))
    return found


def _told(spoken: list[str], place: int, *, governed: bool) -> tuple[int, int] | None:
    """The tense that a word tells, and how many words it governs; None where it tells nothing."""
    word = spoken[place]
    following = next((each for each in spoken[place + 1 : place + 4] if each not in _BETWEEN), "")
    if word in _HAVE:
        if following == "to":
            return 1, _REACH
        return (-1, _REACH) if _is_past(following) or following in _PARTICIPLES else None
    if word in _FUTURE:
        return 1, _REACH
    if word in _OPEN:
        return 0, _REACH
    if word in _PRESENT:
        return None if governed else (_of_present(word, following), _REACH)
    if word in _SCHEDULED and place and spoken[place - 1] in _SEVERAL:
        return 1, _REACH
    if (not place and word in _IMPERATIVE) or (word == "see" and following == "you"):
        return 1, 1
    if governed or not _is_past(word):
        return None
    later = spoken[place + 1 : place + 6]
    if word in _PAST_AUXILIARIES:
        planned = following in _PROSPECTIVE or (following == "going" and "to" in later)
        return 0 if planned else -1, _REACH
    return 0 if word in _PROSPECTIVE and not _LEADING.isdisjoint(later) else -1, 1


def _is_past(word: str) -> bool:
    return word in _PAST or (len(word) > 3 and word.endswith("ed") and word not in _NOT_PAST and word[-3] != "e")


def _of_present(word: str, following: str) -> int:
    """Of "is leaving", "is due", "is on Friday"; of "is closed" nothing is sure."""
    if following.endswith("ing") or following in ("due", "scheduled", "planned", "booked", "on", "in", "set"):
        return 1
    if word == "'s" and _is_past(following):
        return -1
    return 0
