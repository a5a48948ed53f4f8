"""Columns of many records at once, without their texts, for pictures of a whole store."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from recallite.model.filters import Filter
from recallite.store.sql.repository import Repository

_DAY_US = 86_400_000_000


class Labels(NamedTuple):
    """Row ids, ascending, and in their order: public ids, scope ids, kinds, and source ids, -1 for none.

    `scope_names` and `source_names` give names by id, also of scopes and sources that none of these records has.
    """

    ids: NDArray[np.int64]
    public_ids: list[str]
    scopes: NDArray[np.int64]
    kinds: list[str]
    sources: NDArray[np.int64]
    scope_names: dict[int, str]
    source_names: dict[int, str]


class Overview(Repository):
    """Ids, names and times of the records that a filter admits."""

    def labels(self, filter: Filter, now: int) -> Labels:
        """Ids, scopes, kinds and sources of the records that a filter admits."""
        condition = self._tx.conditions.matching(filter, now)
        # As JSON, which SQLite writes without the GIL: row by row takes 1.3 times as long, and holds it.
        columns = ("id", "public_id", "scope_id", "kind", "coalesce(source_id, -1)")
        (row,) = self._execute(
            f"SELECT {', '.join(f'json_group_array({column})' for column in columns)} FROM "
            f"(SELECT id, public_id, scope_id, kind, source_id FROM {_from(filter)} WHERE {condition.sql} ORDER BY id)",
            condition.values,
        )
        ids, public_ids, scopes, kinds, sources = map(msgspec.json.decode, row)
        return Labels(
            ids=np.array(ids, dtype=np.int64),
            public_ids=public_ids,
            scopes=np.array(scopes, dtype=np.int64),
            kinds=kinds,
            sources=np.array(sources, dtype=np.int64),
            scope_names=dict(self._execute("SELECT id, path FROM scope")),
            source_names=dict(self._execute("SELECT id, name FROM source")),
        )

    def count_by_day(self, filter: Filter, now: int) -> list[tuple[int, int]]:
        """The number of records that a filter admits of each day that has any: days since 1970 (UTC), ascending.

        A record tells of its valid time, else of when it was created.
        """
        condition = self._tx.conditions.matching(filter, now)
        # Integer division rounds towards zero: times before 1970 are shifted first.
        moment = "coalesce(r.valid_from, r.created_at)"
        day = f"({moment} - ((({moment} % {_DAY_US}) + {_DAY_US}) % {_DAY_US})) / {_DAY_US}"
        return self._rows(
            f"SELECT {day} AS day, count(*) FROM {_from(filter)} WHERE {condition.sql} GROUP BY day ORDER BY day",
            condition.values,
        )


def _from(filter: Filter) -> str:
    """The records of a whole store in their order: through an index, as SQLite would read them, takes five times as
    long.
    """
    return "record r NOT INDEXED" if not filter.scopes or "/" in filter.scopes else "record r"
