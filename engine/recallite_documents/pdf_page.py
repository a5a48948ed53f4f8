"""The layout of a PDF page: arranges what is drawn into columns, lines and tables.

None of eleven libraries reads the same files better in words, order and tables together: LiteParse merges rows of
tables and makes three times the headings, pdfplumber loses a fifth of the words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, pairwise, repeat
from operator import attrgetter
from statistics import fmean, median
from typing import NamedTuple

LINE_END_HYPHEN = "\ufffe"
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\xad\ufffe\uffff\ud800-\udfff]")
_MARK = re.compile(r"[•◦▪‣–—*·oo-]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]")
# The least lines of a column of text, their length in ems, and the share of the column that they fill: more where the
# file draws across two columns, as it draws a table.
_COLUMN_LINES, _COLUMN_EMS, _COLUMN_FILL, _DRAWN_ACROSS_FILL = 4, 12, 0.45, 0.7
# Gaps, in ems: between cells of a table, and between parts of a line that are said apart.
CELL_GAP = 0.9
APART = 1.5
# The least gap between two columns in a row that says them as one; the most between rows of a table; the step to the
# next line of a cell. All in ems.
_NARROWEST_GAP, _ROW_GAP, _LINE_STEP = 0.4, 2.4, 1.4
# How many of the fullest rows may give the columns, and which share of the cells has to be in one column each.
_FULLEST_ROWS, _IN_ONE_COLUMN = 4, 0.75

Word = tuple[str, float, float]
"""A word, and where it begins and ends."""


class Line(NamedTuple):
    """A line of a page: its cells (one, but where there are wide gaps), where it begins and ends, its baseline, the
    size of its font, where each cell begins and ends, and their words; in points, y grows upward. A table is a line
    with its Markdown.
    """

    cells: tuple[str, ...]
    left: float
    right: float
    baseline: float
    size: float
    edges: tuple[tuple[float, float], ...]
    words: tuple[tuple[Word, ...], ...] = ()
    is_table: bool = False

    @property
    def text(self) -> str:
        """The text of the line."""
        return " | ".join(self.cells)


class _Part(NamedTuple):
    """A cell of a drawn line, and its place in the order of drawing."""

    text: str
    left: float
    right: float
    baseline: float
    size: float
    order: int
    words: tuple[Word, ...] = ()


_Block = list[_Part]
"""Parts below each other that are drawn one after the other: the lines of a paragraph, or of a cell."""


def clean(text: str) -> str:
    """Return text without control characters and surrounding white space; a hyphen at the end of the line stays."""
    hyphen = LINE_END_HYPHEN if text.endswith(LINE_END_HYPHEN) else ""
    return _CONTROL.sub("", text).strip() + hyphen


def has_right_to_left(text: str) -> bool:
    """Whether a text has letters of a script that is written from right to left."""
    return not text.isascii() and any(unicodedata.bidirectional(char) in ("R", "AL") for char in text)


# ── page numbers, headers and footers ────────────────────────────────────────────────────────────────────────────────

# Headers and footers: the share of the height where they are, the gap beside them in usual steps, the points by which
# their height may differ, the share of pages that have them (left and right ones may differ), and the least pages.
_MARGIN, _WIDE_GAP, _SAME_HEIGHT, _RUNNING_PAGES, _LEAST_PAGES = 0.12, 1.3, 4.0, 0.3, 3
_DIGITS = re.compile(r"\d+")


def without_page_number(lines: list[Line], number: int, label: str) -> list[Line]:
    """Return the lines of a page without the page number, which could end up in the middle of a paragraph."""
    if len(lines) > 1:
        height = attrgetter("baseline")
        for line in (min(lines, key=height), max(lines, key=height)):
            alone = sum(abs(other.baseline - line.baseline) < 0.5 * line.size for other in lines) == 1
            if alone and line.text.strip("-–— ") in {str(number + 1), label} - {""}:
                return [other for other in lines if other != line]
    return lines


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
        for repeated in by_text.values():
            height = median(line.baseline for _, line in repeated)
            near = [(number, line) for number, line in repeated if abs(line.baseline - height) < _SAME_HEIGHT]
            if len({number for number, _ in near}) >= least:
                keeping = near[0 if top else -1][0]
                dropped.update((number, line) for number, line in near if number != keeping)
    return [[line for line in lines if (number, line) not in dropped] for number, lines in enumerate(pages)]


def _outside(lines: list[Line], low: float, high: float, *, top: bool) -> list[Line]:
    """Return the lines in the margin above, or below, the first wide gap."""
    ordered = sorted(lines, key=lambda line: -line.baseline if top else line.baseline)
    steps = sorted(
        step for one, other in pairwise(ordered) if (step := abs(one.baseline - other.baseline)) > 0.8 * other.size
    )
    usual = steps[len(steps) // 4] if steps else 0.0
    margin = _MARGIN * (high - low)
    for i, (one, other) in enumerate(pairwise(ordered), 1):
        if (high - one.baseline if top else one.baseline - low) > margin:
            break
        if abs(one.baseline - other.baseline) > _WIDE_GAP * usual:
            return ordered[:i]
    return []


# ── a page ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def arranged(lines: Sequence[Line]) -> list[Line]:
    """Return the lines of a page in reading order, column by column, and its tables as Markdown."""
    parts = [
        _Part(text, left, right, line.baseline, line.size, 0, words)
        for line in lines
        for text, (left, right), words in zip(line.cells, line.edges, line.words or repeat(()), strict=False)
    ]
    parts = [part._replace(order=order) for order, part in enumerate(_with_scripts(parts))]
    return [line for column in _columns(parts) for line in _column(column)]


def _with_scripts(parts: Iterable[_Part]) -> Iterator[_Part]:
    """Yield parts joined to the raised and lowered ones that touch them: 10 and a raised 6 are 10^6, and not 106."""
    joined: _Part | None = None
    scripts = ""
    for part in parts:
        step = 0.0 if joined is None else part.baseline - joined.baseline
        if joined is not None and _is_initial(joined, part):
            joined, scripts = part._replace(text=joined.text + part.text, left=joined.left, order=joined.order), ""
            continue
        if joined is None or not _touches(joined, part) or abs(step) >= 0.6 * joined.size:
            if joined is not None:
                yield joined
            joined, scripts = part, ""
            continue
        smaller = part.size < 0.9 * joined.size
        beside = joined.text[-1].isalnum() and part.text[0].isalnum()
        mark = ""
        if smaller and beside and step > 0.15 * joined.size:
            mark = "^"
        elif beside and joined.text[-1].isdigit() and part.text[0].isdigit():
            mark = "_" if smaller and step < 0 else " " if scripts else ""
        scripts = mark if smaller else ""
        full = joined if joined.size >= part.size else part
        joined = _Part(joined.text + mark + part.text, joined.left, part.right, full.baseline, full.size, joined.order)
    if joined is not None:
        yield joined


def _is_initial(before: _Part, part: _Part) -> bool:
    """Whether a part is the capital of several lines' height with which a paragraph begins."""
    tops = [one.baseline + 0.7 * one.size for one in (before, part)]
    large = before.size > 1.8 * part.size and abs(tops[0] - tops[1]) < part.size
    word = len(before.text) == 1 and before.text.isupper() and len(part.text) > 3 and part.text[0].isalpha()
    return large and word and _touches(before, part)


def _touches(before: _Part, part: _Part) -> bool:
    near = -0.3 * before.size < part.left - before.right < 0.15 * before.size
    return near and not has_right_to_left(before.text + part.text)


def _rows(parts: Sequence[_Part]) -> list[list[_Part]]:
    """Return the parts row by row, from the top; raised and lowered parts are in the row of their neighbours."""
    rows: list[list[_Part]] = []
    for part in sorted(parts, key=lambda part: (-part.baseline, part.order)):
        row = rows[-1] if rows else []
        near = [other for other in row if abs(other.baseline - part.baseline) < 0.45 * max(other.size, part.size)]
        if near and all(part.left >= other.right - 1 or part.right <= other.left + 1 for other in row):
            row.append(part)
        else:
            rows.append([part])
    return [sorted(row, key=attrgetter("order" if _is_right_to_left(row) else "left")) for row in rows]


def _is_right_to_left(parts: Iterable[_Part]) -> bool:
    return any(has_right_to_left(part.text) for part in parts)


def _ends(parts: Iterable[_Part]) -> tuple[float, float]:
    """Return where the first part begins, and where the last one ends."""
    lefts, rights = zip(*((part.left, part.right) for part in parts), strict=True)
    return min(lefts), max(rights)


def _columns(parts: list[_Part]) -> Iterator[list[_Part]]:
    """Yield the parts of a page column by column: what is above two columns, the left, the right, and what is below."""
    rows = _rows(parts)
    lefts = Counter(round(part.left / 3) for part in parts)
    best: tuple[int, int, float] | None = None
    for third, count in lefts.items():
        x = 3 * third - 2.0
        if count + lefts[third - 1] + lefts[third + 1] < _COLUMN_LINES:
            continue
        crossing = [any(part.left < x - 1 and part.right > x + 3 for part in row) for row in rows]
        begin = 0
        for crosses, run in groupby(crossing):
            end = begin + len(list(run))
            longer = not crosses and (best is None or end - begin > best[1] - best[0])
            if longer and _are_columns(*_split(rows[begin:end], x)):
                best = (begin, end, x)
            begin = end
    if best is None:
        yield parts
        return
    begin, end, x = best
    left, right = _split(rows[begin:end], x)
    for group in (list(chain(*rows[:begin])), left, right, list(chain(*rows[end:]))):
        if group:
            yield from _columns(group)


def _split(rows: Sequence[list[_Part]], x: float) -> tuple[list[_Part], list[_Part]]:
    """Return the parts that begin before x, and the others."""
    parts = list(chain(*rows))
    return [part for part in parts if part.left < x], [part for part in parts if part.left >= x]


def _are_columns(left: list[_Part], right: list[_Part]) -> bool:
    """Whether both sides are columns of a text, and not of a table."""
    if min(len(_rows(left)), len(_rows(right))) < _COLUMN_LINES:
        return False
    sides = [side for _, side in sorted([(part.order, 0) for part in left] + [(part.order, 1) for part in right])]
    turns = sum(one != other for one, other in pairwise(sides))
    filled = _DRAWN_ACROSS_FILL if turns > 0.5 * len(_rows(left)) else _COLUMN_FILL
    prose = [_is_prose(side, filled) for side in (left, right)]
    if all(prose):
        return True
    # A table beside a text is drawn before it or after it, and its lines are not those of the text.
    baselines = [part.baseline for part in left]
    beside = fmean(any(abs(part.baseline - other) < 0.2 * part.size for other in baselines) for part in right)
    return any(prose) and turns == 1 and beside < 0.5


def _is_prose(parts: list[_Part], filled: float) -> bool:
    """Whether these are lines of a text: long, nearly as wide as their column, and hardly ever in cells."""
    rows = _rows(parts)
    column, *widths = (right - left for left, right in map(_ends, [parts, *rows]))
    size = median(part.size for part in parts)
    if not column or fmean(widths) < max(_COLUMN_EMS * size, filled * column):
        return False
    cells = [part.right - part.left for part in parts if len(part.text) > 2]
    # Several cells in a row are columns of a text if they are long, and leave little free.
    full = sum(cells) >= _DRAWN_ACROSS_FILL * column * len(rows)
    return len(cells) < 1.5 * len(rows) or (full and fmean(cells) >= _COLUMN_EMS * size)


def _column(parts: list[_Part]) -> Iterator[Line]:
    """Yield the lines of a column, tables as one line each."""
    rows = _block_rows(parts)
    begin = 0
    while begin < len(rows):
        end = _table_end(rows, begin)
        table = _table(rows[begin:end]) if end - begin > 1 else None
        if table is not None:
            yield table
            begin = end
            continue
        row = rows[begin]
        # Blocks of one line each, beside each other, are lines that go across, rather than columns.
        for group in [list(chain(*row))] if all(len(block) == 1 for block in row) else row:
            for line in _rows(group):
                yield from _lines(line)
        begin += 1


def _block_rows(parts: list[_Part]) -> list[list[_Block]]:
    """Return the blocks of a column row by row: blocks that overlap in height are beside each other."""
    rows: list[list[_Block]] = []
    bottom = 0.0
    for block in sorted(_blocks(parts), key=lambda block: -_top(block)):
        if rows and _top(block) > bottom:
            rows[-1].append(block)
            bottom = min(bottom, _bottom(block))
        else:
            rows.append([block])
            bottom = _bottom(block)
    return [line for row in rows for line in _exploded(row)]


def _blocks(parts: list[_Part]) -> list[_Block]:
    blocks: list[_Block] = []
    for part in sorted(parts, key=lambda part: part.order):
        before = blocks[-1][-1] if blocks else None
        if before is not None and _is_next_line(before, part):
            blocks[-1].append(part)
        else:
            blocks.append([part])
    return blocks


def _is_next_line(before: _Part, part: _Part) -> bool:
    """Whether a part is the next line of a block."""
    step, size = before.baseline - part.baseline, part.size
    aligned = (
        abs(before.left - part.left),
        abs(before.right - part.right),
        abs(before.left + before.right - part.left - part.right) / 2,
    )
    return (
        part.order == before.order + 1
        and abs(before.size - size) < 0.1 * size
        and 0.5 * size < step < _LINE_STEP * size
        and min(aligned) < 0.5 * size
    )


def _top(block: _Block) -> float:
    return max(part.baseline + 0.65 * part.size for part in block)


def _bottom(block: _Block) -> float:
    return min(part.baseline - 0.15 * part.size for part in block)


def _exploded(row: list[_Block]) -> Iterator[list[_Block]]:
    """Yield the rows of a table that is drawn column by column: short lines, each with one at its height beside it."""
    drawn = _is_right_to_left(chain(*row))
    blocks = sorted(row, key=lambda block: block[0].order if drawn else min(part.left for part in block))
    parts = list(chain(*blocks))
    tall = [block for block in blocks if len(block) > 1]
    lines = list(chain(*tall))
    if len(tall) > 1 and max(map(len, tall)) > (2 if len(tall) == len(blocks) else 6):
        beside = fmean(
            sum(abs(line.baseline - part.baseline) < 0.2 * line.size for part in parts) > 1 for line in lines
        )
        width = fmean(line.right - line.left for line in lines)
        if beside > 0.8 and width < _COLUMN_EMS * median(line.size for line in lines):
            yield from ([[part] for part in line] for line in _rows(parts))
            return
    yield blocks


def _lines(row: list[_Part]) -> Iterator[Line]:
    """Yield a row as one line; raised and lowered parts are lines of their own."""
    same_height: list[_Part] = []
    for part in row:
        if same_height and (
            abs(part.baseline - same_height[-1].baseline) > 0.1 * part.size
            or abs(part.size - same_height[-1].size) > 0.5
        ):
            yield _joined(same_height)
            same_height = []
        same_height.append(part)
    yield _joined(same_height)


def _joined(parts: list[_Part]) -> Line:
    cells = [[parts[0]]]
    for before, part in pairwise(parts):
        if part.left - before.right > APART * part.size and not (part is parts[1] and _MARK.fullmatch(before.text)):
            cells.append([])
        cells[-1].append(part)
    texts = tuple(" ".join(part.text for part in cell) for cell in cells)
    size = median(part.size for part in parts)
    return Line(texts, *_ends(parts), parts[0].baseline, size, tuple(map(_ends, cells)))


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _is_tabular(row: list[_Block]) -> bool:
    """Whether a row has cells; the mark of an item and its text are none."""
    gaps = (_ends(block)[0] - _ends(before)[1] > CELL_GAP * block[0].size for before, block in pairwise(row))
    return any(gaps) and not (len(row) == 2 and _MARK.fullmatch(row[0][0].text))


def _table_end(rows: list[list[_Block]], begin: int) -> int:
    """Return where the rows end that may be a table which begins there."""
    if not _is_tabular(rows[begin]):
        return begin
    end = begin + 1
    left, right = _ends(chain(*rows[begin]))
    while end < len(rows):
        above, row = rows[end - 1], rows[end]
        size = max(row[0][0].size, above[0][0].size)
        if _gap(above, row) > _ROW_GAP * size:
            break
        first, last = _ends(chain(*row))
        if not _is_tabular(row):
            # A cell alone, or a line of one: within the table, and not nearly as wide.
            wide = last - first > 0.6 * (right - left)
            if wide or first < left - size or last > right + size or abs(row[0][0].size - above[0][0].size) > 1:
                break
        left, right = min(left, first), max(right, last)
        end += 1
    while end > begin + 1 and not _is_tabular(rows[end - 1]):
        # The last rows of a table may have one cell each; what is further away is a line below it.
        gaps = [_gap(above, row) for above, row in pairwise(rows[begin:end])]
        if gaps[-1] <= max(1.2 * median(gaps), 0.3 * rows[end - 1][0][0].size):
            break
        end -= 1
    return end


def _gap(above: list[_Block], row: list[_Block]) -> float:
    return min(map(_bottom, above)) - max(map(_top, row))


def _table(blocks: list[list[_Block]]) -> Line | None:
    """Return rows as a table; None if their cells do not stand below each other."""
    rows = [list(chain.from_iterable(row)) for row in blocks]
    columns = _edges(blocks)
    if len(columns) < 2 or sum(map(_is_tabular, blocks)) < 2:
        return None
    title = ""
    while len(rows) > 2 and any(_is_title(part, columns) for part in rows[0]):
        title += " ".join(part.text for part in rows.pop(0)) + "\n\n"
    grid = _merged([_Row(row, columns) for row in rows])
    if len(grid) < 2 or not _is_aligned(rows, columns):
        return None
    texts = [[" ".join(part.text for part in cell).replace("|", "\\|") for cell in row.cells] for row in grid]
    names = _heading(grid, texts)
    lines = [f"| {' | '.join(cells)} |" for cells in [names, *texts]]
    lines.insert(1, "|" + " --- |" * len(columns))
    parts = list(chain(*rows))
    baseline, size = min(part.baseline for part in parts), median(part.size for part in parts)
    return Line((title + "\n".join(lines),), *_ends(parts), baseline, size, tuple(columns), is_table=True)


def _is_title(part: _Part, columns: list[tuple[float, float]]) -> bool:
    """Whether a part goes over most of a table, as its title does."""
    wide = part.right - part.left > 0.5 * (columns[-1][1] - columns[0][0])
    return wide and len(_overlapped(part, columns)) > 1 and len(_parted(part, columns)) == 1


def _edges(rows: list[list[_Block]]) -> list[tuple[float, float]]:
    """Return where each column begins and ends, by one of the fullest rows; nothing if most cells fit none so."""
    ordered = sorted(rows, key=lambda row: -len(row))
    parts = [part for row in rows for part in chain(*row)]
    for first in range(min(_FULLEST_ROWS, len(ordered))):
        columns = _edges_by(ordered[first:] + ordered[:first])
        if fmean(len(_overlapped(part, columns)) == 1 for part in parts) >= _IN_ONE_COLUMN:
            return columns
    return []


def _edges_by(rows: list[list[_Block]]) -> list[tuple[float, float]]:
    """Return where each column begins and ends: as in the first row, widened and added to by the others."""
    columns: list[tuple[float, float]] = []
    for left, right in sorted(map(_ends, rows[0]), key=lambda ends: ends[1] - ends[0]):
        inside = [i for i, ends in enumerate(columns) if left < ends[1] and right > ends[0]]
        if not inside:
            columns = sorted([*columns, (left, right)])
        elif len(inside) == 1:
            columns[inside[0]] = min(left, columns[inside[0]][0]), max(right, columns[inside[0]][1])
    for part in (part for row in rows[1:] for part in chain(*row)):
        overlapped = _overlapped(part, columns)
        if not overlapped:
            columns = sorted([*columns, (part.left, part.right)])
        elif len(overlapped) == 1:
            i = overlapped[0]
            # Not into the next column.
            left = max(part.left, columns[i - 1][1]) if i else part.left
            right = min(part.right, columns[i + 1][0]) if i + 1 < len(columns) else part.right
            columns[i] = min(columns[i][0], left), max(columns[i][1], right)
    return columns


def _overlapped(part: _Part, columns: Sequence[tuple[float, float]]) -> list[int]:
    """Return the indexes of the columns that a part overlaps."""
    begin, end = part.left + 0.15 * part.size, part.right - 0.15 * part.size
    return [i for i, (left, right) in enumerate(columns) if begin < right and end > left]


def _parted(part: _Part, columns: Sequence[tuple[float, float]]) -> list[_Part]:
    """Return a part that stands in several columns column by column, if the gaps between its words tell them apart."""
    if len(_overlapped(part, columns)) < 2 or len(part.words) < 2:
        return [part]
    groups = [[part.words[0]]]
    for before, word in pairwise(part.words):
        if _nearest(before, columns) != _nearest(word, columns) and word[1] - before[2] > _NARROWEST_GAP * part.size:
            groups.append([])
        groups[-1].append(word)
    return [
        part._replace(
            text=" ".join(word[0] for word in group), left=group[0][1], right=group[-1][2], words=tuple(group)
        )
        for group in groups
    ]


def _nearest(word: Word, columns: Sequence[tuple[float, float]]) -> int:
    middle = (word[1] + word[2]) / 2
    return min(range(len(columns)), key=lambda i: max(columns[i][0] - middle, middle - columns[i][1], 0.0))


class _Row:
    """A row of a table: the parts in each of its columns."""

    def __init__(self, parts: list[_Part], columns: Sequence[tuple[float, float]]) -> None:
        self.cells: list[list[_Part]] = [[] for _ in columns]
        self.spans: dict[int, list[int]] = {}
        self.baseline, self.bottom = max(p.baseline for p in parts), min(p.baseline for p in parts)
        self.size = parts[0].size
        for piece in chain.from_iterable(_parted(part, columns) for part in parts):
            first, *others = _overlapped(piece, columns) or [_nearest((piece.text, piece.left, piece.right), columns)]
            self.cells[first].append(piece)
            if others:
                self.spans[first] = others

    @property
    def filled(self) -> set[int]:
        return {i for i, cell in enumerate(self.cells) if cell}

    @property
    def has_digits(self) -> bool:
        return any(char.isdigit() for cell in self.cells for part in cell for char in part.text)

    def add(self, below: _Row) -> None:
        self.cells = [cell + more for cell, more in zip(self.cells, below.cells, strict=True)]
        self.bottom = min(self.bottom, below.bottom)


def _merged(rows: list[_Row]) -> list[_Row]:
    """Return the rows with lines of one cell joined to the line above, and a heading of several lines to one."""
    steps = [above.baseline - below.baseline for above, below in pairwise(rows) if len(below.filled) > 1]
    usual = median(steps) if steps else 0.0
    merged = rows[:1]
    for row in rows[1:]:
        above = merged[-1]
        step = above.bottom - row.baseline
        close = step < _LINE_STEP * row.size
        drawn_on = all(row.cells[i][0].order == above.cells[i][-1].order + 1 for i in row.filled & above.filled)
        if close and row.filled < above.filled and (step < 0.93 * usual or drawn_on):
            above.add(row)
        elif close and len(merged) == 1 and above.filled < row.filled and not (above.has_digits or row.has_digits):
            above.add(row)
            above.spans = row.spans
        else:
            merged.append(row)
    if len(merged) > 2 and merged[0].spans and not merged[1].has_digits:
        # Headings over several columns are said in each of them.
        names = merged[0].cells
        for first, others in merged[0].spans.items():
            for i in others:
                names[i] = names[i] or names[first]
        merged[0].add(merged.pop(1))
    return merged


def _is_aligned(rows: list[list[_Part]], columns: Sequence[tuple[float, float]]) -> bool:
    """Whether the cells of most columns share an edge or their centre, as prose with wide gaps does not."""
    aligned = 0
    for i in range(len(columns)):
        parts = [part for row in rows for part in row if _overlapped(part, columns) == [i]]
        for share in (0.0, 1.0, 0.5):
            edges = [part.left + share * (part.right - part.left) for part in parts]
            middle = median(edges or [0.0])
            near = [abs(edge - middle) < 0.8 * part.size for edge, part in zip(edges, parts, strict=True)]
            if len(parts) < 2 or fmean(near) >= 0.6:
                aligned += 1
                break
    return aligned >= 0.7 * len(columns)


def _heading(grid: list[_Row], texts: list[list[str]]) -> list[str]:
    """Take the row of headings out of a table; empty ones where its first row has values, or a name and its value."""
    first = texts[0]
    pairs = (
        len(texts) < 3 or first[0].endswith(":") or _ends_in_digits(first) or not all(map(_ends_in_digits, texts[1:]))
    )
    if len(first) == 2 and pairs:
        return [""] * len(first)
    if grid[0].has_digits and not all(_is_name(cell) for cell in first if cell):
        return [""] * len(first)
    return texts.pop(0)


def _ends_in_digits(row: list[str]) -> bool:
    return not row[-1] or any(map(str.isdigit, row[-1]))


def _is_name(cell: str) -> bool:
    """Whether a cell with digits may be a heading: a year, or words."""
    return sum(map(str.isalpha, cell)) > sum(map(str.isdigit, cell)) or (len(cell) == 4 and cell.isdigit())
