"""Judging: the relation of a new statement to an older one, in three steps.

1. `may_relate` leaves out most pairs by their outlines, two numbers of each statement: without a bit in common, the new
   one neither changes nor repeats the older one. Nine in ten statements that share a key have nothing to do with each
   other. Outlines show this in a microsecond and take a tenth of the memory of a parsed statement, so most statements
   that a new one is compared with are never parsed again.
2. `judge` asks the rules, and a fit on pairs of statements.
3. `doubt` names a reason why the older statement may hold all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from recallite.text.patterns import lazily
from recallite.text.statements import clause_changes as changes
from recallite.text.statements import lexicon as lx
from recallite.text.statements.clause import Clause
from recallite.text.statements.instructions import REASONS, instructions_of, judge_instructions
from recallite.text.statements.lexicon import SEVERAL
from recallite.text.statements.likelihood import CHANGING, Chance, Ruled, chances_replaced, is_cued
from recallite.text.statements.other_languages import ANOTHER, ENDED, compare_in_other_languages, has_words_of_change
from recallite.text.statements.statement import Outcome, Ruling, Statement, Verdict, statement_of
from recallite.text.statements.statement_words import Word
from recallite.text.statements.traits import content_of, cues_of, successor_of
from recallite.text.statements.value_changes import MOST_UNCUED, USES
from recallite.text.words import text_key

# The outlines that are kept, some 300 bytes each.
_MOST_OUTLINES = 1 << 15
# Bits of what two statements say, and others, each of which suffices.
_SAID = 512
_TELLS, _EXCHANGED, _ELSEWHERE, _CUED, _DENIES, _AFFIRMS, _FOLLOWS, _INSTRUCTS = (1 << _SAID + i for i in range(8))
_SUFFICES = (1 << _SAID + 8) - 1
# Bits of subjects and of verbs, of which two statements need one each.
_SUBJECT, _VERB = _SAID + 8, _SAID + 72
_SUBJECTS, _VERBS = ((1 << 64) - 1) << _SUBJECT, ((1 << 70) - 1) << _VERB
_TASTED, _REACHED, _NEW_NEGATED, _OLD_NEGATED = (1 << _VERB + i for i in range(4))
# Bits of verbs that rules compare by what else is said: of short clauses, and of long ones, for which it takes a cue.
_SHORT, _LONG, _USED, _ANY = _VERB + 4, _VERB + 37, 1 << 32, (1 << 33) - 1


class Outline(Struct, frozen=True, gc=False):
    """The bits of a statement as the newer of two, and as the older."""

    newer: int
    older: int


_outlines: dict[bytes, Outline] = {}


def outline_of(text: str, context: str | None, content_hash: bytes) -> Outline:
    """The outline of a text under its context, cached by their hash."""
    outline = _outlines.get(content_hash)
    if outline is None:
        if len(_outlines) >= _MOST_OUTLINES:
            _outlines.clear()
        outline = _outlines[content_hash] = outline_of_statement(statement_of(text, context))
    return outline


def may_relate(new: Outline, old: Outline) -> bool:
    """Whether `judge` may say anything but "independent"."""
    common = new.newer & old.older
    return bool(common & _SUFFICES or (common & _SUBJECTS and common & _VERBS))


def outline_of_statement(statement: Statement) -> Outline:
    """The outline of a statement."""
    instructs = _INSTRUCTS if instructions_of(statement.text) else 0
    if not statement.words:
        bit = _bit("text", text_key(statement.text)) | instructs
        return Outline(bit, bit)
    newer = older = _bit("canon", statement.canon()) | instructs
    newer |= _FOLLOWS
    if successor_of(statement):
        older |= _FOLLOWS
    if statement.replacing:
        newer |= _DENIES if statement.negated else _AFFIRMS
        if not cues_of(statement).isdisjoint(CHANGING):
            newer |= _CUED
    if statement.replaceable:
        older |= _CUED | (_AFFIRMS if statement.negated else _DENIES)
    if has_words_of_change(statement):
        newer |= _ELSEWHERE
    if not statement.question:
        older |= _ELSEWHERE
    clauses = statement.clauses
    cued = any(tells_change(clause) or clause.now or clause.relation.startswith("re") for clause in clauses)
    for clause in clauses:
        newer |= _bits_as_newer(clause, cued=cued)
        if statement.whole and len(clauses) <= _MOST_REPLACED:
            older |= _bits_as_older(clause)
    return Outline(newer, older)


def _bits_as_newer(clause: Clause, *, cued: bool) -> int:
    relation = clause.relation
    bits = _said(clause, clause.subject, clause.stated)
    if changes.is_idle(clause):
        return bits
    if changes.tells(clause) or (clause.now and relation in USES):
        bits |= _TELLS
    if relation in changes.EXCHANGES:
        bits |= _EXCHANGED
    if relation in changes.REACHES:
        bits |= _REACHED
    verb = _ANY if changes.matches_any(clause) else _verb(relation)
    if cued:
        bits |= verb << _LONG
    if cued or _is_short(clause):
        bits |= verb << _SHORT
    return bits | _subjects(clause) | _OLD_NEGATED | (_NEW_NEGATED if clause.negated else 0)


def _bits_as_older(clause: Clause) -> int:
    relation = clause.relation
    bits = _said(clause, clause.stated, clause.subject)
    if relation == "be":
        bits |= _EXCHANGED | _set_bit("subject", clause.every)
    if clause.unreal or clause.former:
        return bits
    if relation in changes.STRIVES:
        bits |= _REACHED
    bits |= _verb(relation) << (_SHORT if _is_short(clause) else _LONG)
    return bits | _TELLS | _subjects(clause) | _NEW_NEGATED | (_OLD_NEGATED if clause.negated else 0)


def _is_short(clause: Clause) -> bool:
    """Whether a rule may compare what a clause says without a cue; states are compared in any."""
    if len(clause.every) <= MOST_UNCUED or clause.relation == "work" or clause.relation in lx.STATUS_STEMS:
        return True
    return any(word.text in lx.STATUS for _, words in clause.chunks for word in words)


def _said(clause: Clause, subject: frozenset[str], holder: frozenset[str]) -> int:
    """The bits of what a clause says, and of what: of two of "be", one may say the subject of the other."""
    if clause.relation != "be":
        return _bit(clause.relation, clause.stated or clause.subject)
    return _set_bit("be", clause.stated) | _set_bit("subject", subject) | _set_bit("holder", holder)


def _subjects(clause: Clause) -> int:
    bits = _TASTED if clause.relation in changes.TASTES else 0
    for stem in clause.subject:
        bits |= 1 << _SUBJECT + (hash(stem) & 63)
    return bits


def _verb(relation: str) -> int:
    if relation in changes.ANY_VERB:
        return _ANY
    return 1 << (hash(relation) & 31) | (_USED if relation in USES else 0)


def _set_bit(name: str, stems: frozenset[str]) -> int:
    """The bit of some stems; what says nothing has none."""
    return _bit(name, stems) if stems else 0


def _bit(*parts: object) -> int:
    return 1 << (hash(parts) % _SAID)


# The verdict of rules and fit.

FILE = Path(__file__).with_name("confidence.json")
"""The share of times that each rule is right, as `benchmarks.training.statements` counted."""
_UNRATED = 0.7
# The least confidence of what the fit is sure of: that which policies ask for by default.
_SURE = 0.8
# If the surest rules find that a value was replaced, the fit has to hold it only for likely.
_CERTAIN, _LIKELY = 0.97, 0.6
_TOO = frozenset(("too", "also"))
# The most clauses of a statement that the rules replace.
_MOST_REPLACED = 2
_MOST_ADDED = 3
# Reasons unknown to the fit: its pairs are English, and have no "A was replaced by B", "I used to" and instructions.
_UNFITTED = REASONS | {ENDED, ANOTHER, changes.REPLACED, changes.FORMER}
_ENDS = frozenset(("no longer holds", "has ended", "was called off"))


class Pair(NamedTuple):
    """Two statements of the same scope and kind.

    `cosine`: of their vectors, if both have one; `later`: whether `new` begins to hold after `old`, not at one moment.
    """

    new: Statement
    old: Statement
    cosine: float | None
    later: bool


def judge(
    new: Statement, old: Statement, *, cosine: float | None, later: bool, several: frozenset[str] = SEVERAL
) -> Verdict:
    """The verdict on one pair."""
    return judge_all([Pair(new, old, cosine, later)], several)[0]


def judge_all(pairs: Sequence[Pair], several: frozenset[str] = SEVERAL) -> list[Verdict]:
    """The verdicts on pairs: the rules decide; if they find nothing, a fit on pairs may (`likelihood`).

    `several`: the stems of relations that may hold several values.
    """
    ruled = [Ruled(pair.new, pair.old, judge_by_rules(pair.new, pair.old, several), pair.cosine) for pair in pairs]
    more = several - SEVERAL
    fitted = [
        i
        for i, (new, old, rules, _) in enumerate(ruled)
        if rules.outcome != "same" and rules.reason not in _UNFITTED and not (more and _adds_value(new, old, more))
    ]
    chances = dict(zip(fitted, chances_replaced([ruled[i] for i in fitted]), strict=True))
    return [
        _decided(pair, rules.rules, chances.get(i)) for i, (pair, rules) in enumerate(zip(pairs, ruled, strict=True))
    ]


def _decided(pair: Pair, rules: Verdict, chance: Chance | None) -> Verdict:
    """The verdict by the rules, the chance that the fit gives, and the doubts."""
    new, old, _, later = pair
    if rules.outcome == "same":
        return rules if spelled_alike(new.text, old.text) else Verdict("independent", _UNRATED, "spelled otherwise")
    sure = chance is not None and (
        chance.sure or (rules.confidence >= _CERTAIN and chance.value >= _LIKELY and rules.outcome == "supersedes")
    )
    if rules.outcome != "supersedes" and not sure:
        return rules
    reason = rules.reason if rules.outcome == "supersedes" else "says what changed"
    doubted = None if reason in REASONS else doubt(new, old)
    # Of 15 such pairs that the fit finds alone, by folds, 14 were replaced.
    overruled = rules.outcome != "supersedes" and doubted is not None and doubted.reason == ELSEWHERE
    if doubted is not None and not (overruled and is_cued(new, old)):
        return Verdict(doubted.outcome, _UNRATED, f"{reason}, but {doubted.reason}")
    if not later:
        return Verdict("contradicts", _UNRATED, f"{reason}, but began earlier")
    if _of_two_sources(new, old):
        return Verdict("contradicts", _UNRATED, f"{reason}; of two sources")
    if chance is None:
        return rules
    # What a rule finds is among the evidence of the fit, which doubts it in a tenth of such pairs, and is mostly right.
    confidence = max(chance.value, _SURE) if sure else min(chance.value, _UNRATED)
    return Verdict("supersedes", round(confidence, 3), reason)


def _adds_value(new: Statement, old: Statement, more: frozenset[str]) -> bool:
    """Whether both state a relation of `more`, which holds several values."""
    return any(
        one.relation == other.relation and one.relation in more and not one.stopped and not one.gone
        for one in new.clauses
        for other in old.clauses
    )


def _of_two_sources(new: Statement, old: Statement) -> bool:
    """Whether two say it, and neither of the other. Who is not named is another than who is."""
    if new.speaker == old.speaker:
        return False
    named = {stem for clause in new.clauses for stem in clause.subject if stem != new.speaker}
    named |= {stem for clause in old.clauses for stem in clause.subject if stem != old.speaker}
    return new.speaker not in named and old.speaker not in named


def judge_by_rules(new: Statement, old: Statement, several: frozenset[str] = SEVERAL) -> Verdict:
    """The verdict of the rules alone on two statements; `new` begins to hold later."""
    if new.text == old.text and new.speaker == old.speaker:
        return Verdict("same", 1.0, "the same text")
    if not new.words and not old.words and new.speaker == old.speaker and text_key(new.text) == text_key(old.text):
        return Verdict("same", 0.97, "the same text but for its case and marks")
    if ((new.canon() and new.canon() == old.canon()) or _same(new, old)) and _adds(new) == _adds(old):
        return Verdict("same", 0.97, "says the same")
    if (verdict := judge_instructions(new.text, old.text)) is not None:
        return verdict
    if successor := successor_of(old):  # "Uses Biome", after "we used TSLint, it was replaced by Biome"
        for clause in new.clauses:
            hypothetical = clause.former or clause.unreal or clause.negated or clause.plan
            if not hypothetical and successor <= clause.stated | clause.subject:
                return _rated("supersedes", changes.REPLACED)
    foreign = compare_in_other_languages(new, old)
    if foreign is not None:
        return _rated(foreign.outcome, foreign.reason)
    best = _best_finding(new, old, several)
    if best is None:
        return Verdict("independent", 0.9, "both may hold")
    return _verdict(best, new, old)


def _best_finding(new: Statement, old: Statement, several: frozenset[str]) -> Ruling | None:
    """Return what the rules find of two clauses; of several findings the one that says most."""
    best: Ruling | None = None
    strength = ("independent", "same", "contradicts", "supersedes").index
    for clause in new.clauses:
        for former in old.clauses:
            if changes.cannot_relate(clause, former):
                continue
            changed = any(tells_change(other) for other in new.clauses if other is not clause)
            finding = changes.compare(clause, former, several, changed, new.mentions())
            if finding is not None and (
                best is None or (strength(finding.outcome), finding.cued) > (strength(best.outcome), best.cued)
            ):
                best = finding
    return best


def _verdict(finding: Ruling, new: Statement, old: Statement) -> Verdict:
    alone = len(old.clauses) == 1 and old.whole and not old.question
    if finding.outcome == "contradicts":
        if alone and len(new.clauses) <= _MOST_REPLACED:
            return _rated("contradicts", finding.reason)
        return Verdict("independent", 0.8, "the older one says more")
    # What ended has ended with all that was added to it.
    added = sum(word.kind not in lx.TYPED for word in old.clauses[0].rest)
    adds = added > (_MOST_ADDED if finding.reason in _ENDS else 0)
    if not alone or adds:
        if max(len(old.clauses), len(new.clauses)) <= _MOST_REPLACED and finding.cued and old.whole and new.whole:
            return Verdict("contradicts", 0.6, f"{finding.reason}; the older one says more")
        return Verdict("independent", 0.7, "the older one says more")
    return _rated("supersedes", finding.reason)


def _rated(outcome: Outcome, reason: str) -> Verdict:
    return Verdict(outcome, confidences()[outcome].get(reason, _UNRATED), reason)


@cache
def confidences() -> dict[str, dict[str, float]]:
    """The share of times that a rule is right, by outcome and reason."""
    shares: dict[str, dict[str, float]] = msgspec.json.decode(FILE.read_bytes())["confidences"]
    return shares


def tells_change(clause: Clause) -> bool:
    """Whether a clause tells of an event, a change or an end."""
    return bool(clause.stopped or clause.ends or clause.change or clause.corrected or clause.gone or clause.past)


def _same(new: Statement, old: Statement) -> bool:
    if not (len(new.clauses) == len(old.clauses) == 1 and new.whole and old.whole) or new.question or old.question:
        return False
    one, other = new.clauses[0], old.clauses[0]
    if one.relation != other.relation or _form(one) != _form(other) or one.gone or other.gone:
        return False
    if not one.chunks and one.relation in ("be", "have"):
        return False
    stated = [{role: [word.key for word in words] for role, words in clause.chunks} for clause in (one, other)]
    if one.subject == other.subject and stated[0] == stated[1]:
        return True
    return one.relation == "be" and one.subject == other.every and other.subject == one.every


def _adds(statement: Statement) -> bool:
    """Whether it says "too": then it tells of another one."""
    return any(word.text in _TOO for word in statement.words)


def _form(clause: Clause) -> tuple[object, ...]:
    return (
        clause.negated, clause.past, clause.plan, clause.former, clause.unreal, clause.stopped, clause.ends,
        clause.command, clause.rest,
    )  # fmt: skip


# Doubts, by rules for English: the newer statement may only be guessed, told by somebody else, planned or past; it may
# hold for a while, in part, or of something else; or it names one of several things that the older one says.

_ADDS = lazily(r"\b(?:also|as well|in addition|additionally)\b|\btoo\b(?=\W*$|,)")
_UNSURE = lazily(
    r"\b(?:maybe|perhaps|probably|possibly|presumably|supposedly|apparently|allegedly|might|i guess|not sure|unsure"
    r"|i (?:hope|wish|doubt|dreamt?|dreamed|imagine)|rumou?rs?|if|unless|whether|nearly|almost"
    r"|in (?:the|a|my) (?:novel|story|film|movie|book|dream|game|play)|(?:isn't|is not|not) true|wants? to"
    r"|would like to|hop(?:e|es|ing) to|think(?:s|ing)? (?:of|about)|consider(?:s|ing)?"
    r"|decided (?:not to|against)|pretend(?:s|ed)?)\b"
)
_REPORTED = lazily(
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
_PLACES = frozenset(("in", "on", "at", "near"))
ELSEWHERE = "is about something else"
_UNCERTAIN, _TO_BE, _A_WHILE, _A_PART = "is not certain", "is to come", "holds for a while", "is about a part of it"
# These doubts leave a contradiction, which a language model may settle.
_OPEN = frozenset((_UNCERTAIN, _TO_BE, _A_WHILE, _A_PART))


class Doubt(NamedTuple):
    """The reason, in a few words, why an older statement may still hold, and how the newer one stands to it."""

    outcome: Outcome
    reason: str


def doubt(new: Statement, old: Statement) -> Doubt | None:
    """The doubt that `new` replaces `old`, as it seems to do; None if nothing tells of one."""
    reason = _reason_of_doubt(new, old)
    return None if reason is None else Doubt("contradicts" if reason in _OPEN else "independent", reason)


def _reason_of_doubt(new: Statement, old: Statement) -> str | None:
    if _is_mirrored(new, old):
        return "says the same of the two"
    one, other = new.text.lower().replace("\u2019", "'"), old.text.lower().replace("\u2019", "'")
    if _ADDS.search(one) and not _ADDS.search(other):
        return "adds to it"
    if any(pattern.search(one) and not pattern.search(other) for pattern in (_UNSURE, _REPORTED)):
        return _UNCERTAIN
    if (_NOTHING.search(one) and not _NOTHING.search(other) and not _ENDED.search(one)) or any(
        clause.negated and not clause.stopped and (clause.change or clause.ends or clause.gone)
        for clause in new.clauses
    ):
        return "says that nothing changed"
    if _SOME.search(one) or _SOME.search(other):
        return "does not say of which"
    if (reason := _of_another_time(new, old, one, other)) is not None:
        return reason
    if len(old.clauses) == 1 and not _fits(new, old.clauses[0]):
        return ELSEWHERE
    for mine, his in ((new, old), (old, new)):
        leading = _led_by(mine.words)  # "for guests ..."
        if leading is not None and leading not in {word.meaning for word in his.words}:
            return ELSEWHERE
    return _A_PART if _is_of_a_part(new, old, one) else None


def _is_mirrored(new: Statement, old: Statement) -> bool:
    """Whether both tell of one relation from its two sides: "Ada is married to Ben", "Ben is married to Ada"."""
    if len(new.clauses) != 1 or len(old.clauses) != 1:
        return False
    one, other = new.clauses[0], old.clauses[0]
    if one.relation != other.relation or one.now or one.change or one.ends or one.stopped or one.gone:
        return False
    if one.relation not in _MUTUAL and (one.relation != "be" or one.stated.isdisjoint(_MUTUAL)):
        return False
    two = bool(one.subject and other.subject) and one.subject != other.subject
    return two and one.subject <= other.every and other.subject <= one.every


def _of_another_time(new: Statement, old: Statement, one: str, other: str) -> str | None:
    """Whether it holds at another time: later, long ago, or for a while."""
    timed = any(word.kind in (lx.DAY, lx.DATE) for word in old.words)
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


def _fits(new: Statement, former: Clause) -> bool:
    """Whether a clause of the newer one says the same kind of thing of the same; "Ada's office phone" is another."""
    clauses = new.clauses
    if any(clause.stopped or clause.ends or clause.corrected for clause in clauses):
        return True
    if any(clause.gone for clause in clauses):
        # "Acme switched from A to B" is no change of ours.
        return not former.subject <= lx.SPEAKERS or any(
            clause.passive or clause.replaces or clause.subject <= lx.SPEAKERS or clause.subject & former.every
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
    values = [*map(ours.__getitem__, mine), *map(theirs.__getitem__, his)]
    all_named = all(any(word.kind in lx.NAMED for word in words) for words in values)
    other_verb = clause.relation != former.relation and all_named  # "runs Postgres", "is on MySQL"
    if mine and his and mine.isdisjoint(his) and not (mine | his <= _PLACES or other_verb):
        return all(word.kind in lx.TYPED for words in values for word in words)
    differing = [
        role for role in ours.keys() & theirs.keys() if content_of(ours[role]).isdisjoint(content_of(theirs[role]))
    ]
    if len(differing) > 1 and not (clause.change or clause.corrected):
        return False
    roles = differing or [min(mine, default="")]
    return all(
        _kind_alike(ours.get(role, ()), theirs.get(role, ()) or theirs.get(min(his, default=""), ())) for role in roles
    )


def _kind_alike(mine: tuple[Word, ...], his: tuple[Word, ...]) -> bool:
    """Whether two values are names, numbers or times alike, in one unit."""
    if not mine or not his:
        return True
    units = [{word.unit for word in words if word.unit} for words in (mine, his)]
    if all(units) and units[0].isdisjoint(units[1]) and not any(units[0] | units[1] <= alike for alike in _DIMENSIONS):
        return False
    named, typed = (
        [any(word.kind in kinds for word in words) for words in (mine, his)] for kinds in (lx.NAMED, lx.TYPED)
    )
    return named[0] == named[1] and (named[0] or typed[0] == typed[1])


def _led_by(words: tuple[Word, ...]) -> str | None:
    """The content word of a preposition that a text begins with, unless it is a time."""
    if len(words) < 4 or words[0].text not in _LEADING:
        return None
    if any(word.text in lx.NOW for word in words[1:4]):
        return None  # "With Biome now, ..."
    for word in words[1:4]:
        if word.kind in lx.TYPED or word.kind in (lx.STOP, lx.COMMA):
            return None
        if word.text not in lx.ARTICLES and word.text not in lx.DEFINITE:
            return word.meaning
    return None


def _is_of_a_part(new: Statement, old: Statement, one: str) -> bool:
    """Whether only a part of the older one ends or changes."""
    known, stated = {word.meaning for word in new.words}, {word.meaning for word in old.words}
    if not _ALL & {word.text for word in new.words}:
        words = [word for word in old.words if word.text not in lx.ARTICLES and word.text not in lx.DEFINITE]
        for before, word, after in zip(words, words[1:], words[2:], strict=False):
            if word.text in ("and", "or", "&") and len({before.meaning, after.meaning} & known) == 1:
                return True
    if len(new.clauses) == 1 and _is_qualified(new.clauses[0], stated, one):
        return True
    for clause in new.clauses:
        if (clause.stopped and not clause.past) or (clause.negated and not old.negated):
            mine = content_of(clause.head) | {key for _, words in clause.chunks for key in content_of(words)}
            mine |= {word.meaning for word in clause.rest}
            times = {word.meaning for role, words in clause.chunks if role == "time" for word in words}
            if mine - times - stated and mine & stated:
                return True
    return False


def _is_qualified(clause: Clause, stated: set[str], text: str) -> bool:
    """Whether an end or a state holds at some times or for some only: "closed on Fridays", "disabled for guests"."""
    state = _NOT.search(text) is not None and (clause.stopped or clause.negated)
    state = state or any(word.text in lx.STATUS for _, words in clause.chunks for word in words)
    state = state or (clause.passive and clause.relation in lx.STATUS_STEMS)
    if not state or clause.past or clause.change or _SINCE.search(text):
        return False
    added = {
        word.meaning for role, words in clause.chunks if role != "" for word in words if word.text not in lx.STATUS
    }
    if any(word.kind in (lx.DAY, lx.DATE) for _, words in clause.chunks for word in words) and not added <= stated:
        return True
    limited = any(role in _LIMITING and not content_of(words) <= stated for role, words in clause.chunks)
    return limited or _LIMITS.search(text) is not None


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
