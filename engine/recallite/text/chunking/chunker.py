"""Cutting of a document's text into chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from recallite.text.chunking.atoms import Cutter
from recallite.text.chunking.line_numbers import Lines
from recallite.text.chunking.markdown_sections import Section, markdown_sections, paragraphs
from recallite.text.chunking.packing import ChunkSize, pack

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Places = Sequence[int] | NDArray[np.int64]
    TokenStarts = Places | Callable[[], Places]


class Chunk(Struct, frozen=True):
    """A passage of a document: `text == document[start:end]`, in characters.

    `lines` are the first and the last line, 1-based and inclusive, as an editor counts them; `headings` is the path of
    headings, outermost first, as plain text.
    """

    text: str
    start: int
    end: int
    lines: tuple[int, int]
    headings: tuple[str, ...] = ()


def chunk_markdown(text: str, token_starts: TokenStarts, size: ChunkSize, *, begin: int = 0) -> list[Chunk]:
    """Chunks of a Markdown document from `begin` on, the end of its front matter if that is metadata.

    A chunk never holds parts of two sections; a heading with nothing under it goes with the section that follows.
    Within a section blocks stay whole where they fit. `token_starts` are the characters at which the tokens of
    `text` begin, ascending, or a function that gives them, asked where a section may be too large. The chunks' spans
    cover every character that is no whitespace, but for a byte order mark; both ends of the spans ascend, and no span
    has more than `size.max_tokens` tokens.
    """
    lines = Lines(text)
    first = lines.number(begin) - 1 if begin < len(text) else len(lines)
    return _chunks(text, lines, markdown_sections(text, lines, first), token_starts, size)


def chunk_plain(text: str, token_starts: TokenStarts, size: ChunkSize) -> list[Chunk]:
    """Chunks of a plain text: whole paragraphs where they fit, which blank lines separate. Else as `chunk_markdown`."""
    lines = Lines(text)
    return _chunks(text, lines, [Section((), paragraphs(lines, 0, len(lines)))], token_starts, size)


def _chunks(
    text: str, lines: Lines, sections: Iterable[Section], token_starts: TokenStarts, size: ChunkSize
) -> list[Chunk]:
    # ASCII has no more tokens than characters: short notes need no tokenizer, which is a tenth of their indexing time.
    surely_fits = size.max_tokens if text.isascii() else 0
    cutter: Cutter | None = None
    chunks: list[Chunk] = []
    for section, after in pairwise(chain(sections, [None])):
        if section is None or not section.blocks:
            continue
        begin = lines.start(section.blocks[0].first)
        end = lines.start(after.blocks[0].first) if after is not None else len(text)
        spans = [(begin, end)]
        if end - begin > surely_fits:
            cutter = cutter or Cutter(text, lines, _as_array(token_starts), size.max_tokens)
            if cutter.count(begin, end) > size.max_tokens:
                atoms = cutter.atoms(section.blocks, end)
                places = [*(atom.offset for atom in atoms), end]
                spans = [(places[i], places[j]) for i, j in pack(atoms, cutter.counts(places), size)]
        for start, stop in spans:
            start, stop = _trimmed(text, lines, start, stop)
            # A piece may be only white space; then its overlap has nothing new.
            if start < stop and not (chunks and stop <= chunks[-1].end):
                if chunks and start <= chunks[-1].start:  # the overlap begins with nothing else: it holds all of it
                    chunks.pop()
                numbers = lines.number(start), lines.number(stop - 1)
                chunks.append(Chunk(text[start:stop], start, stop, numbers, section.headings))
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
