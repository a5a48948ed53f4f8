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


def whole_id(memory: Memory, given: str) -> str:
    """The id of the memory that `given` names: its id, or what only this id starts or ends with.

    Where there is none it is `given` itself. Raises InvalidInput where several ids start or end with it.
    """
    try:
        return memory.get(given).id
    except NotFound:
        if not _LEAST_CHARS <= len(given) <= _MOST_CHARS or not given.isprintable():
            return given
    between = {"id": {"gte": given, "lt": given + _AFTER_ANY}}
    starting = memory.list(where=between, include_superseded=True, limit=_MOST_NAMED + 1)
    containing = {"id": {"contains": given}}
    found = [each.id for each in starting or memory.list(where=containing, include_superseded=True, limit=None)]
    return _only(given, [id for id in found if id.startswith(given) or id.endswith(given)])


def document_id(memory: Memory, given: str) -> str:
    """As `whole_id`, of a document; a source is itself."""
    documents = memory.knowledge.list()
    if len(given) < _LEAST_CHARS or any(given in (each.id, each.source) for each in documents):
        return given
    return _only(given, [each.id for each in documents if each.id.startswith(given) or each.id.endswith(given)])


def _only(given: str, ids: Sequence[str]) -> str:
    if len(ids) > 1:
        named = ", ".join(ids[:_MOST_NAMED])
        raise InvalidInput(f"{given!r} is part of several ids: {named}{'' if len(ids) <= _MOST_NAMED else ', ...'}")
    return ids[0] if ids else given
