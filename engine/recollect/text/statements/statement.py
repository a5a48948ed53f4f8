"""A text as the rules see it."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from recollect.text import contrast
from recollect.text.stopwords import STOP_TERMS
from recollect.text.tokens import tokenize

_LONGEST = 400
_SPLITS = frozenset(["is", "are", "was", "were", "be", "of", "in", "at", "by", "to", "for", "as", "on", "from"])


class Statement(Struct, frozen=True):
    """A text with its context, parsed.

    - `stems`: of its content words, in order
    - `slots`: what is stated of something, and the value: the stems before the value, and its own
    """

    text: str
    context: str | None
    stems: tuple[str, ...]
    slots: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    compared: contrast.Statement


@lru_cache(maxsize=4096)
def statement_of(text: str, context: str | None = None) -> Statement:
    """The statement that a text makes under its context, such as the name of who says it."""
    if len(text) > _LONGEST or "?" in text:
        return Statement(text, context, (), (), contrast.Statement.of("" if len(text) > _LONGEST else text))
    compared = contrast.Statement.of(text)
    stems = tuple(stem for stem in tokenize(text) if stem not in STOP_TERMS)
    slots = []
    for place in range(len(compared.tokens) - 1, 0, -1):
        if compared.tokens[place - 1] in _SPLITS:
            before = tuple(stem for stem in tokenize(" ".join(compared.tokens[:place])) if stem not in STOP_TERMS)
            value = tuple(stem for stem in tokenize(" ".join(compared.tokens[place:])) if stem not in STOP_TERMS)
            if before and value:
                slots.append((before, value))
                break
    return Statement(text, context, stems, tuple(slots), compared)
