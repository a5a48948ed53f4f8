"""The one value in which two properties differ, and verbs that say that something is done again."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from recallite.text.statements import lexicon as lx
from recallite.text.statements.clause import MOVES
from recallite.text.statements.properties import USES, Property, Words, kind_of, shared_ends
from recallite.text.statements.statement_words import Word
from recallite.text.words import share_of

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
    slot: Slot | None = None
    for role in dict.fromkeys((*ours, *theirs)):
        one, other = ours.get(role, ()), theirs.get(role, ())
        if one == other:
            continue
        begin, end = shared_ends(one, other)
        mine, his = one[begin : len(one) - end], other[begin : len(other) - end]
        if not mine and not his:
            continue
        if role == "time" and not other and new.clause.change:
            continue  # when it changed
        if len(mine) > 1 or len(his) > 1:
            mine, his = _without_unit(mine, his), _without_unit(his, mine)
        if not mine or not his or slot is not None:
            return None
        slot = Slot(role, mine, his, one[:begin], one[len(one) - end :])
    return slot


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
