"""Outlines: two numbers of a statement, whose common bits tell that it may change another or repeat it.

Nine in ten statements that share a key have nothing to do with each other. Their outlines tell so in a microsecond, and
are a tenth of the size of what was parsed: most statements that a new one is compared with are never parsed again.
"""

from __future__ import annotations

from msgspec import Struct

from recallite.text.statements import lexicon as lx
from recallite.text.statements.clause import Clause
from recallite.text.statements.clause_changes import (
    ANY_VERB,
    EXCHANGES,
    REACHES,
    STRIVES,
    TASTES,
    is_idle,
    matches_any,
    tells,
)
from recallite.text.statements.evidence import CHANGING
from recallite.text.statements.instructions import instructions_of
from recallite.text.statements.judging import MOST_REPLACED, tells_change
from recallite.text.statements.other_languages import has_words_of_change
from recallite.text.statements.over import successor_of
from recallite.text.statements.statement import Statement, statement_of
from recallite.text.statements.traits import cues_of
from recallite.text.statements.value_changes import MOST_UNCUED, USES
from recallite.text.words import text_key

# Some 300 bytes each.
_MOST_KEPT = 1 << 15
# Bits of what two statements say, and others, each of which suffices.
_SAID = 512
_TELLS, _EXCHANGED, _ELSEWHERE, _CUED, _DENIES, _AFFIRMS, _FOLLOWS, _INSTRUCTS = (
    1 << _SAID + place for place in range(8)
)
_SUFFICES = (1 << _SAID + 8) - 1
# Bits of subjects and of verbs, of which two statements need one each.
_SUBJECT, _VERB = _SAID + 8, _SAID + 72
_SUBJECTS, _VERBS = ((1 << 64) - 1) << _SUBJECT, ((1 << 70) - 1) << _VERB
_TASTED, _REACHED, _NEW_NEGATED, _OLD_NEGATED = (1 << _VERB + place for place in range(4))
# Bits of verbs that rules compare by what else is said: of short clauses, and of long ones, for which it takes a cue.
_SHORT, _LONG, _USED, _ANY = _VERB + 4, _VERB + 37, 1 << 32, (1 << 33) - 1


class Outline(Struct, frozen=True, gc=False):
    """The bits of a statement as the newer of two, and as the older."""

    newer: int
    older: int


_outlines: dict[bytes, Outline] = {}


def outline_of(text: str, context: str | None, content_hash: bytes) -> Outline:
    """The outline of a text under its context, kept by their hash."""
    outline = _outlines.get(content_hash)
    if outline is None:
        if len(_outlines) >= _MOST_KEPT:
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
    cued = any(map(_is_cue, statement.clauses))
    for clause in statement.clauses:
        newer |= _newer(clause, cued=cued)
    if statement.whole and len(statement.clauses) <= MOST_REPLACED:
        for clause in statement.clauses:
            older |= _older(clause)
    return Outline(newer, older)


def _newer(clause: Clause, *, cued: bool) -> int:
    relation = clause.relation
    bits = _said(clause, clause.subject, clause.stated)
    if is_idle(clause):
        return bits
    if tells(clause) or (clause.now and relation in USES):
        bits |= _TELLS
    if relation in EXCHANGES:
        bits |= _EXCHANGED
    if relation in REACHES:
        bits |= _REACHED
    verb = _ANY if matches_any(clause) else _verb(relation)
    if cued:
        bits |= verb << _LONG
    if cued or _is_short(clause):
        bits |= verb << _SHORT
    return bits | _subjects(clause) | _OLD_NEGATED | (_NEW_NEGATED if clause.negated else 0)


def _older(clause: Clause) -> int:
    relation = clause.relation
    bits = _said(clause, clause.stated, clause.subject)
    if relation == "be":
        bits |= _EXCHANGED | _set_bit("subject", clause.every)
    if clause.unreal or clause.former:
        return bits
    if relation in STRIVES:
        bits |= _REACHED
    bits |= _verb(relation) << (_SHORT if _is_short(clause) else _LONG)
    return bits | _TELLS | _subjects(clause) | _NEW_NEGATED | (_OLD_NEGATED if clause.negated else 0)


def _is_cue(clause: Clause) -> bool:
    return tells_change(clause) or clause.now or clause.relation.startswith("re")


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
    bits = _TASTED if clause.relation in TASTES else 0
    for stem in clause.subject:
        bits |= 1 << _SUBJECT + (hash(stem) & 63)
    return bits


def _verb(relation: str) -> int:
    if relation in ANY_VERB:
        return _ANY
    return 1 << (hash(relation) & 31) | (_USED if relation in USES else 0)


def _set_bit(name: str, stems: frozenset[str]) -> int:
    """The bit of some stems; what says nothing has none."""
    return _bit(name, stems) if stems else 0


def _bit(*parts: object) -> int:
    return 1 << (hash(parts) % _SAID)
