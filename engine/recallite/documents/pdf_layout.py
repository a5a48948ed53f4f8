"""The layout of PDF pages: composes drawn lines into columns, tables, paragraphs and headings of one text.

None of eleven libraries reads the same files better in words, order and tables together: LiteParse merges rows of
tables and makes three times the headings, pdfplumber loses a fifth of the words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, pairwise, zip_longest
from statistics import fmean, median
from typing import NamedTuple

LINE_END_HYPHEN = "\ufffe"
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\xad\ufffe\uffff\ud800-\udfff]")
_BULLET = re.compile(r"([•◦▪‣–—*-]|\(?\d{1,3}[.)]|\(?[a-z][.)]) ")
_MARK = re.compile(r"[•◦▪‣–—*·oo-]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]")
_NUMBERING = re.compile(r"^(\d+(\.\d+)*\.?|[IVXLC]+\.|[A-Z]\.)\s+")
_HYPHENATED = re.compile(r"(?<!\w)\w++-\w+")
_DIGITS = re.compile(r"\d+")
_IDEOGRAPH = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_LONGEST_HEADING = 120
# Columns of text have at least so many lines, so many ems long, which fill so much of the column; if the file draws
# across, as it draws a table, this much.
_COLUMN_LINES, _COLUMN_EMS, _COLUMN_FILL, _DRAWN_ACROSS_FILL = 4, 12, 0.45, 0.7
# Gaps, in ems: between cells of a table, and between parts of a line that are said apart.
CELL_GAP = 0.9
_APART = 1.5
# The least gap between two columns in a row that says them as one; the most between rows of a table; the step to the
# next line of a cell. All in ems.
_NARROWEST_GAP, _ROW_GAP, _LINE_STEP = 0.4, 2.4, 1.4
# Columns are those of one of so many fullest rows, if such a share of the cells is in one column each.
_FULLEST_ROWS, _IN_ONE_COLUMN = 4, 0.75
# Headers and footers: in this share of the height at each end, with a gap of so many usual steps, as high but for so
# many points, on this share of the pages (left and right ones may differ), of three at least.
_MARGIN, _WIDE_GAP, _SAME_HEIGHT, _RUNNING_PAGES, _LEAST_PAGES = 0.12, 1.3, 4.0, 0.3, 3


Word = tuple[str, float, float]
"""A word, and where it begins and ends."""


class Line(NamedTuple):
    """A line of a page: its cells (one, but where there are wide gaps), where it begins and ends, its baseline, the size
    of its font, where each cell begins and ends, and their words; in points, y grows upward. A table is a line with its
    Markdown.
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


# ── a page ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def arranged(lines: Sequence[Line]) -> list[Line]:
    """Return the lines of a page in reading order, column by column, and its tables as Markdown."""
    parts = [
        _Part(text, left, right, line.baseline, line.size, 0, words)
        for line in lines
        for text, (left, right), words in zip_longest(line.cells, line.edges, line.words, fillvalue=())
    ]
    parts = [part._replace(order=place) for place, part in enumerate(_with_scripts(parts))]
    return [line for column in _columns(parts) for line in _column(column)]


def _with_scripts(parts: Iterable[_Part]) -> Iterator[_Part]:
    """Yield parts joined to the raised and lowered ones that touch them: 10 and a raised 6 are 10^6, and not 106."""
    held: _Part | None = None
    scripts = ""
    for part in parts:
        step = 0.0 if held is None else part.baseline - held.baseline
        if held is None or not _touches(held, part) or abs(step) >= 0.6 * held.size:
            if held is not None:
                yield held
            held, scripts = part, ""
            continue
        smaller = part.size < 0.9 * held.size
        beside = held.text[-1].isalnum() and part.text[0].isalnum()
        mark = ""
        if smaller and beside and step > 0.15 * held.size:
            mark = "^"
        elif beside and held.text[-1].isdigit() and part.text[0].isdigit():
            mark = "_" if smaller and step < 0 else " " if scripts else ""
        scripts = mark if smaller else ""
        full = held if held.size >= part.size else part
        held = _Part(held.text + mark + part.text, held.left, part.right, full.baseline, full.size, held.order)
    if held is not None:
        yield held


def _touches(before: _Part, part: _Part) -> bool:
    return -0.3 * before.size < part.left - before.right < 0.15 * before.size and not (
        _RIGHT_TO_LEFT.search(before.text) or _RIGHT_TO_LEFT.search(part.text)
    )


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
    return [sorted(row, key=_place_in_row(row)) for row in rows]


def _place_in_row(row: Sequence[_Part]) -> Callable[[_Part], float]:
    drawn = any(_RIGHT_TO_LEFT.search(part.text) for part in row)
    return lambda part: part.order if drawn else part.left


def _columns(parts: list[_Part]) -> Iterator[list[_Part]]:
    """Yield the parts of a page column by column: what is above two columns, the left, the right, and what is below."""
    rows = _rows(parts)
    lefts = Counter(round(part.left / 3) for part in parts)
    best: tuple[int, int, int, float] | None = None
    for place, count in lefts.items():
        x = 3 * place - 2.0
        if count + lefts[place - 1] + lefts[place + 1] < _COLUMN_LINES:
            continue
        crossing = [any(part.left < x - 1 and part.right > x + 3 for part in row) for row in rows]
        begin = 0
        for crosses, run in groupby(crossing):
            end = begin + len(list(run))
            if not crosses and (best is None or end - begin > best[1] - best[0]):
                inside = [part for row in rows[begin:end] for part in row]
                if _are_columns(
                    [part for part in inside if part.left < x], [part for part in inside if part.left >= x]
                ):
                    best = (begin, end, 0, x)
            begin = end
    if best is None:
        yield parts
        return
    begin, end, _, x = best
    inside = [part for row in rows[begin:end] for part in row]
    for group in (
        [part for row in rows[:begin] for part in row],
        [part for part in inside if part.left < x],
        [part for part in inside if part.left >= x],
        [part for row in rows[end:] for part in row],
    ):
        if group:
            yield from _columns(group)


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
    widths = [max(part.right for part in row) - min(part.left for part in row) for row in rows]
    column = max(part.right for part in parts) - min(part.left for part in parts)
    size = median(part.size for part in parts)
    cells = sum(len(part.text) > 2 for part in parts)
    return column > 0 and fmean(widths) >= max(_COLUMN_EMS * size, filled * column) and cells < 1.5 * len(rows)


def _column(parts: list[_Part]) -> Iterator[Line]:
    """Yield the lines of a column, tables as one line each."""
    rows = _block_rows(parts)
    place = 0
    while place < len(rows):
        end = _table_end(rows, place)
        table = _table(rows[place:end]) if end - place > 1 else None
        if table is not None:
            yield table
            place = end
        else:
            for row in (
                _rows(list(chain.from_iterable(rows[place])))
                if _is_interlaced(rows[place])
                else _by_blocks(rows[place])
            ):
                yield from _lines(row)
            place += 1


def _by_blocks(row: list[_Block]) -> Iterator[list[_Part]]:
    for block in row:
        yield from _rows(block)


def _is_interlaced(row: list[_Block]) -> bool:
    """Whether blocks beside each other are lines that go across, rather than columns."""
    return all(len(block) == 1 for block in row)


def _block_rows(parts: list[_Part]) -> list[list[_Block]]:
    """Return the blocks of a column row by row: those that overlap in height are beside each other."""
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
    drawn = any(_RIGHT_TO_LEFT.search(part.text) for block in row for part in block)
    blocks = sorted(row, key=lambda block: block[0].order if drawn else min(part.left for part in block))
    tall = [block for block in blocks if len(block) > 1]
    heights = [part.baseline for block in blocks for part in block]
    lines = [part for block in tall for part in block]
    if len(tall) > 1 and max(map(len, tall)) > (2 if len(tall) == len(blocks) else 6):
        beside = fmean(sum(abs(part.baseline - height) < 0.2 * part.size for height in heights) > 1 for part in lines)
        if beside > 0.8 and fmean(part.right - part.left for part in lines) < _COLUMN_EMS * median(
            p.size for p in lines
        ):
            for parts in _rows([part for block in blocks for part in block]):
                yield [[part] for part in parts]
            return
    yield blocks


def _lines(row: list[_Part]) -> Iterator[Line]:
    """Yield a row as one line; raised and lowered parts are lines of their own."""
    held: list[_Part] = []
    for part in row:
        if held and (abs(part.baseline - held[-1].baseline) > 0.1 * part.size or abs(part.size - held[-1].size) > 0.5):
            yield _joined(held)
            held = []
        held.append(part)
    yield _joined(held)


def _joined(parts: list[_Part]) -> Line:
    cells = [[parts[0]]]
    for before, part in pairwise(parts):
        if part.left - before.right > _APART * part.size:
            cells.append([])
        cells[-1].append(part)
    texts = tuple(" ".join(part.text for part in cell) for cell in cells)
    edges = tuple((min(part.left for part in cell), max(part.right for part in cell)) for cell in cells)
    sizes = [part.size for part in parts]
    return Line(texts, min(edges)[0], max(edge[1] for edge in edges), parts[0].baseline, median(sizes), edges)


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _is_tabular(row: list[_Block]) -> bool:
    """Whether a row has cells; the mark of an item and its text are none."""
    ends = [(min(part.left for part in block), max(part.right for part in block), block[0].size) for block in row]
    gaps = any(after[0] - before[1] > CELL_GAP * after[2] for before, after in pairwise(ends))
    return gaps and not (len(row) == 2 and _MARK.fullmatch(row[0][0].text))


def _table_end(rows: list[list[_Block]], begin: int) -> int:
    """Return where the rows end that may be a table which begins there."""
    if not _is_tabular(rows[begin]):
        return begin
    end = begin + 1
    left, right = _ends(rows[begin])
    while end < len(rows):
        above, row = rows[end - 1], rows[end]
        size = max(row[0][0].size, above[0][0].size)
        if _gap(above, row) > _ROW_GAP * size:
            break
        first, last = _ends(row)
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


def _ends(row: list[_Block]) -> tuple[float, float]:
    parts = list(chain.from_iterable(row))
    return min(part.left for part in parts), max(part.right for part in parts)


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
    parts = list(chain.from_iterable(rows))
    left, right = min(part.left for part in parts), max(part.right for part in parts)
    return Line(
        (title + "\n".join(lines),), left, right, min(part.baseline for part in parts), median(part.size for part in parts),
        tuple(columns), is_table=True,
    )  # fmt: skip


def _is_title(part: _Part, columns: list[tuple[float, float]]) -> bool:
    """Whether a part goes over most of a table, as its title does."""
    wide = part.right - part.left > 0.5 * (columns[-1][1] - columns[0][0])
    return wide and len(_overlapped(part, columns)) > 1 and len(_parted(part, columns)) == 1


def _edges(rows: list[list[_Block]]) -> list[tuple[float, float]]:
    """Return where each column begins and ends, by one of the fullest rows; nothing if most cells fit none so."""
    ordered = sorted(rows, key=lambda row: -len(row))
    parts = [part for row in rows for part in chain.from_iterable(row)]
    for first in range(min(_FULLEST_ROWS, len(ordered))):
        columns = _edges_by(ordered[first:] + ordered[:first])
        if fmean(len(_overlapped(part, columns)) == 1 for part in parts) >= _IN_ONE_COLUMN:
            return columns
    return []


def _edges_by(rows: list[list[_Block]]) -> list[tuple[float, float]]:
    """Return where each column begins and ends: those of the first row, widened and added to by the others."""
    columns: list[tuple[float, float]] = []
    blocks = [(min(p.left for p in block), max(p.right for p in block)) for block in rows[0]]
    for left, right in sorted(blocks, key=lambda ends: ends[1] - ends[0]):
        inside = [place for place, ends in enumerate(columns) if left < ends[1] and right > ends[0]]
        if not inside:
            columns = sorted([*columns, (left, right)])
        elif len(inside) == 1:
            columns[inside[0]] = min(left, columns[inside[0]][0]), max(right, columns[inside[0]][1])
    for part in (part for row in rows[1:] for part in chain.from_iterable(row)):
        met = _overlapped(part, columns)
        if not met:
            columns = sorted([*columns, (part.left, part.right)])
        elif len(met) == 1:
            place = met[0]
            # Not into the next column.
            left = max(part.left, columns[place - 1][1]) if place else part.left
            right = min(part.right, columns[place + 1][0]) if place + 1 < len(columns) else part.right
            columns[place] = min(columns[place][0], left), max(columns[place][1], right)
    return columns


def _overlapped(part: _Part, columns: Sequence[tuple[float, float]]) -> list[int]:
    slack = 0.15 * part.size
    return [
        place for place, (left, right) in enumerate(columns) if part.left < right - slack and part.right > left + slack
    ]


def _parted(part: _Part, columns: Sequence[tuple[float, float]]) -> list[_Part]:
    """Return a part that stands in several columns column by column, if the gaps between its words tell them apart."""
    if len(_overlapped(part, columns)) < 2 or len(part.words) < 2:
        return [part]
    groups = [[part.words[0]]]
    for before, word in pairwise(part.words):
        column, other = (min(range(len(columns)), key=lambda c: _distance(each, columns[c])) for each in (before, word))
        if column != other and word[1] - before[2] > _NARROWEST_GAP * part.size:
            groups.append([])
        groups[-1].append(word)
    return [
        part._replace(
            text=" ".join(word[0] for word in group), left=group[0][1], right=group[-1][2], words=tuple(group)
        )
        for group in groups
    ]


def _distance(word: Word, column: tuple[float, float]) -> float:
    middle = (word[1] + word[2]) / 2
    return max(column[0] - middle, middle - column[1], 0.0)


class _Row:
    """A row of a table: the parts in each of its columns."""

    def __init__(self, parts: list[_Part], columns: Sequence[tuple[float, float]]) -> None:
        self.cells: list[list[_Part]] = [[] for _ in columns]
        self.spans: dict[int, list[int]] = {}
        self.baseline, self.bottom = max(p.baseline for p in parts), min(p.baseline for p in parts)
        self.size = parts[0].size
        for part in (piece for part in parts for piece in _parted(part, columns)):
            met = _overlapped(part, columns) or [min(range(len(columns)), key=lambda c: abs(columns[c][0] - part.left))]
            self.cells[met[0]].append(part)
            if len(met) > 1:
                self.spans[met[0]] = met

    @property
    def filled(self) -> set[int]:
        return {place for place, cell in enumerate(self.cells) if cell}


def _merged(rows: list[_Row]) -> list[_Row]:
    """Return the rows with lines of one cell joined to the line above, and a heading of several lines to one."""
    steps = [above.baseline - below.baseline for above, below in pairwise(rows) if len(below.filled) > 1]
    usual = median(steps) if steps else 0.0
    merged = rows[:1]
    for row in rows[1:]:
        above = merged[-1]
        step = above.bottom - row.baseline
        close = step < _LINE_STEP * row.size
        goes_on = row.filled <= above.filled and len(row.filled) < len(above.filled)
        drawn_on = all(
            row.cells[place][0].order == above.cells[place][-1].order + 1 for place in row.filled & above.filled
        )
        if close and goes_on and (step < 0.93 * usual or drawn_on):
            _join(above, row)
        elif (
            close and len(merged) == 1 and above.filled < row.filled and not _has_digits(above) and not _has_digits(row)
        ):
            _join(row, above, before=True)
            merged[-1] = row
        else:
            merged.append(row)
    if len(merged) > 2 and merged[0].spans and not _has_digits(merged[1]):
        # Headings over several columns are said in each of them.
        for place, met in merged[0].spans.items():
            for column in met[1:]:
                merged[0].cells[column] = merged[0].cells[column] or merged[0].cells[place]
        _join(merged[1], merged[0], before=True)
        del merged[0]
    return merged


def _join(row: _Row, other: _Row, *, before: bool = False) -> None:
    for place, cell in enumerate(other.cells):
        row.cells[place] = cell + row.cells[place] if before else row.cells[place] + cell
    row.bottom = min(row.bottom, other.bottom)


def _has_digits(row: _Row) -> bool:
    return any(char.isdigit() for cell in row.cells for part in cell for char in part.text)


def _is_aligned(rows: list[list[_Part]], columns: Sequence[tuple[float, float]]) -> bool:
    """Whether cells of each column share an edge or their centre, as those of prose with wide gaps do not."""
    aligned = 0
    for place in range(len(columns)):
        parts = [part for row in rows for part in row if _overlapped(part, columns) == [place]]
        if len(parts) < 2:
            aligned += 1
            continue
        for edge in (lambda part: part.left, lambda part: part.right, lambda part: (part.left + part.right) / 2):
            middle = median(map(edge, parts))
            if fmean(abs(edge(part) - middle) < 0.8 * part.size for part in parts) >= 0.6:
                aligned += 1
                break
    return aligned >= 0.7 * len(columns)


def _heading(grid: list[_Row], texts: list[list[str]]) -> list[str]:
    """Take the row of headings out of a table; empty ones where its first row is one of values, or of a name and one."""
    first = texts[0]
    if len(first) == 2 and (len(texts) < 3 or first[0].endswith(":") or not all(map(_ends_in_digits, texts[1:]))):
        return [""] * len(first)
    if _has_digits(grid[0]) and not all(_is_name(cell) for cell in first if cell):
        return [""] * len(first)
    return texts.pop(0)


def _ends_in_digits(row: list[str]) -> bool:
    return not row[-1] or any(map(str.isdigit, row[-1]))


def _is_name(cell: str) -> bool:
    """Whether a cell with digits may be a heading: a year, or words."""
    return sum(map(str.isalpha, cell)) > sum(map(str.isdigit, cell)) or (len(cell) == 4 and cell.isdigit())


def with_headings_over_pages(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Return the pages with the headings of a table repeated where it goes on over the page."""
    done: list[list[Line]] = []
    for lines in pages:
        before = next((page[-1] for page in reversed(done) if page), None)
        if before is not None and lines and before.is_table and lines[0].is_table and _same_columns(before, lines[0]):
            names, dashes = before.text[before.text.rindex("\n\n") + 2 if "\n\n" in before.text else 0 :].split("\n")[
                :2
            ]
            own, _, *rows = lines[0].text.split("\n")
            said = rows if own in (names, _blank(names)) else [own, *rows]
            lines = [lines[0]._replace(cells=("\n".join([names, dashes, *said]),)), *lines[1:]]
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


# ── all pages ────────────────────────────────────────────────────────────────────────────────────────────────────────


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
        found: dict[str, list[tuple[int, Line]]] = {}
        for number, (lines, (low, high)) in enumerate(zip(pages, heights, strict=True)):
            for line in _outside(lines, low, high, top=top):
                found.setdefault(_DIGITS.sub("#", line.text), []).append((number, line))
        for places in found.values():
            height = median(line.baseline for _, line in places)
            near = [place for place in places if abs(place[1].baseline - height) < _SAME_HEIGHT]
            if len({number for number, _ in near}) >= least:
                kept = near[0 if top else -1][0]
                dropped.update(place for place in near if place[0] != kept)
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
        self._ends: dict[int, float] = {}
        for line in lines:
            column = round(line.left / 36)
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
        end = max(self._ends.get(near, 0.0) for near in (column - 1, column, column + 1))
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
