"""Ids as people type them: whole, or the start or end of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recallite.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from recallite.memory import Memory


_LEAST_CHARS, _MOST_CHARS = 4, 64
_MOST_NAMED = 5
_AFTER_ANY = "\U0010ffff"


def whole_id(memory: Memory, typed: str) -> str:
    """The id of the memory that `given` names: its id, or what only this id starts or ends with.

    Where there is none it is `given` itself. Raises InvalidInput where several ids start or end with it.
    """
    try:
        return memory.get(typed).id
    except NotFound:
        if not _LEAST_CHARS <= len(typed) <= _MOST_CHARS or not typed.isprintable():
            return typed
    between = {"id": {"gte": typed, "lt": typed + _AFTER_ANY}}
    starting = memory.list(where=between, include_superseded=True, limit=_MOST_NAMED + 1)
    containing = {"id": {"contains": typed}}
    matches = [entry.id for entry in starting or memory.list(where=containing, include_superseded=True, limit=None)]
    return _only(typed, [id for id in matches if id.startswith(typed) or id.endswith(typed)])


def document_id(memory: Memory, typed: str) -> str:
    """The id of the document that `typed` names; a source is itself."""
    documents = memory.knowledge.list()
    if len(typed) < _LEAST_CHARS or any(typed in (entry.id, entry.source) for entry in documents):
        return typed
    return _only(typed, [entry.id for entry in documents if entry.id.startswith(typed) or entry.id.endswith(typed)])


def _only(typed: str, ids: Sequence[str]) -> str:
    if len(ids) > 1:
        named = ", ".join(ids[:_MOST_NAMED])
        raise InvalidInput(f"{typed!r} is part of several ids: {named}{'' if len(ids) <= _MOST_NAMED else ', ...'}")
    return ids[0] if ids else typed
