"""JSON requests to a model's endpoint, with retries and a circuit breaker."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from time import monotonic
from types import TracebackType
from typing import Any

from recallite.errors import EmbedderError
from recallite.model.checks import check_count, check_finite
from recallite.model.environment import ModelAddress, require
from recallite.system.messages import install_command, shown

CONTENT_REFUSED = (400, 413, 422)
"""Statuses by which a working endpoint refuses the content that it was sent."""
_LONGEST_PAUSE_SECONDS = 300.0
_SHOWN_CHARS = 300

# Retries are logged only if the application configures logging, never to standard error.
logging.getLogger("stamina").addHandler(logging.NullHandler())


class EndpointError(Exception):
    """No usable answer. `status` is the HTTP status, None without a response; `passing` failures may be retried, after
    `wait_seconds` if the endpoint asked for a pause.
    """

    def __init__(
        self, message: str, *, status: int | None = None, passing: bool = False, wait_seconds: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.passing = passing
        self.wait_seconds = wait_seconds


class Breaker:
    """A context of calls to a service, which refuses them while it fails, so that callers do not wait; thread-safe.

    After a failure all calls are blocked for `first_seconds`. Then one is let through; if it fails too, the interval
    doubles, up to five minutes. A success unblocks all calls. (Circuit breaker: Nygard, Release It!, 2007.)
    """

    def __init__(self, first_seconds: float, clock: Callable[[], float]) -> None:
        self._first_seconds = first_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._reason = ""
        self._retry_at = 0.0
        self._trying = False
        self.failures = 0

    @property
    def problem(self) -> str | None:
        """The last failure, and when the next call is allowed; None if the last call succeeded."""
        if not self.failures:
            return None
        seconds = max(self._retry_at - self._clock(), 0.0)
        pause = f"it is asked again in {seconds:.0f} s" if seconds else "the next call asks it again"
        times = "" if self.failures == 1 else f"it failed {self.failures:,} times running, and "
        return f"{self._reason} ({times}{'it is being asked again' if self._trying else pause})"

    def __enter__(self) -> None:
        with self._lock:
            if self.failures and (self._trying or self._clock() < self._retry_at):
                raise EndpointError(str(self.problem), passing=True)
            self._trying = True

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            if fault is None or (isinstance(fault, EndpointError) and fault.status in CONTENT_REFUSED):
                self.failures, self._trying = 0, False
            elif not isinstance(fault, EndpointError):  # it says nothing about the service
                self._trying = False
            elif not self.failures or self._clock() >= self._retry_at:  # else sent before the failure that counts
                pause = max(self._first_seconds * 2.0 ** min(self.failures, 60), fault.wait_seconds or 0.0)
                self._retry_at = self._clock() + min(pause, _LONGEST_PAUSE_SECONDS)
                self.failures, self._reason, self._trying = self.failures + 1, str(fault), False


class Service:
    """Posts JSON to a model's endpoint; thread-safe.

    `send` makes one attempt: it posts a body to a path and returns the JSON object of the answer, or raises
    EndpointError.

    A request is tried up to `attempts` times while the service is unreachable, too busy (429) or failing (5xx), with
    growing pauses, or with the pause that it asks for (Retry-After) if that is at most `longest_wait_seconds`. After a
    failure no request is sent for `pause_seconds`, or longer (see `Breaker`), and each is tried once, until one
    succeeds.
    """

    def __init__(
        self,
        send: Callable[[str, dict[str, Any]], dict[str, Any]],
        *,
        attempts: int,
        longest_wait_seconds: float,
        pause_seconds: float = 0.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._send = send
        self._attempts = check_count(attempts, "attempts")
        self._longest_wait_seconds = check_finite(longest_wait_seconds, "longest_wait_seconds", minimum=0.0)
        self._breaker = Breaker(pause_seconds, clock or monotonic)

    @property
    def problem(self) -> str | None:
        """The failure of the last request, and when the next is allowed; None if it succeeded."""
        return self._breaker.problem

    def post(self, path: str, body: dict[str, Any], *, before_each: Callable[[], None] | None = None) -> dict[str, Any]:
        """Return the JSON object of the answer; `before_each` is called before every attempt and may raise.

        Raises EndpointError, and InvalidInput for a body that is not JSON.
        """
        import stamina  # here: only the extra `llm` has it

        attempts = 1 if self._breaker.failures else self._attempts
        with self._breaker:
            for attempt in stamina.retry_context(
                on=_pause_after, attempts=attempts, timeout=None, wait_initial=0.5, wait_max=8.0, wait_jitter=0.5
            ):
                with attempt:
                    if before_each is not None:
                        before_each()
                    try:
                        answer = self._send(path, body)
                    except EndpointError as failure:
                        longest, wait = self._longest_wait_seconds, failure.wait_seconds
                        if wait is not None and wait > longest:
                            failure.args = (f"{failure}: it asks to wait {wait:,.0f} s, longer than {longest:g} s",)
                            failure.passing = False
                        raise
        return answer


def _pause_after(fault: Exception) -> bool | float:
    """Return whether to try again, or after how many seconds."""
    if not isinstance(fault, EndpointError) or not fault.passing:
        return False
    return True if fault.wait_seconds is None else fault.wait_seconds


def cleaned(text: str, address: ModelAddress) -> str:
    """Return a service's text for an error message: shortened, and without the key, which some services echo."""
    if address.api_key is not None:
        text = text.replace(address.api_key, "…")
    return shown(text.strip(), _SHOWN_CHARS)


def open_service(address: ModelAddress, missing: Callable[[str], Exception], **options: Any) -> Service:
    """Return the service at an address. Raises `missing` if a library for it is not installed."""
    try:
        require(address)
        import stamina  # noqa: F401

        from recallite.remote.endpoint import HttpSender, RoutedSender
    except EmbedderError as fault:
        raise missing(str(fault)) from None
    except ImportError as fault:
        raise missing(f"{address.model} needs {fault.name}: {install_command(address.extra)}") from fault
    return Service(RoutedSender(address) if address.routed else HttpSender(address), **options)
