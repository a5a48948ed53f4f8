"""Detecting the format of a document, by its content first, then by its name; plain text, its encoding, captions."""

from __future__ import annotations

import codecs
import contextlib
import io
import re
import zipfile
from html import unescape
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

from msgspec import Struct, field

from recallite.errors import DocumentError
from recallite.system.messages import install_command

Kind = Literal["pdf", "docx", "html", "markdown", "text"]
BY_EXTENSION: dict[str, Kind] = {
    ".pdf": "pdf", ".docx": "docx", ".html": "html", ".htm": "html", ".xhtml": "html", ".md": "markdown",
    ".markdown": "markdown", ".mdown": "markdown", ".mkd": "markdown", ".mdx": "markdown", ".qmd": "markdown",
    ".rmd": "markdown",
}  # fmt: skip
"""The kind of a document by the extension of its name, in lower case."""
_BY_MEDIA_TYPE: dict[str, Kind] = {
    "text/html": "html", "application/xhtml+xml": "html", "text/markdown": "markdown",
}  # fmt: skip
_ZIP, _OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
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


class Loaded(Struct, frozen=True, kw_only=True, tag=True):
    """The text of a document.

    `pages` are the offsets at which pages begin, None without pages. With `markdown` the text is Markdown. With `exact`
    its lines are those of the file; otherwise it was converted. `metadata` is stated by the file (author, dates),
    `warnings` say what was left out or guessed.
    """

    text: str
    media_type: str
    markdown: bool
    exact: bool = False
    pages: list[int] | None = None
    title: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def too_long(max_chars: int) -> DocumentError:
    """Return the error for a text of more characters."""
    return DocumentError(f"its text is longer than {max_chars:,} characters", "too_large")


def detect(data: bytes, name: str, media_type: str | None = None) -> Kind:
    """Return the format of a document; `media_type` is the one that a server declared.

    Raises DocumentError for an unsupported format, and says what it looks like.
    """
    if not data:
        raise DocumentError("it is empty")
    # Readers accept PDFs with some bytes before the header, and such files exist.
    if b"%PDF-" in data[:_PDF_WITHIN]:
        return "pdf"
    if data.startswith(_ZIP):
        try:
            kind, remedy = _kind_of_zip(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, NotImplementedError):
            raise DocumentError("it looks like a damaged DOCX or zip archive") from None
        if kind == "docx":
            return "docx"
        raise _foreign(kind, remedy)
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
            if start.startswith(_ZIP):
                kind, _ = _kind_of_zip(stream)
                return "a Word document" if kind == "docx" else kind
    except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
        return ""
    if not start:
        return "an empty file"
    if _MESSAGE.match(start):
        return "an e-mail"
    if b"%PDF-" in start[:_PDF_WITHIN]:
        return "a PDF"
    return next((kind for magic, kind, *_ in _FOREIGN if start.startswith(magic)), "")


def _kind_of_zip(stream: IO[bytes]) -> tuple[str, str]:
    """Return the kind of an archive, and what to do instead of reading it. Raises as zipfile does."""
    with zipfile.ZipFile(stream) as archive:
        members = set(archive.namelist())
    return next(((kind, remedy) for member, kind, remedy in _ZIPPED if member in members), ("a zip archive", _UNPACK))


def _foreign(kind: str, remedy: str) -> DocumentError:
    advice = f": {remedy}" if remedy else ""
    return DocumentError(f"it looks like {kind}, which is not read (PDF, DOCX, HTML, Markdown and text are){advice}")


# Plain text in any encoding, and Markdown.

# UTF-32 first: its little-endian byte order mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE_BYTES = 65_536
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_WESTERN = "cp1252"
_AS_LIKELY, _NO_IDEA, _MOST_ACCENTS = 0.8, 0.03, 0.34
_NO_WORD = re.compile("[A-Za-zÀ-ÿ][¡-©«-´¶-¹»-¿×÷][A-Za-zÀ-ÿ]|[a-zß-öø-ÿ][À-ÖØ-ÞŠŒŽŸ]|[ß-öø-ÿšœž][A-Z]")
# Latin letters beside those of another alphabet: the wrong code page.
_MIXED_SCRIPTS = re.compile("[A-Za-z][\u0370-\u07ff\u0e00-\u0e7f]|[\u0370-\u07ff\u0e00-\u0e7f][A-Za-z]")
# The largest share of invalid bytes in a text read as UTF-8: pasted from elsewhere, or cut off.
_MOST_BAD = 0.001


def load_text(data: bytes, max_chars: int, *, markdown: bool, charset: str | None = None) -> Loaded:
    """Return the text unchanged, its lines those of the file; of captions what is said. Raises DocumentError."""
    text, warnings = decode(data, charset)
    if len(text) > max_chars:
        raise too_long(max_chars)
    captions = None if markdown else _CAPTIONS.match(text)
    if captions is not None:
        text = _said_in(text.replace("\r\n", "\n").replace("\r", "\n"), cues_end_blank=captions[1] is not None)
    if not text.strip():
        raise DocumentError("it holds no text")
    if captions is not None:
        media_type = "application/x-subrip" if captions[1] is None else "text/vtt"
        return Loaded(text=text, media_type=media_type, markdown=False, warnings=warnings)
    return Loaded(
        text=text, media_type="text/markdown" if markdown else "text/plain", markdown=markdown, exact=True,
        warnings=warnings,
    )  # fmt: skip


# Captions of films and minutes of calls: WebVTT (https://www.w3.org/TR/webvtt1) and SubRip.
_TIMING = re.compile(
    r"^[ \t]*(?:(\d{1,9}):)?(\d\d?):(\d\d?)[.,](\d{1,3})"
    r"[ \t]*-->[ \t]*(?:(\d{1,9}):)?(\d\d?):(\d\d?)[.,](\d{1,3})[^\n]*$",
    re.MULTILINE,
)
_CAPTIONS = re.compile(r"\ufeff?\s*+(?:(WEBVTT)\b.*?|\d+\s+|)" + _TIMING.pattern, re.DOTALL | re.MULTILINE)
_NUMBER_OF_NEXT = re.compile(r"\n[ \t]*\d+[ \t]*\n\Z")
_BLANK_LINE = re.compile(r"(?:\A|\n)\n")
_VOICE = re.compile(r"<v(?:\.[^\s<>]*)?[ \t]++([^<>\n]*)>")
_TAG = re.compile(r"</?[A-Za-z0-9][^<>\n]*>|\{\\[^{}\n]*\}")
# A line that begins with who speaks, as "Ada: ", or with a dash for somebody else.
_SPEAKER = re.compile(r"(?:[-–—]|>>)\s*\S|[^\W\d_][^:.!?]{0,40}: ")
_PAUSE_MS, _TOUCHING_MS = 4000, 100


def _said_in(captions: str, *, cues_end_blank: bool) -> str:
    """Return what captions say, without times, numbers and marks; a pause, or another speaker, begins a paragraph.

    Captions that roll repeat the last line of those before as their first; it is said once.
    """
    cues: list[tuple[int, int, list[tuple[str, str]]]] = []  # begin, end, and lines with their speakers
    timings = list(_TIMING.finditer(captions))
    for timing, after in zip(timings, [*(match.start() for match in timings[1:]), len(captions)], strict=True):
        text = captions[timing.end() + 1 : after]
        text = _BLANK_LINE.split(text, maxsplit=1)[0] if cues_end_blank else _NUMBER_OF_NEXT.sub("", f"\n{text}")
        lines = []
        for line in text.split("\n"):
            parts = ["", *_VOICE.split(line)]
            for speaker, part in zip(parts[::2], parts[1::2], strict=True):
                if said := " ".join(unescape(_TAG.sub("", part)).split()):
                    lines.append((" ".join(speaker.split()), said))
        cues.append((_milliseconds(*timing.groups()[:4]), _milliseconds(*timing.groups()[4:]), lines))
    rolls = any(len(lines) > 1 and lines[0] in before[-1:] for (_, _, before), (_, _, lines) in pairwise(cues))
    paragraphs: list[list[str]] = []
    speaking, last, ended = "", ("", ""), 0
    for begin, end, lines in cues:
        repeated = rolls and begin - ended <= _TOUCHING_MS and last in lines[:1]
        for i, (speaker, said) in enumerate(lines[repeated:]):
            pause = i == 0 and begin - ended >= _PAUSE_MS
            if not paragraphs or pause or speaker not in ("", speaking) or _SPEAKER.match(said):
                paragraphs.append([f"{speaker}:"] if speaker else [])
            paragraphs[-1].append(said)
            speaking = speaker or speaking
        last, ended = lines[-1] if lines else last, max(ended, end)
    return "\n\n".join(map(" ".join, paragraphs))


def _milliseconds(hours: str | None, minutes: str, seconds: str, fraction: str) -> int:
    return ((int(hours or 0) * 60 + int(minutes)) * 60 + int(seconds)) * 1000 + int(fraction.ljust(3, "0"))


def decode(data: bytes, charset: str | None = None) -> tuple[str, list[str]]:
    """Return the text, and warnings of guesses and losses. Encodings tried: byte order mark, UTF-8, declared, guessed.

    Raises DocumentError for data that is not text, or if guessing needs a library.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return _without_nul(data.decode(encoding)), []
            except UnicodeDecodeError as reason:
                text = data.decode(encoding, "replace")
                return _without_nul(text), [f"byte {reason.start:,} is not {encoding}: it was replaced"]
    if b"\x00" in data:
        return _without_mark(data)
    with contextlib.suppress(UnicodeDecodeError):
        return data.decode(), []
    if charset is not None:
        # A NUL in the name, other bytes; an unknown encoding, or one of no text.
        with contextlib.suppress(ValueError, LookupError):
            if codecs.lookup(charset).name != "utf-8":
                text = data.decode(charset)
                text.encode()  # escapes, an encoding to Python, may produce what no text contains
                return _without_nul(text), []
    replaced = data.decode("utf-8", "replace")
    lost = replaced.count("\ufffd")
    if lost <= max(1, _MOST_BAD * len(data)) and any(char > "\x7f" and char != "\ufffd" for char in replaced):
        return replaced, [f"{lost:,} bytes are not UTF-8: they were replaced"]
    return _guessed(data)


def _without_mark(data: bytes) -> tuple[str, list[str]]:
    """UTF-16 without a byte order mark: in Latin text every other byte is zero. Other data with zeros is not text."""
    sample = data[:_SAMPLE_BYTES]
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    half = len(sample) / 2
    for zeros, others, encoding in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if zeros > 0.4 * half and others < 0.05 * half:
            try:
                text = data.decode(encoding)
            except UnicodeDecodeError:
                break
            if not _CONTROL.search(text):
                return text, [f"it was read as {encoding}, which it does not state"]
    raise DocumentError("it is not text: it holds NUL bytes")


def _without_nul(text: str) -> str:
    if "\x00" in text:
        raise DocumentError("it is not text: it holds NUL characters")
    return text


def _guessed(data: bytes) -> tuple[str, list[str]]:
    """Return the text in the likeliest encoding: chardet's guess, unless Windows-1252 is about as likely.

    Of 65 texts of a few words in 24 languages chardet alone misreads 8, with this rule 1; charset-normalizer
    misreads most of those in Windows-1252, which older programs of Western Europe and America write.
    """
    try:
        import chardet
    except ImportError:
        raise DocumentError(
            f"it is not UTF-8, and its encoding cannot be guessed without: {install_command('documents')}",
            "parser_missing",
        ) from None
    guesses = chardet.detect_all(
        data[:_SAMPLE_BYTES], ignore_threshold=True, prefer_superset=True, compat_names=False,
        encoding_era=chardet.EncodingEra.MODERN_WEB,
    )  # fmt: skip
    readings: dict[str, tuple[float, str]] = {}
    for guess in guesses:
        encoding = guess["encoding"] or ""
        try:
            text = data.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
        if not _CONTROL.search(text[:_SAMPLE_BYTES]) and not _MIXED_SCRIPTS.search(text[:_SAMPLE_BYTES]):
            readings.setdefault(encoding, (guess["confidence"], text))
    if not readings:
        raise DocumentError("it is not text in a known encoding: save it as UTF-8")
    name, (confidence, text) = next(iter(readings.items()))
    if name != _WESTERN:
        with contextlib.suppress(UnicodeDecodeError):
            likelihood, western = readings.get(_WESTERN, (0.0, data.decode(_WESTERN)))
            likely = likelihood >= _AS_LIKELY * confidence or confidence < _NO_IDEA
            if likely and _looks_western(western[:_SAMPLE_BYTES]):
                name, text = _WESTERN, western
    return text, [f"it was read as {name}, which it does not state"]


def _looks_western(text: str) -> bool:
    """Whether a text read as Windows-1252 looks like one: no signs or capitals inside its words, few accents."""
    letters = [char for char in text if char.isalpha()]
    return _NO_WORD.search(text) is None and sum(char > "\x7f" for char in letters) <= _MOST_ACCENTS * len(letters)
