"""What makes two texts the same text."""

from __future__ import annotations

import unicodedata
from hashlib import blake2b

__all__ = ["content_hash"]

HASH_BYTES = 16


def content_hash(text: str, context: str | None = None) -> bytes:
    """16 bytes that are equal for equal text and context, whatever way their accents are encoded (NFC).

    No context and an empty one are the same. Case, spaces and punctuation count.
    """
    head = _encoded(context or "")
    return blake2b(len(head).to_bytes(8, "little") + head + _encoded(text), digest_size=HASH_BYTES).digest()


def _encoded(text: str) -> bytes:
    if text.isascii():
        return text.encode()
    return unicodedata.normalize("NFC", text).encode("utf-8", "surrogatepass")
