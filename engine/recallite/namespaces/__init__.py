"""Namespaces of a memory: `memory.store`, `memory.review` and `memory.transfer`, each loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recallite.memory import Memory


class Namespace:
    """Methods of a memory under a common name, confined to the scope of its handle."""

    def __init__(self, memory: Memory) -> None:
        self._engine, self._scope, self._owner = memory._engine, memory._scope, memory._owner

    def _require_whole(self, verb: str) -> None:
        """Raise InvalidInput or StoreError if the handle has a part of the store alone."""
        self._engine.require_whole(verb, self._scope, owner=self._owner)
