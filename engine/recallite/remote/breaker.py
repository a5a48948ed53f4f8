"""A circuit breaker for a service that fails."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

_FIRST_SECONDS = 2.0
_LONGEST_SECONDS = 300.0


class Breaker:
    """Blocks calls to a service that has failed, so that callers do not wait for it again and again; thread-safe.

    After a failure all calls are blocked for `first_seconds`. Then one is let through; if it fails too, the interval
    doubles, up to `longest_seconds`. A success unblocks all calls. (Circuit breaker: Nygard, Release It!, 2007.)

    `clock` returns monotonic seconds.
    """

    def __init__(
        self,
        *,
        first_seconds: float = _FIRST_SECONDS,
        longest_seconds: float = _LONGEST_SECONDS,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._first_seconds = first_seconds
        self._longest_seconds = longest_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._reason = ""
        self._again_at = 0.0
        self._trying = False

    @property
    def failing(self) -> bool:
        """Whether the last call failed."""
        return self._failures > 0

    @property
    def problem(self) -> str | None:
        """Why calls are blocked, and for how long; None where the last call succeeded."""
        with self._lock:
            return self._told() if self._failures else None

    def enter(self) -> str | None:
        """None where a call is allowed, which must then report to `succeeded`, `failed` or `left`; else why not."""
        with self._lock:
            if not self._failures or (self._now() >= self._again_at and not self._trying):
                self._trying = True
                return None
            return self._told()

    def succeeded(self) -> None:
        """A call was answered."""
        with self._lock:
            self._failures, self._trying = 0, False

    def failed(self, reason: str, *, wait_seconds: float | None = None) -> None:
        """A call failed for `reason`; `wait_seconds` is the pause that the service asks for."""
        with self._lock:
            if self._failures and self._now() < self._again_at:
                return  # it was sent before the first failure: one fault counts once
            interval = min(self._first_seconds * 2.0 ** min(self._failures, 60), self._longest_seconds)
            self._failures, self._reason, self._trying = self._failures + 1, reason, False
            self._again_at = self._now() + min(max(interval, wait_seconds or 0.0), self._longest_seconds)

    def left(self) -> None:
        """A call ended in a way that says nothing about the service."""
        with self._lock:
            self._trying = False

    def _now(self) -> float:
        return (self._clock or monotonic)()

    def _told(self) -> str:
        seconds = max(self._again_at - self._now(), 0.0)
        when = "it is being asked again" if self._trying else f"it is asked again in {seconds:.0f} s"
        if not self._trying and not seconds:
            when = "the next call asks it again"
        times = "" if self._failures == 1 else f"it failed {self._failures:,} times running, and "
        return f"{self._reason} ({times}{when})"
