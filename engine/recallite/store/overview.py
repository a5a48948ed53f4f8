"""Ids and names of many records, as a store gives them at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
