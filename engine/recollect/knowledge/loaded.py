"""What a loader makes of a document, and the limits that it keeps."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

__all__ = ["Kind", "Limits", "Loaded"]

Kind = Literal["pdf", "docx", "html", "markdown", "text"]


class Limits(Struct, frozen=True, kw_only=True):
    """What one document may take: bytes as it is given, characters of text, memory and time of the parser."""

    max_bytes: int = 100_000_000
    max_chars: int = 50_000_000
    memory_mb: int = 1024
    seconds: float = 60.0


class Loaded(Struct, frozen=True, kw_only=True):
    """The text of a document.

    `pages` are the characters at which the pages begin, None where there are none. With `markdown` the text is
    Markdown. With `exact` its lines are those of the file itself; otherwise a library made it of the file.
    `metadata` is what the format says of the document (author, dates), `warnings` what was left out or guessed.
    """

    text: str
    media_type: str
    markdown: bool
    exact: bool = False
    pages: list[int] | None = None
    title: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
