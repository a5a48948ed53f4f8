"""Text of right-to-left scripts in a PDF, in reading order.

PDFium reverses runs of such text character by character. Where one glyph represents several characters (a ligature, or
a whole word in files of WeasyPrint), these are in order already and come out reversed; a glyph without a character
comes out as its number in the font.
"""

from __future__ import annotations

import ctypes
import unicodedata
from typing import Any

import pypdfium2.raw as pdfium

__all__ = ["logical_order"]

_RIGHT_TO_LEFT = ("R", "AL")


def logical_order(textpage: Any, chars: str, begin: int, end: int) -> str:
    """The characters [begin, end) of a page in reading order."""
    text = chars[begin:end]
    if text.isascii() or not any(unicodedata.bidirectional(char) in _RIGHT_TO_LEFT for char in text):
        return text
    unmapped = any(pdfium.FPDFText_HasUnicodeMapError(textpage, place) == 1 for place in range(begin, end))
    groups: list[tuple[tuple[float, ...], str]] = []
    for place in range(begin, end):
        if pdfium.FPDFText_HasUnicodeMapError(textpage, place) == 1:
            continue
        # Numbers of glyphs without a character may also be code points of modifiers, which these scripts do not use.
        if unmapped and unicodedata.category(chars[place]) == "Sk":
            continue
        box = _glyph(textpage, place)
        if groups and groups[-1][0] == box and not pdfium.FPDFText_IsGenerated(textpage, place):
            groups[-1] = (box, groups[-1][1] + chars[place])
        else:
            groups.append((box, chars[place]))
    pieces = []
    for _, group in groups:
        several = len(group) > 1 and any(unicodedata.bidirectional(char) in _RIGHT_TO_LEFT for char in group)
        # A space inside such a glyph separates it from left-to-right text, on whichever side that is drawn.
        pieces.append(f" {group[::-1]} " if several and " " in group else group[::-1] if several else group)
    return " ".join("".join(pieces).split())


def _glyph(textpage: Any, place: int) -> tuple[float, ...]:
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    pdfium.FPDFText_GetCharBox(
        textpage, place, ctypes.byref(left), ctypes.byref(right), ctypes.byref(bottom), ctypes.byref(top)
    )
    return (left.value, right.value, bottom.value, top.value)
