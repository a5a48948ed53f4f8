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
_FOREIGN = (
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"{\\rtf", "a rich text (RTF) file"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90", "a program"),
    (b"OggS", "a sound or a film"),
    (b"ID3", "a sound"),
    (b"%!PS", "a PostScript file"),
)
_ZIPPED = (
    ("word/document.xml", "docx"),
    ("xl/workbook.xml", "a spreadsheet (XLSX)"),
    ("ppt/presentation.xml", "a presentation (PPTX)"),
    ("META-INF/container.xml", "an EPUB book"),
    ("content.xml", "an OpenDocument file"),
)
_HTML = re.compile(
    # Possessive: letting a comment also end at a later --> took a minute for 30 comments.
    rb"\s*+(?:<\?xml[^>]*+>\s*+)?+(?:<!--(?:[^-]|-(?!->))*+-->\s*+)*+<(?:!doctype\s+html|html[\s>]|head[\s>]|body[\s>])",
    re.IGNORECASE,
)
_PDF_WITHIN = 1024
_MAIL = "an e-mail"
_HEADER = re.compile(rb"^([A-Za-z][A-Za-z0-9-]*):", re.MULTILINE)
_HEADERS = re.compile(rb"(?:(?:[A-Za-z][A-Za-z0-9-]*:|[ \t])[^\n]*(?:\n|\Z))+(?:[^\n]*)")
_NAMES = {"docx": "a Word document"}


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
        raise DocumentError("it looks like an old Office document (.doc, .xls): save it as DOCX or PDF")
    for magic, kind in _FOREIGN:
        if data.startswith(magic):
            raise _foreign(kind)
    if _is_mail(data[:4096]):
        raise DocumentError(f"it looks like {_MAIL}: save its text, or what is attached to it, as a file of its own")
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
                return next((_NAMES.get(kind, kind) for member, kind in _ZIPPED if member in members), "a zip archive")
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return ""
    if not start:
        return "an empty file"
    if _is_mail(start):
        return _MAIL
    if b"%PDF-" in start[:_PDF_WITHIN]:
        return "a PDF"
    return next((kind for magic, kind in _FOREIGN if start.startswith(magic)), "")


def _is_mail(start: bytes) -> bool:
    head = re.split(rb"\r?\n\r?\n", start, maxsplit=1)[0]
    if not _HEADERS.fullmatch(head):
        return False
    names = {name.lower() for name in _HEADER.findall(head)}
    return bool(b"from" in names and names & {b"mime-version", b"received", b"message-id", b"return-path"})


def _zipped(data: bytes) -> Kind:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        raise DocumentError("it looks like a damaged DOCX or zip archive") from None
    for member, kind in _ZIPPED:
        if member in members:
            if kind == "docx":
                return "docx"
            raise _foreign(kind)
    raise DocumentError("it looks like a zip archive; unpack it and ingest the folder")


def _foreign(kind: str) -> DocumentError:
    return DocumentError(f"it looks like {kind}; PDF, DOCX, HTML, Markdown and text are read")
