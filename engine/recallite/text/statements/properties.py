"""Properties: what a clause states of a subject besides the value, and the one value in which two of them differ.

A property is the subject with all its names, numbers and owners ("Ada's rent" is no property of Ada alone), the verb,
what the verb is about ("takes ... mg of ramipril"), and all that limits it ("on Mondays", "for guests"). Clauses that
state one property in several forms are read alike: "I have a new boss: Ann" and "my boss is Ann", "Ann is my boss" and
"my boss is Ann", "we use Drone for CI" and "CI runs on Drone".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from recallite.text.dates.languages import time_terms
from recallite.text.patterns import word_set
from recallite.text.statements import lexicon as lx
from recallite.text.statements.clause import MOVES, PLACING, Clause
from recallite.text.statements.statement import Statement, canon_of
from recallite.text.statements.statement_words import Word, key_of
from recallite.text.words import share_of, tokenize

Words = tuple[Word, ...]

# Verbs of one relation where a version is: what runs, uses or is on one. Closed: no other verb is followed by one.
USES = lx.stems("be use run have")
_DIMENSIONS = {
    unit: dimension
    for dimension, units in (
        ("time", "ms s sec min h hour day week month year"), ("data", "kb mb gb tb"), ("money", "$ € £ ¥"),
        ("", "k id"),
    )
    for unit in units.split()
}  # fmt: skip
_RUNS = lx.stems("use run be")
_HOURS = frozenset(("noon", "midnight", "morning", "afternoon", "evening", "night"))
_NAMING = lx.NAMED | {lx.NUMBER}
# Nobody can tell of which: "a friend of mine", "some of the tests", "this file".
_UNNAMED = frozenset(("a", "an", "some", "another", "one", "any", "many", "most", "this", "that", "these", "those"))


class Property(Struct, frozen=True, gc=False):
    """A property of a subject, as a clause states it.

    - `subject`: the stems of what is spoken of
    - `relation`: the stem of the verb; "be" for what is, is called or has the value
    - `roles`: the words of the object ("") and of each further part; "time" for when
    - `sole`: whether the form says that there is one value: "Ada's Y is V", "the Y is V", "Y = V"; `attribute`: that
      the subject is no thing but an attribute of one: "the price"
    - `shared`: whether the subject is nobody's, or of who speaks: "our lawyer", "the port"
    - `personal`: whether it is of the speaker or of a name alone, of which many things may be said
    - `told`: whether it says that the value is a new one: "now", "went up to", "instead"
    - `limits`: the keys of each part but the object
    - `unnamed`: whether nobody can tell of which it is: "a friend of mine", "this file"
    """

    subject: frozenset[str]
    relation: str
    roles: dict[str, Words]
    sole: bool
    attribute: bool
    shared: bool
    personal: bool
    told: bool
    limits: dict[str, tuple[str, ...]]
    unnamed: bool
    clause: Clause


_SILENT = frozenset((lx.STOP, lx.COMMA, lx.MARK))
# Of the languages in which dates are read.
_NOW_ELSEWHERE = word_set("jetzt nun maintenant désormais ahora ora adesso agora nu сейчас теперь")
TONE = lx.NOW | lx.ARTICLES | _NOW_ELSEWHERE
"""Words that only say that it is so now, and English articles."""
NOT = lx.NEGATIONS | {"do", "does", "did"}
_TOO = frozenset(("too", "also"))
_WHEN = lx.ADJUNCTS - lx.FILLERS


class Traits(Struct, frozen=True, gc=False):
    """The parts of a statement that comparison reads.

    They are kept with it, in tuples, so that the garbage collector need not traverse them.

    - `canon`: the forms of its words, questions included: texts that say the same have them in common
    - `spoken`: its words without marks, articles and words that say that it is so now; `keys`: theirs, without
      negations
    - `adds`: whether it says "too": then it tells of another one
    - `properties`: what its clauses state; `quoted`: whether one says that somebody says so
    - `form`, `said`: of its only clause, how it says something, and the keys of what it says by role
    """

    canon: tuple[str, ...]
    spoken: Words
    keys: tuple[str, ...]
    adds: bool
    properties: tuple[Property, ...]
    quoted: bool
    form: tuple[object, ...] | None
    said: dict[str, tuple[str, ...]]


def traits_of(statement: Statement) -> Traits:
    """The traits of a statement, read once."""
    if statement.traits is None:
        spoken = tuple([word for word in statement.words if word.kind not in _SILENT and word.text not in TONE])
        properties = tuple(map(_property, statement.clauses))
        only = statement.clauses[0] if len(statement.clauses) == 1 else None
        statement.traits = Traits(
            statement.canonical or canon_of(statement.words, statement.speaker), spoken,
            tuple([word.key for word in spoken if word.text not in NOT]),
            adds=not _TOO.isdisjoint([word.text for word in spoken]),
            properties=properties, quoted=not lx.SOURCES.isdisjoint([one.relation for one in properties]),
            form=None if only is None else (
                only.negated, only.past, only.plan, only.former, only.unreal, only.stopped, only.ends, only.command,
                only.rest,
            ),
            said={role: tuple(map(key_of, words)) for role, words in only.chunks} if only else {},
        )  # fmt: skip
    return statement.traits


def _property(clause: Clause) -> Property:
    subject, relation, roles, head = clause.subject, clause.relation, dict(clause.chunks), clause.head
    told, owned = clause.now or clause.change or clause.corrected, clause.owned
    stated = roles.get("", ())
    valued = relation == "have" and stated and clause.rest and not clause.negated
    if valued and (stated[0].text == "new" or stated[-1].stem in lx.ATTRIBUTES):
        # "Ada has a new phone number: 555", "I have a new landlord, Mr Webb".
        told = told or any(word.text == "new" for word in stated)
        added = tuple([word for word in stated if word.text != "new"])
        subject, relation, head, owned = subject | {word.key for word in added}, "be", (*head, *added), True
        roles = roles | {"": clause.rest}
    elif (
        relation == "be" and clause.definite and stated and is_named(clause.head) and not is_named(stated)
        and lx.SEVERAL_NOUNS.isdisjoint(clause.nouns[-1:] or (stated[-1].stem,))  # "the vet of our cats": a vet
        and "time" not in roles
    ):  # fmt: skip
        # "Karen is my boss" is of my boss, of whom there is one.
        subject = frozenset([word.key for words in roles.values() for word in words if word.text != "our"])
        head, owned, roles = stated, True, {"": head}
    elif relation == "use" and subject <= lx.SPEAKERS and roles.keys() == {"" if "" in roles else "in", "for"}:
        # "We use Jenkins for CI", "CI runs on Jenkins".
        head = roles.pop("for")
        subject = frozenset([word.key for word in head])
    if relation in _RUNS and clause.placing == "on" and "" not in roles and is_named(roles.get("in", ())):
        relation, roles[""] = "use", roles.pop("in")
    if relation == "go" and "to" not in roles and "" in roles:
        roles["to"] = roles.pop("")  # "not going to the gym"
    if len(head) > 1:
        keys = [word.key for word in head]
        if len({*keys}) < len(keys):  # "my boss's boss"
            subject |= {
                f"{word.key} of {word.key}" for i, word in enumerate(head) if word.weight and word.key in keys[:i]
            }
    if clause.opening:
        roles["opening"] = clause.opening
    first = head[0].text if head else ""
    several = bool(head) and head[-1].stem in lx.SEVERAL_NOUNS
    definite = first == "the" or (clause.change and clause.definite and not clause.passive)
    nouns = nouns_of(head)
    attribute = clause.assigned or (nouns[-1:] != [] and nouns[-1] in lx.ATTRIBUTES and not several)
    named = is_named(head)
    shared = (
        bool(head)
        and lx.KIN.isdisjoint(nouns)
        and (first in ("my", "our") or (not clause.owned and head[0].kind == lx.WORD))
    )
    return Property(
        subject, relation, roles,
        sole=attribute or ((owned or definite) and not several), attribute=attribute, shared=shared,
        personal=subject <= lx.SPEAKERS or (named and not owned), told=told, limits=_limits_of(roles),
        unnamed=bool(clause.head) and clause.head[0].text in _UNNAMED, clause=clause,
    )  # fmt: skip


def _limits_of(roles: dict[str, Words]) -> dict[str, tuple[str, ...]]:
    return {role: tuple(keys_of_words(words)) for role, words in roles.items() if role}


def nouns_of(head: Words) -> list[str]:
    """The stems of the words of a subject before the first preposition."""
    nouns = []
    for word in head:
        if word.text in lx.PREPOSITIONS:
            break
        nouns.append(word.stem)
    return nouns


def is_named(words: Words) -> bool:
    """Whether words are a name: capitalised throughout, with the numbers in it."""
    return bool(words) and words[0].kind in lx.NAMED and _NAMING.issuperset([word.kind for word in words])


def is_of_one_subject(new: Property, old: Property) -> bool:
    """Whether the subjects have the same names, numbers and owners; "this file" is another one in another text."""
    if not new.subject or not new.subject.isdisjoint(lx.UNRESOLVED):
        return False  # a command has none
    if new.unnamed or old.unnamed:
        return False
    # "The dentist appointment", "my dentist appointment".
    alike = new.subject == old.subject or (new.subject ^ old.subject == {"i"} and len(new.subject & old.subject) > 0)
    return alike and not is_turned(new.clause.head, old.clause.head)


def is_turned(one: Words, other: Words) -> bool:
    """Whether two subjects of the same words are two: "the train to Bern" and "from Bern", "my wife's brother"."""
    if len(one) < 3 or len(other) < 3:
        return False
    ours, theirs = _placed(one), _placed(other)
    if ours.keys() != theirs.keys():
        return False
    if not any(ours.values()) and not any(theirs.values()):
        return [*_placed(_owners_first(one))] != [*_placed(_owners_first(other))]  # "my brother's wife"
    return any(
        place and theirs[key] and PLACING.get(place, place) != PLACING.get(theirs[key], theirs[key])
        for key, place in ours.items()
    )


def _owners_first(words: Words) -> Words:
    """The words of a subject with what follows "of" before what it is of: "the lead of the office" as "office lead"."""
    ordered: Words = ()
    part: Words = ()
    for word in words:
        if word.text == "of":
            ordered, part = (*part, *ordered), ()
        else:
            part = (*part, word)
    return (*part, *ordered)


def is_as_said(new: Statement, old: Statement) -> bool:
    """Whether two texts of the same words say where, when and how much alike: "before Friday" is not "after Friday"."""
    ours, theirs = _placed(new.words), _placed(old.words)
    typed = {word.key for word in new.words if word.kind in lx.TYPED}
    elsewhere = any(
        place != theirs[key] and (key in typed or (place and theirs[key]))
        for key, place in ours.items()
        if key in theirs
    )
    degrees = [lx.DEGREES.intersection([word.text for word in one.words]) for one in (new, old)]
    return not elsewhere and degrees[0] == degrees[1]


def _placed(words: Words) -> dict[str, str]:
    """The words of a text that say something, in order, each with the preposition that it follows.

    "Of" says what "'s" does, and "on" nothing of a day, nor "at" of an hour.
    """
    placed: dict[str, str] = {}
    preposition = ""
    for word in words:
        if word.text in lx.PREPOSITIONS or word.text in _WHEN:
            preposition = word.text if word.text != "of" else ""
        elif word.weight:
            placed.setdefault(word.key, "" if word.kind in lx.TYPED and preposition in PLACING else preposition)
            preposition = ""
    return placed


def of_object(new: Property, old: Property) -> Property | None:
    """The older property as one of its object, if what changed is that: "Ada has a test on Monday", "Ada's test"."""
    stated = old.roles.get("", ())
    nouns = [word for word in stated if word.kind not in lx.TYPED]
    subject = old.subject | {word.key for word in nouns}
    limits = {role: words for role, words in old.roles.items() if role not in ("", "time")}
    every = subject | {word.key for words in limits.values() for word in words}
    about = new.subject - lx.SPEAKERS
    if not nouns or about not in (subject - lx.SPEAKERS, every - lx.SPEAKERS):
        return None
    limited = about == every - lx.SPEAKERS  # "a meeting with the bank", "the meeting with the bank"
    roles = {role: words for role, words in old.roles.items() if role and not (limited and role in limits)}
    if typed := tuple([word for word in stated if word.kind in lx.TYPED]):
        roles[""] = typed
    return replace(
        old, subject=subject, relation="be", roles=roles, limits=_limits_of(roles), sole=False, attribute=False,
        personal=False,
    )  # fmt: skip


def keys_of_words(words: Sequence[Word]) -> list[str]:
    """The keys of words, without "the", "my" and "and"."""
    return [word.key for word in words if word.text not in lx.DEFINITE and word.text not in ("and", "or")]


# Values.

PLAIN, NAMED = ("plain", frozenset[str]()), ("named", frozenset[str]())


def kind_of(words: Words) -> tuple[str, frozenset[str]] | None:
    """Whether a value is typed, a name or plain words, with what is typed; None for a mixture."""
    kinds = {word.kind for word in words}
    if kinds <= lx.TYPED:
        return "typed", frozenset(map(type_of, words))
    if not lx.NEGATIONS.isdisjoint([word.text for word in words]):
        return None
    if kinds <= _NAMING and not any(word.unit for word in words if word.kind == lx.NUMBER):
        return NAMED
    return PLAIN if kinds == {lx.WORD} else None


def type_of(word: Word) -> str:
    """What a typed word is of: a time of the day, a day, or a number of a unit, of whose dimension it is."""
    if word.kind == lx.NUMBER:
        return _DIMENSIONS.get(word.unit, word.unit)
    return "clock" if word.kind == lx.CLOCK or word.value in _HOURS else "day"


def is_of_time(word: Word) -> bool:
    """Whether a word without a value is of a time, in any language that dates are read in: "Montag", "lunes"."""
    terms = (word.stem,) if word.stem.isascii() else tokenize(word.stem)
    return word.kind in (lx.WORD, lx.NAME) and not time_terms().isdisjoint(terms)


def shared_ends(one: Words, other: Words) -> tuple[int, int]:
    """The number of words that two lists have in common at the beginning and, after these, at the end."""
    least = min(len(one), len(other))
    begin = end = 0
    while begin < least and one[begin].key == other[begin].key:
        begin += 1
    while end < least - begin and one[-1 - end].key == other[-1 - end].key:
        end += 1
    return begin, end


# The one value in which two properties differ, and verbs that say that something is done again.

# Verbs of where something is. Closed: others tell what it does there.
PLACED = lx.stems("be run stand sit lie hang")
PLACES = frozenset(("in", "under", "behind", "near", "beside", "above", "below"))


class Slot(NamedTuple):
    """The only role in which two properties differ, what each says there, and what they share around it."""

    role: str
    mine: Words
    other: Words
    before: Words
    after: Words


def slot_of(new: Property, old: Property) -> Slot | None:
    """The only difference of two properties; None if there are others."""
    ours, theirs = _aligned(new, old)
    if ours is None:
        return None
    differing: list[str] = []
    for role in dict.fromkeys((*ours, *theirs)):
        one, other = ours.get(role, ()), theirs.get(role, ())
        when_it_changed = role == "time" and not other and new.clause.change
        if one != other and not when_it_changed and [*map(key_of, one)] != [*map(key_of, other)]:
            differing.append(role)
    if len(differing) != 1:
        return None
    (role,) = differing
    one, other = ours.get(role, ()), theirs.get(role, ())
    begin, end = shared_ends(one, other)
    mine, his = one[begin : len(one) - end], other[begin : len(other) - end]
    if len(mine) > 1 or len(his) > 1:
        mine, his = _without_unit(mine, his), _without_unit(his, mine)
    return Slot(role, mine, his, one[:begin], one[len(one) - end :]) if mine and his else None


def _align_value(role: str, new: Property, old: Property, ours: dict[str, Words], theirs: dict[str, Words]) -> None:
    """Give the value that something has taken the role in which the older one has one of its kind."""
    words = ours[role]
    kind = kind_of(words)
    if kind:
        alike = [his for his, others in theirs.items() if kind_of(others) == kind]
    else:  # "at version 2.7", "to version 3.0"
        alike = [his for his, others in theirs.items() if shared_ends(words, others) != (0, 0)]
    if len(alike) != 1 or alike[0] in ours:
        return
    moved = old.relation in {*PLACED, MOVES.get(new.clause.moved)} and old.clause.placing != "on"
    version = kind is not None and kind[0] == "named" and shared_ends(words, theirs[alike[0]])[0] > 0
    again = is_again(new.clause.moved, old.relation)
    if kind is None or kind[0] == "typed" or version or again or (alike[0] in PLACES and moved):
        ours[alike[0]] = ours.pop(role)  # "the key is under the mat", "was moved to the shed"


def _is_unit(word: Word) -> bool:
    return word.kind not in lx.TYPED and (word.kind == lx.UNIT or word.text in lx.UNITS or word.text in lx.DATE_WORDS)


def _without_unit(some: Words, other: Words) -> Words:
    """The words of an amount without "a month", where the other names none."""
    if len(some) > 1 and _is_unit(some[-1]) and not any(map(_is_unit, other)):
        return some[:-1]
    return some


def _aligned(new: Property, old: Property) -> tuple[dict[str, Words] | None, dict[str, Words]]:
    """The roles of both, the value in the same role if only its form differs; None for other relations."""
    ours, theirs = dict(new.roles), dict(old.roles)
    one, other = new.clause, old.clause
    if one.placing and other.placing and one.placing != other.placing and "in" in ours and "in" in theirs:
        return None, theirs
    for some, others in ((ours, theirs), (theirs, ours)):  # "is 8", "is at 8:30"
        apart = "" in some and "time" not in some and "time" in others
        bare = apart and lx.CLOCK in [word.kind for word in others["time"]]
        if bare and all(word.kind == lx.NUMBER and not word.unit for word in some[""]):
            some["time"] = tuple([replace(word, kind=lx.CLOCK) for word in some.pop("")])
    if one.change and new.relation == "be":
        # "Went up to 5", "was moved to Friday": the value of whatever role is of its kind.
        values = [role for role in ours if role != "time"] or [*ours]
        if len(values) == 1:
            _align_value(values[0], new, old, ours, theirs)
        return ours, theirs
    if one.change and new.relation in ("use", "studi") and "" not in ours and "in" not in theirs and "" in theirs:
        ours[""] = ours.pop("in", ())  # "switched to Rspack"
    alike_verbs = new.relation == old.relation or {new.relation, old.relation} <= USES or does_again(new, old)
    return (ours if alike_verbs else None), theirs


# Of 51 verbs that say so 48 are at most this share as frequent as the verb without "re"; of 24 that do not, as
# "reserve", 11 are.
_ANEW_SHARE = 0.42


def does_again(new: Property, old: Property) -> bool:
    """Whether one does again what the other did: "was rewritten", "is written"."""
    return is_again(new.relation, old.relation)


def is_again(verb: str, before: str) -> bool:
    """Whether the stem of a verb says that what another verb says is done again: "reassign", "assign".

    Such a verb is much rarer than the other. "Reserve", "report" and "review" are not, and mean something else.
    """
    anew = verb.startswith("re") and len(before) > 3 and verb.startswith(before[:-1], 2)
    return anew and share_of(verb) < _ANEW_SHARE * share_of(before)
