"""Arrays of ids as SQL values: `carray` binds them without a Python object per id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import apsw
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["id_array"]


def id_array(ids: Sequence[int] | NDArray[np.int64]) -> apsw.CArrayBinding:
    """`ids` for `carray(?)`. SQLite refuses an empty array: an id that never exists takes its place."""
    array = np.ascontiguousarray(ids, dtype=np.int64)
    return apsw.carray(array if array.size else np.array([-1], dtype=np.int64), flags=apsw.SQLITE_CARRAY_INT64)
