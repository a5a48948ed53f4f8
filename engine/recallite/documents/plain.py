"""Plain text in any encoding, and Markdown."""

from __future__ import annotations

import codecs
import contextlib
import importlib
import re

from recallite.documents.loaded import Loaded, too_long
from recallite.errors import DocumentError
from recallite.system.messages import install_command

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
    """Return the text unchanged; its lines are those of the file. Raises DocumentError."""
    text, warnings = decode(data, charset)
    if len(text) > max_chars:
        raise too_long(max_chars)
    if not text.strip():
        raise DocumentError("it holds no text")
    return Loaded(
        text=text, media_type="text/markdown" if markdown else "text/plain", markdown=markdown, exact=True,
        warnings=warnings,
    )  # fmt: skip


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
    try:
        return data.decode(), []
    except UnicodeDecodeError:
        pass
    if charset is not None:
        try:
            if codecs.lookup(charset).name != "utf-8":
                text = data.decode(charset)
                text.encode()  # escapes, an encoding to Python, may produce what no text contains
                return _without_nul(text), []
        except (ValueError, LookupError):  # a NUL in the name, other bytes; an unknown or no text encoding
            pass
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
        chardet = importlib.import_module("chardet")
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
        try:
            text = data.decode(guess["encoding"])
        except (UnicodeDecodeError, LookupError, TypeError):
            continue
        if not _CONTROL.search(text[:_SAMPLE_BYTES]) and not _MIXED_SCRIPTS.search(text[:_SAMPLE_BYTES]):
            readings.setdefault(guess["encoding"], (guess["confidence"], text))
    if not readings:
        raise DocumentError("it is not text in a known encoding: save it as UTF-8")
    name, (confidence, text) = next(iter(readings.items()))
    if name != _WESTERN:
        with contextlib.suppress(UnicodeDecodeError):
            western = readings.get(_WESTERN, (0.0, data.decode(_WESTERN)))
            if _looks_western(western[1][:_SAMPLE_BYTES]) and (
                western[0] >= _AS_LIKELY * confidence or confidence < _NO_IDEA
            ):
                name, text = _WESTERN, western[1]
    return text, [f"it was read as {name}, which it does not state"]


def _looks_western(text: str) -> bool:
    """Whether a text read as Windows-1252 looks like one: no signs or capitals inside its words, few accents."""
    letters = [char for char in text if char.isalpha()]
    return _NO_WORD.search(text) is None and sum(char > "\x7f" for char in letters) <= _MOST_ACCENTS * len(letters)
