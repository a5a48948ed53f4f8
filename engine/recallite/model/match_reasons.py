"""Match reasons of a hit: one word for each signal that matters.

Those that a score is made of are found by `recallite_kernels.reason_bits`: a new signal that is to be named gets its
share of the score, or a condition of its own, there.
"""

from __future__ import annotations

from collections.abc import Mapping

from recallite.system.numerics import kernels

MATCH_REASONS = (*kernels.REASONS, "importance", "change", "step", "standing", "authority")
"""Every reason, in the order in which a hit names them."""
_BIT_OF = {name: 1 << bit for bit, name in enumerate(MATCH_REASONS)}
CHANGE_BIT, STANDING_BIT = _BIT_OF["change"], _BIT_OF["standing"]


class _Reasons(dict[tuple[int, bool], tuple[str, ...]]):
    """The names of reasons by their bits and whether the record is important, made when they are first asked for."""

    def __init__(self, weighs_importance: bool) -> None:
        self._weighs_importance = weighs_importance

    def __missing__(self, key: tuple[int, bool]) -> tuple[str, ...]:
        bits, important = key
        if self._weighs_importance and important:
            bits |= _BIT_OF["importance"]
        self[key] = names = tuple(name for bit, name in enumerate(MATCH_REASONS) if bits >> bit & 1)
        return names


_REASONS = _Reasons(False), _Reasons(True)


def reasons_by_bits(weighs_importance: bool) -> Mapping[tuple[int, bool], tuple[str, ...]]:
    """The names of reasons by (bits, whether the record's importance is above 0.5)."""
    return _REASONS[weighs_importance]
