"""Outlines: two sets of bits of each statement, by which most pairs are ruled out before they are judged.

The bits of a statement as the newer of two are of its words, its properties and what it says is gone or has ended; as
the older, of its words, its properties and its values. Without a bit in common, `judge` says "independent". Stores have
the outline of each statement, so most statements that a new one is compared with are never parsed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from struct import pack, unpack
from typing import TypeAlias
from zlib import crc32

from msgspec import Struct

from recallite.text.dates.languages import time_terms
from recallite.text.statements import lexicon as lx
from recallite.text.statements.instructions import instructions_of
from recallite.text.statements.properties import NOT, USES, is_of_time, keys_of_words, traits_of
from recallite.text.statements.statement import Statement, statement_of
from recallite.text.words import text_key

_BITS = 65_521


class Outline(Struct, frozen=True, gc=False):
    """The numbers of the bits of a statement as the newer of two, and as the older.

    If a newer and an older statement have no bit in common, `judge` says "independent".
    """

    newer: frozenset[int]
    older: frozenset[int]

    def packed(self) -> bytes:
        """Both as a store has them, some 40 bytes: how many the newer has, and the numbers of both, uint16."""
        numbers = (*sorted(self.newer), *sorted(self.older))
        return pack(f"<{1 + len(numbers)}H", len(self.newer), *numbers)


@lru_cache(maxsize=4096)
def outline_of(text: str, context: str | None) -> bytes:
    """The outline of a text under its context, packed."""
    return outline_of_statement(statement_of(text, context)).packed()


def may_replace(outline: bytes, others: Iterable[bytes]) -> list[tuple[bool, bool]]:
    """Whether a statement may replace each of others, and each of these the statement, by their packed outlines.

    What is no outline rules nothing out.
    """
    count, *numbers = unpack(f"<{len(outline) // 2}H", outline)
    newer, older = frozenset(numbers[:count]), frozenset(numbers[count:])
    found = []
    for other in others:
        count, *numbers = unpack(f"<{len(other) // 2}H", other) if other and len(other) % 2 == 0 else (1,)
        unread = count > len(numbers)
        found.append((unread or not newer.isdisjoint(numbers[count:]), unread or not older.isdisjoint(numbers[:count])))
    return found


# A text of which a bit is made, and the checksum that it continues.
_Part: TypeAlias = tuple[str, int]


def outline_of_statement(statement: Statement) -> Outline:
    """The outline of a statement."""
    newer: list[_Part] = []
    older: list[_Part] = []
    for instruction in instructions_of(statement.text):
        ours, theirs = instruction.marks()
        newer += [(mark, 1) for mark in ours]
        older += [(mark, 1) for mark in theirs]
    if not statement.words:
        text = frozenset((crc32(text_key(statement.text), 1) % _BITS,))
        return Outline(_bits(newer) | text, _bits(older) | text)
    traits = traits_of(statement)
    same = [(" ".join(traits.canon), 1)]
    replaceable = statement.whole and not statement.question
    frame = [word for word in traits.spoken if word.kind not in lx.TYPED and word.text not in NOT]
    if not statement.clauses and frame:
        older.append((frame[-1].key, _TO))
    if not (statement.whole and statement.clauses):
        terms = time_terms()
        frame = [word for word in frame if word.stem not in terms and (word.stem.isascii() or not is_of_time(word))]
    same.append((_joined({word.key for word in frame}), 1))
    if replaceable and len(statement.clauses) == 1:
        clause = statement.clauses[0]
        same.append((f"{clause.relation},{_joined(clause.every)}", _after(clause.subject)))
    newer += same
    older += same
    for one in traits.properties:
        clause, relation = one.clause, "use" if one.relation in USES else one.relation
        about = _after(one.subject - lx.SPEAKERS or one.subject)
        again, of_subject = _after({"again"}, about), ("", about - 1)
        stated = one.roles.get("", ())
        keys = keys_of_words(stated)
        # A command, and what "it" does, have no subject of which another text says otherwise.
        if clause.change or clause.former or (one.subject and one.subject.isdisjoint(lx.UNRESOLVED)):
            newer.append((relation, about))
            if relation.startswith("re"):
                newer.append((relation[2:5], again))
            if relation == "use" and (clause.change or clause.stopped or clause.former):
                newer.append(of_subject)  # compared with whatever else is said of it
            if clause.passive or relation == "use" or relation in lx.STATUS_STEMS:
                newer.append(("state", about))
                older.append(("state", about))
        if clause.relation == "be":
            newer.append((_joined(clause.every), _after(clause.subject)))
            older.append((_joined(clause.subject), _after(clause.every)))
        if clause.gone:
            gone = keys_of_words(clause.gone)
            newer.append((gone[0], _FROM) if gone else _FROM_NOTHING)
            if clause.change:
                newer.append((gone[-1], _TO) if gone else _TO_NOTHING)
        if clause.ends:
            ended = {key for role, some in one.limits.items() if role != "time" for key in some}.union(keys)
            newer += (("ends", about), ("ends", _after(ended - lx.SPEAKERS)), *_ends_of(keys))
        if replaceable:
            nouns = {word.key for word in stated if word.kind not in lx.TYPED}
            limits = {word.key for role, words in one.roles.items() if role != "time" for word in words}
            older += (
                (relation, about), of_subject, (_joined((one.subject | nouns) - lx.SPEAKERS), 1),
                (relation[:3], again), (_joined((one.subject | nouns | limits) - lx.SPEAKERS), 1),
                ("ends", about), ("ends", _after(clause.subject - lx.SPEAKERS)),
            )  # fmt: skip
            for some in (keys, *one.limits.values()) if "" in one.roles else one.limits.values():
                older.append((some[0], _FROM) if some else _FROM_NOTHING)
                older += _ends_of(some)
    return Outline(_bits(newer), _bits(older))


def _ends_of(keys: Sequence[str]) -> Iterable[_Part]:
    """The parts of the first and the last key of some words."""
    keys = [key for key in keys if key != "i"]
    return ((keys[0], _FROM), (keys[-1], _TO)) if keys else ()


def _bits(parts: Iterable[_Part]) -> frozenset[int]:
    """The numbers of the bits of parts: the same in every process, as hashes of str are not."""
    return frozenset([crc32(part.encode("utf-8", "surrogatepass"), begin) % _BITS for part, begin in parts])


def _after(keys: AbstractSet[str], begin: int = 1) -> int:
    """The checksum that what follows some keys continues."""
    return crc32(",".join(sorted(keys)).encode("utf-8", "surrogatepass"), begin) + 1


def _joined(keys: AbstractSet[str]) -> str:
    return ",".join(sorted(keys))


# An empty text leaves the checksum as it is, which `_after` has raised by one.
_FROM, _TO = _after({"from"}), _after({"to"})
_FROM_NOTHING, _TO_NOTHING = ("", _FROM - 1), ("", _TO - 1)
