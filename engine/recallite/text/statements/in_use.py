"""Whether a clause says that something was in use, so that it is over if something else has replaced that."""

from __future__ import annotations

from recallite.text.statements import lexicon as lx
from recallite.text.statements.clause import Clause
from recallite.text.statements.statement_words import IDENTIFIER, NAME
from recallite.text.statements.value_changes import USES

# What is done "with" a tool; who plays with Tom does not use him.
_SERVED = lx.stems("deploy ship release lint format bundle compile debug test monitor track manage plan publish sign")
_UNLIMITED = frozenset(("", "time", "for"))


def is_in_use(gone: frozenset[str], new: Clause, old: Clause) -> bool:
    """Whether a clause says that what is gone was in use, not what it is like: "we use A", "A is our formatter"."""
    # "A was replaced in the shop", "B replaced A as captain" end no more than that.
    where = [word.key for role, words in new.chunks if role not in _UNLIMITED for word in words]
    if not old.every.issuperset(where) or (old.relation == "be" and not old.subject.isdisjoint(lx.LASTING_NOUNS)):
        return False
    if gone == old.subject:
        return old.relation == "be" and old.definite
    named = any(word.kind == NAME or word.kind == IDENTIFIER for word in new.gone)
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
