"""Outlines: two numbers of each statement, by which most pairs are ruled out before they are judged.

The bits of a statement as the newer of two are of its words, its properties and what it says is gone or has ended; as
the older, of its words, its properties and its values. Without a bit in common, `judge` says "independent". This takes
a microsecond, and an outline a tenth of the memory of a parsed statement, so most statements that a new one is
compared with are never parsed again.
"""

from __future__ import annotations

from msgspec import Struct

from recallite.text.statements import lexicon as lx
from recallite.text.statements.instructions import instructions_of
from recallite.text.statements.judging import NOT, spoken_of
from recallite.text.statements.properties import USES, Words, keys_of_words, properties_of
from recallite.text.statements.statement import Statement, statement_of
from recallite.text.words import text_key

# The outlines that are kept in each of two generations, some 300 bytes each.
_MOST_OUTLINES = 1 << 16
_BITS = 509


class Outline(Struct, frozen=True, gc=False):
    """The bits of a statement as the newer of two, and as the older."""

    newer: int
    older: int


_generations: list[dict[bytes, Outline]] = [{}, {}]


def outline_of(text: str, context: str | None, content_hash: bytes) -> Outline:
    """The outline of a text under its context, cached by their hash."""
    young, old = _generations
    outline = young.get(content_hash)
    if outline is None:
        outline = old.get(content_hash) or outline_of_statement(statement_of(text, context))
        if len(young) >= _MOST_OUTLINES:
            _generations[:] = young, old = {}, young
        young[content_hash] = outline
    return outline


def may_relate(new: Outline, old: Outline) -> bool:
    """Whether `judge` may say anything but "independent"."""
    return bool(new.newer & old.older)


def outline_of_statement(statement: Statement) -> Outline:
    """The outline of a statement."""
    instructs = _bit("instructs") if instructions_of(statement.text) else 0
    if not statement.words:
        bit = _bit(text_key(statement.text)) | instructs
        return Outline(bit, bit)
    newer = older = _bit(statement.canon()) | instructs
    replaceable = statement.whole and not statement.question
    frame = [word.key for word in spoken_of(statement) if word.kind not in lx.TYPED and word.text not in NOT]
    newer, older = newer | _bit(frozenset(frame)), older | _bit(frozenset(frame))
    if not statement.clauses and frame:
        older |= _bit("to", frame[-1])
    for one in properties_of(statement):
        clause, relation = one.clause, "use" if one.relation in USES else one.relation
        about = one.subject - lx.SPEAKERS or one.subject
        bits = _bit(about, relation)
        newer |= _bit(about, "again", relation[2:5]) if relation.startswith("re") else 0
        stated = one.roles.get("", ())
        newer |= bits
        if relation == "use" and (clause.change or clause.stopped or clause.former):
            newer |= _bit(about)  # compared with whatever else is said of it
        if clause.relation == "be":
            newer, older = newer | _bit(clause.subject, clause.every), older | _bit(clause.every, clause.subject)
        if clause.passive or relation == "use" or relation in lx.STATUS_STEMS:
            newer, older = newer | _bit(about, "state"), older | _bit(about, "state")
        if clause.gone and clause.change:
            newer |= _bit("to", *keys_of_words(clause.gone)[-1:])
        if clause.gone:
            newer |= _bit("from", *keys_of_words(clause.gone)[:1])
        if clause.ends:
            ended = {key for role, words in one.roles.items() if role != "time" for key in keys_of_words(words)}
            newer |= _bit(about, "ends") | _bit(frozenset(ended) - lx.SPEAKERS, "ends") | _ends_of(stated)
        if replaceable:
            nouns = {word.key for word in stated if word.kind not in lx.TYPED}
            limits = {word.key for role, words in one.roles.items() if role != "time" for word in words}
            older |= bits | _bit(about) | _bit((one.subject | nouns) - lx.SPEAKERS) | _bit(about, "again", relation[:3])
            older |= _bit((one.subject | nouns | limits) - lx.SPEAKERS)
            older |= _bit(about, "ends") | _bit(clause.subject - lx.SPEAKERS, "ends")
            for words in one.roles.values():
                older |= _bit("from", *keys_of_words(words)[:1]) | _ends_of(words)
    return Outline(newer, older)


def _ends_of(words: Words) -> int:
    """The bits of the first and the last of some words."""
    keys = [key for key in keys_of_words(words) if key != "i"]
    return _bit("from", keys[0]) | _bit("to", keys[-1]) if keys else 0


def _bit(*parts: object) -> int:
    return 1 << hash(parts) % _BITS
