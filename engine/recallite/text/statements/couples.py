"""Two clauses about couples: who is single, engaged, married or separated."""

from __future__ import annotations

from recallite.text.statements import lexicon as lx
from recallite.text.statements.clause import Clause
from recallite.text.statements.statement_words import NAME
from recallite.text.statements.verdict import Finding

TIES = frozenset(("singl", "marri", "engag", "divorc", "separ"))
COUPLED = frozenset(("date", "marri", "divorc", "separ"))
_PARTED = frozenset(("divorc", "separ", "singl"))
PARTNERS = lx.stems("girlfriend boyfriend wife husband spouse partner fiance fiancee")
_COUPLES = TIES | PARTNERS | {"date", "see"}


def couple(new: Clause, old: Clause, cue: bool) -> Finding | None:
    """Compare who is single, engaged, married or separated: both partners count as the subject."""
    ours = _ties(new)
    theirs = _ties(old) if ours else ours
    if not ours or not theirs or new.negated or old.negated or old.past or old.rest:
        return None
    people, others = new.subject | _partners(new), old.subject - _COUPLES | _partners(old)
    if not (new.subject & others or old.subject & people) or not (new.subject == old.subject or others <= people):
        return None
    if theirs <= PARTNERS and ours.isdisjoint(_PARTED):
        return None
    if ours & theirs and people == others:
        return None
    return Finding("supersedes", "another relationship", cued=cue or new.past)


def _partners(clause: Clause) -> frozenset[str]:
    return frozenset(
        word.key
        for role, words in clause.chunks
        if role in ("", "to", "with")
        for word in words
        if word.kind == NAME or word.text == "i"
    )


def _ties(clause: Clause) -> frozenset[str]:
    if len(clause.stated) > 4:
        return frozenset()
    if clause.relation in COUPLED or (clause.relation == "engag" and clause.passive):
        return frozenset((clause.relation,))
    if clause.relation == "be" and clause.subject & PARTNERS:
        return clause.subject & PARTNERS
    return clause.stated & TIES if clause.relation in ("be", "get") else frozenset()
