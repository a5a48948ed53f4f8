"""Outlines: two numbers of each statement, by which most pairs are ruled out before they are judged.

The bits of a statement as the newer of two are of its words, its properties and what it says is gone or has ended; as
the older, of its words, its properties and its values. Without a bit in common, `judge` says "independent". Stores have
the outline of each statement, so most statements that a new one is compared with are never parsed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from struct import pack, unpack
from zlib import crc32

from msgspec import Struct

from recallite.text.dates.languages import time_terms
from recallite.text.statements import lexicon as lx
from recallite.text.statements.instructions import instructions_of
from recallite.text.statements.properties import NOT, USES, is_of_time, keys_of_words, traits_of
from recallite.text.statements.statement import Statement, statement_of
from recallite.text.words import text_key

_BITS = 509


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
        bit = 1 << crc32(text_key(statement.text), 1) % _BITS | instructs
        return Outline(bit, bit)
    traits = traits_of(statement)
    newer = older = _bit(" ".join(traits.canon)) | instructs
    replaceable = statement.whole and not statement.question
    frame = [word for word in traits.spoken if word.kind not in lx.TYPED and word.text not in NOT]
    if not statement.clauses and frame:
        older |= _bit(frame[-1].key, _TO)
    if not (statement.whole and statement.clauses):
        terms = time_terms()
        frame = [word for word in frame if word.stem not in terms and (word.stem.isascii() or not is_of_time(word))]
    same = _bit(_joined({word.key for word in frame}))
    newer, older = newer | same, older | same
    for one in traits.properties:
        clause, relation = one.clause, "use" if one.relation in USES else one.relation
        about = _number(_joined(one.subject - lx.SPEAKERS or one.subject))
        bits, of_subject, again = _bit(relation, about), 1 << about % _BITS, _number("again", about)
        newer |= _bit(relation[2:5], again) if relation.startswith("re") else 0
        stated = one.roles.get("", ())
        newer |= bits
        if relation == "use" and (clause.change or clause.stopped or clause.former):
            newer |= of_subject  # compared with whatever else is said of it
        if clause.relation == "be":
            subject, every = _joined(clause.subject), _joined(clause.every)
            newer, older = newer | _bit(every, _number(subject)), older | _bit(subject, _number(every))
        if clause.passive or relation == "use" or relation in lx.STATUS_STEMS:
            bit = _bit("state", about)
            newer, older = newer | bit, older | bit
        if clause.gone:
            gone = keys_of_words(clause.gone)
            newer |= _of_key(gone[:1], _FROM) | (_of_key(gone[-1:], _TO) if clause.change else 0)
        if clause.ends:
            ended = {key for role, words in one.roles.items() if role != "time" for key in keys_of_words(words)}
            newer |= _bit("ends", about) | _bit("ends", _number(_joined(ended - lx.SPEAKERS)))
            newer |= _ends_of(keys_of_words(stated))
        if replaceable:
            nouns = {word.key for word in stated if word.kind not in lx.TYPED}
            limits = {word.key for role, words in one.roles.items() if role != "time" for word in words}
            older |= bits | of_subject | _bit(_joined((one.subject | nouns) - lx.SPEAKERS))
            older |= _bit(relation[:3], again) | _bit(_joined((one.subject | nouns | limits) - lx.SPEAKERS))
            older |= _bit("ends", about) | _bit("ends", _number(_joined(clause.subject - lx.SPEAKERS)))
            for words in one.roles.values():
                keys = keys_of_words(words)
                older |= _of_key(keys[:1], _FROM) | _ends_of(keys)
    return Outline(newer, older)


def _ends_of(keys: Sequence[str]) -> int:
    """The bits of the first and the last key of some words."""
    keys = [key for key in keys if key != "i"]
    return _bit(keys[0], _FROM) | _bit(keys[-1], _TO) if keys else 0


def _of_key(keys: Sequence[str], after: int) -> int:
    """The bit of a key, or of none."""
    return _bit(keys[0], after) if keys else 1 << after % _BITS


def _bit(part: str, after: int = 0) -> int:
    """The bit of a part: the same in every process, as hashes of str are not; `after`: the `_number` of one before."""
    return 1 << crc32(part.encode("utf-8", "surrogatepass"), after + 1) % _BITS


def _number(part: str, after: int = 0) -> int:
    return crc32(part.encode("utf-8", "surrogatepass"), after + 1)


def _joined(keys: AbstractSet[str]) -> str:
    return ",".join(sorted(keys))


_FROM, _TO = _number("from"), _number("to")
