"""PDF: the text of its pages in reading order, as paragraphs, with headings found by the outline or the fonts.

`pdf_page.py` arranges a page. Measured on ten files: PDFium takes a tenth of the time of pdfminer.six, and keeps
columns apart where pdfminer.six mixes their lines.
"""

from __future__ import annotations

import ctypes
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, pairwise
from statistics import median
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

from recallite.errors import DocumentError
from recallite_documents.detecting import Loaded, too_long
from recallite_documents.pdf_page import (
    APART,
    CELL_GAP,
    LINE_END_HYPHEN,
    Line,
    arranged,
    clean,
    has_right_to_left,
    without_page_number,
    without_running_lines,
)
from recallite_documents.written_dates import read_written

# The file: its pages, outline and metadata, as PDFium reads them.

_PASSWORD_ERRORS = (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY)
_INFORMATION = {"Author": "author", "Subject": "subject", "Keywords": "keywords"}
_DATES = {"CreationDate": "created", "ModDate": "modified"}
_MOST_PAGES_NAMED = 10
# Why a page is not read: what is said of some pages, and why a file is refused that has no other ones.
_UNREADABLE = {
    "damaged": ("are damaged and were not read", "it is damaged: its pages cannot be read"),
    "unmapped": (
        "were not read: their fonts do not say which characters they draw",
        "its fonts do not say which characters they draw: it needs text recognition (OCR) before",
    ),
    "drawn": ("hold images and no text", "it holds images and no text: it needs text recognition (OCR) before"),
}
_WORDS = re.compile(r"\w+")
# Titles that programs state for a document without one.
_MADE_UP = re.compile(r"^\W*(?:untitled|anonymous|unknown|no title)\b|\.[a-z]{2,5}$|^Microsoft \w+ - ", re.IGNORECASE)
_NOBODY = re.compile(r"\W*(?:anonymous|unknown|unspecified)\W*", re.IGNORECASE)
_Unread = dict[str, Counter[int]]
"""How often something was not read, by what it is and by page, counted from 1."""


def load_pdf(data: bytes, password: str | None, max_chars: int) -> Loaded:
    """Return the text of a PDF; raises DocumentError."""
    pages: list[list[Line]] = []
    heights: list[tuple[float, float]] = []
    asides: list[list[Line]] = []
    said = {""}
    unread: _Unread = defaultdict(Counter)
    chars = 0
    with closing(_open(data, password)) as document:
        document.init_forms()
        for i in range(len(document)):
            pages.append([])
            heights.append((0.0, 0.0))
            asides.append([])
            try:
                page = document[i]
            except pypdfium2.PdfiumError:
                unread["damaged"][i + 1] += 1
                continue
            reader = _Page(page, i + 1, document.formenv, unread)
            lines = reader.lines()
            chars += sum(len(line.text) for line in lines)
            if chars > max_chars:
                raise too_long(max_chars)
            if not (lines or reader.aside) and any(
                item.type == pdfium.FPDF_PAGEOBJ_IMAGE for item in page.get_objects(max_depth=3)
            ):
                unread["drawn"][i + 1] += 1
            pages[i] = without_page_number(lines, i, document.get_page_label(i))
            heights[i] = reader.height
            aside = Line((clean(" ".join(reader.aside)),), 0.0, 0.0, -math.inf, 0.0, ((0.0, 0.0),))
            asides[i] = [aside] * (aside.text not in said)
            said.add(aside.text)
            page.close()
        if not any(pages + asides):
            reasons = (error for what, (_, error) in _UNREADABLE.items() if what in unread)
            raise DocumentError(next(reasons, "it holds no text"))
        arranged_pages = map(arranged, without_running_lines(pages, heights))
        pages = [lines + aside for lines, aside in zip(arranged_pages, asides, strict=True)]
        pages = _with_headings_over_pages(pages)
        headings = _find_headings(pages, _outline(document))
        pages = _without_contents(pages, headings, unread)
        text, starts = compose(pages, headings)
        information = document.get_metadata_dict(skip_empty=True)
        first = min((line for line in pages[0] if line in headings), key=lambda line: headings[line], default=None)
        return Loaded(
            text=text, media_type="application/pdf", pages=starts,
            markdown=bool(headings) or any(line.is_table for line in chain.from_iterable(pages)),
            title=_title(clean(information.get("Title", "")), text, "" if first is None else first.text),
            metadata=_metadata(information, len(pages)), warnings=_warnings(document, unread, len(pages)),
        )  # fmt: skip


def _open(data: bytes, password: str | None) -> pypdfium2.PdfDocument:
    try:
        document = pypdfium2.PdfDocument(data, password=password)
        count = len(document)
    except pypdfium2.PdfiumError as reason:
        if getattr(reason, "err_code", None) not in _PASSWORD_ERRORS:
            raise DocumentError("it is damaged: its pages cannot be found") from reason
        if password is None:
            raise DocumentError("it is encrypted: give its password", "encrypted") from reason
        raise DocumentError("it is encrypted, and this is not its password", "encrypted") from reason
    if not count:
        raise DocumentError("it has no pages")
    return document


def _warnings(document: Any, unread: _Unread, pages: int) -> list[str]:
    """Return what was not read."""
    attachments = [document.get_attachment(i).get_name() for i in range(document.count_attachments())]
    warnings = [f"{name!r} is attached to it and was not read" for name in attachments]
    for what in sorted(unread, key=lambda what: (what not in _UNREADABLE, what)):
        numbers, count = [f"{number:,}" for number in unread[what]], f"{unread[what].total():,}"
        more = ", ..." if len(numbers) > _MOST_PAGES_NAMED else ""
        where = f" (page{'s' if len(numbers) > 1 else ''} {', '.join(numbers[:_MOST_PAGES_NAMED])}{more})"
        if what in _UNREADABLE:
            warnings.append(f"{count} of {pages:,} pages {_UNREADABLE[what][0]}{where}")
        else:
            warnings.append(f"{count} {what} were not read{where}")
    if document.get_formtype() in (pdfium.FORMTYPE_XFA_FULL, pdfium.FORMTYPE_XFA_FOREGROUND):
        warnings.append("it is an XFA form, whose answers may not all be read: print it to PDF")
    return warnings


def _outline(document: Any) -> Iterator[tuple[str, int, int]]:
    """Yield the entries of the outline: title, page from 0, level from 1."""
    for entry in document.get_toc(max_depth=6):
        destination = entry.get_dest()
        page = None if destination is None else destination.get_index()
        if page is not None:
            yield clean(entry.get_title()), page, entry.level + 1


def _title(stated: str, text: str, largest: str) -> str | None:
    """Return the stated title, or the first of the highest headings of the first page if a program made the title up.

    Most words of a title are in the text; those of "untitled" and of the name of a file are not.
    """
    words = set(_WORDS.findall(stated.casefold()))
    unsaid = len(words - set(_WORDS.findall(text.casefold()))) > 0.5 * len(words)
    if unsaid and (largest or _MADE_UP.search(stated)):
        stated = ""
    return stated or largest or None


def _metadata(information: dict[str, str], pages: int) -> dict[str, Any]:
    stated = {ours: clean(information.get(name, "")) for name, ours in _INFORMATION.items()}
    dates = {ours: _date(information.get(name, "")) for name, ours in _DATES.items()}
    said = {name: value for name, value in {**stated, **dates}.items() if value and not _NOBODY.fullmatch(value)}
    return {"page_count": pages, **said}


def _date(value: str) -> str | None:
    """Return a PDF date (D:20220403193102+02'00') in ISO 8601; one that cannot be read as it is."""
    written = read_written(value.removeprefix("D:").replace("'", "").replace("Z0000", "Z"))
    return (clean(value) or None) if written is None else written.begin.isoformat()


# ── a page, as PDFium reads it ───────────────────────────────────────────────────────────────────────────────────────

# A page with a larger share of characters without a code is not text.
_MOST_UNMAPPED = 0.3
_SAMPLED_CHARS = 200
_UPRIGHT = 0.95  # the least cosine of the angle of a scanned line
# The step up or down, in ems, from one character to the next that is on another line.
_JUMP = 0.8
_FILLED = (pdfium.FPDF_FORMFIELD_TEXTFIELD, pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX)
_PASSWORD_FIELD = 1 << 13
_NOTES = (  # annotations whose contents are read
    pdfium.FPDF_ANNOT_TEXT, pdfium.FPDF_ANNOT_FREETEXT, pdfium.FPDF_ANNOT_HIGHLIGHT, pdfium.FPDF_ANNOT_UNDERLINE,
    pdfium.FPDF_ANNOT_STRIKEOUT, pdfium.FPDF_ANNOT_SQUIGGLY, pdfium.FPDF_ANNOT_STAMP, pdfium.FPDF_ANNOT_CARET,
    pdfium.FPDF_ANNOT_SQUARE, pdfium.FPDF_ANNOT_CIRCLE, pdfium.FPDF_ANNOT_LINE, pdfium.FPDF_ANNOT_INK,
    pdfium.FPDF_ANNOT_POLYGON, pdfium.FPDF_ANNOT_POLYLINE,
)  # fmt: skip
_MEDIA = (
    pdfium.FPDF_ANNOT_FILEATTACHMENT, pdfium.FPDF_ANNOT_SOUND, pdfium.FPDF_ANNOT_MOVIE, pdfium.FPDF_ANNOT_SCREEN,
    pdfium.FPDF_ANNOT_THREED, pdfium.FPDF_ANNOT_RICHMEDIA,
)  # fmt: skip
_ABSOLUTE = re.compile(r"(?:https?|ftp|mailto|tel):", re.IGNORECASE)
_LINE_END = re.compile(f"[\r\n]+|{LINE_END_HYPHEN}|$")
_WORD = re.compile(r"\S+")
_BREAK = re.compile(f"[\\s{LINE_END_HYPHEN}]+")


class _Page:
    """Reads a page: its lines, turned upright, with what is filled in and noted on it; counts what is not read."""

    def __init__(self, page: Any, number: int, form: Any, unread: _Unread) -> None:
        self._page, self._number, self._form, self._unread = page, number, form, unread
        self._text = page.get_textpage()
        self._count = self._text.count_chars()
        self._unmapped = {i for i in range(self._count) if pdfium.FPDFText_HasUnicodeMapError(self._text, i) == 1}
        self._struck = list(self._strikes())
        self.aside: list[str] = []  # text at another angle: a stamp in the margin, a watermark
        self._links: dict[int, str] = {}  # addresses by the last character of their words
        self._turns = self._quarter_turns()
        self._box = self._upright(page.get_bbox())
        self.height = self._box[1], self._box[3]

    def lines(self) -> list[Line]:
        """Return the lines of the page in the order in which the file draws them."""
        chars = ""
        if len(self._unmapped) > _MOST_UNMAPPED * self._count:
            self._add_unread("unmapped")
        else:
            hyphens = (pdfium.FPDFText_IsHyphen(self._text, i) == 1 for i in range(self._count))
            chars = "".join(
                LINE_END_HYPHEN if hyphen else chr(pdfium.FPDFText_GetUnicode(self._text, i))
                for i, hyphen in enumerate(hyphens)
            )
        self._links = {i: address for i, address in self._linked(chars) if address}
        lines: list[Line] = []
        begin = 0
        for match in _LINE_END.finditer(chars):
            end = match.end() if match[0] == LINE_END_HYPHEN else match.start()
            if begin < end and self._is_aside(begin):
                self.aside += chars[begin:end].split()
                end = begin
            for first, last in pairwise([begin, *self._jumps(chars, begin, end), end]):
                lines += self._line(chars, first, last)
            begin = match.end()
        lines += self._annotation_lines("\n".join(line.text for line in lines))
        self._text.close()
        return lines

    def _add_unread(self, what: str, count: int = 1) -> None:
        self._unread[what][self._number] += count

    def _quarter_turns(self) -> int:
        """Return by how many quarters the text is turned: a wide table may stand on its side."""
        angles: Counter[int] = Counter()
        for i in range(0, self._count, max(1, self._count // _SAMPLED_CHARS)):
            if pdfium.FPDFText_IsGenerated(self._text, i) != 1:
                # PDFium gives the angle clockwise.
                angles[-round(pdfium.FPDFText_GetCharAngle(self._text, i) / (math.pi / 2)) % 4] += 1
        return angles.most_common(1)[0][0] if angles else 0

    def _is_aside(self, i: int) -> bool:
        """Whether a character stands at another angle than the text of the page."""
        angle = -pdfium.FPDFText_GetCharAngle(self._text, i) - self._turns * math.pi / 2
        return pdfium.FPDFText_IsGenerated(self._text, i) != 1 and math.cos(angle) < _UPRIGHT

    def _upright(self, box: Sequence[float]) -> tuple[float, float, float, float]:
        left, bottom, right, top = box
        for _ in range(self._turns):
            left, bottom, right, top = bottom, -right, top, -left
        return left, bottom, right, top

    def _is_on_page(self, box: tuple[float, float, float, float]) -> bool:
        x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        return self._box[0] - 1 <= x <= self._box[2] + 1 and self._box[1] - 1 <= y <= self._box[3] + 1

    def _jumps(self, chars: str, begin: int, end: int) -> Iterator[int]:
        """Yield where the text leaves its baseline: PDFium takes a single character below a line for one of it."""
        before: float | None = None
        for i in range(begin, end):
            if not chars[i].isspace():
                baseline = self._baseline(i)
                step = 0.0 if before is None else abs(baseline - before)
                if step > 1 and step > _JUMP * self._size(i):
                    yield i
                before = baseline

    def _line(self, chars: str, begin: int, end: int) -> Iterator[Line]:
        """Yield the cells of a line, each as a line."""
        # The edges of the first and last character of each word, of the size that the font states for all characters.
        words = []
        for match in _WORD.finditer(chars, begin, end):
            first, last = match.span()
            boxes = [self._upright(self._text.get_charbox(i, loose=True)) for i in (first, last - 1)]
            if any(map(self._is_on_page, boxes)):
                words.append((first, last, min(box[0] for box in boxes), max(box[2] for box in boxes)))
            else:
                self._add_unread("characters outside the page", last - first)
        if not words:
            return
        # The mark of an item may be of another size than its text.
        size = self._size(max(words, key=lambda word: word[1] - word[0])[0])
        # The words of a right-to-left line are not in the order in which they stand.
        gap = APART if has_right_to_left(chars[begin:end]) else CELL_GAP
        cells = [[words[0]]]
        for before, word in pairwise(words):
            if word[2] - before[3] > gap * size or word[3] < before[2] - gap * size:
                cells.append([])
            cells[-1].append(word)
        baseline = self._baseline(words[0][0])
        for cell in cells:
            if text := clean(self._cell(chars, cell[0][0], cell[-1][1])):
                left, right = min(word[2] for word in cell), max(word[3] for word in cell)
                pieces = text.split()
                whole = len(pieces) == len(cell) and gap == CELL_GAP
                placed = ((piece, word[2], word[3]) for piece, word in zip(pieces, cell, strict=False))
                yield Line((text,), left, right, baseline, size, ((left, right),), (tuple(placed) if whole else (),))

    def _baseline(self, i: int) -> float:
        x, y = ctypes.c_double(), ctypes.c_double()
        pdfium.FPDFText_GetCharOrigin(self._text, i, x, y)
        return self._upright((x.value, y.value, x.value, y.value))[1]

    def _size(self, i: int) -> float:
        """Return the size of the font of a character in points, as it is drawn."""
        matrix = pdfium.FS_MATRIX()
        pdfium.FPDFText_GetMatrix(self._text, i, matrix)
        return float(pdfium.FPDFText_GetFontSize(self._text, i) * math.hypot(matrix.c, matrix.d))

    def _cell(self, chars: str, begin: int, end: int) -> str:
        """Return the text of a cell in reading order, without characters that have no code; a raised 6 is ^6."""
        if has_right_to_left(chars[begin:end]):
            return self._logical_order(chars, begin, end)
        pieces: list[str] = []
        struck = False
        for i in range(begin, end):
            if self._struck and self._is_struck(i) != struck and not chars[i].isspace():
                struck = not struck
                # The mark that ends it is before the blank.
                pieces.insert(len(pieces) - (not struck and pieces[-1].isspace()), "~~")
            if i in self._unmapped:
                self._add_unread("characters without a code")
                continue
            if chars[i].isdigit() and i > begin:
                pieces.append(self._script_mark(chars, i))
            pieces.append(chars[i])
            if i in self._links:
                pieces.append(f" <{self._links.pop(i)}>")
        return "".join(pieces) + "~~" * struck

    def _is_struck(self, i: int) -> bool:
        left, bottom, right, top = self._text.get_charbox(i)
        x, y = (left + right) / 2, (bottom + top) / 2
        return any(box[0] <= x <= box[2] and box[1] <= y <= box[3] for box in self._struck)

    def _strikes(self) -> Iterator[tuple[float, float, float, float]]:
        """Yield the boxes that a reader has struck out."""
        for annotation, kind in self._annotations():
            if kind == pdfium.FPDF_ANNOT_STRIKEOUT:
                for i in range(pdfium.FPDFAnnot_CountAttachmentPoints(annotation)):
                    points = pdfium.FS_QUADPOINTSF()
                    pdfium.FPDFAnnot_GetAttachmentPoints(annotation, i, points)
                    xs, ys = ([getattr(points, f"{axis}{corner}") for corner in range(1, 5)] for axis in ("x", "y"))
                    yield min(xs), min(ys), max(xs), max(ys)

    def _linked(self, chars: str) -> Iterator[tuple[int, str]]:
        """Yield the last character of each link's words, and the address if the text does not have it."""
        said, last = _BREAK.sub("", chars), (0, "")
        for number, (annotation, kind) in enumerate(self._annotations(), 1):
            address = self._address(annotation) if kind == pdfium.FPDF_ANNOT_LINK else ""
            if not _ABSOLUTE.match(address) or address.partition(":")[2].strip("/") in said:
                continue
            box = pdfium.FS_RECTF()
            pdfium.FPDFAnnot_GetRect(annotation, box)
            right, middle, near = max(box.left, box.right), (box.bottom + box.top) / 2, abs(box.top - box.bottom) / 2
            i = pdfium.FPDFText_GetCharIndexAtPos(self._text, right - near, middle, near, near)
            i = i if 0 <= i < len(chars) else -number  # without words
            while 0 <= i < len(chars) - 1 and chars[i + 1] not in "\r\n" and self._middle(i + 1) < right:
                i += 1
            while i > 0 and chars[i].isspace():
                i -= 1
            # Words over several lines have a link on each.
            if last[1] != address:
                yield last
            last = i, address
        yield last

    def _middle(self, i: int) -> float:
        left, _, right, _ = self._text.get_charbox(i)
        return float(left + right) / 2

    def _script_mark(self, chars: str, i: int) -> str:
        """Return ^ or _ before a digit that is raised, or lowered, beside a digit of full size."""
        before = chars[i - 1]
        if not before.isalnum():
            return ""
        full, size = self._size(i - 1), self._size(i)
        step = self._baseline(i) - self._baseline(i - 1) if size < 0.9 * full else 0.0
        return "^" if step > 0.15 * full else "_" if step < -0.05 * full and before.isdigit() else ""

    def _logical_order(self, chars: str, begin: int, end: int) -> str:
        """Return the characters [begin, end) in reading order.

        PDFium reverses runs of right-to-left text character by character. The characters of one glyph (a ligature, or a
        whole word in files of WeasyPrint) are in order already and come out reversed; a glyph without a character comes
        out as its number in the font.
        """
        unmapped = not self._unmapped.isdisjoint(range(begin, end))
        groups: list[tuple[tuple[float, ...], str]] = []
        for i in range(begin, end):
            # A number of such a glyph may also be the code point of a modifier, which these scripts do not use.
            if i in self._unmapped or (unmapped and unicodedata.category(chars[i]) == "Sk"):
                continue
            box = self._text.get_charbox(i)
            if groups and groups[-1][0] == box and not pdfium.FPDFText_IsGenerated(self._text, i):
                groups[-1] = (box, groups[-1][1] + chars[i])
            else:
                groups.append((box, chars[i]))
        pieces = []
        for _, group in groups:
            several = len(group) > 1 and has_right_to_left(group)
            # A space inside such a glyph separates it from left-to-right text, on whichever side that is drawn.
            pieces.append(f" {group[::-1]} " if several and " " in group else group[::-1] if several else group)
        return " ".join("".join(pieces).split())

    def _annotations(self) -> Iterator[tuple[Any, int]]:
        """Yield the annotations of the page with their kinds."""
        for i in range(pdfium.FPDFPage_GetAnnotCount(self._page)):
            annotation = pdfium.FPDFPage_GetAnnot(self._page, i)
            yield annotation, pdfium.FPDFAnnot_GetSubtype(annotation)
            pdfium.FPDFPage_CloseAnnot(annotation)

    def _annotation_lines(self, page_text: str) -> Iterator[Line]:
        """Yield what is filled in and noted, each where it stands; `page_text` is what is drawn."""
        for annotation, kind in self._annotations():
            flags = pdfium.FPDFAnnot_GetFlags(annotation)
            rectangle = pdfium.FS_RECTF()
            pdfium.FPDFAnnot_GetRect(annotation, rectangle)
            text = " ".join(clean(self._annotation_text(annotation, kind, page_text)).split())
            if text and flags & (pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW):
                self._add_unread("hidden annotations")
            elif text:
                left, bottom, right, top = self._upright(
                    (rectangle.left, rectangle.bottom, rectangle.right, rectangle.top)
                )
                size = min(max(top - bottom - 4, 6.0), 10.0)
                # The first line of a box of several is at its top.
                baseline = top - size - 2 if top - bottom > 2.5 * size else bottom + 0.25 * (top - bottom)
                yield Line((text,), left, right, baseline, size, ((left, right),))
            if kind in _MEDIA:
                self._add_unread("attached files and media")

    def _annotation_text(self, annotation: Any, kind: int, page_text: str) -> str:
        if kind == pdfium.FPDF_ANNOT_LINK:  # of an image
            address = self._address(annotation)
            place = next((i for i, linked in self._links.items() if linked == address), None)
            return "" if place is None else f"<{self._links.pop(place)}>"
        if kind != pdfium.FPDF_ANNOT_WIDGET:
            noted = _string(pdfium.FPDFAnnot_GetStringValue, annotation, b"Contents") if kind in _NOTES else ""
            return f"[Note: {noted}]" if noted.strip() and kind != pdfium.FPDF_ANNOT_FREETEXT else noted
        if self._form is None:
            return ""
        form, field = self._form.raw, pdfium.FPDFAnnot_GetFormFieldType(self._form.raw, annotation)
        if field in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON):
            return "[x]" if pdfium.FPDFAnnot_IsChecked(form, annotation) else "[ ]"
        if field not in _FILLED or pdfium.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD_FIELD:
            return ""
        value = _string(pdfium.FPDFAnnot_GetFormFieldValue, form, annotation)
        name = _string(pdfium.FPDFAnnot_GetFormFieldName, form, annotation).rpartition(".")[2]
        return f"{name}: {value}" if value and name and name.casefold() not in page_text.casefold() else value

    def _address(self, annotation: Any) -> str:
        action = pdfium.FPDFLink_GetAction(pdfium.FPDFAnnot_GetLink(annotation))
        document = self._page.pdf.raw
        length = pdfium.FPDFAction_GetURIPath(document, action, None, 0)
        buffer = ctypes.create_string_buffer(max(length, 1))
        pdfium.FPDFAction_GetURIPath(document, action, buffer, length)
        return buffer.value.decode("utf-8", "replace")


def _string(get: Any, *arguments: Any) -> str:
    """Return a string in UTF-16 that PDFium writes into a buffer."""
    length = get(*arguments, None, 0)
    if length <= 2:
        return ""
    buffer = ctypes.create_string_buffer(length)
    get(*arguments, ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), length)
    return buffer.raw[: length - 2].decode("utf-16-le", "replace")


# ── the layout of all pages: their lines become paragraphs and headings of one text ──────────────────────────────────

_LONGEST_HEADING = 120
_IDEOGRAPH = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
_PARTED = re.compile(r"[^\W\d_]-$")
_HYPHENATED = re.compile(r"(?<!\w)\w++-\w+")
_in_address = re.compile(r"://|www\.|@").search
_NUMBERING = re.compile(r"^(\d+(\.\d+)*\.?|[IVXLC]+\.|[A-Z]\.)\s+")
# What ends an entry of a table of contents: the number of a page, often behind dots.
# Both begin where the dots begin: from each dot on, a line of 100,000 takes minutes.
_PAGE_AT_END = re.compile(r"(?<![\s.·…_])[\s.·…_]++(\d{1,5})$")
_LEADER = re.compile(r"(?<![.·…_])(?<![.·…_]\s)(?:[.·…_]\s?+){3,}+\d{1,5}$")
_LEAST_ENTRIES = 2
_BULLET = re.compile(r"([•◦▪‣–—*-]|\(?\d{1,3}[.)]|\(?[a-z][.)]) ")


def _with_headings_over_pages(pages: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Return the pages with the headings of a table repeated where it goes on over the page."""
    done: list[list[Line]] = []
    for lines in pages:
        before = next((page[-1] for page in reversed(done) if page), None)
        if before is not None and lines and before.is_table and lines[0].is_table and _same_columns(before, lines[0]):
            names = before.text.rpartition("\n\n")[2].partition("\n")[0]
            first_row, dashes, *rows = lines[0].text.split("\n")
            if first_row not in (names, "|" + "  |" * len(before.edges)):
                rows = [first_row, *rows]
            lines = [lines[0]._replace(cells=("\n".join([names, dashes, *rows]),)), *lines[1:]]
        done.append(list(lines))
    return done


def _same_columns(above: Line, below: Line) -> bool:
    return len(above.edges) == len(below.edges) and all(
        one[0] < other[1] and other[0] < one[1] for one, other in zip(above.edges, below.edges, strict=True)
    )


def _find_headings(pages: Sequence[Sequence[Line]], outline: Iterable[tuple[str, int, int]]) -> dict[Line, int]:
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


def _without_contents(pages: Sequence[list[Line]], headings: dict[Line, int], unread: _Unread) -> list[list[Line]]:
    """Return the pages without tables of contents: entries that repeat headings, and end with the page of each."""
    found_on = {_key(line.text): i for i, lines in reversed([*enumerate(pages)]) for line in lines if line in headings}

    def entries(line: Line) -> list[tuple[str, int]]:
        """Return the heading and the number of each entry in a line or a table; [] if it has anything else."""
        rows = [" ".join(row.replace("|", " ").split()) for row in line.text.split("\n")]
        ends = [(row, _PAGE_AT_END.search(row)) for row in rows if row.strip("- :")]
        if line in headings or any(end is None for _, end in ends):
            return []
        return [(_key(row[: end.start()]), int(end[1])) for row, end in ends if end is not None]

    kept: list[list[Line]] = []
    for i, lines in enumerate(pages):
        listed = [entries(line) for line in lines]
        shown = [[number - found_on[key] for key, number in of_line if key in found_on] for of_line in listed]
        # A table of figures may name headings too: its numbers are no pages.
        is_contents = (
            sum(map(len, shown)) >= _LEAST_ENTRIES and len({step for of_line in shown for step in of_line}) == 1
        )
        kept.append([])
        for line, of_line, steps in zip(lines, listed, shown, strict=True):
            if is_contents and of_line and (steps or _LEADER.search(line.text)):
                unread["entries of contents"][i + 1] += len(of_line)
            else:
                kept[-1].append(line)
    return kept


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
            if turned and previous is not None and _PARTED.search(previous.text) and line.text[0].islower():
                # PDFium sees no further than the page.
                pieces[-1] = pieces[-1].removesuffix("-")
                length -= 1
                previous = previous._replace(cells=(*previous.cells[:-1], previous.cells[-1][:-1] + LINE_END_HYPHEN))
            gap = "" if previous is None else layout.gap(previous, line, headings, turned)
            if gap in ("", " ") and previous is not None and previous.text.endswith(LINE_END_HYPHEN):
                gap = "-" if _keeps_hyphen(previous.text, line.text, words) else ""
            if turned:
                starts.append(length + len(gap))
                turned = False
            level = headings.get(line)
            mark = "#" * level + " " if level and gap in ("", "-", "\n\n") else ""
            piece = mark + line.text.removesuffix(LINE_END_HYPHEN)
            pieces += [gap, piece]
            length += len(gap) + len(piece)
            previous = line
        if turned:
            starts.append(length)
    return "".join(pieces), starts


def _keeps_hyphen(before: str, after: str, words: set[str]) -> bool:
    """Whether the hyphen at the end of a line is part of the word: as elsewhere, the second one, before a name, or in
    an address.
    """
    left = re.search(r"(-?)(?<!\w)(\w++)(?=\ufffe$)", before)
    right = re.match(r"\w+", after)
    if left is None or right is None or left[1] or _in_address(before, before.rfind(" ") + 1):
        return True
    return f"{left[2]}-{right[0]}" in words or not right[0][0].islower()


class _Layout:
    """The usual layout of a page: where the lines of a column end, and the distance between them."""

    def __init__(self, lines: Sequence[Line]) -> None:
        steps = [above.baseline - below.baseline for above, below in pairwise(lines)]
        near = [step for step, line in zip(steps, lines, strict=False) if 0.5 * line.size < step < 3 * line.size]
        self._step = median(near) if near else 0.0
        self._ends: dict[tuple[int, int], float] = {}
        for line in (line for line in lines if not line.is_table):
            column = round(line.left / 36), round(line.size)
            self._ends[column] = max(self._ends.get(column, line.right), line.right)

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
        # The lines of one heading are as near as its font asks for, however far apart those of the text are.
        usual = before.size if before in headings else max(self._step, before.size)
        if step > 1.4 * usual or abs(before.size - after.size) > 0.2 * before.size:
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
        end = max(self._ends.get((near, round(line.size)), line.right) for near in (column - 1, column, column + 1))
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
