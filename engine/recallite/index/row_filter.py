"""A recall's filter as the index takes it."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray


class RowFilter(Struct, frozen=True, kw_only=True):
    """A recall's filter, resolved to numbers: None if it does not restrict. Times are in microseconds.

    `listed` is 1 for the rows that the store found by tags and conditions; `hidden` are the rows that are superseded
    by what the filter asks for.
    """

    now: int
    as_of: int | None = None
    scopes: tuple[int, ...] | None = None
    kinds: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    valid_at: int | None = None
    listed: NDArray[np.uint8] | None = None
    hidden: NDArray[np.int64] | None = None

    @property
    def unrestricted(self) -> bool:
        """True when it admits every current record that has not expired."""
        return self.scopes is None and self.scoped_only and not self.hides

    @property
    def scoped_only(self) -> bool:
        """True when nothing but scopes, expiry and supersession restricts."""
        conditions = self.as_of, self.since, self.until, self.valid_at, self.listed
        return not self.kinds and all(value is None for value in conditions)

    @property
    def hides(self) -> bool:
        """True when it hides superseded rows."""
        return self.hidden is not None and len(self.hidden) > 0
