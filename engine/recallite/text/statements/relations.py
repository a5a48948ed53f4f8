"""Relations that may hold several values at a time: who speaks French may speak German too."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from recallite.text.index_terms import tokenize

_SEVERAL = """
    like love enjoy adore hate dislike admire miss visit meet see watch read buy try taste play know speak study learn
    own have eat drink cook attend join recommend need want collect support mention discuss talk say tell ask write
    make build paint finish complete order receive send add include contain offer teach follow help hear
"""


@lru_cache(maxsize=64)
def several_valued(more: Iterable[str] = ()) -> frozenset[str]:
    """The stems of the verbs and nouns whose relation may hold several values: the table and `more` words."""
    return frozenset(tokenize(" ".join((_SEVERAL, *more))))


SEVERAL = several_valued(())
"""The table without additions."""
