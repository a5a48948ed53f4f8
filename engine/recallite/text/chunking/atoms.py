"""Atoms: the smallest pieces of a section, with the cost of a cut before each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from recallite.text.chunking.line_numbers import Lines
from recallite.text.chunking.markdown_sections import Block

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["NEVER", "Atom", "Cutter"]

# The cost of a cut: 0 between blocks, twice the depth within a block that is too large.
SENTENCE, LINE, WORD, TOKEN, NEVER = 100, 101, 102, 103, 1000
_WORD_PIECES, _TOKEN_PIECES = 32, 8
# Possessive runs: a megabyte of dots takes as long as a megabyte of letters.
_ends = re.compile(
    r"(?<![.!?…])[.!?…]++[\"')\]”’»*_`]*+\s++"
    r"|[。！？｡．]++[」』）】”’〉》\"')\]]*+\s*+"
).finditer
_words = re.compile(r"(?<=\s)\S").finditer
_last_word = re.compile(r"(?<![\w.])[\w.]*+\Z").search
_ABBREVIATIONS = frozenset(
    (
        "al", "approx", "art", "bzw", "ca", "cf", "ch", "dr", "e.g", "ed", "eds", "eq", "fig", "figs", "i.e", "jr",
        "mr", "mrs", "ms", "nr", "pp", "prof", "resp", "sec", "sr", "st", "u.a", "usw", "vgl", "viz", "vs", "z.b",
    )
)  # fmt: skip
_line_end = re.compile(r"[\r\n]").search


class Atom(NamedTuple):
    """The start of a piece, the cost of a cut before it, and the block of lines it belongs to, if any.

    The overlap may begin with it if it is `whole`, or if the cut is in the same block of lines.
    """

    offset: int
    cost: int
    block: int = -1
    whole: bool = True


class Cutter:
    """Splits the blocks of a document into atoms."""

    def __init__(self, text: str, lines: Lines, tokens: NDArray[np.int64], max_tokens: int) -> None:
        self._text = text
        self._lines = lines
        self._tokens = tokens
        self._max = max_tokens

    def count(self, begin: int, end: int) -> int:
        """Tokens that begin in a span."""
        return int(self._tokens.searchsorted(end) - self._tokens.searchsorted(begin))

    def counts(self, places: Sequence[int]) -> list[int]:
        """Tokens that begin before each place."""
        before: list[int] = self._tokens.searchsorted(places).tolist()
        return before

    def atoms(self, blocks: Sequence[Block], end: int) -> list[Atom]:
        """The atoms of a section that ends at `end`, in order, one per position."""
        atoms: list[Atom] = []
        for atom in self._blocks(blocks, end, 0, 0):
            if not atoms or atoms[-1].offset < atom.offset:
                atoms.append(atom)
        return atoms

    def _blocks(self, blocks: Iterable[Block], end: int, depth: int, cost: int) -> Iterator[Atom]:
        """Atoms of consecutive blocks, nested `depth` deep."""
        siblings = list(blocks)
        begins = [self._lines.start(block.first) for block in siblings]
        introduced = False
        for block, (begin, after) in zip(siblings, pairwise([*begins, end]), strict=True):
            if begin < after:
                yield Atom(begin, cost + introduced if cost < NEVER else NEVER)
                yield from self._inner(block, begin, after, depth + 1, cost)
                # "As follows:" stays with the next block.
                introduced = block.kind == "prose" and self._text[begin:after].rstrip().endswith((":", "："))

    def _inner(self, block: Block, begin: int, end: int, depth: int, cost: int) -> Iterator[Atom]:
        """Atoms of one block; a block that fits is not cut, but the overlap may begin in it."""
        large = cost < NEVER and self.count(begin, end) > self._max
        if block.kind == "group":
            yield from self._blocks(block.children(), end, depth, 2 * depth if large else NEVER)
        elif block.kind == "prose":
            yield from self._prose(begin, end, large)
        elif large:
            yield from self._rows(block, begin, end, 2 * depth)

    def _prose(self, begin: int, end: int, large: bool) -> Iterator[Atom]:
        starts = [begin, *_sentence_starts(self._text, begin, end)]
        if not large:
            yield from (Atom(start, NEVER) for start in starts[1:])
            return
        for start, after, too_large in self._pieces(starts, end):
            if start > begin:
                yield Atom(start, SENTENCE)
            if too_large:
                yield from self._words(start, after)

    def _rows(self, block: Block, begin: int, end: int, cost: int) -> Iterator[Atom]:
        """Atoms of lines: equal in a table; in code a cut is better after a blank line."""
        last = self._lines.number(end - 1)
        row_lines = [block.first, *(line for line in range(block.first + 1, last) if not self._lines.blank(line))]
        starts = [self._lines.start(line) for line in row_lines]
        for line, (start, after, too_large) in zip(row_lines, self._pieces(starts, end), strict=True):
            if start > begin:
                alike = block.kind == "rows" or self._lines.blank(line - 1)
                yield Atom(start, cost if alike else cost + 1, block.first, whole=False)
            if too_large:
                yield from self._words(start, after)

    def _words(self, begin: int, end: int) -> Iterator[Atom]:
        """Atoms of text without better boundaries: lines, words, and tokens of a word.

        There are only as many as even chunks need.
        """
        words = list(_word_starts(self._text, begin, end))
        opens = [_line_end(self._text, before, start) is not None for before, start in pairwise([begin, *words])]
        share = self._tokens.searchsorted(words) // max(1, self._max // _WORD_PIECES)
        openings = {begin: False}
        taken = (-1, True)
        for start, opening, bucket in zip(words, opens, share.tolist(), strict=True):
            # The first of each share, and its first at the beginning of a line.
            if bucket > taken[0] or opening > taken[1]:
                openings[start], taken = opening, (bucket, opening)
        for start, after, too_large in self._pieces(list(openings), end):
            if start > begin:
                yield Atom(start, LINE if openings[start] else WORD, whole=openings[start])
            if too_large:
                inner = self._tokens[self._tokens.searchsorted(start, "right") : self._tokens.searchsorted(after)]
                step = max(1, self._max // _TOKEN_PIECES)
                yield from (Atom(place, TOKEN, whole=False) for place in inner[step - 1 :: step].tolist())

    def _pieces(self, starts: list[int], end: int) -> Iterator[tuple[int, int, bool]]:
        """Pieces with these starts: begin, end, and whether it is too large for a chunk."""
        ends = [*starts[1:], end]
        counts = self._tokens.searchsorted(ends) - self._tokens.searchsorted(starts)
        return zip(starts, ends, (counts > self._max).tolist(), strict=True)


def _sentence_starts(text: str, begin: int, end: int) -> Iterator[int]:
    """The starts of the sentences in `text[begin:end]`, except the first."""
    for match in _ends(text, begin, end):
        place = match.end()
        if place < end and not (text[match.start()] == "." and _goes_on(text, match.start(), place, begin)):
            yield place


def _goes_on(text: str, dot: int, place: int, begin: int) -> bool:
    """Whether a full stop ends an abbreviation, an initial or a list number, or a lower-case letter follows."""
    if text[place].islower():
        return True
    match = _last_word(text, max(begin, dot - 12), dot)
    word = match[0] if match else ""
    return (len(word) == 1 and word.isalpha()) or (word.isdecimal() and len(word) < 4) or word.lower() in _ABBREVIATIONS


def _word_starts(text: str, begin: int, end: int) -> Iterator[int]:
    """The starts of the words in `text[begin:end]`, except the first."""
    return (match.start() for match in _words(text, begin, end) if match.start() > begin)
