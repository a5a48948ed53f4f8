"""Why a hit is among the hits, in one word for each signal that matters.

Those that a score is made of are found by `recallite_kernels.reason_bits`: a new signal that is to be named gets its
share of the score, or a condition of its own, there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from recallite.system.numerics import kernels

if TYPE_CHECKING:
    from recallite.model.profiles import Profile


MATCH_REASONS = (
    *kernels.REASONS,
    "importance",
    "change",
    "step",
    "standing",
)
"""Every reason, in the order in which a hit names them."""
_BIT_OF = {name: 1 << bit for bit, name in enumerate(MATCH_REASONS)}
CHANGE_BIT, STANDING_BIT = _BIT_OF["change"], _BIT_OF["standing"]


def reasons_of(bits: int, importance: float, profile: Profile) -> tuple[str, ...]:
    """The names of the reasons, with the record's importance."""
    if profile.importance_weight > 0 and importance > 0.5:
        bits |= _BIT_OF["importance"]
    return _names(bits)


@lru_cache(maxsize=1 << len(MATCH_REASONS))
def _names(bits: int) -> tuple[str, ...]:
    return tuple(name for bit, name in enumerate(MATCH_REASONS) if bits >> bit & 1)
