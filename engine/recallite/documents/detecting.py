"""Detecting the format of a document: by its content first, then by its name."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path, PurePosixPath

from recallite.documents.loaded import Kind
from recallite.errors import DocumentError

BY_EXTENSION: dict[str, Kind] = {
    ".pdf": "pdf", ".docx": "docx", ".html": "html", ".htm": "html", ".xhtml": "html", ".md": "markdown",
    ".markdown": "markdown", ".mdown": "markdown", ".mkd": "markdown",
}  # fmt: skip
_BY_MEDIA_TYPE: dict[str, Kind] = {
    "text/html": "html", "application/xhtml+xml": "html", "text/markdown": "markdown",
}  # fmt: skip
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# What is not read, and what to do instead.
_OCR = "its text needs text recognition (OCR) before"
_UNPACK = "unpack it and ingest the folder"
_FOREIGN = (
    (b"\x89PNG\r\n", "a PNG image", _OCR),
    (b"\xff\xd8\xff", "a JPEG image", _OCR),
    (b"GIF8", "a GIF image", _OCR),
    (b"II*\x00", "a TIFF image", _OCR),
    (b"MM\x00*", "a TIFF image", _OCR),
    (b"{\\rtf", "a rich text (RTF) file", "save it as DOCX"),
    (b"\x1f\x8b", "a gzip archive", _UNPACK),
    (b"7z\xbc\xaf", "a 7z archive", _UNPACK),
    (b"Rar!", "a RAR archive", _UNPACK),
    (b"SQLite format 3\x00", "an SQLite database", "export its tables as CSV"),
    (b"\x7fELF", "a program", ""),
    (b"MZ\x90", "a program", ""),
    (b"OggS", "a sound or a film", "transcribe it before"),
    (b"ID3", "a sound", "transcribe it before"),
    (b"%!PS", "a PostScript file", "convert it to PDF"),
)
_ZIPPED = (
    ("word/document.xml", "docx", ""),
    ("xl/workbook.xml", "a spreadsheet (XLSX)", "save each sheet as CSV"),
    ("xl/workbook.bin", "a spreadsheet (XLSB)", "save each sheet as CSV"),
    ("ppt/presentation.xml", "a presentation (PPTX)", "save it as PDF"),
    ("META-INF/container.xml", "an EPUB book", "convert it to HTML or PDF"),
    ("content.xml", "an OpenDocument file", "save it as DOCX, a table as CSV"),
)
# The header of a message (RFC 5322): fields, one of which only programs write.
_MESSAGE = re.compile(
    rb"(?:From [^\r\n]*+\r?\n)?+(?:[A-Za-z][A-Za-z-]*+:[^\r\n]*+\r?\n(?:[ \t][^\r\n]*+\r?\n)*+)*?"
    rb"(?:Message-ID|MIME-Version|Received|Return-Path|DKIM-Signature):",
    re.IGNORECASE,
)
_HTML = re.compile(
    # Possessive: letting a comment also end at a later --> took a minute for 30 comments.
    rb"\s*+(?:<\?xml[^>]*+>\s*+)?+(?:<!--(?:[^-]|-(?!->))*+-->\s*+)*+<(?:!doctype\s+html|html[\s>]|head[\s>]|body[\s>])",
    re.IGNORECASE,
)
_PDF_WITHIN = 1024


def detect(data: bytes, name: str, media_type: str | None = None) -> Kind:
    """Return the format of a document; `media_type` is the one that a server declared.

    Raises DocumentError for an unsupported format, and says what it looks like.
    """
    if not data:
        raise DocumentError("it is empty")
    # Readers accept PDFs with some bytes before the header, and such files exist.
    if b"%PDF-" in data[:_PDF_WITHIN]:
        return "pdf"
    if data.startswith(b"PK\x03\x04"):
        return _zipped(data)
    if data.startswith(_OLE):
        if "EncryptedPackage".encode("utf-16-le") in data:
            raise DocumentError("it is an encrypted Office document: save it without a password", "encrypted")
        raise DocumentError("it looks like an old Office document (.doc, .xls, .msg): save it as DOCX or PDF")
    for magic, kind, remedy in _FOREIGN:
        if data.startswith(magic):
            raise _foreign(kind, remedy)
    if _MESSAGE.match(data[:4096]):
        if b"multipart/related" in data[:4096]:
            raise _foreign("a web archive (MHTML)", "save the page as HTML")
        raise _foreign("an e-mail (EML)", "save its text as HTML or PDF, and its attachments as files")
    extension = PurePosixPath(name.replace("\\", "/")).suffix.lower()
    by_name = BY_EXTENSION.get(extension)
    if by_name in ("pdf", "docx"):
        raise DocumentError(f"it is named {extension}, but its content is not")
    if by_name is not None:
        return by_name
    if media_type in _BY_MEDIA_TYPE:
        return _BY_MEDIA_TYPE[media_type]
    return "html" if _HTML.match(data[:4096]) else "text"


def looks_like(path: Path) -> str:
    """The kind of a file that is no text, such as "a PNG image", or of an e-mail; empty for others."""
    try:
        with path.open("rb") as stream:
            start = stream.read(4096)
            if start.startswith(b"PK\x03\x04"):
                with zipfile.ZipFile(stream) as archive:
                    members = set(archive.namelist())
                kinds = (kind for member, kind, *_ in _ZIPPED if member in members)
                return next(("a Word document" if kind == "docx" else kind for kind in kinds), "a zip archive")
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return ""
    if not start:
        return "an empty file"
    if _MESSAGE.match(start):
        return "an e-mail"
    if b"%PDF-" in start[:_PDF_WITHIN]:
        return "a PDF"
    return next((kind for magic, kind, *_ in _FOREIGN if start.startswith(magic)), "")


def _zipped(data: bytes) -> Kind:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        raise DocumentError("it looks like a damaged DOCX or zip archive") from None
    for member, kind, remedy in _ZIPPED:
        if member in members:
            if kind == "docx":
                return "docx"
            raise _foreign(kind, remedy)
    raise _foreign("a zip archive", _UNPACK)


def _foreign(kind: str, remedy: str) -> DocumentError:
    advice = f": {remedy}" if remedy else ""
    return DocumentError(f"it looks like {kind}, which is not read (PDF, DOCX, HTML, Markdown and text are){advice}")
