"""The keys under which the statement of a record is stored."""

from __future__ import annotations

from recollect.text.normalise import text_key
from recollect.text.statements.keys import keys_of
from recollect.text.statements.statement import Statement


def record_keys(statement: Statement) -> tuple[int, ...]:
    """Signed 64-bit hashes by which it is found: first that of its words as they are, then `keys_of`."""
    return int.from_bytes(text_key(statement.text), "little", signed=True), *keys_of(statement)
