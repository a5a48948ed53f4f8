"""Deliberately dumb readings of what a chunk says of itself, and tokens that need no model."""

from __future__ import annotations

import re
from itertools import pairwise


def token_starts(text: str) -> list[int]:
    """A word, a character of Chinese or Japanese, a mark: one token each."""
    return [match.start() for match in re.finditer(r"[぀-ヿ一-鿿]|[^\W぀-ヿ一-鿿]+|[^\w\s]", text)]


def token_count(starts, begin, end):
    return sum(begin <= start < end for start in starts)


def line_of(text: str, offset: int) -> int:
    """The line of a character, counted one character at a time."""
    line = 1
    for place in range(offset):
        if text[place] == "\n" or (text[place] == "\r" and text[place + 1 : place + 2] != "\n"):
            line += 1
    return line


def check(text, chunks, starts, size, begin=0):
    """Everything that holds for the chunks of any document."""
    covered = set()
    for chunk in chunks:
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.text.strip()
        assert token_count(starts, chunk.start, chunk.end) <= size.max_tokens
        assert chunk.lines == (line_of(text, chunk.start), line_of(text, chunk.end - 1))
        covered.update(range(chunk.start, chunk.end))
    for before, after in pairwise(chunks):
        assert before.start < after.start
        assert before.end < after.end
    missed = [i for i in range(begin, len(text)) if i not in covered and not text[i].isspace()]
    assert [i for i in missed if (i, text[i]) != (0, "\ufeff")] == []
