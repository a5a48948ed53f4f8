"""Packing of atoms into chunks of about the same size."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from msgspec import Struct

from recallite.errors import InvalidInput
from recallite.text.chunking.atoms import NEVER, Atom


class ChunkSize(Struct, frozen=True):
    """Sizes in tokens: at most `max_tokens`; chunks of a section that must be cut have at least `target_tokens` if
    possible (None: half of `max_tokens`); up to `overlap_tokens` of the previous chunk are repeated; sections of fewer
    than `least_tokens` are joined with their neighbours.

    Raises InvalidInput for contradictory sizes.
    """

    max_tokens: int = 1000
    overlap_tokens: int = 100
    target_tokens: int | None = None
    least_tokens: int = 0

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise InvalidInput(f"chunks of {self.max_tokens} tokens: give max_tokens of at least 1")
        if not 0 <= self.overlap_tokens < self.max_tokens:
            raise InvalidInput(
                f"an overlap of {self.overlap_tokens} tokens in chunks of {self.max_tokens}: "
                "give overlap_tokens from 0 to less than max_tokens"
            )
        if self.target_tokens is not None and not 0 <= self.target_tokens <= self.max_tokens:
            raise InvalidInput(
                f"a target of {self.target_tokens} tokens in chunks of {self.max_tokens}: "
                "give target_tokens from 0 to max_tokens, or None"
            )


def pack(atoms: Sequence[Atom], ranks: Sequence[int], size: ChunkSize) -> Iterator[tuple[int, int]]:
    """Consecutive, maybe overlapping spans of atoms, as (first, after last), that cover all of them.

    `ranks[i]` is the number of tokens that begin before atom i, with one more entry for the end. Between two places
    where a cut is allowed there are at most `size.max_tokens`.
    """
    first = begin = 0
    while True:
        after = _cut(atoms, ranks, begin, size)
        while first < begin and ranks[after] - ranks[first] > size.max_tokens:
            first += 1
        while first < begin and not _opens(atoms, first, begin):
            first += 1
        yield first, after
        if after == len(atoms):
            return
        repeated = bisect_left(ranks, ranks[after] - size.overlap_tokens, first + 1, after)
        first, begin = repeated if size.overlap_tokens else after, after


def _opens(atoms: Sequence[Atom], place: int, begin: int) -> bool:
    """Whether the overlap may begin here: at a whole piece, or within the block of lines that was cut."""
    return atoms[place].whole or (atoms[place].block >= 0 and atoms[place].block == atoms[begin].block)


def _cut(atoms: Sequence[Atom], ranks: Sequence[int], begin: int, size: ChunkSize) -> int:
    """The end of the chunk that begins with atom `begin`.

    The remaining tokens are divided evenly. Of the places that give a chunk of reasonable size the cheapest is taken,
    of equals the one nearest to the even share; without any, the last place that fits.
    """
    remaining = ranks[-1] - ranks[begin]
    room = size.max_tokens - (size.overlap_tokens if begin else 0)
    if remaining <= room:
        return len(atoms)
    share = remaining / -(-remaining // room)
    target = size.max_tokens // 2 if size.target_tokens is None else size.target_tokens
    least = min(target, share * 0.75)
    best, fallback = -1, -1
    best_cost, best_distance = NEVER, 0.0
    for place in range(begin + 1, len(atoms) + 1):
        tokens = ranks[place] - ranks[begin]
        cost = atoms[place].cost if place < len(atoms) else 0
        if tokens > room and (fallback >= 0 or tokens > size.max_tokens):
            break
        if cost == NEVER:
            continue
        fallback = place
        distance = abs(tokens - share)
        if tokens >= least and (cost, distance) < (best_cost, best_distance):
            best, best_cost, best_distance = place, cost, distance
    return best if best >= 0 else fallback
