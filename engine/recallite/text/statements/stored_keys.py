"""The keys under which the statement of a record is stored, and by which a new text finds it."""

from __future__ import annotations

from functools import lru_cache

from recallite.text.normalise import text_key
from recallite.text.statements.keys import keys_of
from recallite.text.statements.statement import statement_of

# What says more is never replaced as a whole, and nothing has to find it but an equal text.
_MOST_CLAUSES = 2
_MOST_WORDS = 18


@lru_cache(maxsize=4096)
def sought_keys(text: str, context: str | None) -> tuple[int, ...]:
    """Signed 64-bit hashes: first that of the text without case and marks around it, then `keys_of` its statement."""
    return int.from_bytes(text_key(text), "little", signed=True), *keys_of(statement_of(text, context))


def stored_keys(text: str, context: str | None) -> tuple[int, ...]:
    """Those of `sought_keys` under which a record is found."""
    statement = statement_of(text, context)
    short = len(statement.words) <= _MOST_WORDS
    if short or (statement.whole and len(statement.clauses) <= _MOST_CLAUSES):
        return sought_keys(text, context)
    return (int.from_bytes(text_key(text), "little", signed=True),)
