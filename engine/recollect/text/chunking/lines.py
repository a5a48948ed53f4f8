"""Lines as an editor counts them: ended by LF, CRLF or a lone CR, and by nothing else."""

from __future__ import annotations

import re
from bisect import bisect_right

__all__ = ["Lines", "page_starts"]

_line_ends = re.compile(r"\r\n?|\n").finditer


class Lines:
    """Where the lines of a text begin. Lines are numbered from 0 here; `number` counts from 1."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.starts = [0, *(match.end() for match in _line_ends(text))]

    def __len__(self) -> int:
        return len(self.starts)

    def number(self, offset: int) -> int:
        """The number of the line that holds the character at `offset`, from 1."""
        return bisect_right(self.starts, offset)

    def start(self, line: int) -> int:
        """Where a line begins; the end of the text past the last one."""
        return self.starts[line] if line < len(self.starts) else len(self._text)

    def blank(self, line: int) -> bool:
        """True for a line of nothing but whitespace."""
        return not self._text[self.start(line) : self.start(line + 1)].strip()


def page_starts(text: str) -> list[int]:
    """Where the pages of a text begin whose pages end with form feeds."""
    return [0, *(match.end() for match in re.finditer("\f", text))]
