"""Ids of new records: UUIDs version 7 (RFC 9562), milliseconds, a counter that orders ids within one, random bits."""

from __future__ import annotations

import os
import time

_last_ms = 0
_sequence = 0
_MOST = 0xFFF
# The variant of RFC 9562, in the first of the last 16 digits: two of its bits are random.
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def uuid7() -> str:
    """Return a new id."""
    return uuid7s(1)[0]


def uuid7s(count: int) -> list[str]:
    """Return new ids, ascending. The system is asked once for their random bits."""
    global _last_ms, _sequence
    now_ms = time.time_ns() // 1_000_000
    noise = os.urandom(8 * count + 2).hex()
    if now_ms > _last_ms:
        # Counters begin in the lower quarter, so that there is room for those of the same millisecond.
        _last_ms, _sequence = now_ms, int(noise[-4:], 16) >> 6
    ids: list[str] = []
    for begin in range(0, 16 * count, 16):
        _sequence += 1
        if _sequence > _MOST:
            _last_ms, _sequence = _last_ms + 1, 0
        milliseconds = f"{_last_ms:012x}"
        ids.append(
            f"{milliseconds[:8]}-{milliseconds[8:]}-7{_sequence:03x}-{_VARIANT[noise[begin]]}"
            f"{noise[begin + 1 : begin + 4]}-{noise[begin + 4 : begin + 16]}"
        )
    return ids
