"""Judging: whether a new statement gives a property that an older one states another value.

A value replaces a value only if both texts state the same property of the same subject (`properties`). If two clauses
differ in anything else than one value, or in values of different kinds, both may hold. Each clause of the newer
statement is compared with the one clause of the older: what it says is gone or has ended, the opposite, or another
value.

A value that differs supersedes the older one if the newer says so ("now", "went up to"), or if the form of both tells
that there is one value at a time: what is owned or has "the", assignments, versions, verbs such as "cost". If neither
is so, and both cannot hold, they contradict each other. A statement that says more than one thing is never replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from recallite.text.patterns import lazily
from recallite.text.statements import lexicon as lx
from recallite.text.statements.clause import MOVES, YEAR, Clause
from recallite.text.statements.instructions import instructions_of, judge_instructions
from recallite.text.statements.lexicon import SEVERAL
from recallite.text.statements.properties import (
    NAMED,
    PLACED,
    PLACES,
    PLAIN,
    TONE,
    USES,
    Property,
    Slot,
    Traits,
    Words,
    does_again,
    is_again,
    is_as_said,
    is_named,
    is_of_one_subject,
    is_of_time,
    is_turned,
    keys_of_words,
    kind_of,
    nouns_of,
    of_object,
    shared_ends,
    slot_of,
    traits_of,
    type_of,
)
from recallite.text.statements.statement import Outcome, Statement, Verdict
from recallite.text.words import text_key

# How sure verdicts are that supersede with certainty, that supersede, and that contradict. On the 6,755 pairs that
# `benchmarks.training.statements` judges more are right than the first two say, and .70 of the contradictions.
_CERTAIN, _SURE, _OPEN = 0.95, 0.85, 0.7
# The most clauses of a text that replaces another.
_MOST_REPLACING = 3
_LISTED = lazily(r"(?:,|\band\b|&) ")


class Pair(NamedTuple):
    """Two statements of the same scope and kind; `later`: `new` begins to hold after `old`, not at one moment."""

    new: Statement
    old: Statement
    later: bool


def judge_all(pairs: Iterable[Pair], several: frozenset[str] = SEVERAL) -> list[Verdict]:
    """The verdicts on pairs; `several`: the stems of relations that may hold several values."""
    return [judge(new, old, later=later, several=several) for new, old, later in pairs]


def judge(new: Statement, old: Statement, *, later: bool, several: frozenset[str] = SEVERAL) -> Verdict:
    """The verdict on one pair."""
    ours, theirs = new.traits or traits_of(new), old.traits or traits_of(old)
    if (same := _same(new, old, ours, theirs)) is not None:
        return same
    if instructions_of(new.text) and (instructed := judge_instructions(new.text, old.text)) is not None:
        if instructed.outcome == "supersedes" and (hindrance := _hindrance(new, old, later)):
            return Verdict("contradicts", _OPEN, f"{instructed.reason}, but {hindrance}")
        return instructed
    finding = _best_finding(new, old, ours, theirs, several) or _in_the_same_words(new, old, ours, theirs)
    if finding is None:
        return Verdict("independent", 0.9, "both may hold")
    outcome, reason, certain = finding
    if outcome == "contradicts":
        return Verdict("contradicts", _OPEN, reason)
    listed = reason in (VALUE, BY_FORM, GONE, REPLACED, ENDED) and _LISTED.search(old.text)
    if (old.clauses and not old.compared) or listed or len(new.clauses) > _MOST_REPLACING:
        return Verdict("contradicts", _OPEN, f"{reason}, but the older one says more")
    if hindrance := _hindrance(new, old, later, told=reason != BY_FORM):
        return Verdict("contradicts", _OPEN, f"{reason}, but {hindrance}")
    certain = certain and new.whole and len(new.clauses) == 1
    return Verdict("supersedes", _CERTAIN if certain else _SURE, reason, certain)


def _hindrance(new: Statement, old: Statement, later: bool, *, told: bool = True) -> str | None:
    """What keeps a text from replacing another, though it says otherwise; `told`: it says that it changed."""
    if not later:
        return "began earlier"
    if new.speaker == old.speaker:
        return None
    # If one speaks of the other it is of one source. Who is not named is another than who is.
    named = {stem for one in (new, old) for clause in one.clauses for stem in clause.subject - {one.speaker}}
    return None if told and not named.isdisjoint((new.speaker, old.speaker)) else "of two sources"


# The same again.

_SYMBOL = lazily(r"[^\w\s.,!?;:'\"()\u2019\u2018\u201c\u201d\u2013\u2014-]")
_SPELLED = lazily(r"\w+")
_FIRST = lazily(r"(?:^|[.!?:\n])\W{0,3}(\w+)")


def _same(new: Statement, old: Statement, ours: Traits, theirs: Traits) -> Verdict | None:
    """The verdict on two texts that say the same; None if they do not."""
    if new.text == old.text and new.speaker == old.speaker:
        return Verdict("same", 1.0, "the same text")
    if not new.words and not old.words and new.speaker == old.speaker and text_key(new.text) == text_key(old.text):
        same = Verdict("same", 0.97, "the same text but for its case and marks")
    elif ours.adds == theirs.adds and (
        (ours.canon and ours.canon == theirs.canon) or _says_the_same(new, old, ours, theirs)
    ):
        same = Verdict("same", 0.97, "says the same")
    else:
        return None
    if not is_as_said(new, old):
        return None
    return same if spelled_alike(new.text, old.text) else Verdict("independent", _OPEN, "spelled otherwise")


def _says_the_same(new: Statement, old: Statement, ours: Traits, theirs: Traits) -> bool:
    if ours.form is None or ours.form != theirs.form or not (new.whole and old.whole) or new.question or old.question:
        return False
    one, other = new.clauses[0], old.clauses[0]
    if one.relation != other.relation or one.gone or other.gone:
        return False
    if not one.chunks and one.relation in ("be", "have"):
        return False
    if one.subject == other.subject and ours.said == theirs.said:
        return not is_turned(one.head, other.head)
    return one.relation == "be" and one.subject == other.every and other.subject == one.every


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


class Finding(NamedTuple):
    """What two clauses tell of their statements; `certain` as of `Verdict`."""

    outcome: Outcome
    reason: str
    certain: bool = False


def _best_finding(
    new: Statement, old: Statement, ours: Traits, theirs: Traits, several: frozenset[str]
) -> Finding | None:
    """Of what the clauses of two statements tell, what says most."""
    if old.question or not old.whole or ours.adds:
        return None
    best: Finding | None = None
    differing = 0
    for mine in ours.properties:
        # "My landlord changed it, my rent is due on the 5th".
        if not mine.told and len(new.clauses) > 1 and any(one.change or one.corrected for one in new.clauses):
            mine = replace(mine, told=True)
        for his in theirs.properties:
            finding = compare(mine, his, several, quoted=ours.quoted)
            differing += finding is not None and mine.clause.assigned
            if finding is not None and (best is None or finding.outcome == "supersedes"):
                best = finding
    # {"host": "a", "port": 1} and {"host": "b", "port": 2} tell of two things.
    return None if differing > 1 else best


def compare(new: Property, old: Property, several: frozenset[str] = SEVERAL, *, quoted: bool = False) -> Finding | None:
    """What a property tells of an older one; None if both may hold. `quoted`: somebody says so."""
    ours, theirs = new.clause, old.clause
    if (
        theirs.former
        or (theirs.plan and not ours.plan and new.relation != "be")
        or ((ours.unreal or theirs.unreal) and not (ours.unreal and theirs.unreal))
    ):
        return None
    finding = _compared(new, old, several)
    if finding is None or finding.outcome == "contradicts":
        return finding
    if ours.sourced or theirs.sourced or quoted:
        return Finding("contradicts", "sources")
    changing = ours.change and not ours.bounded and (ours.moved or ours.corrected or not ours.gone)
    changed = ours.past or ours.perfect or changing
    if ours.passing and not theirs.passing and not changed:  # "today in room 7 instead of room 5"
        return Finding("contradicts", f"{finding.reason}, but for a time")
    times = [word.value for word in new.roles.get("time", ()) if word.value]
    to_come = any(time == "tomorrow" or time.startswith("next ") for time in times) and "time" not in old.roles
    if (ours.plan and not theirs.plan) or to_come:
        return Finding("contradicts", f"{finding.reason}, but is to come")
    long_ago = ours.change and (ours.rest or any(YEAR.fullmatch(time[-4:]) for time in times))
    if long_ago and all(word.kind in lx.TYPED for word in ours.rest) and "time" not in old.roles:
        return Finding("contradicts", f"{finding.reason}, but may be long ago")  # "moved to Kiel in 2009"
    if any(word.kind not in lx.TYPED for word in ours.rest) and new.relation != "be":
        return Finding(finding.outcome, finding.reason)
    return finding


def _compared(new: Property, old: Property, several: frozenset[str]) -> Finding | None:
    """What is gone or has ended, the opposite, or another value, whoever says it and whenever it holds."""
    ours, theirs = new.clause, old.clause
    one_subject = is_of_one_subject(new, old)
    if not one_subject and ours.change and new.relation == "be" and (turned := of_object(new, old)) is not None:
        old, one_subject = turned, True
    event = theirs.past and not theirs.perfect and not theirs.change and not (theirs.passive and old.relation == "be")
    tells_of = ours.gone and (ours.change or ours.corrected or ours.relation == "replac") and not ours.negated
    if tells_of and not theirs.negated and not event:
        finding = _gone(new, old, one_subject)
        if finding is not None:
            return finding
    if ours.ends and not theirs.negated and (theirs.passive or not (theirs.past or theirs.perfect)):
        finding = _ended(new, old, one_subject, several)
        if finding is not None:
            return finding
    if not one_subject and not (ours.former and not new.subject and not old.subject):
        return None
    if ours.former:
        held = not event and not theirs.negated and not ours.negated
        return Finding("supersedes", FORMER, True) if held and _holds_all(new, old) else None
    if ours.negated == theirs.negated:
        return None if ours.negated else _another_value(new, old, several, event=event)
    # One says the opposite of the other.
    alike = _holds_all(new, old) if ours.negated else _holds_all(old, new) and old.roles.keys() == new.roles.keys()
    if not alike or ours.past != theirs.past:
        return None
    if ours.negated and (ours.stopped or ours.corrected):
        return Finding("supersedes", ENDED if _says_more(new, old, ("time",)) else STOPPED, True)
    if not ours.negated and (new.told or ours.yet or theirs.yet) and not ours.past:
        return Finding("supersedes", HOLDS, True)
    return Finding("contradicts", "negation")


# Verbs that have one object of each kind.
_ONE_OF_A_KIND = lx.EXCLUSIVE | lx.stems("prefer")
# From which cosine the texts are of one topic, if the newer says that its value is new, and if not. Of the pairs of
# `benchmarks.training` that the rules leave open 16 reach it, and 14 of these are.
_TOPIC_COSINE, _UNTOLD_TOPIC_COSINE = 0.55, 0.65


def cosine_of_one_topic(new: Statement, old: Statement, several: frozenset[str] = SEVERAL) -> float | None:
    """The least cosine at which two statements that `judge` calls independent are of one topic; None if at none.

    Both give one property values, of which it has one of a kind. That "tea" and "coffee" are of a kind, and "window
    seats" are not, no rule tells.
    """
    ours, theirs = traits_of(new), traits_of(old)
    if not (new.compared and old.compared) or ours.adds:
        return None
    one, other = ours.properties[0], theirs.properties[0]
    clause = one.clause
    if one.relation not in _ONE_OF_A_KIND or clause.past or clause.passive or clause.negated:
        return None
    alike = is_of_one_subject(one, other) and ours.form == theirs.form
    slot = slot_of(one, other) if alike else None
    if slot is None or _may_be_several(one, slot, several, one.relation, typed=False):
        return None
    if not {kind_of(slot.mine), kind_of(slot.other)} <= {PLAIN, NAMED}:
        return None
    return _TOPIC_COSINE if one.told else _UNTOLD_TOPIC_COSINE


# What the newer one says is gone, or has ended.

REPLACED, FORMER, GONE = "was replaced", "describes the past", "names what held before"
ENDED, CALLED_OFF = "has ended", "was called off"
STOPPED, HOLDS = "no longer holds", "holds now"
# What calls off what was planned or given; other ends, as of "the shop closes", happen again.
_CALLS_OFF = lx.stems("cancel scrap abandon discontinue revoke terminate delete remove sell ditch")
_CANCELS = lx.stems("cancel")
# What somebody thinks of it holds when it is gone. Closed: all others tell what is done with it.
_THINKS = lx.stems("like love enjoy adore hate dislike admire miss know remember recommend recall hear")
_LEAVES = _CALLS_OFF | lx.stems("leave drop dump quit")
_HELD = ("", "in", "for", "to", "with")


def _gone(new: Property, old: Property, one_subject: bool) -> Finding | None:
    """A value named as gone, which the older one gives: "switched from A to B", "B replaced A", "B, not A"."""
    ours, theirs = new.clause, old.clause
    gone = keys_of_words(ours.gone)
    if not gone or (old.relation in _THINKS and new.relation != old.relation):
        return None
    if not any(_is_value(ours, words, one_subject=one_subject) for words in old.roles.values()):
        return None
    # Where and of what a replacement is: "in the shop", "as captain".
    value = ("", "time") if new.relation == "replac" else ("", "in", "time")
    around = [word for role, words in new.roles.items() if role not in value for word in words]
    limits = frozenset([word.key for word in around if word.text not in lx.DEFINITE]) - lx.SPEAKERS
    about = old.subject - lx.SPEAKERS
    if ours.relation == "replac" and limits and about in (limits, limits | (new.subject - lx.SPEAKERS)):
        return Finding("supersedes", REPLACED, True)  # "replaced A with B in the cache", "A as its lawyer"
    if one_subject:
        if ours.relation == "replac" and not limits <= theirs.every:
            return None
        # "Practice is on Tuesdays in the hall", "in the school instead of the hall": still on Tuesdays.
        kept = {"time", "in"} & old.roles.keys() - new.roles.keys() if old.relation == "be" else ()
        more = any(not _is_value(ours, old.roles[role], one_subject=True) for role in kept)
        if more and ("time" in kept or "" not in old.roles):
            return Finding("contradicts", f"{GONE}, but the older one says more")
        return Finding("supersedes", GONE, True)
    if not any(word.kind in lx.NAMED for word in ours.gone):
        return None
    # "Biome replaced ESLint", "we switched from A to B": of what is ours, and of what nobody is said to have.
    unnamed = ours.replaces or ours.subject <= lx.SPEAKERS or ours.subject == frozenset(gone)
    noted = bool(old.subject) or old.relation in USES  # "Uses ESLint"
    is_ours = (old.subject <= lx.SPEAKERS and noted) or (old.relation == "be" and old.sole and old.shared)
    is_ours = is_ours or (old.relation in USES and theirs.subject <= lx.SPEAKERS)
    if unnamed and is_ours and limits <= theirs.every and old.relation not in SEVERAL - USES:
        return Finding("supersedes", REPLACED if ours.replaces else GONE)
    # Nobody says that what others use was replaced for them, too.
    doubtful = ours.replaces and old.relation in USES and old.shared and not limits
    return Finding("contradicts", REPLACED) if doubtful else None


def _is_value(clause: Clause, words: Words, *, one_subject: bool) -> bool:
    """Whether words are what a clause says is gone, or are so but for a noun: "Basic", "the Basic plan"."""
    gone, value = keys_of_words(clause.gone), keys_of_words(words)
    if gone == value or (clause.listed and is_named(words) and set(value) <= set(gone)):
        return True
    if not one_subject or not gone or len(gone) >= len(value):
        return False
    if is_named(clause.gone):
        return value[: len(gone)] == gone and all(word.kind == lx.WORD for word in words[len(gone) :])
    return kind_of(clause.gone) == PLAIN and value[-len(gone) :] == gone


def _ended(new: Property, old: Property, one_subject: bool, several: frozenset[str]) -> Finding | None:
    """An end: "quit", "sold", "was cancelled", where the older one says what ended."""
    ours, theirs = new.clause, old.clause
    if ours.plan:
        return None
    # The standup that was cancelled last Monday may be held again.
    once = new.relation in _CANCELS and any(word.value.startswith("last ") for word in new.roles.get("time", ()))
    outcome: Outcome = "contradicts" if once else "supersedes"
    stated = new.roles.get("", ())
    if [word.text for word in stated if word.text not in lx.DEFINITE] == ["job"] and old.relation == "work":
        stated = new.roles.get("in", ())  # "quit the job at Acme"
    ended = [key for key in keys_of_words(stated) if key != "i"]
    off = new.relation in _CALLS_OFF and ("time" in old.roles or theirs.plan or theirs.passive)
    if ours.passive or not ended:
        said = off and one_subject and not old.personal and not _says_more(new, old, ("time",))
        return Finding(outcome, CALLED_OFF, True) if said else None
    if any(word.kind in lx.TYPED for word in stated) and not is_named(stated):
        return None
    open_to = old.relation in several - USES - {"own"} and new.relation != "quit"
    held = any(_is_object(ours, stated, words) for role, words in old.roles.items() if role in _HELD[open_to:])
    if one_subject and held and not _says_more(new, old, ("", "time")):
        return Finding(outcome, ENDED, True)
    left = new.relation in _LEAVES and ours.subject <= lx.SPEAKERS and is_named(stated)
    if left and old.relation == "be" and old.sole and old.shared:
        # "We left Linode for Hetzner": "our hosting company is Linode".
        return Finding("supersedes", ENDED) if keys_of_words(old.roles.get("", ())) == ended else None
    named = {key for role, words in new.roles.items() if role != "time" for key in keys_of_words(words)}
    anybody = ours.subject <= lx.SPEAKERS or ours.subject == {"they"}
    if (off or new.relation == "sell") and anybody and named - {"i"} == theirs.subject - {"i"}:
        return Finding(outcome, CALLED_OFF)
    return None


def _is_object(clause: Clause, some: Words, words: Words) -> bool:
    """Whether what ended is what is said, the latter maybe more closely: "the boat", "a sailing boat"."""
    ended, said = [word.key for word in some if word.text not in lx.DEFINITE and word.key != "i"], keys_of_words(words)
    if ended == said:
        return True
    definite = clause.definite or any(word.text in lx.DEFINITE for word in some) or clause.relation in _CALLS_OFF
    if not definite or len(ended) >= len(said):
        return False
    return said[: len(ended)] == ended if is_named(some) else said[-len(ended) :] == ended


def _says_more(new: Property, old: Property, but: Sequence[str]) -> bool:
    """Whether the newer one says of where or for whom, and the older one not: it tells of a part of it."""
    return any(
        role not in but and keys_of_words(words) != keys_of_words(old.roles.get(role, ()))
        for role, words in new.roles.items()
    )


def _holds_all(new: Property, old: Property) -> bool:
    """Whether both say the same, or the older one says the same and more: "runs", "runs on Mondays"."""
    if new.relation != old.relation and not (new.relation == "be" and set(new.roles) == {"in"}):
        return False
    # "Quit smoking in March" tells when; "no longer runs on Mondays" tells of what.
    since = new.clause.stopped and not any(word.kind == lx.DAY for word in new.roles.get("time", ()))
    roles = {role: words for role, words in new.roles.items() if not (since and role == "time")}
    if not roles and new.relation in ("be", "have"):
        return False
    for role, words in roles.items():
        keys, others = keys_of_words(words), keys_of_words(old.roles.get(role, ()))
        # "Coffee", "two cups of coffee".
        includes = 0 < len(keys) < len(others) and others[-len(keys) :] == keys and kind_of(words) == PLAIN
        if keys != others and not includes:
            return False
    return True


# Another value.

VALUE, BY_FORM, STATE = "another value", "another value, unannounced", "another state"
# Of what stays as long or as high as it is.
_MEASURED = frozenset(("long", "wide", "high", "deep", "far", "thick", "tall"))


def _another_value(new: Property, old: Property, several: frozenset[str], *, event: bool) -> Finding | None:
    """The same property with another value."""
    ours = new.clause
    done = ours.past and not ours.change and not ours.passive
    since = ours.passive and not old.limits and set(new.limits) == {"time"}
    if (new.limits == old.limits or since) and _are_opposite(new, old):
        replaces = new.told and not event and not done
        return Finding("supersedes", STATE, True) if replaces else Finding("contradicts", STATE)
    slot = slot_of(new, old)
    if slot is None:
        return None
    kind, other_kind = kind_of(slot.mine), kind_of(slot.other)
    if kind is None or other_kind is None:
        return None
    if ours.moved and not _is_moved(new, old, slot, kind[0]):
        return None
    timed = slot.role == "time" and new.told and kind[0] == "typed" and kind[1] <= other_kind[1]
    if kind != other_kind and not timed:
        return None
    if slot.role == "time" and len(kind[1]) > 1 and not (ours.change or ours.corrected):
        return None  # "at 8 on Mondays", "at 10 on Fridays now": of other days
    if event or done:
        once = (
            event and ours.past and old.relation in lx.LASTING and old.relation == new.relation and kind[0] != "plain"
        )
        return Finding("contradicts", VALUE) if once else None
    relation = new.relation if old.relation == "be" else old.relation
    if _may_be_several(new, slot, several, relation, typed=kind[0] == "typed"):
        return None
    by_form = _is_single(new, old, slot, kind[0], relation)
    if by_form is None:
        return None
    # What stays as it is: "the author", "Ada's maiden name".
    ends = nouns_of(ours.head)[-2:]
    lasts = ends and (ends[-1] in lx.LASTING_NOUNS or (ends[0] in lx.LASTING_NOUNS and ends[0] not in lx.KIN))
    if (lasts or _MEASURED.intersection([word.text for word in slot.after])) and not new.told:
        return Finding("contradicts", VALUE)
    if new.told or does_again(new, old):
        open_to = relation in USES and relation != "be" and kind[0] == "named" and not by_form
        return Finding("supersedes", VALUE, not open_to or new.subject != ours.subject or len(new.roles) > 1)
    if by_form:
        # Of what `key: value` is said, only its surroundings tell.
        sole = not ours.assigned and (relation == "be" or relation in lx.EXCLUSIVE or relation in USES)
        return Finding("supersedes", BY_FORM, sole)
    return None


# Verbs by which something comes to another place. Closed: the others tell of other changes.
_GOES = lx.stems("move relocate transfer shift")


def _is_moved(new: Property, old: Property, slot: Slot, kind: str) -> bool:
    """Whether what has taken another value, by a verb such as "moved", "switched", had the older one.

    What moved to Bergen was in Oslo before, and is not said to use or to be something else.
    """
    role, _, _, before, after = slot
    moved = new.clause.moved
    if is_again(moved, old.relation):
        return True
    if kind == "typed" or (before and before[-1].kind == lx.NAME):
        # "Has 34 members", "grew to 41 members"; "on Debian 11", "upgraded to Debian 12".
        return old.relation == new.relation or not old.personal or bool(before or after)
    if new.clause.gone and not new.clause.passive:
        return False  # "from B to C", where the older one says A
    if new.attribute and old.attribute:
        return True
    if role in PLACES:
        return moved in _GOES and (old.relation in PLACED or MOVES.get(moved) == old.relation)
    if old.relation == "be":
        return old.clause.passive  # "is called", "was renamed to"
    # "We switched to Rspack for bundling": of a purpose.
    limits = [words for other, words in new.roles.items() if other not in (role, "in", "", "time")]
    of_purpose = bool(limits) or new.subject != new.clause.subject
    return MOVES.get(moved) == old.relation and (of_purpose or old.relation != "use")


def _may_be_several(new: Property, slot: Slot, several: frozenset[str], relation: str, *, typed: bool) -> bool:
    """Whether the relation may hold of several values at a time: what one likes, speaks, or a caller says so."""
    open_to = several.intersection((relation, new.relation))
    return bool(open_to) and (not open_to <= SEVERAL or (slot.role in ("", "with") and not typed))


def _is_single(new: Property, old: Property, slot: Slot, kind: str, relation: str) -> bool | None:
    """Whether there is one value at a time by the form of both; None if there may be others even where one is new."""
    role, mine, _, before, after = slot
    if new.clause.assigned and old.clause.assigned:
        short = len(new.roles) == 1 and len(mine) == len(new.roles.get(role, mine))  # 8 as the time 8:00
        return kind == "typed" or (short and (len(mine) == 1 or kind != "plain"))
    be = relation == "be"
    number = bool(before) and mine[0].kind == lx.NUMBER and not mine[0].unit
    if number and (before[-1].kind == lx.NAME or "." in mine[0].value):
        return relation in USES  # a version
    if kind == "typed" and not (number and before[-1].kind == lx.WORD):
        if role == "time" and len({type_of(word) for word in mine}) > 1:
            return False  # "at 9 on Mondays": of other days and hours
        if be:
            if role == "time" and new.personal and old.personal:
                # "Physio is now on Fridays"; who is somewhere on Fridays may be there on Mondays, too.
                alone = new.told and new.roles.keys() == {"time"} and new.subject.isdisjoint(lx.SPEAKERS)
                return False if alone else None
            other_days = role == "time" and "" in new.roles and "day" in map(type_of, mine)
            return not other_days
        return relation in lx.EXCLUSIVE or (role != "time" and len(mine) == 1)
    if kind == "plain":
        if role in PLACES and new.clause.change and old.relation in PLACED:
            return False
        if relation in lx.EXCLUSIVE and relation not in USES and role in PLACES:
            return False  # "sleeps in the kitchen"
        if not be or not (new.sole and old.sole):
            return None
        called = (new.attribute and old.attribute) or (old.clause.passive and (new.clause.passive or new.clause.change))
        return False if called and role == "" else None
    # A name, or a number that is one: "shelf 4".
    if be:
        if role not in ("", *PLACES) or (role and "" in old.roles):
            return None
        closer = bool(after) and new.clause.definite and old.clause.definite  # "on the Basic plan"
        return (new.sole and old.sole) or closer
    if number and role == "":
        return None  # "writes page 4", "has room 5": of several
    if relation in lx.EXCLUSIVE and relation not in USES and role in ("", "in", "for", "with", "to", "by"):
        return True
    if new.clause.nouns and new.clause.definite and old.clause.definite:
        return True
    return new.clause.passive and old.clause.passive and role == "by"


def _are_opposite(new: Property, old: Property) -> bool:
    """Whether the states of both are opposites: "up", "down"; "open", "closed"; "armed", "disarmed"."""
    one, other = new.roles.get("", ()), old.roles.get("", ())
    if new.relation == old.relation == "be" and len(one) == len(other) == 1 and _opposes(one[0].text, other[0].text):
        return True
    if new.clause.passive and old.clause.passive and not one and not other and _opposes(new.relation, old.relation):
        return True
    mine, his = _state(new), _state(old)
    return mine is not None and his is not None and mine[0] == his[0] and mine[1] != his[1]


def _opposes(one: str, other: str) -> bool:
    """Whether two adjectives are opposites by their form: "passable" and "impassable"."""
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    return long.endswith(short) and long.removesuffix(short) in ("un", "in", "im", "ir", "dis")


def _state(one: Property) -> tuple[int, str] | None:
    """The state that a property says its subject is in, with its line of the table."""
    words = one.roles.get("", ())
    if one.relation == "be" and len(words) == 1 and words[0].text in lx.STATUS:
        return lx.STATUS[words[0].text], words[0].stem
    if one.relation in lx.STATUS_STEMS and all(word.text in lx.PARTICLES for word in words):
        return lx.STATUS_STEMS[one.relation], one.relation
    return None


# The same words: also sentences that are not read as clauses, of another language or with a verb that is not known.

# What no space divides is one word, of as many characters at least.
_LEAST_UNDIVIDED = 3


def _in_the_same_words(new: Statement, old: Statement, ours: Traits, theirs: Traits) -> Finding | None:
    """The same words but for one number, date or time at the end, or for a negation."""
    if new.question or old.question or min(len(ours.spoken), len(theirs.spoken)) < 2:
        return None
    other = theirs.keys
    if ours.keys == other:
        plain = [lx.NEGATIONS.isdisjoint([word.text for word in one.spoken]) for one in (ours, theirs)]
        return Finding("contradicts", "negation") if plain[0] != plain[1] else None
    if not old.clauses:
        gone = tuple([key for clause in new.clauses if clause.change for key in keys_of_words(clause.gone)])
        heads = [clause.head for clause in new.clauses if clause.gone]
        about = [tuple([word.key for word in head if word.text not in TONE]) for head in heads]
        if gone and other[-len(gone) :] == gone and other[: len(about[0])] == about[0]:
            return Finding("supersedes", GONE)  # "we heat with oil", "we changed from oil to gas"
    if (new.whole and new.clauses) or (old.whole and old.clauses):
        return None
    one, two = ours.spoken, theirs.spoken
    begin, end = shared_ends(one, two)
    mine, his = one[begin : len(one) - end], two[begin : len(two) - end]
    undivided = begin == 1 and not one[0].text.isascii() and len(one[0].text) >= _LEAST_UNDIVIDED
    if len(mine) != 1 or len(his) != 1 or (begin < 2 and not undivided) or end > 1:
        return None  # what is numbered, as "room 5", stands at the beginning
    kind, of_times = kind_of(mine), is_of_time(mine[0]) and is_of_time(his[0])
    if not of_times and (kind is None or kind[0] != "typed" or kind != kind_of(his)):
        return None
    told = any(word.text in lx.NOW for word in new.words)
    return Finding("supersedes", VALUE, True) if told else Finding("contradicts", VALUE)
