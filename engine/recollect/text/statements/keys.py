"""Hashes by which statements about the same thing are found: of their frames, and of pairs of rare words."""

from __future__ import annotations

from hashlib import blake2b
from itertools import combinations

from recollect.text.statements.relations import SEVERAL
from recollect.text.statements.statement import Statement
from recollect.text.vocabulary import share_of

MAX_KEYS = 8
MAX_FRAMES = 3
_RARE = 4


def keys_of(statement: Statement) -> tuple[int, ...]:
    """Signed 64-bit hashes: statements that share one may be about the same thing. () for long texts."""
    found = [" ".join(("frame", *before)) for before, _ in statement.slots]
    rare = sorted(sorted(set(statement.stems), key=lambda stem: (share_of(stem), stem))[:_RARE])
    found += [f"pair {one} {other}" for one, other in combinations(rare, 2)]
    hashes = (int.from_bytes(blake2b(each.encode(), digest_size=8).digest(), "little", signed=True) for each in found)
    return tuple(dict.fromkeys(hashes))[:MAX_KEYS]


def frames_of(statement: Statement, several: frozenset[str] = SEVERAL) -> tuple[tuple[int, int], ...]:
    """Frame and value as unsigned 32-bit hashes, at most `MAX_FRAMES`: the same frame with another value states the
    same thing with another value. `several`: the stems of relations that may hold several values, which have none.
    """
    return tuple(
        (_short(" ".join(before)), _short(" ".join(value)))
        for before, value in statement.slots[:MAX_FRAMES]
        if several.isdisjoint(before)
    )


def _short(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "little")
