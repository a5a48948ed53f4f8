"""Limits on the title, headings and metadata that are stored with each chunk of a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

_MOST_CONTEXT_CHARS = 400
_MOST_NAME_CHARS = 200
_MOST_VALUE_BYTES = 2_000
# 60 KB of front matter stored with each of 1,500 chunks took 93 MB.
_MOST_VALUES_BYTES = 4_000


def short_name(text: str) -> str:
    """A title or heading of at most 200 characters, without NUL."""
    return text.replace("\x00", "�").strip()[:_MOST_NAME_CHARS].rstrip()


def short_values(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The values of at most 2,000 bytes as JSON each, in order, up to 4,000 bytes in all."""
    short, left = {}, _MOST_VALUES_BYTES
    for name, value in metadata.items():
        size = len(msgspec.json.encode({name: value}))
        if size <= min(left, _MOST_VALUE_BYTES):
            short[name] = value
            left -= size
    return short


def context_of(title: str | None, headings: Sequence[str], properties: str = "") -> str | None:
    """Title and headings as a context of at most 400 characters; a title equal to the first heading is left out.

    What the front matter says follows in brackets.
    """
    path = [heading for heading in headings if heading.strip()]
    if title is not None and path[:1] != [title]:
        path.insert(0, title)
    context = " > ".join(path)[:_MOST_CONTEXT_CHARS].rstrip()
    if properties:
        context = f"{context} ({properties})" if context else properties
    return context or None
