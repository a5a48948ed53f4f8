"""What makes two texts the same text."""

from __future__ import annotations

import unicodedata
from hashlib import blake2b

__all__ = ["KEY_BYTES", "content_hash", "text_key"]

KEY_BYTES = 8
_EXACT_BYTES = 8
# Quote marks and emphasis around a text, and the full stops that quoting adds or drops.
_LEADING = "\"'`*_“”„‘’‚«»‹›「」『』 \t"
_TRAILING = _LEADING + ".…。"


def content_hash(text: str, context: str | None = None) -> bytes:
    """16 bytes that are equal for equal text and context, whatever way their accents are encoded (NFC).

    No context and an empty one are the same. Case, spaces and punctuation count, save in the first 8 bytes: these are
    `text_key`, by which a text is found again.
    """
    head = _encoded(context or "")
    exact = blake2b(len(head).to_bytes(8, "little") + head + _encoded(text), digest_size=_EXACT_BYTES).digest()
    return text_key(text) + exact


def text_key(text: str) -> bytes:
    """8 bytes that are equal for texts that differ in case, white space, quote marks around them or a final stop."""
    plain = " ".join(text.split()) if text.isascii() else " ".join(unicodedata.normalize("NFKC", text).split())
    inner = plain.lstrip(_LEADING).rstrip(_TRAILING) or plain
    return blake2b(inner.casefold().encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()


def _encoded(text: str) -> bytes:
    if text.isascii():
        return text.encode()
    return unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass")
