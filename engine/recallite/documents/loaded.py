"""Documents as loaders return them, and their limits."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from recallite.errors import DocumentError

Kind = Literal["pdf", "docx", "html", "markdown", "text"]


class Limits(Struct, frozen=True, kw_only=True):
    """Limits for one document: its bytes, the characters of its text, memory and time of the parser."""

    max_bytes: int = 100_000_000
    max_chars: int = 50_000_000
    memory_mb: int = 1024
    seconds: float = 60.0


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
