"""Documents made for the tests, hostile ones too."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import NamedTuple

import docx
import docx.document
import pypdf


class Put(NamedTuple):
    """A line of text on a page, in points from its lower left corner."""

    x: float
    y: float
    text: str
    size: float = 11


def pdf(*pages: list[Put], title: str | None = None) -> bytes:
    """A PDF of pages of lines in Helvetica, drawn in the order given."""
    contents = [
        b"".join(
            f"BT /F1 {put.size} Tf 1 0 0 1 {put.x} {put.y} Tm (".encode()
            + put.text.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
            + b") Tj ET\n"
            for put in page
        )
        for page in pages
    ]
    return raw_pdf(*contents, title=title)


def raw_pdf(*contents: bytes, title: str | None = None, more: dict[bytes, bytes] | None = None) -> bytes:
    """A PDF of pages with these content streams; `more` are further objects, by the names of forms."""
    forms = more or {}
    first_form = 4 + 2 * len(contents)
    names = b" ".join(b"/%s %d 0 R" % (name, first_form + place) for place, name in enumerate(forms))
    resources = b"<< /Font << /F1 3 0 R >> /XObject << %s >> >>" % names
    kids = b" ".join(b"%d 0 R" % (4 + 2 * place) for place in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(contents), kids),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for place, content in enumerate(contents):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources %s /Contents %d 0 R >>"
            % (resources, 5 + 2 * place)
        )
        objects.append(_stream(b"", content))
    form = b"/Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources " + resources
    objects += [_stream(form, content) for content in forms.values()]
    trailer = b""
    if title is not None:
        objects.append(b"<< /Title (%s) /Author (A. Writer) /CreationDate (D:20240102030405Z) >>" % title.encode())
        trailer = b" /Info %d 0 R" % len(objects)
    out = bytearray(b"%PDF-1.7\n")
    offsets = []
    for number, item in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, item)
    begin = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer << /Size %d /Root 1 0 R%s >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, trailer, begin)
    return bytes(out)


def _stream(dictionary: bytes, content: bytes) -> bytes:
    packed = zlib.compress(content)
    return b"<< %s /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (dictionary, len(packed), packed)


def paragraph(x: float, y: float, lines: list[str], step: float = 14) -> list[Put]:
    """Lines below one another."""
    return [Put(x, y - place * step, line) for place, line in enumerate(lines)]


IMAGE = b"q 100 0 0 100 50 600 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x7f EI Q\n"


def image_pdf() -> bytes:
    """A page with a picture and no text."""
    return raw_pdf(IMAGE)


def endless_pdf() -> bytes:
    """A page whose drawing draws ten times what draws ten times ...: 10^12 lines of text."""
    forms = {b"X%d" % level: b"/X%d Do " % (level + 1) * 10 for level in range(12)}
    forms[b"X12"] = b"BT /F1 11 Tf 50 700 Td (again and again) Tj ET "
    return raw_pdf(b"/X0 Do", more=forms)


def swelling_pdf(megabytes: int) -> bytes:
    """A page whose content is blanks: a thousandth of their size in the file."""
    return raw_pdf(b" " * (megabytes * 1_000_000) + b"BT /F1 11 Tf 50 700 Td (at last) Tj ET")


def encrypted(data: bytes, password: str) -> bytes:
    """The PDF behind a password."""
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(data))
    writer.encrypt(password, algorithm="RC4-128")
    return written(writer)


def written(writer: pypdf.PdfWriter) -> bytes:
    """The bytes of a writer's PDF."""
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def word(*blocks: tuple[str, str], title: str = "", author: str = "", table: list[list[str]] | None = None) -> bytes:
    """A DOCX of paragraphs, each with its style."""
    document = docx.Document()
    document.core_properties.title = title
    document.core_properties.author = author
    for style, text in blocks:
        document.add_paragraph(text, style=style)
    if table is not None:
        made = document.add_table(len(table), len(table[0]))
        for row, cells in zip(made.rows, table, strict=True):
            for cell, text in zip(row.cells, cells, strict=True):
                cell.text = text
    return saved(document)


def saved(document: docx.document.Document) -> bytes:
    """The bytes of a Word document."""
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def word_bomb(megabytes: int, filling: bytes = b" ") -> bytes:
    """A DOCX whose main part begins with so much of one thing."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(word(("Normal", "text")))) as plain, zipfile.ZipFile(out, "w") as bomb:
        for member in plain.infolist():
            data = plain.read(member)
            if member.filename == "word/document.xml":
                data = data.replace(b"<w:body>", b"<w:body>" + filling * (megabytes * 1_000_000 // len(filling)))
            bomb.writestr(member.filename, data, zipfile.ZIP_DEFLATED)
    return out.getvalue()
