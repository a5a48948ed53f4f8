"""Ids of new records: UUIDs version 7 (RFC 9562), milliseconds, a counter that orders ids within one, random bits."""

from __future__ import annotations

import os
import threading
import time

_COUNTERS = 0x1000
# The variant of RFC 9562, in the first of the last 16 digits: two of its bits are random.
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


class _Clock:
    """Milliseconds with counters, each pair of which is given once in a process, ascending."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._next = 0

    def reserve(self, count: int, first: int) -> int:
        """Reserve pairs, as milliseconds * 4096 + counter; in a new millisecond the counter begins at `first`."""
        if self._process != os.getpid():  # another thread may have held the lock at the fork
            self.__init__()  # type: ignore[misc]
        with self._lock:
            begin = max(self._next, time.time_ns() // 1_000_000 * _COUNTERS + first)
            self._next = begin + count
        return begin


_clock = _Clock()


def uuid7() -> str:
    """Return a new id."""
    return uuid7s(1)[0]


def uuid7s(count: int) -> list[str]:
    """Return new ids, ascending. The system is asked once for their random bits."""
    noise = os.urandom(8 * count + 2).hex()
    # Counters begin in the lower quarter, so that there is room for those of the same millisecond.
    begin = _clock.reserve(count, int(noise[-4:], 16) >> 6)
    ids: list[str] = []
    for place in range(count):
        milliseconds, counter = divmod(begin + place, _COUNTERS)
        time_digits, digits = f"{milliseconds:012x}", noise[16 * place : 16 * place + 16]
        ids.append(
            f"{time_digits[:8]}-{time_digits[8:]}-7{counter:03x}-{_VARIANT[digits[0]]}{digits[1:4]}-{digits[4:]}"
        )
    return ids
