"""Cutting of a document's text into chunks."""

from __future__ import annotations

import re
import textwrap
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import Struct, structs

from recallite.text.chunking.atoms import Cutter
from recallite.text.chunking.front_matter import front_matter_span
from recallite.text.chunking.line_numbers import Lines
from recallite.text.chunking.markdown_sections import Block, Section, markdown_sections, paragraphs
from recallite.text.chunking.packing import ChunkSize, pack

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Places = Sequence[int] | NDArray[np.int64]
    TokenStarts = Places | Callable[[], Places]

# More would take the place of what the section says itself.
_MOST_SAID_CHARS = 300
LEAST_TOKENS = 50
"""The size of a section that is a passage of its own."""

# English has 4.5 characters a token: a span of more is not counted.
_MOST_TOKEN_CHARS = 8

TextKind = Literal["markdown", "separated", "plain"]
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
_HAS_NUMBER = re.compile(r"(?<![^\t,;])[\d.]+(?![^\t,;\r\n])")
_MOST_COLUMNS_CHARS, _MOST_ROWS_CHARS = 1000, 600


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
    lines = Lines(text)
    first = lines.number(begin) - 1 if begin < len(text) else len(lines)
    measure = _Measure(text, lines, token_starts, size)
    return _chunks(measure, _joined(measure, markdown_sections(text, lines, first)))


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
    lines = Lines(text)
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


def _rows_in(text: str, kind: TextKind) -> list[_Rows]:
    if kind == "separated":
        begin = text.find("\n") + 1
        headed = begin > 0 and _HAS_NUMBER.search(text[:begin]) is None
        all_rows = [_Rows(text[:begin], begin, len(text), table=True)] if headed else []
    elif kind == "markdown":
        all_rows = [_Rows(match[1], match.end(1), match.end(), table=True) for match in _TABLE.finditer(text)]
        all_rows += [_Rows(match[1], match.end(1), match.end(), table=False) for match in _LIST.finditer(text)]
        all_rows.sort(key=lambda rows: rows.begin)
    else:
        all_rows = []
    return [rows for rows in all_rows if len(rows.columns) <= _MOST_COLUMNS_CHARS]


def with_columns(chunks: Iterable[Chunk], text: str, kind: TextKind) -> Iterator[Chunk]:
    """Chunks that say the columns of the table, or the introduction of the list, in which they begin.

    A long table is cut again between rows: of a thousand tokens of cells none stands out.
    """
    all_rows = _rows_in(text, kind)
    begins = [rows.begin for rows in all_rows]
    for chunk in _rows_apart(chunks, text, [rows for rows in all_rows if rows.table]):
        around = all_rows[place - 1] if (place := bisect_right(begins, chunk.start)) else None
        inside = around is not None and chunk.start < around.end
        yield structs.replace(chunk, columns=around.columns) if around is not None and inside else chunk


def _rows_apart(chunks: Iterable[Chunk], text: str, tables: Sequence[_Rows]) -> Iterator[Chunk]:
    """Chunks, those of a long table cut again between its rows."""
    done = 0
    begins = [table.begin for table in tables]
    for chunk in chunks:
        places = [chunk.start]
        for table in tables[max(bisect_right(begins, chunk.start) - 1, 0) :]:
            if table.begin >= chunk.end:
                break
            begin, end = max(table.begin, chunk.start, done), min(table.end, chunk.end)
            if end - begin <= _MOST_ROWS_CHARS:
                continue
            if table.begin < chunk.start:
                # Without the rows that the chunk before has at its end.
                begin = end - len(text[begin:end].lstrip("\r\n"))
                places = [begin]
            place = begin
            while (place := text.find("\n", place + _MOST_ROWS_CHARS, end) + 1) and place < end:
                places.append(place)
        for start, stop in pairwise([*places, chunk.end]):
            rows = text[start:stop].rstrip()
            first = chunk.lines[0] + text.count("\n", chunk.start, start)
            lines = (first, first + rows.count("\n"))
            yield (
                chunk
                if len(places) == 1 and start == chunk.start
                else structs.replace(chunk, text=rows, start=start, end=start + len(rows), lines=lines)
            )
        done = chunk.end


def chunk_plain(text: str, token_starts: TokenStarts, size: ChunkSize) -> list[Chunk]:
    """Chunks of a plain text: whole paragraphs where they fit, which blank lines separate. Else as `chunk_markdown`."""
    lines = Lines(text)
    measure = _Measure(text, lines, token_starts, size)
    return _chunks(measure, [_Part((), paragraphs(lines, 0, len(lines)), 0, len(text), small=False)])


class _Measure:
    """A text, and the tokens in its spans, which are counted once they are needed.

    ASCII has no more tokens than characters: most notes need no tokenizer, which is a tenth of their indexing time.
    """

    def __init__(self, text: str, lines: Lines, token_starts: TokenStarts, size: ChunkSize) -> None:
        self.text, self.lines, self.size = text, lines, size
        self._token_starts = token_starts
        self._surely_fits = size.max_tokens if text.isascii() else 0

    @cached_property
    def cutter(self) -> Cutter:
        return Cutter(self.text, self.lines, _as_array(self._token_starts), self.size.max_tokens)

    def fits(self, begin: int, end: int) -> bool:
        return end - begin <= self._surely_fits or self.cutter.count(begin, end) <= self.size.max_tokens

    def small(self, begin: int, end: int) -> bool:
        least = self.size.least_tokens
        return end - begin < least * _MOST_TOKEN_CHARS and self.cutter.count(begin, end) < least


class _Part(NamedTuple):
    """A section, or several joined, from `begin` to `end`; `small` if it is too little for a chunk."""

    headings: tuple[str, ...]
    blocks: list[Block]
    begin: int
    end: int
    small: bool


def _joined(measure: _Measure, sections: Iterable[Section]) -> list[_Part]:
    """The sections of a document, small ones joined.

    They are joined with those beside or below them that are small too, else with the larger neighbour that is nearer in
    the tree of headings: "See also" and its like were a third of the passages of a handbook. If all are small,
    they stay alone: each is about one thing, and is found better so.
    """
    filled = [section for section in sections if section.blocks]
    begins = [measure.lines.start(section.blocks[0].first) for section in filled]
    spans = pairwise([*begins, len(measure.text)])
    alone = [_Part(*section, *span, measure.small(*span)) for section, span in zip(filled, spans, strict=True)]
    if all(part.small for part in alone):
        return alone
    runs: list[_Part] = []
    for part in alone:
        before = runs[-1] if runs else None
        if before is not None and before.small and part.small and _common(before, part) >= len(before.headings) - 1:
            part = _both(measure, runs.pop(), part)
        runs.append(part)
    parts: list[_Part] = []
    to_next: _Part | None = None
    for place, part in enumerate(runs):
        if to_next is not None:
            part, to_next = _both(measure, to_next, part), None
        if part.small:
            # Of two that are as near, the one before.
            beside = sorted([*parts[-1:], *runs[place + 1 : place + 2]], key=lambda other: -_common(part, other))
            nearest = next((other for other in beside if _may_join(measure, part, other)), None)
            if nearest is not None and nearest.begin > part.begin:
                to_next = part
                continue
            if nearest is not None:
                part = _both(measure, parts.pop(), part)
        parts.append(part)
    return parts


def _both(measure: _Measure, one: _Part, two: _Part) -> _Part:
    """Two neighbours as one part, below the headings of the larger one, or those of both."""
    headings = one.headings[: _common(one, two)] if one.small and two.small else (two if one.small else one).headings
    return _Part(headings, one.blocks + two.blocks, one.begin, two.end, measure.small(one.begin, two.end))


def _may_join(measure: _Measure, small: _Part, other: _Part) -> bool:
    """Whether a small part and its neighbour fit into a chunk, and no heading above either is lost.

    A neighbour that is cut anyway takes it at its end.
    """
    at_top = len(small.headings) <= 1 and (not other.small or len(other.headings) <= 1)
    begin, end = min(small.begin, other.begin), max(small.end, other.end)
    cut_anyway = other.begin < small.begin and not measure.fits(other.begin, other.end)
    return (at_top or _common(small, other) > 0) and (cut_anyway or measure.fits(begin, end))


def _common(one: _Part, other: _Part) -> int:
    """The number of headings that both are below."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one.headings, other.headings, strict=False)))


def _chunks(measure: _Measure, parts: Iterable[_Part]) -> list[Chunk]:
    text, lines = measure.text, measure.lines
    chunks: list[Chunk] = []
    for headings, blocks, begin, end, _ in parts:
        spans = [(begin, end)]
        if not measure.fits(begin, end):
            atoms = measure.cutter.atoms(blocks, end)
            places = [*(atom.offset for atom in atoms), end]
            spans = [(places[i], places[j]) for i, j in pack(atoms, measure.cutter.counts(places), measure.size)]
        for start, stop in spans:
            start, stop = _trimmed(text, lines, start, stop)
            # A piece may be only white space; then its overlap has nothing new.
            if start < stop and not (chunks and stop <= chunks[-1].end):
                if chunks and start <= chunks[-1].start:  # the overlap begins with nothing else: it holds all of it
                    chunks.pop()
                numbers = lines.number(start), lines.number(stop - 1)
                chunks.append(Chunk(text[start:stop], start, stop, numbers, headings))
    return chunks


def _as_array(token_starts: TokenStarts) -> NDArray[np.int64]:
    import numpy as np

    return np.asarray(token_starts() if callable(token_starts) else token_starts, np.int64)


def _trimmed(text: str, lines: Lines, start: int, stop: int) -> tuple[int, int]:
    """A span without white space around it, except the indentation of its first line."""
    content = text[start:stop].rstrip()
    first = start + len(content) - len(content.lstrip())
    indented = max(start, lines.start(lines.number(first) - 1))
    return indented + text.startswith("\ufeff", 0, 1) if indented == 0 else indented, start + len(content)
