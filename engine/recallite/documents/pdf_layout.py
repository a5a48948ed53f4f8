"""The layout of PDF pages: composes drawn lines into columns, rows, paragraphs and headings of one text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from statistics import fmean, median
from typing import NamedTuple

LINE_END_HYPHEN = "\ufffe"
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_BULLET = re.compile(r"([•◦▪‣–—*-]|\(?\d{1,3}[.)]|\(?[a-z][.)]) ")
_NUMBERING = re.compile(r"^(\d+(\.\d+)*\.?|[IVXLC]+\.|[A-Z]\.)\s+")
_LONGEST_HEADING = 120
# This many successive rows of two long cells are two columns whose lines were drawn across.
_COLUMN_LINES = 5
_COLUMN_CHARS = 25


class Line(NamedTuple):
    """A line of a page: its cells (one, but for a row of a table), where it begins and ends, its baseline, the size of
    its font, and where each cell begins and ends; in points, y grows upward.
    """

    cells: tuple[str, ...]
    left: float
    right: float
    baseline: float
    size: float
    edges: tuple[tuple[float, float], ...]

    @property
    def text(self) -> str:
        """The text of the line."""
        return " | ".join(self.cells)


def clean(text: str) -> str:
    """Return text without control characters and surrounding white space; a hyphen at the end of the line stays."""
    hyphen = LINE_END_HYPHEN if text.endswith(LINE_END_HYPHEN) else ""
    return _CONTROL.sub("", text).strip() + hyphen


def columns_apart(lines: Sequence[Line]) -> list[Line]:
    """Return the lines column by column, also if the file draws them across two columns."""
    ordered: list[Line] = []
    for run in _runs(lines):
        halves = [[_cell(line, side) for line in run] for side in (0, 1)] if len(run[0].cells) == 2 else []
        long = all(fmean(len(line.text) for line in half) >= _COLUMN_CHARS for half in halves)
        ordered += halves[0] + halves[1] if halves and long and len(run) >= _COLUMN_LINES else run
    return ordered


def _runs(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield neighbouring lines with as many cells; of two cells each, the second ones begin at the same place."""
    run: list[Line] = []
    for line in lines:
        same = bool(run) and len(line.cells) == len(run[0].cells)
        if run and not (same and (len(line.cells) != 2 or abs(line.edges[1][0] - run[0].edges[1][0]) < line.size)):
            yield run
            run = []
        run.append(line)
    if run:
        yield run


def _cell(line: Line, side: int) -> Line:
    left, right = line.edges[side]
    return Line((line.cells[side],), left, right, line.baseline, line.size, ((left, right),))


def without_page_number(lines: list[Line], number: int, label: str) -> list[Line]:
    """Return the lines of a page without the page number, which could end up in the middle of a paragraph."""
    names = {str(number + 1), label} - {""}
    lowest = min(lines, key=lambda line: line.baseline, default=None)
    highest = max(lines, key=lambda line: line.baseline, default=None)
    alone = [line for line in (lowest, highest) if line is not None and line.text.strip("-–— ") in names]
    return [line for line in lines if line not in alone[:1]] if len(lines) > 1 else lines


def find_headings(pages: Sequence[Sequence[Line]], outline: Iterable[tuple[str, int, int]]) -> dict[Line, int]:
    """Return the level, from 1, of each line that is a heading: by the outline, else by the size of its font."""
    levels: dict[tuple[int, Line], int] = {}
    for title, page, level in outline:
        key = _key(title)
        lines = pages[page] if 0 <= page < len(pages) else []
        heading = next((line for line in lines if key and _key(line.text) == key and (page, line) not in levels), None)
        if heading is not None:
            levels[page, heading] = level
    if levels:
        return {line: level for (_, line), level in levels.items()}
    sizes: Counter[float] = Counter()
    for line in chain.from_iterable(pages):
        sizes[round(line.size, 1)] += len(line.text)
    body = sizes.most_common(1)[0][0]
    larger = [
        line
        for line in chain.from_iterable(pages)
        if line.size > 1.15 * body and len(line.text) <= _LONGEST_HEADING and any(map(str.isalpha, line.text))
    ]
    # A text mostly in large print has no headings.
    if sum(len(line.text) for line in larger) > 0.2 * sum(sizes.values()):
        return {}
    ranks = sorted({round(line.size) for line in larger}, reverse=True)
    return {line: min(ranks.index(round(line.size)) + 1, 6) for line in larger}


def largest(pages: Sequence[Sequence[Line]], headings: dict[Line, int]) -> str:
    """Return the first heading of the highest level on the first page."""
    first = [line for line in pages[0] if line in headings]
    return min(first, key=lambda line: headings[line]).text if first else ""


def _key(title: str) -> str:
    return " ".join(_NUMBERING.sub("", title).casefold().split())


def compose(pages: Sequence[Sequence[Line]], headings: dict[Line, int]) -> tuple[str, list[int]]:
    """Return one text of all lines, and the offset at which each page begins."""
    pieces: list[str] = []
    starts: list[int] = []
    length = 0
    previous: Line | None = None
    words = {word for lines in pages for line in lines for word in re.findall(r"(?<!\w)\w++-\w+", line.text)}
    for lines in pages:
        layout = _Layout(lines)
        turned = True
        for line in lines:
            gap = "" if previous is None else layout.gap(previous, line, headings, turned)
            if gap in ("", " ") and previous is not None and previous.text.endswith(LINE_END_HYPHEN):
                gap = ""
                if _keeps_hyphen(previous.text, line.text, words):
                    pieces[-1] += "-"
                    length += 1
            if turned:
                starts.append(length + len(gap))
                turned = False
            level = headings.get(line)
            mark = "#" * level + " " if level and gap in ("", "\n\n") else ""
            piece = mark + line.text.removesuffix(LINE_END_HYPHEN)
            pieces += [gap, piece]
            length += len(gap) + len(piece)
            previous = line
        if turned:
            starts.append(length)
    return "".join(pieces), starts


def _keeps_hyphen(before: str, after: str, words: set[str]) -> bool:
    """Whether the hyphen at the end of a line is part of the word: it is elsewhere, or a name follows."""
    left = re.search(r"(?<!\w)\w++(?=\ufffe$)", before)
    right = re.match(r"\w+", after)
    if left is None or right is None:
        return True
    return f"{left[0]}-{right[0]}" in words or not right[0][0].islower()


class _Layout:
    """The usual layout of a page: where the lines of a column end, and the distance between them."""

    def __init__(self, lines: Sequence[Line]) -> None:
        steps = [above.baseline - below.baseline for above, below in pairwise(lines)]
        near = [step for step, line in zip(steps, lines, strict=False) if 0.5 * line.size < step < 3 * line.size]
        self._step = median(near) if near else 0.0
        self._ends: dict[int, float] = {}
        for line in lines:
            column = round(line.left / 36)
            self._ends[column] = max(self._ends.get(column, 0.0), line.right)

    def gap(self, before: Line, after: Line, headings: dict[Line, int], turned: bool) -> str:
        """Return the separator of two lines: nothing, a space, a line break or an empty line."""
        if headings.get(before) != headings.get(after):
            return "\n\n"
        if turned:
            return " " if _goes_on(before, after) else "\n\n"
        step = before.baseline - after.baseline
        if abs(step) < 0.5 * max(before.size, after.size) and after.left >= before.right - 1:
            # Superscripts and subscripts: a reference mark beside a number must not become a digit of it.
            digits = before.text[-1].isdigit() and after.text[0].isdigit()
            return " " if digits or after.left - before.right > 0.15 * before.size else ""
        if step < 0:
            # The next column, or a box beside the text.
            return " " if _goes_on(before, after) else "\n\n"
        if step > 1.4 * max(self._step, before.size) or abs(before.size - after.size) > 0.2 * before.size:
            return "\n\n"
        if before in headings:
            return " "
        if len(before.cells) > 1 or len(after.cells) > 1 or _BULLET.match(after.text):
            return "\n"
        if not self._is_short(before):
            return " "
        return "\n\n" if after.left - before.left > 0.8 * before.size else "\n"

    def _is_short(self, line: Line) -> bool:
        """Whether a line ends early, as the last of a paragraph does: the next word would have fitted."""
        if line.text.endswith(LINE_END_HYPHEN):
            return False
        column = round(line.left / 36)
        end = max(self._ends.get(near, 0.0) for near in (column - 1, column, column + 1))
        return end - line.right > 0.12 * (end - line.left)


def _goes_on(before: Line, after: Line) -> bool:
    """Whether a sentence continues after the end of a column or page."""
    return before.text.endswith(LINE_END_HYPHEN) or (
        before.text[-1] not in ".!?:;" and (after.text[0].islower() or before.text[-1] == ",")
    )
