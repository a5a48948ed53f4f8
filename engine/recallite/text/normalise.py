"""Normal forms and hashes of texts."""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b
from typing import Literal

KEY_BYTES = 8
_EXACT_BYTES = 8
# Quote marks and emphasis around a text, and full stops, which quoting adds or drops.
_LEADING = "\"'`*_“”„‘’‚«»‹›「」『』 \t"
_TRAILING = _LEADING + ".…。"
# Combining marks are not word characters, and no text has 31 in a row: Unicode's Stream-Safe Text Format
# (UAX #15, 13) breaks a run after 30.
_MARKS = re.compile(r"[^\w\x00-\x7f]{31,}")
_MOST_MARKS = 30
# Copying one takes a third of the time of making one; the second has read the head of a text without context.
_OF_BARE = blake2b(digest_size=KEY_BYTES)
_OF_EXACT = blake2b(bytes(8), digest_size=_EXACT_BYTES)


def normalized(form: Literal["NFC", "NFKC"], text: str) -> str:
    """The normal form of a text; a run of combining marks is sorted 30 at a time.

    `unicodedata.normalize` sorts a run by insertion: 16,000 marks took 0.2 s, and a million would take 13 minutes.
    """
    pieces, begin = [], 0
    for run in _MARKS.finditer(text):
        for end in range(run.start() + _MOST_MARKS, run.end(), _MOST_MARKS):
            pieces.append(unicodedata.normalize(form, text[begin:end]))
            begin = end
    return "".join([*pieces, unicodedata.normalize(form, text[begin:])])


def content_hash(text: str, context: str | None = None) -> bytes:
    """16 bytes that are equal for equal text and context after NFC normalisation.

    No context and an empty one are the same. Case, spaces and punctuation matter, except in the first 8 bytes, which
    are `text_key`.
    """
    if context:
        head = _encoded(context)
        exact = blake2b(len(head).to_bytes(8, "little") + head, digest_size=_EXACT_BYTES)
    else:
        exact = _OF_EXACT.copy()
    exact.update(_encoded(text))
    return text_key(text) + exact.digest()


def text_key(text: str) -> bytes:
    """8 bytes that are equal for texts of the same `bare_text`."""
    of_bare = _OF_BARE.copy()
    of_bare.update(bare_text(text).encode("utf-8", "surrogatepass"))
    return of_bare.digest()


def bare_text(text: str) -> str:
    """A text without what its copies differ in: case, white space, quote marks around it and a final stop."""
    plain = " ".join(text.split()) if text.isascii() else " ".join(normalized("NFKC", text).split())
    return (plain.lstrip(_LEADING).rstrip(_TRAILING) or plain).casefold()


def _encoded(text: str) -> bytes:
    if text.isascii():
        return text.encode()
    return normalized("NFC", text).encode("utf-8", "surrogatepass")
