"""Whether a clause may have a frame, told by its subject and verb before the rest of it is read.

Of lines of chat one in nine has one; the frames of a line take 46 us in place of 54.
"""

from __future__ import annotations

from collections.abc import Sequence

from recallite.text.statements import lexicon as lx
from recallite.text.statements.clause import Clause
from recallite.text.statements.complements import ALIKE, REWRITING, STANDING, subject_of
from recallite.text.statements.statement_words import IDENTIFIER, NAME, TYPED, Word

_VALUED = TYPED | {NAME, IDENTIFIER}
# Of which `chunks` make the roles "by", "in", "to" and "with".
_ROLES = frozenset(["by", "to", "with", "in", "on", "at", "into", "inside", "onto", "until", "for"])
_CHANGING = frozenset(("instead", "instead_of", "not"))


def may_have_frame(clause: Clause, words: Sequence[Word], place: int, opened: Sequence[Word], speaker: str) -> bool:
    """Whether `frames_of` may find a frame in a clause of which the words from `place` on are still to be read.

    True wherever it does, and for few others. `opened`: times that the beginning of the clause names.
    """
    if clause.unreal or clause.former or clause.command or clause.negated or clause.plan:
        return False
    relation = clause.relation
    if relation in REWRITING or (relation == "be" and clause.change):
        return True  # the rest may name another subject
    subject = subject_of(clause.head, speaker)
    if not subject or subject <= lx.UNRESOLVED:
        return False
    rest = {word.text for word in words[place:]}
    if "of" in rest:
        return True
    if clause.passive:
        relation = "be" if relation in STANDING else relation
    else:
        relation = ALIKE.get(relation, relation)
    if relation == "be":
        return (
            bool(opened) or not subject.isdisjoint(lx.ATTRIBUTES) or any(word.kind in _VALUED for word in words[place:])
        )
    if clause.passive:
        return not rest.isdisjoint(_ROLES)
    if clause.past and relation not in lx.LASTING:
        return clause.change or not rest.isdisjoint(_CHANGING)
    return relation in lx.EXCLUSIVE or relation in lx.LASTING
