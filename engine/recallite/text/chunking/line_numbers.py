"""Lines as an editor counts them: they end with LF, CRLF or a single CR."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

_SEGMENT_CHARS = 262_144
_fence = re.compile(r" {0,3}(`{3,}(?=[^`\r\n]*(?:[\r\n]|\Z))|~{3,})([^\r\n]*)").match

_margin = re.compile(r"[^\W\d_]|#{1,6} ").match
_line_ends = re.compile(r"\r\n?|\n").finditer


class Lines:
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


def segments(text: str, lines: Lines, first: int) -> Iterator[tuple[int, int]]:
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
