"""Chunks and their sizes."""

from __future__ import annotations

from msgspec import Struct

from recollect.errors import InvalidInput

__all__ = ["Chunk", "ChunkSize"]


class Chunk(Struct, frozen=True):
    """A passage of a document: `text == document[start:end]`, in characters.

    `lines` are the first and the last line, 1-based and inclusive, as an editor counts them; `headings` is the path of
    headings, outermost first, as plain text.
    """

    text: str
    start: int
    end: int
    lines: tuple[int, int]
    headings: tuple[str, ...] = ()


class ChunkSize(Struct, frozen=True):
    """Sizes in tokens: at most `max_tokens`; chunks of a section that must be cut have at least `target_tokens` if
    possible (None: half of `max_tokens`); up to `overlap_tokens` of the previous chunk are repeated.

    Raises InvalidInput for contradictory sizes.
    """

    max_tokens: int = 1000
    overlap_tokens: int = 100
    target_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise InvalidInput(f"chunks of {self.max_tokens} tokens: give max_tokens of at least 1")
        if not 0 <= self.overlap_tokens < self.max_tokens:
            raise InvalidInput(
                f"an overlap of {self.overlap_tokens} tokens in chunks of {self.max_tokens}: "
                "give overlap_tokens from 0 to less than max_tokens"
            )
        if self.target_tokens is not None and not 0 <= self.target_tokens <= self.max_tokens:
            raise InvalidInput(
                f"a target of {self.target_tokens} tokens in chunks of {self.max_tokens}: "
                "give target_tokens from 0 to max_tokens, or None"
            )

    @property
    def smallest_cut(self) -> int:
        """The least size of a chunk of a section that must be cut, if possible."""
        return self.max_tokens // 2 if self.target_tokens is None else self.target_tokens
