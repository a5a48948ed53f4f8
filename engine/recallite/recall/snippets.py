"""Snippets: the part of a chunk to show, and where the words of the query are in it."""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache

from msgspec import Struct

from recallite.text.patterns import lazily
from recallite.text.questions import read_question
from recallite.text.words import tokenize

# A word, with what may join its parts; scripts without spaces are matched two characters at a time.
_WORD = lazily(r"[^\W_]+(?:[-_.'’+#]+[^\W_]+)*[+#]*")
_UNSPACED = lazily(
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3041-\u30ff\u3100-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_SPACE = lazily(r"\s")


class Snippet(Struct, frozen=True):
    """A part of a text, and the line of the text in which it begins, from 0."""

    text: str
    line: int


def highlight(text: str, query: str) -> list[tuple[int, int]]:
    """The spans of words of the query in a text, in any form that keyword search matches: (from, to)."""
    return [(start, stop) for start, stop, _ in _matches(text, query)]


def cut_snippet(text: str, query: str, max_chars: int) -> Snippet:
    """Cut a text to `max_chars` characters, where most words of the query are close together; words are not cut.

    It begins with a line if one begins near enough. Without a match it is the beginning of the text.
    """
    bare = text.strip()
    if len(bare) <= max_chars:
        return Snippet(bare, text[: len(text) - len(text.lstrip())].count("\n"))
    begin = _window(text, query, max_chars)
    begin += len(text) - begin - len(text[begin:].lstrip())
    end = begin + max_chars
    if end < len(text) and not _SPACE.match(text[end]):
        # Text without spaces is cut within.
        end = next((i for i in range(end, begin + max_chars // 2, -1) if _SPACE.match(text[i - 1])), end)
    return Snippet(text[begin:end].rstrip(), text[:begin].count("\n"))


@lru_cache(maxsize=1 << 15)
def _terms(word: str) -> tuple[str, ...]:
    """The index terms of one word. Words repeat: 3 times as fast as without the cache."""
    return tuple(tokenize(word))


def _window(text: str, query: str, max_chars: int) -> int:
    """The start of the best part of `max_chars` characters."""
    matches = _matches(text, query)
    if not matches:
        return len(text) - len(text.lstrip())
    starts = [start for start, _, _ in matches]
    best, first, last = (0, 0), 0, 0
    for i, start in enumerate(starts):
        inside = matches[i : bisect_left(starts, start + max_chars * 3 // 4)]
        rank = (len({word for _, _, words in inside for word in words}), len(inside))
        if rank > best:
            best, first, last = rank, start, inside[-1][1]
    # The room that is left is split before and after; a beginning of a line in it is preferred to one of a word.
    earliest = max(0, min(first - max(max_chars - (last - first), 0) // 3, len(text) - max_chars))
    line = text.rfind("\n", 0, first) + 1
    if line >= last - max_chars and line <= first and (line >= earliest or first - line <= max_chars // 2):
        return line
    space = _SPACE.search(text, earliest, first)
    return earliest if earliest == 0 else space.end() if space else first


def _matches(text: str, query: str) -> list[tuple[int, int, frozenset[str]]]:
    """The spans of words of the query, and which words, in order; overlapping pairs of characters are merged."""
    words = set(read_question(query).words)
    matches: list[tuple[int, int, frozenset[str]]] = []
    for word in _WORD.finditer(text) if words else ():
        common = words.intersection(_terms(word[0]))
        if not common:
            continue
        runs = [run for run in _UNSPACED.finditer(word[0]) if len(run[0]) > 1]
        if not runs:
            matches.append((word.start(), word.end(), frozenset(common)))
        pairs = [(run.start() + i, run[0][i : i + 2]) for run in runs for i in range(len(run[0]) - 1)]
        for begin, pair in pairs:
            common = words.intersection(_terms(pair))
            if not common:
                continue
            start = word.start() + begin
            stop = start + 2
            if matches and matches[-1][1] >= start and matches[-1][0] >= word.start():
                start, _, before = matches.pop()
                common |= before
            matches.append((start, stop, frozenset(common)))
    return matches
