"""Keys of a statement, by which others about the same thing are found, its frames and its outline, as stores have them.

`record_keys` gives all keys of a record, hashes of frames, rare words and subjects; `frames_of` gives its frames, each
with the value that it states, and `outline_of` the bits without which no pair is judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from hashlib import blake2b
from struct import pack, unpack
from typing import TypeAlias
from zlib import crc32

from msgspec import Struct

from recallite.system.numerics import kernels
from recallite.text.dates.languages import time_terms
from recallite.text.standing import joined, sentences_of
from recallite.text.statements import lexicon as lx
from recallite.text.statements.clause import Clause
from recallite.text.statements.instructions import instruction_keys, instructions_of
from recallite.text.statements.lexicon import SEVERAL
from recallite.text.statements.properties import NOT, USES, is_of_time, keys_of_words, traits_of
from recallite.text.statements.statement import Statement, statement_of
from recallite.text.statements.statement_words import ALIKE, Word
from recallite.text.words import text_key

# Of the kernels as the engine sees them, whose errors are ours.
DENIED, ENDED, OVER = kernels.arguments.DENIED, kernels.arguments.ENDED, kernels.arguments.OVER
MAX_KEYS = 8
MAX_FRAMES = 3
# In bits: "work" has 5, "dentist" 12. LoCoMo's turns meet 7 others that share a key (median).
_LEAST_WEIGHT = 6.0
_MOST_WORDS, _MOST_SUBJECTS = 4, 2
# "New wifi password: kestrel9" is no clause.
_LONGEST_FRAGMENT = 16
# A capitalised word at the beginning of a sentence that is less rare may be no name.
_UNNAMED_WEIGHT = 9.0
_SILENT_KINDS = frozenset((lx.STOP, lx.COMMA, lx.MARK, lx.UNIT))
_KIN_KEYS = frozenset(ALIKE.get(stem, stem) for stem in lx.KIN)
# What says more is never replaced as a whole, and nothing has to find it but an equal text.
_MOST_STORED_CLAUSES, _MOST_STORED_WORDS = 2, 18


def keys_of(statement: Statement) -> tuple[int, ...]:
    """Signed 64-bit hashes: statements that share one may be about the same thing. () for long texts and junk.

    They are of the frames, of the subject where it is no person alone, of each of the rarest words, and of what common
    words are about with who is spoken of. Of 870 statements that replaced another, 92 of 100 share a key with it;
    pairs of rare words and the rarest one alone made it 62.
    """
    if not statement.clauses and not 0 < len(statement.words) <= _LONGEST_FRAGMENT:
        return ()
    texts: dict[str, None] = {}
    for clause in statement.clauses[:2]:
        if (slot := _slot(clause, None)) is not None:
            texts[f"frame {slot[0]}"] = None
        about = clause.subject - lx.SPEAKERS
        if len(about) > 1 and not all(word.kind == lx.NAME for word in clause.head) and not about <= lx.UNRESOLVED:
            texts[f"about {' '.join(sorted(about))}"] = None
    weights: dict[str, float] = {}  # how rare its words are, in bits
    names: list[str] = []
    begins, first = True, False
    for word in statement.words:
        if word.kind in _SILENT_KINDS:
            begins = word.kind == lx.STOP
            continue
        if word.weight:
            weights[word.meaning] = word.weight
            common = word.weight < _UNNAMED_WEIGHT or word.stem in lx.ATTRIBUTES
            if word.kind == lx.NAME and not (begins and common):
                names.append(word.meaning)
        elif word.text in ("i", "me", "my", "we", "our"):
            first = True
        begins = False
    # Numbers and times name nothing alone.
    rare = sorted(
        [(-weight, key) for key, weight in weights.items() if weight >= _LEAST_WEIGHT and not key[0].isdigit()]
    )
    for _, key in rare[:_MOST_WORDS]:
        texts[f"word {key}"] = None
    # The kin and names that are a subject or own one.
    headed = {word.meaning for clause in statement.clauses for word in clause.head} & _KIN_KEYS.union(names)
    spoken = sorted(headed)[:2] or [statement.speaker if first else ""]
    subjects = {lx.SUBJECTS[key] for key in weights if key in lx.SUBJECTS}
    for subject in sorted(subjects)[:_MOST_SUBJECTS]:
        for person in spoken:
            texts[f"subject {person} {subject}"] = None
    return tuple(map(_hash64, list(texts)[:MAX_KEYS]))


# Statements that say they are over: "I used to live in Berlin", "Uses TSLint. Replaced by ESLint".


def over_of(statement: Statement) -> int:
    """`ENDED` if all that a statement says is over, `DENIED` if it says that something no longer holds, else 0."""
    clauses = statement.clauses
    if not clauses or not statement.whole or any(clause.unreal or clause.sourced for clause in clauses):
        return 0
    # The last clause says that what the others are about was replaced: "..., it was replaced by B".
    last = clauses[-1]
    unnamed = last.subject <= lx.UNRESOLVED and not (last.negated or last.plan)
    replaced = last.relation == "replac" and last.passive and (last.past or last.perfect) and unnamed
    if replaced or all(clause.former for clause in clauses):
        return ENDED
    return DENIED if len(clauses) == 1 and clauses[0].stopped and not clauses[0].plan else 0


def frames_of(
    statement: Statement, several: frozenset[str] = SEVERAL, *, turn: bool = False
) -> tuple[tuple[int, int], ...]:
    """Frame and value as unsigned 32-bit hashes, at most `MAX_FRAMES`: the same frame with another value states the
    same thing with another value. `several`: the stems of relations that may hold several values, which have none.

    The last of a statement that is over is `OVER`, with how as its value; a `turn` of a transcript never is.
    """
    if statement.question:
        return ()
    over = 0 if turn else over_of(statement)
    slots: dict[str, str] = {}
    for clause in statement.clauses:
        # What does not hold, nor, in a statement that is over, did hold.
        doubtful = clause.unreal or clause.plan
        doubtful = doubtful or (not over and (clause.command or clause.former or clause.negated))
        if not doubtful and (slot := _slot(clause, several)) is not None:
            slots[slot[0]] = slot[1]
    frames = [(_hash32(frame), _hash32(value)) for frame, value in slots.items()][:MAX_FRAMES]
    if over:
        frames = [*frames, *[(0, 0)] * MAX_FRAMES][: MAX_FRAMES - 1]
        frames.append((OVER, over))
    return tuple(frames)


def _slot(clause: Clause, several: frozenset[str] | None) -> tuple[str, str] | None:
    """The thing to which a clause gives a value, and the value; None where several values may hold at a time.

    With `several` None these are returned too.
    """
    subject = clause.subject
    if not subject or subject <= lx.UNRESOLVED:
        return None
    about = "|".join(sorted(subject))
    relation = clause.relation
    for role, words in clause.chunks:
        if several is not None and not _exclusive(clause, role, words, several):
            continue
        nouns = clause.nouns
        value = [word.value + word.unit if word.value else word.stem for word in words if word.stem not in nouns]
        stated = " ".join(sorted(value))
        return (f"{about} {relation} {role} {' '.join(nouns)}", stated) if stated else None
    return None


def _exclusive(clause: Clause, role: str, words: tuple[Word, ...], several: frozenset[str]) -> bool:
    """Whether the subject has one value of this kind at a time."""
    relation, subject = clause.relation, clause.subject
    if clause.nouns:
        return not lx.SEVERAL_NOUNS.intersection(clause.nouns) and not clause.plan
    if relation == "be":
        if lx.SEVERAL_NOUNS & subject and not subject & lx.ATTRIBUTES:
            return False
        if subject & lx.ATTRIBUTES or role == "time":
            return True
        valued = all(word.kind in lx.TYPED or word.kind in lx.NAMED for word in words)
        return valued and (len(subject) > 1 or role != "")
    if relation in several:
        return False
    if clause.passive:
        return role in ("by", "in", "to", "with")
    if clause.past and not clause.former and relation not in lx.LASTING:
        return clause.change
    return relation in lx.EXCLUSIVE or relation in lx.LASTING


@lru_cache(maxsize=1 << 14)
def _hash64(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def _hash32(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little")


class RecordKeys(Struct, frozen=True, gc=False):
    """Signed 64-bit hashes by which a text finds others, and hashes by which others find it.

    First the hash of the text without case and marks around it, then the hashes of its instructions, then `keys_of` its
    statement.
    """

    sought: tuple[int, ...]
    stored: tuple[int, ...]


@lru_cache(maxsize=4096)
def record_keys(text: str, context: str | None) -> RecordKeys:
    """The keys of the record of a text under its context."""
    statement = statement_of(text, context)
    of_text = int.from_bytes(text_key(text), "little", signed=True)
    of_instructions = tuple(map(_hash64, instruction_keys(text)))
    sought = (of_text, *of_instructions, *keys_of(statement))
    short = len(statement.words) <= _MOST_STORED_WORDS
    findable = short or (statement.whole and len(statement.clauses) <= _MOST_STORED_CLAUSES)
    return RecordKeys(sought, sought if findable else (of_text, *of_instructions))


# Outlines: two sets of bits of each statement, by which most pairs are ruled out before they are judged. The bits of a
# statement as the newer of two are of its words, its properties and what it says is gone or has ended; as the older, of
# its words, its properties and its values. Stores have the outline of each statement, so most statements that a new one
# is compared with are never parsed again.

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


# What is known by a text: the part that states something, and what tells it from other texts.

_MOST_READ = 2_000


def stated_part(text: str, context: str | None = None) -> str:
    """The sentences of a text that say what is so; empty if it only asks, wants something done or tells how it went.

    What "I" did or see says nothing of the matter, unless one value holds at a time: "I work at Acme".
    """
    text = text[:_MOST_READ]
    stated = []
    for begin, end in sentences_of(text)[1]:
        statement = statement_of(text[begin:end].strip(), context, much=True)
        own = lx.UNRESOLVED | {statement.speaker, "i"}
        for clause in () if statement.question else statement.clauses:
            doubtful = clause.command or clause.unreal or not (clause.chunks or clause.passive)
            if not doubtful and (clause.subject - own or _slot(clause, SEVERAL) is not None):
                stated.append((begin, end))
                break
    return joined(text, stated)


def things_of(text: str, context: str | None = None) -> tuple[tuple[object, int], ...]:
    """What a text gives values, each with its value; if there is nothing, its words stand for themselves."""
    return frames_of(statement_of(text, context, much=True), turn=True) or ((text_key(text), 0),)
