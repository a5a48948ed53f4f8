"""The same statement with another value: what differs between two clauses about the same subject."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from recallite.text.statements import lexicon as lx
from recallite.text.statements.clause import Clause
from recallite.text.statements.lexicon import SEVERAL
from recallite.text.statements.statement import Ruling
from recallite.text.statements.statement_words import Word

Words = tuple[Word, ...]

# What a person uses or does, with whatever verb.
USES = lx.stems("use run drive have prefer write rewrite build host store drink study transfer go")
_PLACED = USES | {"be", "live", "work"}
# Relations that hold of many things at once, where these are not alike.
_OPEN = frozenset(["prefer", "use", "have", "need", "want", "like", "love", "depend", "own", "go", "do", "make", "get"])
_PLACES = frozenset(("", "in", "to", "with"))
# Events that happen again and again with other numbers.
_REPEATED = frozenset(["review", "return", "deploy", "read", "run", "walk"])
_PAID = frozenset(["pay", "spend", "be", "order"])
_PASSING = frozenset(("today", "yesterday", "tonight", "tomorrow"))
_LOCATED = frozenset(("in", "near", "under", "behind", "beside", "inside", "outside"))
_MOST_WORDS = 3
# A long sentence that tells of no change says something else.
MOST_UNCUED = 6
_CITIZENS = frozenset(("citizen", "resid", "capit"))
_DEFINITE = frozenset(("the", "my", "our"))
# Lengths of rivers and heights of towers do not change.
_MEASURED = frozenset(("long", "wide", "high", "deep", "far", "thick"))
# What is done "with" a tool; who plays with Tom does not use him.
_SERVED = lx.stems("deploy ship release lint format bundle compile debug test monitor track manage plan publish sign")
_UNLIMITED = frozenset(("", "time", "for"))


def another_value(
    new: Clause, old: Clause, several: frozenset[str], mentioned: frozenset[str], cue: bool
) -> Ruling | None:
    """The finding of the rules on two clauses about the same subject that are not each other's negation.

    `mentioned`: all that the newer text names.
    """
    states, sourced = _states(new), new.sourced or old.sourced
    before = _states(old) if states and len(old.stated) <= _MOST_WORDS else {}
    if any(before.get(line, state) != state for line, state in states.items()) and (not old.past or old.passive):
        return Ruling("contradicts", "sources", cued=False) if sourced else Ruling("supersedes", "another state", cue)
    slot = _slot(new, old, mentioned, cue) if _related(new, old) else None
    if slot is None:
        return None
    role, mine, other, shared = slot
    if any(all(word.text in _PASSING for word in some) for some in (mine, other)):
        return None  # which day "today" is, the text does not say
    relation = new.relation if old.relation == "be" else old.relation
    if new.plan and not old.plan and relation != "be":
        return None
    if old.plan != new.plan and not (new.change or new.corrected or relation == "be"):
        return None
    subject = new.subject | old.subject
    if not cue and max(len(new.every), len(old.every)) > MOST_UNCUED:
        return None
    typed = _same_type(mine, other)
    attribute = not subject.isdisjoint(lx.ATTRIBUTES)
    open_to = several.intersection((relation, new.relation))
    if open_to and ((not typed and role == "") or not open_to <= SEVERAL):
        return None
    opinion = _opposed_opinions(mine, other) if relation == "be" else None
    if opinion is not None:
        if not opinion:
            return None
        personal = subject <= lx.SPEAKERS or any(word.kind == lx.NAME for word in new.head)
        changed = cue and not old.past and not personal
        return Ruling("supersedes" if changed else "contradicts", "opinion", changed)
    event = old.past and not old.passive
    if (relation in lx.LASTING and not new.change) or event or (new.past and not (new.passive or cue)):
        return _of_event(new, relation, typed, attribute, event)
    if sourced or (not cue and subject & lx.LASTING_NOUNS):
        return Ruling("contradicts", "sources" if sourced else "another value", cued=False)
    exclusive = (
        attribute or relation in lx.EXCLUSIVE or new.relation in lx.EXCLUSIVE or _only(new, old, role, mine, other)
    )
    if typed and not cue and any(word.text in _MEASURED for _, some in new.chunks for word in some):
        return Ruling("contradicts", "another value", cued=False)
    if typed:
        return _of_type(slot, relation, exclusive, cue, attribute)
    if max(len(mine), len(other)) > _MOST_WORDS:
        return None
    if relation in _OPEN and not shared and not (cue and _is_single(mine) and _is_single(other)):
        return None
    if (
        relation == "be"
        and not attribute
        and not shared
        and role not in _LOCATED
        and not (_named(mine) and _named(other))
    ):
        adjectives = new.now and len(mine) == len(other) == 1 and not any(word.kind == lx.NAME for word in new.head)
        return Ruling("supersedes", "another state", cue) if adjectives and subject.isdisjoint(lx.SPEAKERS) else None
    # Two values without a type may exclude each other if both are names, or neither is.
    alike = _named(mine) == _named(other) and not any(word.kind in lx.TYPED for word in (*mine, *other))
    if cue or (exclusive and alike):
        return _valued(cue, attribute)
    return None


def _of_event(new: Clause, relation: str, typed: bool, attribute: bool, event: bool) -> Ruling | None:
    """The finding on an event that is told otherwise: how long it took, who did it."""
    if event and relation in _REPEATED:
        return None
    if event and typed and relation not in _PAID and new.subject <= lx.SPEAKERS:
        return None
    if typed or attribute or relation in lx.LASTING:
        return Ruling("supersedes" if new.corrected else "contradicts", "another value", new.corrected)
    return None


def _of_type(slot: _Slot, relation: str, exclusive: bool, cue: bool, attribute: bool) -> Ruling | None:
    """The finding on another number, date or time."""
    if not cue and slot.role == "time":
        # Of other days and of other hours: the one on weekdays, the other at weekends.
        kinds = [{word.kind for word in some} for some in (slot.mine, slot.other)]
        if all(len(some) > 1 and lx.CLOCK in some for some in kinds) or (not exclusive and relation != "be"):
            return None
    plain = exclusive or relation == "be" or relation == "have"
    return _valued(cue, attribute) if cue or plain else Ruling("contradicts", "another value", cued=False)


def _valued(cue: bool, attribute: bool) -> Ruling:
    """Another value. Without a word of change, another phone number is a surer sign of one than another length."""
    if cue:
        return Ruling("supersedes", "another value", cued=True)
    reason = "another value of an attribute" if attribute else "another value, unannounced"
    return Ruling("supersedes", reason, cued=False)


class _Slot(NamedTuple):
    """The only role in which two clauses differ, what each says there, and whether they share a part of it."""

    role: str
    mine: Words
    other: Words
    shared: bool


def _slot(new: Clause, old: Clause, mentioned: frozenset[str], cue: bool) -> _Slot | None:
    ours, theirs = dict(new.chunks), dict(old.chunks)
    if cue and "without" in ours and ours["without"] == theirs.get("with"):
        return _Slot("with", ours["without"], theirs["with"], shared=False)
    _unify(new, old, ours, theirs)
    slots: list[_Slot] = []
    times = timed = False
    for role in dict.fromkeys((*ours, *theirs)):
        one, another = ours.get(role, ()), theirs.get(role, ())
        begin, end = shared_ends([word.key for word in one], [word.key for word in another])
        mine, other = one[begin : len(one) - end], another[begin : len(another) - end]
        if mine and other:
            times = times or role == "time"
            slots.append(_Slot(role, mine, other, len(mine) < len(one)))
        elif role != "time" and not mentioned.issuperset([word.key for word in other]):
            return None  # the older one says more
        timed = timed or (role == "time" and bool(mine or other))
    typed = all(_same_type(mine, other) for _, mine, other, _ in slots)
    if not slots or (len(slots) > 1 and not typed and not (times and len(slots) == 2 and cue)):
        return None
    if (new.past or old.past) and timed and not (new.passive or new.change or new.corrected):
        return None  # an event of another time is another event
    return slots[0]


def _only(new: Clause, old: Clause, role: str, mine: Words, other: Words) -> bool:
    """Whether the grammar says that there is only one value: "plays the position of", "is handled by Ann"."""
    if new.nouns:
        named = (new.definite and old.definite) or not _CITIZENS.isdisjoint(new.nouns)
        return new.nouns == old.nouns and named and lx.SEVERAL_NOUNS.isdisjoint(new.nouns)
    if not (_named(mine) and _named(other)):
        return False
    if new.relation == old.relation == "be":
        return role == "" and all(clause.head and clause.head[0].text in _DEFINITE for clause in (new, old))
    return role == "by" and new.passive and old.passive and not (new.past or old.past)


def shared_ends(new: Sequence[str], old: Sequence[str]) -> tuple[int, int]:
    """The number of words that two lists have in common at the beginning and, after these, at the end."""
    least = min(len(new), len(old))
    begin = end = 0
    while begin < least and new[begin] == old[begin]:
        begin += 1
    while end < least - begin and new[-1 - end] == old[-1 - end]:
        end += 1
    return begin, end


def _related(new: Clause, old: Clause) -> bool:
    """Whether two verbs may say the same: any with "be", "reopen" with "open", and of uses any if something changed."""
    one, other = new.relation, old.relation
    if one == other or one in ("be", "get") or other in ("be", "get"):
        return True
    return does_again(new, old) or (one in USES and other in USES and (new.change or new.now))


def does_again(new: Clause, old: Clause) -> bool:
    """Whether one does again what the other did: "relicensed", "license"."""
    return new.relation.startswith("re") and len(old.relation) > 3 and new.relation[2:5] == old.relation[:3]


def _unify(new: Clause, old: Clause, ours: dict[str, Words], theirs: dict[str, Words]) -> None:
    """Give the value the role that it has in the other clause, where only its form differs: "is 8", "is at 8:30"."""
    for one, other in ((ours, theirs), (theirs, ours)):
        bare = "" in one and "time" not in one and "time" in other
        if bare and all(word.kind == lx.NUMBER and not word.unit for word in one[""]):
            one["time"] = one.pop("")
    if new.change and "" in ours and "" not in theirs and len(ours) == 1 and theirs:
        typed = all(word.kind in lx.TYPED for word in ours[""])
        role = "time" if "time" in theirs and typed else next(iter(theirs))
        if role != "time" or typed:
            ours[role] = ours.pop("")
    if (new.change or new.now) and new.relation in _PLACED and old.relation in _PLACED:
        mine, other_roles = (
            [role for role, words in one.items() if role != "time" and other.get(role) != words]
            for one, other in ((ours, theirs), (theirs, ours))
        )
        if len(mine) == len(other_roles) == 1 and mine != other_roles and {*mine, *other_roles} <= _PLACES:
            ours[other_roles[0]] = ours.pop(mine[0])


def _same_type(ours: Sequence[Word], theirs: Sequence[Word]) -> bool:
    """Whether both are numbers, dates or times throughout."""
    return all(word.kind in lx.TYPED for word in ours) and all(word.kind in lx.TYPED for word in theirs)


def _is_single(words: Sequence[Word]) -> bool:
    """Whether words are one, or one name of several: "GitHub Actions"."""
    return len(words) == 1 or all(word.kind == lx.NAME for word in words)


def _named(words: Sequence[Word]) -> bool:
    return any(word.kind in lx.NAMED for word in words)


def _opposed_opinions(ours: Sequence[Word], theirs: Sequence[Word]) -> bool | None:
    """Whether two values are opposite opinions; None where neither is an opinion."""
    if len(ours) == len(theirs) == 1 and _opposites(ours[0].text, theirs[0].text):
        return True
    one, other = ({lx.OPINIONS[word.text] for word in some if word.text in lx.OPINIONS} for some in (ours, theirs))
    if not one or not other:
        return None
    return not one.isdisjoint(other)


def _opposites(one: str, other: str) -> bool:
    """Whether two adjectives are opposites by their form: "patient" and "impatient", "useful" and "useless"."""
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    if long.endswith(short):
        return long.removesuffix(short) in ("un", "in", "im", "ir", "dis")
    return short[:-3] == long[:-4] and short[-3:] == "ful" and long[-4:] == "less"


def _states(clause: Clause) -> dict[int, str]:
    """The states that a clause says its subject is in, by their line of the table."""
    if clause.passive or clause.relation in ("be", "get"):
        words = [word for role, some in clause.chunks if role in ("", "in") for word in some]
        states = {lx.STATUS[word.text]: word.stem for word in words if word.text in lx.STATUS}
        if clause.passive and clause.relation in lx.STATUS_STEMS:
            states.setdefault(lx.STATUS_STEMS[clause.relation], clause.relation)
        return states
    roles = {role for role, _ in clause.chunks}
    if clause.relation == "work" and not clause.negated and not roles.isdisjoint(("in", "as", "for")):
        return {lx.STATUS["employed"]: "employ"}
    if clause.relation not in lx.STATUS_STEMS or not roles.isdisjoint(("", "in")):
        return {}
    return {lx.STATUS_STEMS[clause.relation]: clause.relation}


def is_in_use(gone: frozenset[str], new: Clause, old: Clause) -> bool:
    """Whether a clause says that what is gone was in use: "we use A", "A is our formatter".

    "B replaced A" ends such uses, but not what A is like ("A is slow"). "A was replaced in the shop" and "B replaced A
    as captain" end only what the older clause says of the shop, or of the captain.
    """
    where = [word.key for role, words in new.chunks if role not in _UNLIMITED for word in words]
    if not old.every.issuperset(where) or (old.relation == "be" and not old.subject.isdisjoint(lx.LASTING_NOUNS)):
        return False
    if gone == old.subject:
        return old.relation == "be" and old.definite
    named = any(word.kind in lx.NAMED for word in new.gone)
    if not (named or new.passive):
        return False
    if gone <= old.stated and (old.relation == "be" or old.relation in USES):
        return True
    values = [(role, frozenset([word.key for word in words])) for role, words in old.chunks]
    return named and any(
        (value == gone or (new.listed and value <= gone))
        and (old.relation in USES or (role == "with" and old.relation in _SERVED))
        for role, value in values
    )
