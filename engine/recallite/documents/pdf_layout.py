"""The layout of all pages of a PDF: composes their lines into paragraphs and headings of one text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from statistics import median

from recallite.documents.pdf_page import LINE_END_HYPHEN, Line

_LONGEST_HEADING = 120
_IDEOGRAPH = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
_DIGITS = re.compile(r"\d+")
_HYPHENATED = re.compile(r"(?<!\w)\w++-\w+")
_NUMBERING = re.compile(r"^(\d+(\.\d+)*\.?|[IVXLC]+\.|[A-Z]\.)\s+")
_BULLET = re.compile(r"([•◦▪‣–—*-]|\(?\d{1,3}[.)]|\(?[a-z][.)]) ")
# Headers and footers: the share of the height where they are, the gap beside them in usual steps, the points by which
# their height may differ, the share of pages that have them (left and right ones may differ), and the least pages.
_MARGIN, _WIDE_GAP, _SAME_HEIGHT, _RUNNING_PAGES, _LEAST_PAGES = 0.12, 1.3, 4.0, 0.3, 3


def without_page_number(lines: list[Line], number: int, label: str) -> list[Line]:
    """Return the lines of a page without the page number, which could end up in the middle of a paragraph."""
    names = {str(number + 1), label} - {""}
    lowest = min(lines, key=lambda line: line.baseline, default=None)
    highest = max(lines, key=lambda line: line.baseline, default=None)
    alone = [line for line in (lowest, highest) if line is not None and line.text.strip("-–— ") in names]
    return [line for line in lines if line not in alone[:1]] if len(lines) > 1 else lines


def without_running_lines(pages: list[list[Line]], heights: Sequence[tuple[float, float]]) -> list[list[Line]]:
    """Return the pages with headers and footers that many of them repeat, but for digits, said once.

    The header stays on the first of these pages and the footer on the last, where they are in no sentence that goes on.
    `heights` are the lowest and the highest point of each page. What only two pages have stays: the number of an
    invoice is at the top of both.
    """
    dropped: set[tuple[int, Line]] = set()
    least = max(_LEAST_PAGES, _RUNNING_PAGES * sum(map(bool, pages)))
    for top in (True, False):
        by_text: dict[str, list[tuple[int, Line]]] = {}
        for number, (lines, (low, high)) in enumerate(zip(pages, heights, strict=True)):
            for line in _outside(lines, low, high, top=top):
                by_text.setdefault(_DIGITS.sub("#", line.text), []).append((number, line))
        for places in by_text.values():
            height = median(line.baseline for _, line in places)
            near = [place for place in places if abs(place[1].baseline - height) < _SAME_HEIGHT]
            if len({number for number, _ in near}) >= least:
                keeping = near[0 if top else -1][0]
                dropped.update(place for place in near if place[0] != keeping)
    return [[line for line in lines if (number, line) not in dropped] for number, lines in enumerate(pages)]


def _outside(lines: list[Line], low: float, high: float, *, top: bool) -> list[Line]:
    """Return the lines in the margin above, or below, the first wide gap."""
    ordered = sorted(lines, key=lambda line: -line.baseline if top else line.baseline)
    steps = sorted(
        step for one, other in pairwise(ordered) if (step := abs(one.baseline - other.baseline)) > 0.8 * other.size
    )
    usual = steps[len(steps) // 4] if steps else 0.0
    margin = _MARGIN * (high - low)
    for place, (one, other) in enumerate(pairwise(ordered)):
        if (high - one.baseline if top else one.baseline - low) > margin:
            return []
        if abs(one.baseline - other.baseline) > _WIDE_GAP * usual:
            return ordered[: place + 1]
    return []


def with_headings_over_pages(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Return the pages with the headings of a table repeated where it goes on over the page."""
    done: list[list[Line]] = []
    for lines in pages:
        before = next((page[-1] for page in reversed(done) if page), None)
        if before is not None and lines and before.is_table and lines[0].is_table and _same_columns(before, lines[0]):
            names, dashes = before.text[before.text.rindex("\n\n") + 2 if "\n\n" in before.text else 0 :].split("\n")[
                :2
            ]
            first_row, _, *rows = lines[0].text.split("\n")
            rows_below = rows if first_row in (names, _blank(names)) else [first_row, *rows]
            lines = [lines[0]._replace(cells=("\n".join([names, dashes, *rows_below]),)), *lines[1:]]
        done.append(list(lines))
    return done


def _same_columns(above: Line, below: Line) -> bool:
    return len(above.edges) == len(below.edges) and all(
        one[0] < other[1] and other[0] < one[1] for one, other in zip(above.edges, below.edges, strict=True)
    )


def _blank(row: str) -> str:
    return "|" + "  |" * _columns_of(row)


def _columns_of(row: str) -> int:
    return row.count("|") - row.count("\\|") - 1


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
    if not sizes:
        return {}
    body = sizes.most_common(1)[0][0]
    larger = [
        line
        for line in chain.from_iterable(pages)
        if line.size > 1.15 * body
        and not line.is_table
        and len(line.text) <= _LONGEST_HEADING
        and any(map(str.isalpha, line.text))
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
    words = {word for lines in pages for line in lines for word in _HYPHENATED.findall(line.text)}
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
        self._ends: dict[tuple[int, int], float] = {}
        for line in (line for line in lines if not line.is_table):
            column = round(line.left / 36), round(line.size)
            self._ends[column] = max(self._ends.get(column, 0.0), line.right)

    def gap(self, before: Line, after: Line, headings: dict[Line, int], turned: bool) -> str:
        """Return the separator of two lines: nothing, a space, a line break or an empty line."""
        if headings.get(before) != headings.get(after) or before.is_table or after.is_table:
            return "\n\n"
        if turned:
            return _space(before, after) if _goes_on(before, after) else "\n\n"
        step = before.baseline - after.baseline
        if abs(step) < 0.5 * max(before.size, after.size) and after.left >= before.right - 1:
            digits = before.text[-1].isdigit() and after.text[0].isdigit()
            return " " if digits or after.left - before.right > 0.15 * before.size else ""
        if step < 0:
            # The next column, or a box beside the text.
            return _space(before, after) if _goes_on(before, after) else "\n\n"
        if step > 1.4 * max(self._step, before.size) or abs(before.size - after.size) > 0.2 * before.size:
            return "\n\n"
        if before in headings:
            return " "
        if len(before.cells) > 1 or len(after.cells) > 1 or _BULLET.match(after.text):
            return "\n"
        if not self._is_short(before):
            return _space(before, after)
        return "\n\n" if after.left - before.left > 0.8 * before.size else "\n"

    def _is_short(self, line: Line) -> bool:
        """Whether a line ends early, as the last of a paragraph does: the next word would have fitted."""
        if line.text.endswith(LINE_END_HYPHEN):
            return False
        column = round(line.left / 36)
        end = max(self._ends.get((near, round(line.size)), 0.0) for near in (column - 1, column, column + 1))
        return end - line.right > 0.12 * (end - line.left)


def _space(before: Line, after: Line) -> str:
    """Return what is between the words of two lines: nothing in a script without spaces."""
    apart = _IDEOGRAPH.match(before.text[-1]) is None or _IDEOGRAPH.match(after.text[0]) is None
    return " " if apart else ""


def _goes_on(before: Line, after: Line) -> bool:
    """Whether a sentence continues after the end of a column or page."""
    return before.text.endswith(LINE_END_HYPHEN) or (
        before.text[-1] not in ".!?:;。！？：；"
        and (after.text[0].islower() or before.text[-1] == "," or not _space(before, after))
    )
