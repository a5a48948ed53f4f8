"""Arrays that a statement binds to `carray(?)`."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import numpy as np
from numpy.typing import NDArray


def id_array(ids: Sequence[int] | NDArray[np.int64]) -> apsw.CArrayBinding:
    """Row ids, without a Python object each. SQLite refuses an empty array: an impossible id fills it."""
    array = np.ascontiguousarray(ids, dtype=np.int64)
    return apsw.carray(array if array.size else np.array([-1], dtype=np.int64), flags=apsw.SQLITE_CARRAY_INT64)


def value_array(values: Sequence[str] | Sequence[bytes]) -> apsw.CArrayBinding:
    """Texts or bytes; an empty array is filled by what is no value of a column that is searched."""
    return apsw.carray(tuple(values) or (b"",))
