"""Chunking of documents, by sections and blocks of Markdown or by paragraphs of plain text.

The sections of a document, small ones joined, are its parts. A part that fits is a chunk. Another one is cut into
atoms, its smallest pieces, with the cost of a cut before each, and the atoms are packed into chunks of about the same
size. Afterwards chunks may also say what stands in the front matter, or above the table or the list they begin in.
"""

from __future__ import annotations

import re
import textwrap
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct, structs

from recallite.errors import InvalidInput
from recallite.text.patterns import word_set
from recallite_documents.front_matter import front_matter_span
from recallite_documents.markdown_sections import Block, LineStarts, MarkdownSection, markdown_sections, paragraphs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Places = Sequence[int] | NDArray[np.int64]
    TokenStarts = Places | Callable[[], Places]

TextKind = Literal["markdown", "separated", "plain"]
LEAST_TOKENS = 50
"""The size of a section that is a passage of its own."""


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


class Chunk(Struct, frozen=True):
    """A passage of a document: `text == document[start:end]`, in characters.

    `lines` are the first and the last line, 1-based and inclusive, as an editor counts them; `headings` is the path of
    headings, outermost first, as plain text. `columns` are the row of headings of the table, or what introduces the
    list, in which it begins. `properties` is what the front matter says, if this chunk says it too; a chunk of the
    front matter itself has that as its `text`.
    """

    text: str
    start: int
    end: int
    lines: tuple[int, int]
    headings: tuple[str, ...] = ()
    columns: str = ""
    properties: str = ""


def chunk_markdown(text: str, token_starts: TokenStarts, size: ChunkSize, *, begin: int = 0) -> list[Chunk]:
    """Chunks of a Markdown document from `begin` on, the end of its front matter if that is metadata.

    A chunk holds parts of two sections only if one of them has fewer than `size.least_tokens`; a heading with nothing
    under it goes with the section that follows. Within a section blocks stay whole where they fit. `token_starts` are
    the characters at which the tokens of `text` begin, ascending, or a function that gives them, asked where a section
    may be too large or too small. The chunks' spans cover every character that is no whitespace, but for a byte order
    mark; both ends of the spans ascend, and no span has more than `size.max_tokens` tokens.
    """
    document = _Document(text, token_starts, size)
    lines = document.lines
    first = lines.number(begin) - 1 if begin < len(text) else len(lines)
    return _chunks(document, _joined(document, markdown_sections(text, lines, first)))


def chunk_plain(text: str, token_starts: TokenStarts, size: ChunkSize, *, rows: bool = False) -> list[Chunk]:
    """Chunks of a plain text: whole paragraphs, or rows of separated values, if they fit. Else as `chunk_markdown`."""
    document = _Document(text, token_starts, size)
    lines = document.lines
    blocks = paragraphs(lines, 0, len(lines))
    if rows:
        inside = {n for begin, end in _long_fields(text) for n in range(lines.number(begin), lines.number(end - 1))}
        blocks = [Block("code", n) for n in range(len(lines)) if n not in inside and not lines.blank(n)]
    return _chunks(document, [_Part((), blocks, 0, len(text), small=False)])


# Documents, their parts and atoms.

# English has 4.5 characters a token: a span of more is not counted.
_MOST_TOKEN_CHARS = 8
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
_ABBREVIATIONS = word_set(
    "al approx art bzw ca cf ch dr e.g ed eds eq fig figs i.e jr mr mrs ms nr pp prof resp sec sr st u.a usw vgl viz "
    "vs z.b"
)
_line_end = re.compile(r"[\r\n]").search


class Atom(NamedTuple):
    """The start of a piece, the cost of a cut before it, and the block of lines it belongs to, if any.

    The overlap may begin with it if it is `whole`, or if the cut is in the same block of lines.
    """

    offset: int
    cost: int
    block: int = -1
    whole: bool = True


class _Document:
    """A text, the tokens in its spans, which are counted once they are needed, and the atoms of its parts."""

    def __init__(self, text: str, token_starts: TokenStarts, size: ChunkSize) -> None:
        self.text, self.lines, self.size = text, LineStarts(text), size
        self._token_starts = token_starts
        # ASCII has no more tokens than characters: most notes need no tokenizer, a tenth of their indexing time.
        self._surely_fits = size.max_tokens if text.isascii() else 0

    @cached_property
    def tokens(self) -> NDArray[np.int64]:
        """The characters at which tokens begin."""
        import numpy as np

        return np.asarray(self._token_starts() if callable(self._token_starts) else self._token_starts, np.int64)

    def count(self, begin: int, end: int) -> int:
        """The tokens that begin in a span."""
        return int(self.tokens.searchsorted(end) - self.tokens.searchsorted(begin))

    def fits(self, begin: int, end: int) -> bool:
        """Whether a span fits into a chunk."""
        return end - begin <= self._surely_fits or self.count(begin, end) <= self.size.max_tokens

    def is_small(self, begin: int, end: int) -> bool:
        """Whether a span is too little for a chunk."""
        least = self.size.least_tokens
        return end - begin < least * _MOST_TOKEN_CHARS and self.count(begin, end) < least

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
        begins = [self.lines.start(block.first) for block in siblings]
        introduced = False
        for block, (begin, after) in zip(siblings, pairwise([*begins, end]), strict=True):
            if begin < after:
                yield Atom(begin, cost + introduced if cost < NEVER else NEVER)
                # A block that fits is not cut, but the overlap may begin in it.
                large = cost < NEVER and self.count(begin, after) > self.size.max_tokens
                if block.kind == "group":
                    inner = 2 * (depth + 1) if large else NEVER
                    yield from self._blocks(block.children(), after, depth + 1, inner)
                elif block.kind == "prose":
                    yield from self._prose(begin, after, large)
                elif large:
                    yield from self._rows(block, begin, after, 2 * (depth + 1))
                # "As follows:" stays with the next block.
                introduced = block.kind == "prose" and self.text[begin:after].rstrip().endswith((":", "："))

    def _prose(self, begin: int, end: int, large: bool) -> Iterator[Atom]:
        starts = [begin]
        for match in _ends(self.text, begin, end):
            stop, start = match.span()
            if start >= end:
                continue
            if self.text[stop] == ".":  # of an abbreviation, an initial or a list number, or within a sentence
                before = _last_word(self.text, max(begin, stop - 12), stop)
                word = before[0] if before else ""
                short = (len(word) == 1 and word.isalpha()) or (word.isdecimal() and len(word) < 4)
                if self.text[start].islower() or short or word.lower() in _ABBREVIATIONS:
                    continue
            starts.append(start)
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
        last = self.lines.number(end - 1)
        row_lines = [block.first, *(line for line in range(block.first + 1, last) if not self.lines.blank(line))]
        starts = [self.lines.start(line) for line in row_lines]
        for line, (start, after, too_large) in zip(row_lines, self._pieces(starts, end), strict=True):
            if start > begin:
                alike = block.kind == "rows" or self.lines.blank(line - 1)
                yield Atom(start, cost if alike else cost + 1, block.first, whole=False)
            if too_large:
                yield from self._words(start, after)

    def _words(self, begin: int, end: int) -> Iterator[Atom]:
        """Atoms of text without better boundaries: lines, words, and tokens of a word.

        There are only as many as even chunks need.
        """
        words = [match.start() for match in _words(self.text, begin, end) if match.start() > begin]
        opens = [_line_end(self.text, before, start) is not None for before, start in pairwise([begin, *words])]
        share = self.tokens.searchsorted(words) // max(1, self.size.max_tokens // _WORD_PIECES)
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
                inner = self.tokens[self.tokens.searchsorted(start, "right") : self.tokens.searchsorted(after)]
                step = max(1, self.size.max_tokens // _TOKEN_PIECES)
                yield from (Atom(position, TOKEN, whole=False) for position in inner[step - 1 :: step].tolist())

    def _pieces(self, starts: list[int], end: int) -> Iterator[tuple[int, int, bool]]:
        """Pieces with these starts: begin, end, and whether it is too large for a chunk."""
        ends = [*starts[1:], end]
        counts = self.tokens.searchsorted(ends) - self.tokens.searchsorted(starts)
        return zip(starts, ends, (counts > self.size.max_tokens).tolist(), strict=True)


class _Part(NamedTuple):
    """A section, or several joined, from `begin` to `end`; `small` if it is too little for a chunk.

    Footnotes to another section, `notes`, are joined with nothing.
    """

    headings: tuple[str, ...]
    blocks: list[Block]
    begin: int
    end: int
    small: bool
    notes: bool = False


def _joined(document: _Document, sections: Iterable[MarkdownSection]) -> list[_Part]:
    """The sections of a document, small ones joined.

    They are joined with small ones beside or below them, else with the larger neighbour that is nearer in
    the tree of headings: "See also" and its like were a third of the passages of a handbook. If all are small,
    they stay alone: each is about one thing, and is found better so.
    """
    filled = [section for section in sections if section.blocks]
    begins = [document.lines.start(section.blocks[0].first) for section in filled]
    spans = pairwise([*begins, len(document.text)])
    alone = [
        _Part(headings, blocks, *span, not notes and document.is_small(*span), notes)
        for (headings, blocks, notes), span in zip(filled, spans, strict=True)
    ]
    if all(part.small or part.notes for part in alone):
        return alone
    runs: list[_Part] = []
    for part in alone:
        before = runs[-1] if runs else None
        if before is not None and before.small and part.small and _common(before, part) >= len(before.headings) - 1:
            part = _both(document, runs.pop(), part)
        runs.append(part)
    parts: list[_Part] = []
    to_next: _Part | None = None
    for position, part in enumerate(runs):
        if to_next is not None:
            part, to_next = _both(document, to_next, part), None
        if part.small:
            # Of two that are as near, the one before.
            beside = sorted([*parts[-1:], *runs[position + 1 : position + 2]], key=lambda other: -_common(part, other))
            nearest = next((other for other in beside if not other.notes and _may_join(document, part, other)), None)
            if nearest is not None and nearest.begin > part.begin:
                to_next = part
                continue
            if nearest is not None:
                part = _both(document, parts.pop(), part)
        parts.append(part)
    return parts


def _both(document: _Document, one: _Part, two: _Part) -> _Part:
    """Two neighbours as one part, below the headings of the larger one, or the headings that both have."""
    headings = one.headings[: _common(one, two)] if one.small and two.small else (two if one.small else one).headings
    return _Part(headings, one.blocks + two.blocks, one.begin, two.end, document.is_small(one.begin, two.end))


def _may_join(document: _Document, small: _Part, other: _Part) -> bool:
    """Whether a small part and its neighbour fit into a chunk, and no heading above either is lost.

    A neighbour that is cut anyway takes it at its end.
    """
    at_top = len(small.headings) <= 1 and (not other.small or len(other.headings) <= 1)
    begin, end = min(small.begin, other.begin), max(small.end, other.end)
    cut_anyway = other.begin < small.begin and not document.fits(other.begin, other.end)
    return (at_top or _common(small, other) > 0) and (cut_anyway or document.fits(begin, end))


def _common(one: _Part, other: _Part) -> int:
    """The number of headings that both are below."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one.headings, other.headings, strict=False)))


def _chunks(document: _Document, parts: Iterable[_Part]) -> list[Chunk]:
    text, lines = document.text, document.lines
    chunks: list[Chunk] = []
    for headings, blocks, begin, end, *_ in parts:
        spans = [(begin, end)]
        if not document.fits(begin, end):
            atoms = document.atoms(blocks, end)
            offsets = [*(atom.offset for atom in atoms), end]
            ranks: list[int] = document.tokens.searchsorted(offsets).tolist()
            spans = [(offsets[i], offsets[j]) for i, j in _pack(atoms, ranks, document.size)]
        for start, stop in spans:
            content = text[start:stop].rstrip()
            first = start + len(content) - len(content.lstrip())
            stop = start + len(content)
            # Without white space around it, except the indentation of its first line.
            start = max(start, lines.start(lines.number(first) - 1))
            start += start == 0 and text.startswith("\ufeff")
            # A piece may be only white space; then its overlap has nothing new.
            if start < stop and not (chunks and stop <= chunks[-1].end):
                if chunks and start <= chunks[-1].start:  # the overlap begins with nothing else: it holds all of it
                    chunks.pop()
                numbers = lines.number(start), lines.number(stop - 1)
                chunks.append(Chunk(text[start:stop], start, stop, numbers, headings))
    return chunks


# Packing of atoms into chunks.


def _pack(atoms: Sequence[Atom], ranks: Sequence[int], size: ChunkSize) -> Iterator[tuple[int, int]]:
    """Consecutive, maybe overlapping spans of atoms, as (first, after last), that cover all of them.

    `ranks[i]` is the number of tokens that begin before atom i, with one more entry for the end. Between two places
    where a cut is allowed there are at most `size.max_tokens`.
    """
    first = begin = 0
    while True:
        after = _cut(atoms, ranks, begin, size)
        while first < begin and ranks[after] - ranks[first] > size.max_tokens:
            first += 1
        # The overlap begins at a whole piece, or within the block of lines that was cut.
        while first < begin and not (atoms[first].whole or 0 <= atoms[first].block == atoms[begin].block):
            first += 1
        yield first, after
        if after == len(atoms):
            return
        repeated = bisect_left(ranks, ranks[after] - size.overlap_tokens, first + 1, after)
        first, begin = repeated if size.overlap_tokens else after, after


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
    for position in range(begin + 1, len(atoms) + 1):
        tokens = ranks[position] - ranks[begin]
        cost = atoms[position].cost if position < len(atoms) else 0
        if tokens > room and (fallback >= 0 or tokens > size.max_tokens):
            break
        if cost == NEVER:
            continue
        fallback = position
        distance = abs(tokens - share)
        if tokens >= least and (cost, distance) < (best_cost, best_distance):
            best, best_cost, best_distance = position, cost, distance
    return best if best >= 0 else fallback


# What chunks say besides their own text.

# More would take the place of what the section says itself.
_MOST_SAID_CHARS = 300
# A row of headings, the line of dashes below it, and the rows of a Markdown table.
_TABLE = re.compile(
    r"^([ \t]*+[^\n|]*+\|[^\n]*+\n[ \t]*+\|?(?:[ \t]*+:?-++:?[ \t]*+\|?)++\r?\n)(?:[^\n|]*+\|[^\n]*+\n?)*+",
    re.MULTILINE,
)
# "As follows:" and the items of a Markdown list.
_LIST = re.compile(
    r"^([^\s*+>#|-][^\n]{0,199}[:：][ \t\r]*+\n)"
    r"(?:[ \t\r]*+\n)?(?:[ \t]*+(?:[-*+]|\d{1,9}[.)])[ \t][^\n]*+\n?|[ \t]++\S[^\n]*+\n?|[ \t\r]*+\n(?=[ \t*+\d-]))++",
    re.MULTILINE,
)
# A quoted field of separated values.
_FIELD = re.compile(r'(?:^|(?<=[,;\t|]))"(?:[^"]++|"")*+"(?=[,;\t|\r\n]|\Z)', re.MULTILINE)
_HAS_NUMBER = re.compile(r"(?<![^\t,;])[\d.]+(?![^\t,;\r\n])")
_MOST_COLUMNS_CHARS, _MOST_ROWS_CHARS = 1000, 600


def with_properties(chunks: Sequence[Chunk], text: str, properties: str, size: ChunkSize) -> list[Chunk]:
    """Chunks of a Markdown document that also say what its front matter says: if that is short, the first does, else,
    or if there is none, chunks of its own do.
    """
    span = front_matter_span(text) if properties else None
    if span is None:
        return [*chunks]
    if chunks and len(properties) <= _MOST_SAID_CHARS:
        return [structs.replace(chunks[0], properties=properties), *chunks[1:]]
    begin, end, _ = span
    lines = LineStarts(text)
    numbers = lines.number(begin), max(lines.number(begin), lines.number(end) - 1)
    # Names and numbers, of which properties are full, have 2 characters a token.
    parts = textwrap.wrap(properties, max(2 * size.max_tokens, 2), break_on_hyphens=False)
    return [*(Chunk(part, begin, end, numbers) for part in parts), *chunks]


class _Rows(NamedTuple):
    """The rows of a table, or the items of a list: what stands above them, and where they begin and end."""

    columns: str
    begin: int
    end: int
    table: bool


def with_columns(chunks: Iterable[Chunk], text: str, kind: TextKind) -> Iterator[Chunk]:
    """Chunks that say the columns of the table, or the introduction of the list, in which they begin.

    A long table is cut again between rows: of a thousand tokens of cells none stands out.
    """
    all_rows: list[_Rows] = []
    if kind == "separated":
        begin = text.find("\n") + 1
        if begin > 0 and _HAS_NUMBER.search(text[:begin]) is None:
            all_rows = [_Rows(text[:begin], begin, len(text), table=True)]
    elif kind == "markdown":
        all_rows = [_Rows(match[1], match.end(1), match.end(), table=True) for match in _TABLE.finditer(text)]
        all_rows += [_Rows(match[1], match.end(1), match.end(), table=False) for match in _LIST.finditer(text)]
    all_rows = sorted(
        [rows for rows in all_rows if len(rows.columns) <= _MOST_COLUMNS_CHARS], key=lambda one: one.begin
    )
    begins = [rows.begin for rows in all_rows]
    for chunk in _rows_apart(chunks, text, [rows for rows in all_rows if rows.table], kind):
        around = all_rows[position - 1] if (position := bisect_right(begins, chunk.start)) else None
        inside = around is not None and chunk.start < around.end
        yield structs.replace(chunk, columns=around.columns) if around is not None and inside else chunk


def _long_fields(text: str) -> list[tuple[int, int]]:
    """Where fields of separated values begin and end that have several lines."""
    return [match.span() for match in _FIELD.finditer(text) if "\n" in match[0]]


def _rows_apart(chunks: Iterable[Chunk], text: str, tables: Sequence[_Rows], kind: TextKind) -> Iterator[Chunk]:
    """Chunks; a long table is cut again between its rows."""
    fields = _long_fields(text) if kind == "separated" else []
    done = 0
    begins = [table.begin for table in tables]
    for chunk in chunks:
        starts = [chunk.start]
        for table in tables[max(bisect_right(begins, chunk.start) - 1, 0) :]:
            if table.begin >= chunk.end:
                break
            begin, end = max(table.begin, chunk.start, done), min(table.end, chunk.end)
            if end - begin <= _MOST_ROWS_CHARS:
                continue
            if table.begin < chunk.start:
                # Without the rows that the chunk before has at its end.
                begin = end - len(text[begin:end].lstrip("\r\n"))
                starts = [begin]
            position = begin
            while (position := text.find("\n", position + _MOST_ROWS_CHARS, end) + 1) and position < end:
                before = bisect_left(fields, (position,))
                if before and fields[before - 1][1] > position:  # within a field, after which the row ends
                    position = fields[before - 1][1] - _MOST_ROWS_CHARS
                else:
                    starts.append(position)
        for start, stop in pairwise([*starts, chunk.end]):
            rows = text[start:stop].rstrip()
            first = chunk.lines[0] + text.count("\n", chunk.start, start)
            lines = (first, first + rows.count("\n"))
            uncut = len(starts) == 1 and start == chunk.start
            end = start + len(rows)
            yield chunk if uncut else structs.replace(chunk, text=rows, start=start, end=end, lines=lines)
        done = chunk.end
