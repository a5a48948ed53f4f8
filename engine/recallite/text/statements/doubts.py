"""Reasons why an older statement may still hold though a newer one seems to replace it. Rules for English.

The newer one may only be guessed, told by somebody else, planned or past; it may hold for a while, in part, or of
something else; or it names one of several things that the older one says.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple, TypeAlias

from recallite.text.patterns import lazily
from recallite.text.statements import lexicon as lx
from recallite.text.statements.clause import Clause
from recallite.text.statements.statement import Statement
from recallite.text.statements.statement_words import COMMA, DATE, DAY, IDENTIFIER, NAME, STOP, TYPED, Word
from recallite.text.statements.traits import content_of
from recallite.text.statements.verdict import Outcome

_ADDS = lazily(r"\b(?:also|as well|in addition|additionally)\b|\btoo\b(?=\W*$|,)")
_UNSURE = lazily(
    r"\b(?:maybe|perhaps|probably|possibly|presumably|supposedly|apparently|allegedly|might|i guess|not sure|unsure"
    r"|i (?:hope|wish|doubt|dreamt?|dreamed|imagine)|rumou?rs?|if|unless|whether|nearly|almost"
    r"|in (?:the|a|my) (?:novel|story|film|movie|book|dream|game|play)|(?:isn't|is not|not) true|wants? to"
    r"|would like to|hop(?:e|es|ing) to|think(?:s|ing)? (?:of|about)|consider(?:s|ing)?"
    r"|decided (?:not to|against)|pretend(?:s|ed)?)\b"
)
_SAID = lazily(
    r"\b(?:thinks|claims|believes|guesses|suspects|assumes|reckons|said|says|mentioned|told (?:me|us)|(?:i|we) heard"
    r"|according to)\b"
)
_NOTHING = lazily(
    r"(?:\b(?:did|do|does|have|has|will|must|should|can) not|n't|\bnever) (?:\w+ )?(?:quit|stop(?:ped)?|leave|left"
    r"|switch(?:ed)?|cancel|moved?|changed?|sell|sold|give up|drop)\b"
)
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_TO_COME = lazily(
    r"\b(?:next (?!to\b|door\b)\w+|tomorrow|soon|one day|some day|later this \w+|(?:will|'ll) (?:\w+ ){0,4}in \d{4}"
    rf"|(?:from|starting|as of|beginning)(?: in| on)? (?:the )?(?:{_DAYS}|{_MONTHS}|next|20\d\d"
    rf"|\d\d?(?:st|nd|rd|th)?(?: of)? (?:{_MONTHS})))\b"
)
_SPAN = lazily(r"\bin (?:a|an|one|two|three|four|five|six|\d+) (?:days?|weeks?|months?|years?)\b")
_WILL = lazily(r"\b(?:will|gonna|going to (?!(?:the|a|an|my|our|school|work|church|bed)\b))\b|'ll\b")
_PLANS = lazily(r"\bplan(?:s|ned|ning)? (?:to|on)\b")
_LONG_AGO = lazily(
    r"\b(?:when (?:i|we|he|she|they) (?:was|were)|as an? (?:child|kid|student|teenager|baby|boy|girl)"
    r"|in (?:my|his|her|their) (?:\w+ )?(?:childhood|youth|teens|twenties|thirties|forties)"
    r"|long ago|back in (?:\d|the \d)\w*|back then|once(?! an?\b| every\b| per\b| in\b))\b"
)
_FOR_A_WHILE = lazily(
    r"\b(?:today|tonight|this (?:morning|afternoon|evening|week|weekend|month|term|time)|temporarily"
    r"|for (?:now|today|tonight|the (?:day|week|weekend|month|time being|moment)"
    r"|(?:a|an|two|three|four|five|\d+) (?:days?|weeks?|months?|hours?)))\b"
)
# "Public since today", "8:30 from this term on", "my last day today", "savings hit 15,000 today".
_FOR_GOOD = lazily(r"\b(?:since|from this|last|as of|hit|reached)\b")
_ENDED = lazily(r"\b(?:any ?more|any longer)\b")
_AGAIN_AND_AGAIN = lazily(
    r"\b(?:every|each|daily|weekly|monthly|yearly|always|usually|regular(?:ly)?"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days)\b"
)
_SOME = lazily(
    r"^\W*(?:one of|some(?:one|body|thing)?|any(?:one|body)?|another|half|most|many|several|an? \w+ (?:of|in|from)"
    r"|a (?:friend|colleague|coworker|neighbou?r|cousin|guy|man|woman|person|member|student|customer|user))\b"
)
_NOT = lazily(r"\b(?:no|not|never)\b|n't\b")
_SINCE = lazily(r"\b(?:since|as of|from|starting)\b")
_LIMITS = lazily(r"\b(?:at night|in the (?:morning|afternoon|evening)s?|(?:after|before) \d)\b")
_SYMBOL = lazily(r"[^\w\s.,!?;:'\"()\u2019\u2018\u201c\u201d\u2013\u2014-]")
_SPELLED = lazily(r"\w+")
_FIRST = lazily(r"(?:^|[.!?:\n])\W{0,3}(\w+)")
_LEADING = frozenset(("for", "in", "on", "at", "under", "with", "within", "during"))
_LIMITING = frozenset(("for", "after", "before", "during", "with", "on"))
_ALL = frozenset(("all", "both", "everything", "everyone", "neither", "none", "each", "either", "any"))
_SPEAKERS = frozenset(("i", "we"))
_ANY_SUBJECT = frozenset(("i", "we", "topic"))
# Relations that hold both ways.
_MUTUAL = lx.stems(
    "marry engage date divorce separate partner spouse twin sibling cousin friend neighbour neighbor colleague coworker"
)
# Another unit of time or of data is another value; "200 cm" may be the "2 m" that there were.
_DIMENSIONS = (
    frozenset(("ms", "s", "sec", "min", "h", "hour", "day", "week", "month", "year")),
    frozenset(("kb", "mb", "gb", "tb")),
    frozenset(("k", "$", "\u20ac", "\u00a3", "\u00a5")),
)
_NAMED = frozenset((NAME, IDENTIFIER))
_PLACES = frozenset(("in", "on", "at", "near"))
ELSEWHERE = "is about something else"
_UNCERTAIN, _TO_BE, _A_WHILE, _A_PART = "is not certain", "is to come", "holds for a while", "is about a part of it"
# With these, what both say does not fit together, and a language model may know more.
_OPEN = frozenset((_UNCERTAIN, _TO_BE, _A_WHILE, _A_PART))

Chunks: TypeAlias = Mapping[str, tuple[Word, ...]]


class Doubt(NamedTuple):
    """The reason, in a few words, why an older statement may still hold, and how the newer one stands to it."""

    outcome: Outcome
    reason: str


def doubt(new: Statement, old: Statement) -> Doubt | None:
    """The doubt that `new` replaces `old`, as it seems to do; None if nothing tells of one."""
    reason = _reason(new, old)
    return None if reason is None else Doubt("contradicts" if reason in _OPEN else "independent", reason)


def _reason(new: Statement, old: Statement) -> str | None:
    if _is_mirrored(new, old):
        return "says the same of the two"
    one, other = new.text.lower().replace("\u2019", "'"), old.text.lower().replace("\u2019", "'")
    for pattern, reason in (
        (_ADDS, "adds to it"),
        (_UNSURE, _UNCERTAIN),
        (_SAID, _UNCERTAIN),
        (_NOTHING, "says that nothing changed"),
    ):
        if pattern.search(one) and not pattern.search(other) and not (pattern is _NOTHING and _ENDED.search(one)):
            return reason
    if any(
        clause.negated and not clause.stopped and (clause.change or clause.ends or clause.gone)
        for clause in new.clauses
    ):
        return "says that nothing changed"
    if _SOME.search(one) or _SOME.search(other):
        return "does not say of which"
    return _of_another_time(new, old, one, other) or _of_another_thing(new, old) or _in_part(new, old, one)


def _is_mirrored(new: Statement, old: Statement) -> bool:
    """Whether both tell of one relation from its two sides: "Ada is married to Ben", "Ben is married to Ada"."""
    if len(new.clauses) != 1 or len(old.clauses) != 1:
        return False
    one, other = new.clauses[0], old.clauses[0]
    if one.relation != other.relation or one.now or one.change or one.ends or one.stopped or one.gone:
        return False
    if one.relation not in _MUTUAL and (one.relation != "be" or one.stated.isdisjoint(_MUTUAL)):
        return False
    apart = one.subject and other.subject and one.subject != other.subject
    return bool(apart) and one.subject <= other.every and other.subject <= one.every


def _of_another_time(new: Statement, old: Statement, one: str, other: str) -> str | None:
    """Whether it holds at another time: later, long ago, or for a while."""
    timed = any(word.kind in (DAY, DATE) for word in old.words)
    done = bool(new.clauses) and all(clause.past for clause in new.clauses)
    to_come = _TO_COME.search(one) or (not done and _SPAN.search(one))
    if not timed and to_come and not _TO_COME.search(other):
        return _TO_BE
    if any(clause.plan for clause in new.clauses) and _PLANS.search(one) and not _PLANS.search(other):
        return _TO_BE
    if _WILL.search(one) and any(clause.stopped or clause.ends for clause in new.clauses):
        return _TO_BE
    if _LONG_AGO.search(one) and not _LONG_AGO.search(other):
        return "was long ago"
    if _FOR_A_WHILE.search(one) and not _FOR_GOOD.search(one) and (not timed or _AGAIN_AND_AGAIN.search(other)):
        done = all(clause.past or clause.ends or clause.change for clause in new.clauses)
        if not done or _AGAIN_AND_AGAIN.search(other):
            return _A_WHILE
    return None


def _of_another_thing(new: Statement, old: Statement) -> str | None:
    """Whether it is said of something else: "for guests ..."; "Ada's office phone" is not "Ada's phone"."""
    if len(old.clauses) == 1 and not _fits(new, old.clauses[0]):
        return ELSEWHERE
    for mine, his in ((new, old), (old, new)):
        leading = _led_by(mine.words)
        if leading is not None and leading not in {word.meaning for word in his.words}:
            return ELSEWHERE
    return None


def _fits(new: Statement, former: Clause) -> bool:
    """Whether a clause of the newer one says the same kind of thing of the same as the older one."""
    clauses = new.clauses
    if any(clause.stopped or clause.ends or clause.corrected for clause in clauses):
        return True
    if any(clause.gone for clause in clauses):
        # "Acme switched from A to B" is no change of ours.
        return not former.subject <= _SPEAKERS or any(
            clause.passive or clause.replaces or clause.subject <= _SPEAKERS or clause.subject & former.every
            for clause in clauses
            if clause.gone
        )
    stated = [clause for clause in clauses if clause.chunks and clause.relation]
    return not stated or not former.chunks or any(_says_alike(clause, former) for clause in stated)


def _says_alike(clause: Clause, former: Clause) -> bool:
    if clause.change and clause.relation != "live":
        return True
    if clause.relation != former.relation and "be" not in (clause.relation, former.relation) and not clause.change:
        return not (lx.STATUS_STEMS.keys() >= {clause.relation, former.relation})
    if clause.subject != former.subject:
        more = clause.subject - former.subject - _ANY_SUBJECT
        if former.subject < clause.subject and more and not more & lx.ATTRIBUTES:
            return False
        if not clause.subject & former.subject:
            return True  # another rule found that
    ours, theirs = dict(clause.chunks), dict(former.chunks)
    mine, his = ours.keys() - {"time"}, theirs.keys() - {"time"}
    other_verb = clause.relation != former.relation and _all_named(ours, mine, theirs, his)
    if mine and his and mine.isdisjoint(his) and not (mine | his <= _PLACES or other_verb):
        typed = [
            all(word.kind in TYPED for role in roles for word in some[role])
            for roles, some in ((mine, ours), (his, theirs))
        ]
        return all(typed)
    differing = [
        role for role in ours.keys() & theirs.keys() if content_of(ours[role]).isdisjoint(content_of(theirs[role]))
    ]
    if len(differing) > 1 and not (clause.change or clause.corrected):
        return False
    roles = differing or [min(mine, default="")]
    return all(
        _kind_alike(ours.get(role, ()), theirs.get(role, ()) or theirs.get(min(his, default=""), ())) for role in roles
    )


def _all_named(ours: Chunks, mine: Set[str], theirs: Chunks, his: Set[str]) -> bool:
    """Whether all values are names: "runs Postgres", "is on MySQL"."""
    return all(
        any(word.kind in _NAMED for word in some[role])
        for some, roles in ((ours, mine), (theirs, his))
        for role in roles
    )


def _kind_alike(mine: tuple[Word, ...], his: tuple[Word, ...]) -> bool:
    """Whether two values are names, numbers or times alike, in one unit."""
    if not mine or not his:
        return True
    units = [{word.unit for word in words if word.unit} for words in (mine, his)]
    if all(units) and units[0].isdisjoint(units[1]) and not any(units[0] | units[1] <= alike for alike in _DIMENSIONS):
        return False
    named, typed = ([any(word.kind in kinds for word in words) for words in (mine, his)] for kinds in (_NAMED, TYPED))
    return named[0] == named[1] and (named[0] or typed[0] == typed[1])


def _led_by(words: tuple[Word, ...]) -> str | None:
    """The content word of a preposition that a text begins with, unless it is a time."""
    if len(words) < 4 or words[0].text not in _LEADING:
        return None
    if any(word.text in lx.NOW for word in words[1:4]):
        return None  # "With Biome now, ..."
    for word in words[1:4]:
        if word.kind in TYPED or word.kind in (STOP, COMMA):
            return None
        if word.text not in lx.ARTICLES and word.text not in lx.DEFINITE:
            return word.meaning
    return None


def _in_part(new: Statement, old: Statement, one: str) -> str | None:
    """Whether only a part of the older one ends or changes."""
    known = {word.meaning for word in new.words}
    if not _ALL & {word.text for word in new.words}:
        for pair in _listed(old.words):
            if len({word.meaning for word in pair} & known) == 1:
                return _A_PART
    stated = {word.meaning for word in old.words}
    if len(new.clauses) == 1 and _qualified(new.clauses[0], old, one):
        return _A_PART
    for clause in new.clauses:
        if (clause.stopped and not clause.past) or (
            clause.negated and not any(former.negated for former in old.clauses)
        ):
            mine = content_of(clause.head) | {key for _, words in clause.chunks for key in content_of(words)}
            mine |= {word.meaning for word in clause.rest}
            times = {word.meaning for role, words in clause.chunks if role == "time" for word in words}
            if mine - times - stated and mine & stated:
                return _A_PART
    return None


def _qualified(clause: Clause, old: Statement, text: str) -> bool:
    """Whether an end or a state holds at some times or for some only: "closed on Fridays", "disabled for guests"."""
    state = _NOT.search(text) is not None and (clause.stopped or clause.negated)
    state = state or any(word.text in lx.STATUS for _, words in clause.chunks for word in words)
    state = state or (clause.passive and clause.relation in lx.STATUS_STEMS)
    if not state or clause.past or clause.change or _SINCE.search(text):
        return False
    stated = {word.meaning for word in old.words}
    added = {
        word.meaning for role, words in clause.chunks if role != "" for word in words if word.text not in lx.STATUS
    }
    if any(word.kind in (DAY, DATE) for _, words in clause.chunks for word in words) and not added <= stated:
        return True
    roles = {role for role, words in clause.chunks if role in _LIMITING and not content_of(words) <= stated}
    return bool(roles) or _LIMITS.search(text) is not None


def _listed(words: Iterable[Word]) -> list[tuple[Word, Word]]:
    """The words on both sides of each "and" or "or"."""
    words = [word for word in words if word.text not in lx.ARTICLES and word.text not in lx.DEFINITE]
    return [
        (words[place - 1], words[place + 1])
        for place in range(1, len(words) - 1)
        if words[place].text in ("and", "or", "&")
    ]


def spelled_alike(one: str, other: str) -> bool:
    """Whether two texts that say the same have the same capitals within and the same symbols: ABC is not abc."""
    if one == other:
        return True
    if sorted(_SYMBOL.findall(one)) != sorted(_SYMBOL.findall(other)):
        return False
    forms = [{word.casefold(): word for word in _SPELLED.findall(text)} for text in (one, other)]
    shared = forms[0].keys() & forms[1].keys()
    firsts = {word.casefold() for text in (one, other) for word in _FIRST.findall(text)}
    # The first word of a sentence may differ in its first letter.
    return all(
        forms[0][word][1:] == forms[1][word][1:] if word in firsts else forms[0][word] == forms[1][word]
        for word in shared
    )
