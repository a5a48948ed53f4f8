"""The rows that meet the conditions of a filter: tags, sources and kinds by the index, all others by the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recallite.model.filters import And, Comparison, Expression, Filter, Not, Versions
from recallite.store.transaction import Reader

if TYPE_CHECKING:
    from recallite.index.memory_index import MemoryIndex

_INDEXED = frozenset(("tags", "source", "kind"))
# What changes in many records at a time, of which the feed does not name each.
_UNNAMED = frozenset(("importance", "embedding_state"))


def met_conditions(
    index: MemoryIndex, reader: Reader, conditions: Filter, now: int, versions: Versions
) -> NDArray[np.uint8]:
    """1 for the rows that meet the tags and the `where` of a filter, among these versions."""

    def by_store(expression: Expression) -> NDArray[np.uint8]:
        asked = conditions.replaced(tags=None, where=expression)

        def read_ids(among: Sequence[int] | None) -> list[int]:
            return reader.records.matching_ids(asked, now, versions=versions, among=among)

        if _UNNAMED.isdisjoint(_fields(expression)):
            return index.listing((asked, versions), read_ids)
        return index.table.listing(read_ids(None))

    parts = [] if conditions.where is None else [conditions.where]
    if conditions.tags:
        parts.append(Comparison("tags", "in", conditions.tags))
    return _meeting(And(tuple(parts)), index, reader, by_store)


def _meeting(
    expression: Expression,
    index: MemoryIndex,
    reader: Reader,
    by_store: Callable[[Expression], NDArray[np.uint8]],
) -> NDArray[np.uint8]:
    if not _is_indexed(expression):
        return by_store(expression)
    if isinstance(expression, Comparison):
        return _named(expression, index, reader)
    if isinstance(expression, Not):
        others: NDArray[np.uint8] = _meeting(expression.part, index, reader, by_store) ^ np.uint8(1)
        return others
    masks = [_meeting(part, index, reader, by_store) for part in expression.parts if _is_indexed(part)]
    if unindexed := tuple(part for part in expression.parts if not _is_indexed(part)):
        masks.append(by_store(type(expression)(unindexed)))
    return reduce(np.bitwise_and if isinstance(expression, And) else np.bitwise_or, masks)


def _is_indexed(expression: Expression) -> bool:
    """Whether the index has something of an expression: columns or lists of what it names."""
    if isinstance(expression, Not):
        return _is_indexed(expression.part)
    if not isinstance(expression, Comparison):
        return any(map(_is_indexed, expression.parts))
    is_name = expression.operator in ("eq", "in") and all(isinstance(name, str) for name in _names(expression))
    return expression.field in _INDEXED and is_name


def _fields(expression: Expression) -> set[str]:
    if isinstance(expression, Comparison):
        return {expression.field}
    return set().union(*map(_fields, (expression.part,) if isinstance(expression, Not) else expression.parts))


def _names(compared: Comparison) -> tuple[object, ...]:
    return compared.value if isinstance(compared.value, tuple) else (compared.value,)


def _named(compared: Comparison, index: MemoryIndex, reader: Reader) -> NDArray[np.uint8]:
    names = [str(name) for name in _names(compared)]
    if compared.field == "kind":
        return index.table.of_kinds(names)
    if compared.field == "tags":
        return index.table.with_tags(reader.scopes.tags_named(names))
    return index.table.of_sources(reader.scopes.sources_named(names))
