"""The keys of a record: those by which its text finds others, and those under which it is stored."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from recallite.text.normalise import text_key
from recallite.text.statements.keys import keys_of
from recallite.text.statements.statement import statement_of

# What says more is never replaced as a whole, and nothing has to find it but an equal text.
_MOST_CLAUSES = 2
_MOST_WORDS = 18


class RecordKeys(Struct, frozen=True, gc=False):
    """Signed 64-bit hashes by which a text finds others, and those by which others find it.

    First is that of the text without case and marks around it; then follow `keys_of` its statement.
    """

    sought: tuple[int, ...]
    stored: tuple[int, ...]


@lru_cache(maxsize=4096)
def record_keys(text: str, context: str | None) -> RecordKeys:
    """The keys of the record of a text under its context."""
    statement = statement_of(text, context)
    of_text = int.from_bytes(text_key(text), "little", signed=True)
    sought = (of_text, *keys_of(statement))
    short = len(statement.words) <= _MOST_WORDS
    findable = short or (statement.whole and len(statement.clauses) <= _MOST_CLAUSES)
    return RecordKeys(sought, sought if findable else (of_text,))
