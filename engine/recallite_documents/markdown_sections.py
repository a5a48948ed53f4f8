"""Lines as an editor counts them, and by them the sections of a Markdown document and their blocks.

Lines end with LF, CRLF or a single CR.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, pairwise
from operator import itemgetter
from typing import Literal, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

from recallite.recall.snippets import cut_snippet, highlight
from recallite_documents.front_matter import front_matter_span

_SEGMENT_CHARS = 262_144
# The characters of a chunk that are looked at for the section that matches.
_MATCH_CHARS = 200
_fence = re.compile(r" {0,3}(`{3,}(?=[^`\r\n]*(?:[\r\n]|\Z))|~{3,})([^\r\n]*)").match
_margin = re.compile(r"[^\W\d_]|#{1,6} ").match
_line_ends = re.compile(r"\r\n?|\n").finditer
# No name of a footnote has a bracket: so a megabyte of "[^" takes as long as a megabyte of letters.
_note = re.compile(r" {0,3}\[\^([^\[\]\s]+)\]:").match
_indented = re.compile(r"(?: {0,3}\t| {4})").match
_references = re.compile(r"\[\^([^\[\]\s]+)\](?!:)").finditer


class LineStarts:
    """The starts of the lines of a text. Lines count from 0 here, in `number` from 1."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.starts = [0, *(match.end() for match in _line_ends(text))]

    def __len__(self) -> int:
        return len(self.starts)

    def number(self, offset: int) -> int:
        """The line of the character at `offset`, from 1."""
        return bisect_right(self.starts, offset)

    def start(self, line: int) -> int:
        """The start of a line; the end of the text after the last one."""
        return self.starts[line] if line < len(self.starts) else len(self._text)

    def blank(self, line: int) -> bool:
        """Whether a line is blank."""
        return not self._text[self.start(line) : self.start(line + 1)].strip()


def segments(text: str, lines: LineStarts, first: int) -> Iterator[tuple[int, int]]:
    """Runs of lines from `first` on, of about 262,144 characters each, that no Markdown block crosses.

    A word or a heading at the left margin after a blank line ends every list and quote, but not a code fence.
    """
    begin, fence, blank = first, "", False
    large = len(text) - lines.start(first) > _SEGMENT_CHARS
    for line in range(first, len(lines) if large else first):
        start = lines.start(line)
        if mark := _fence(text, start):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif blank and not fence and start - lines.start(begin) > _SEGMENT_CHARS and _margin(text, start):
            yield begin, line
            begin = line
        blank = lines.blank(line)
    yield begin, len(lines)


def page_starts(text: str) -> list[int]:
    """The starts of the pages of a text with form feeds."""
    return [0, *(match.end() for match in re.finditer("\f", text))]


Kind = Literal["prose", "code", "rows", "group"]
_KINDS: dict[str, Kind] = {
    "fence": "code", "code_block": "code", "html_block": "code", "table_open": "rows", "bullet_list_open": "group",
    "ordered_list_open": "group", "list_item_open": "group", "blockquote_open": "group",
}  # fmt: skip
# A token takes 0.6 KB. A segment of 262,144 characters of real text has 8,000 tokens, one of markup only 300,000.
_MAX_TOKENS = 200_000
_MAX_HEADING_CHARS = 200
# "Fees {#fees .open}", as Pandoc and Kramdown write the name of a heading.
_attributes = re.compile(r"\{:?\s*+[#.][^{}]*+\}\Z").sub
# As the title of a README: a heading in HTML, behind what places it on the page.
_html_heading = re.compile(
    r"\s*+(?:<(?!h[1-6]\b)[^<>]*+>\s*+)*+<h([1-6])\b[^<>]*+>(.*?)</h\1>", re.IGNORECASE | re.DOTALL
).match
_may_hold_markup = re.compile(r"[\\`*_\[\]!<&~\n]").search


class Block(NamedTuple):
    """A block of a document, from line `first` to the next block.

    Prose has sentences, code has lines grouped by blank ones, rows are lines, and a group has inner blocks.
    """

    kind: Kind
    first: int
    inner: Sequence[Token] = ()
    base: int = 0

    def children(self) -> list[Block]:
        """The outermost blocks in a group; lines that the parser does not report are kept as code."""
        blocks = [block for block, _ in _blocks(self.inner, self.base)]
        return blocks if blocks and blocks[0].first == self.first else [Block("code", self.first), *blocks]


class MarkdownSection(NamedTuple):
    """A section: the path of its headings, and blocks that cover all its lines.

    Footnotes that stand elsewhere than the section that refers to them, at the end of the document for one, are
    `notes`, below its headings.
    """

    headings: tuple[str, ...]
    blocks: list[Block]
    notes: bool = False


def paragraphs(lines: LineStarts, first: int, last: int, kind: Kind = "prose") -> list[Block]:
    """The paragraphs between two lines of a text, separated by blank lines."""
    blocks: list[Block] = []
    blank = True
    for line in range(first, last):
        before, blank = blank, lines.blank(line)
        if before and not blank:
            blocks.append(Block(kind, line))
    return blocks


def markdown_sections(text: str, lines: LineStarts, first: int) -> Iterator[MarkdownSection]:
    """The sections of a document's body, which begins at line `first`.

    Headings without text belong to the next section; headings in lists and quotes begin none.
    """
    path: list[tuple[int, str]] = []
    section = MarkdownSection((), [])
    bare = True
    referring: dict[str, int] = {}  # the line that first refers to a footnote
    for match in _references(text) if "[^" in text else ():
        referring.setdefault(match[1], lines.number(match.start()) - 1)
    begins = [(first, section.headings)]  # of the sections so far, and their headings
    if first == 0 and (span := front_matter_span(text)) is not None:
        # Invalid front matter is text, but its last line must not make the line before it a heading.
        section.blocks.append(Block("code", 0))
        first, bare = (lines.number(span[2]) - 1 if span[2] < len(text) else len(lines)), False
    top_blocks = _top_blocks(text, lines, first)
    for block, heading in _notes_apart(text, lines, top_blocks) if referring else top_blocks:
        if heading is not None:
            level, title = heading
            path = [outer for outer in path if outer[0] < level] + [(level, title)]
            if not bare:
                yield section
            section = MarkdownSection(tuple(title for _, title in path if title), section.blocks if bare else [])
            begins.append((block.first, section.headings))
        only_headings, bare = bare, heading is not None and block.kind == "prose" and (bare or not section.blocks)
        noted = _note(text, lines.start(block.first)) if block.kind == "prose" and referring else None
        if noted is not None or (section.notes and heading is None):
            around = begins[-1][1]
            if noted is not None:
                line = referring.get(noted[1], block.first)
                around = begins[max(bisect_right(begins, line, key=itemgetter(0)) - 1, 0)][1]
            elif _indented(text, lines.start(block.first)):  # a further paragraph of the note
                around = section.headings
            notes = around != begins[-1][1]
            if (around, notes) != (section.headings, section.notes):
                if not only_headings:
                    yield section
                section = MarkdownSection(around, section.blocks if only_headings else [], notes)
        section.blocks.append(block)
    if section.blocks:
        yield section


def _notes_apart(
    text: str, lines: LineStarts, blocks: Iterable[tuple[Block, tuple[int, str] | None]]
) -> Iterator[tuple[Block, tuple[int, str] | None]]:
    """Blocks; a paragraph ends before the line of a footnote."""
    last: tuple[Block, tuple[int, str] | None] = Block("prose", len(lines)), None
    for (block, heading), (following, _) in pairwise(chain(blocks, [last])):
        yield block, heading
        if block.kind == "prose" and heading is None:
            for line in range(block.first + 1, following.first):
                if _note(text, lines.start(line)):
                    yield Block("prose", line), None


def _top_blocks(text: str, lines: LineStarts, first: int) -> Iterator[tuple[Block, tuple[int, str] | None]]:
    """The outermost blocks, headings with their level and title.

    Where the parser would take too much memory, or nests too deep, the lines are taken as paragraphs.
    """
    for begin, end in segments(text, lines, first):
        covered = begin
        rest: Kind = "prose"
        try:
            tokens = _parser().parse(text[lines.start(begin) : lines.start(end)].removeprefix("\ufeff"))
        except (_TooMany, RecursionError):
            tokens, rest = [], "code"
        for block, block_tokens in _blocks(tokens, begin):
            # Lines without a token, such as link definitions, are text too.
            yield from ((skipped, None) for skipped in paragraphs(lines, covered, block.first))
            covered = begin + (block_tokens[0].map or (0, 0))[1]
            opening = block_tokens[0]
            html = _html_heading(opening.content) if opening.type == "html_block" else None
            heading = None
            if opening.type == "heading_open":
                heading = int(opening.tag[1:]), _plain(block_tokens[1].content)
            elif html is not None and (name := _plain(html[2])):
                heading = int(html[1]), name
            yield block, heading
        yield from ((skipped, None) for skipped in paragraphs(lines, covered, end, rest))


def _blocks(tokens: Sequence[Token], base: int) -> Iterator[tuple[Block, Sequence[Token]]]:
    """The outermost blocks of tokens, each with its own tokens; `base` is the line of the parser's line 0."""
    i = 0
    while i < len(tokens):
        token, after = tokens[i], i + 1
        if token.nesting == 1:
            while not (tokens[after].nesting == -1 and tokens[after].level == token.level):
                after += 1
            after += 1
        if token.map is not None:
            block_tokens = tokens[i:after]
            yield Block(_KINDS.get(token.type, "prose"), base + token.map[0], block_tokens[1:-1], base), block_tokens
        i = after


class _TooMany(Exception):
    pass


@cache
def _parser() -> MarkdownIt:
    """A block parser of CommonMark with tables; inline markup is not parsed.

    It follows nesting to a depth of 20 in linear time: 0.3 s for 1.5 MB of real documents, and up to 20 us per
    character of pure markup.
    """

    def bounded(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        """Never match, and stop the parser when its tokens take too much memory."""
        if len(state.tokens) > _MAX_TOKENS:
            raise _TooMany
        return False

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    parser.block.ruler.before("table", "bounded", bounded)
    return parser


@cache
def _inline_parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("strikethrough")


def _plain(heading: str) -> str:
    """The text of a heading without markup, on one line."""
    heading = _attributes("", heading.rstrip())[:_MAX_HEADING_CHARS]
    if _may_hold_markup(heading):
        heading = "".join(
            " " if token.type in ("softbreak", "hardbreak") else token.content
            for line in _inline_parser().parseInline(heading)
            for token in line.children or ()
            if token.type != "html_inline"
        )
    return " ".join(heading.split())


def cited_headings(text: str, headings: Sequence[str], query: str) -> tuple[str, ...]:
    """The headings above what matches a query in a chunk, which has several sections where small ones were joined.

    `headings` are those that it is stored under: of its largest section.
    """
    stored = tuple(headings)
    if not (text.startswith("#") or "\n#" in text) or not highlight(text, query):
        return stored
    sections = [section for section in markdown_sections(text, LineStarts(text), 0) if section.blocks]
    # The path within the chunk to the section that it is stored under, if that begins in it.
    own = next((section.headings for section in sections if section.headings[-1:] == stored[-1:]), None)
    line = cut_snippet(text, query, _MATCH_CHARS).line
    begun = [section.headings for section in sections if section.blocks[0].first <= line]
    return stored if own is None or not begun else stored[: len(stored) - len(own)] + begun[-1]
