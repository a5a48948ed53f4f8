"""Outlines: two numbers of each statement, by which most pairs are ruled out before they are judged.

The bits of a statement as the newer of two are of its words, its properties and what it says is gone or has ended; as
the older, of its words, its properties and its values. Without a bit in common, `judge` says "independent". Stores have
the outline of each statement, so most statements that a new one is compared with are never parsed again.
"""

from __future__ import annotations

from functools import lru_cache
from struct import pack, unpack
from typing import TypeAlias
from zlib import crc32

from msgspec import Struct

from recallite.text.dates.languages import time_terms
from recallite.text.statements import lexicon as lx
from recallite.text.statements.instructions import instructions_of
from recallite.text.statements.properties import NOT, USES, Words, is_of_time, keys_of_words, traits_of
from recallite.text.statements.statement import Statement, statement_of
from recallite.text.words import text_key

_BITS = 509
Part: TypeAlias = str | bytes | frozenset[str] | tuple[str, ...]


class Outline(Struct, frozen=True, gc=False):
    """The bits of a statement as the newer of two, and as the older.

    If a newer and an older statement have no bit in common, `judge` says "independent".
    """

    newer: int
    older: int

    def meets(self, other: Outline) -> bool:
        """Whether one of two statements may be anything but independent of the other."""
        return bool(self.newer & other.older or other.newer & self.older)

    def packed(self) -> bytes:
        """Both as a store has them, some 40 bytes: how many the first has, and the numbers of the bits, uint16."""
        newer, older = _numbers_of(self.newer), _numbers_of(self.older)
        return pack(f"<{1 + len(newer) + len(older)}H", len(newer), *newer, *older)

    @classmethod
    def unpacked(cls, data: bytes) -> Outline | None:
        """The outline that `packed` wrote; None for anything else."""
        if not data or len(data) % 2:
            return None
        count, *numbers = unpack(f"<{len(data) // 2}H", data)
        if count > len(numbers) or max(numbers, default=0) >= _BITS:
            return None
        sides = [0, 0]
        for i, number in enumerate(numbers):
            sides[i >= count] |= 1 << number
        return cls(*sides)


def _numbers_of(bits: int) -> list[int]:
    """The numbers of the bits that are set, ascending."""
    numbers = []
    while bits:
        lowest = bits & -bits
        numbers.append(lowest.bit_length() - 1)
        bits ^= lowest
    return numbers


@lru_cache(maxsize=4096)
def outline_of(text: str, context: str | None) -> Outline:
    """The outline of a text under its context."""
    return outline_of_statement(statement_of(text, context))


def outline_of_statement(statement: Statement) -> Outline:
    """The outline of a statement."""
    instructs = _bit("instructs") if instructions_of(statement.text) else 0
    if not statement.words:
        bit = _bit(text_key(statement.text)) | instructs
        return Outline(bit, bit)
    traits = traits_of(statement)
    newer = older = _bit(traits.canon) | instructs
    replaceable = statement.whole and not statement.question
    frame = [word for word in traits.spoken if word.kind not in lx.TYPED and word.text not in NOT]
    if not statement.clauses and frame:
        older |= _bit("to", frame[-1].key)
    if not (statement.whole and statement.clauses):
        terms = time_terms()
        frame = [word for word in frame if word.stem not in terms and (word.stem.isascii() or not is_of_time(word))]
    same = _bit(frozenset([word.key for word in frame]))
    newer, older = newer | same, older | same
    for one in traits.properties:
        clause, relation = one.clause, "use" if one.relation in USES else one.relation
        about = _number(one.subject - lx.SPEAKERS or one.subject)
        bits = _bit(relation, after=about)
        newer |= _bit("again", relation[2:5], after=about) if relation.startswith("re") else 0
        stated = one.roles.get("", ())
        newer |= bits
        if relation == "use" and (clause.change or clause.stopped or clause.former):
            newer |= _bit(after=about)  # compared with whatever else is said of it
        if clause.relation == "be":
            newer, older = newer | _bit(clause.subject, clause.every), older | _bit(clause.every, clause.subject)
        if clause.passive or relation == "use" or relation in lx.STATUS_STEMS:
            bit = _bit("state", after=about)
            newer, older = newer | bit, older | bit
        if clause.gone and clause.change:
            newer |= _bit("to", *keys_of_words(clause.gone)[-1:])
        if clause.gone:
            newer |= _bit("from", *keys_of_words(clause.gone)[:1])
        if clause.ends:
            ended = {key for role, words in one.roles.items() if role != "time" for key in keys_of_words(words)}
            newer |= _bit("ends", after=about) | _bit(frozenset(ended) - lx.SPEAKERS, "ends") | _ends_of(stated)
        if replaceable:
            nouns = {word.key for word in stated if word.kind not in lx.TYPED}
            limits = {word.key for role, words in one.roles.items() if role != "time" for word in words}
            older |= bits | _bit(after=about) | _bit((one.subject | nouns) - lx.SPEAKERS)
            older |= _bit("again", relation[:3], after=about) | _bit((one.subject | nouns | limits) - lx.SPEAKERS)
            older |= _bit("ends", after=about) | _bit(clause.subject - lx.SPEAKERS, "ends")
            for words in one.roles.values():
                older |= _bit("from", *keys_of_words(words)[:1]) | _ends_of(words)
    return Outline(newer, older)


def _ends_of(words: Words) -> int:
    """The bits of the first and the last of some words."""
    keys = [key for key in keys_of_words(words) if key != "i"]
    return _bit("from", keys[0]) | _bit("to", keys[-1]) if keys else 0


def _bit(*parts: Part, after: int = 0) -> int:
    """The bit of some parts: the same in every process, as hashes of str are not; `after`: the `_number` of others."""
    return 1 << _number(*parts, after=after) % _BITS


def _number(*parts: Part, after: int = 0) -> int:
    for part in parts:
        if isinstance(part, frozenset):
            part = ",".join(sorted(part))
        elif isinstance(part, tuple):
            part = " ".join(part)
        after = crc32(part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass"), after + 1)
    return after
