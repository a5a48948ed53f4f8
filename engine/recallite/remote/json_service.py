"""A JSON service with retries and a circuit breaker."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import stamina

from recallite.model.model_address import ModelAddress
from recallite.remote.breaker import Breaker
from recallite.system.messages import shown

CONTENT_REFUSED = (400, 413, 422)
"""Statuses by which a working endpoint refuses the content that it was sent."""
_SHOWN_CHARS = 300

# Retries are logged only where the application configures logging, never to standard error.
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


class Service(ABC):
    """Posts JSON to a model's endpoint; thread-safe.

    A request is tried up to `attempts` times while the service is unreachable, too busy (429) or failing (5xx), with
    growing pauses, or with the pause that it asks for (Retry-After) if that is at most `longest_wait_seconds`. After a
    failure `breaker` decides whether a request is sent at all; each is then tried once, until one succeeds.
    """

    def __init__(
        self,
        address: ModelAddress,
        *,
        timeout_seconds: float,
        attempts: int,
        longest_wait_seconds: float,
        breaker: Breaker | None = None,
    ) -> None:
        self._address = address
        self._timeout_seconds = timeout_seconds
        self._attempts = attempts
        self._longest_wait_seconds = longest_wait_seconds
        self._breaker = Breaker(first_seconds=0.0) if breaker is None else breaker

    @property
    def problem(self) -> str | None:
        """Why the last request failed, and when the next is allowed; None where it succeeded."""
        return self._breaker.problem

    def post(self, path: str, body: dict[str, Any], *, before_each: Callable[[], None] | None = None) -> dict[str, Any]:
        """The JSON object that is answered; `before_each` is called before every attempt and may raise.

        Raises EndpointError, and InvalidInput for a body that is not JSON.
        """
        attempts = 1 if self._breaker.failing else self._attempts
        if (problem := self._breaker.enter()) is not None:
            raise EndpointError(problem, passing=True)
        try:
            for attempt in stamina.retry_context(
                on=self._pause, attempts=attempts, timeout=None, wait_initial=0.5, wait_max=8.0, wait_jitter=0.5
            ):
                with attempt:
                    if before_each is not None:
                        before_each()
                    answer = self._ask(path, body)
        except EndpointError as failure:
            if failure.status in CONTENT_REFUSED:
                self._breaker.succeeded()
            else:
                self._breaker.failed(str(failure), wait_seconds=failure.wait_seconds)
            raise
        except BaseException:
            self._breaker.left()
            raise
        self._breaker.succeeded()
        return answer

    @abstractmethod
    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """One attempt. Raises EndpointError."""

    def clean(self, text: str) -> str:
        """Text of the service for an error message: shortened, and without the key, which some services echo."""
        if self._address.api_key is not None:
            text = text.replace(self._address.api_key, "…")
        return shown(text.strip(), _SHOWN_CHARS)

    def _pause(self, fault: Exception) -> bool | float:
        """Whether to try again, or after how many seconds."""
        if not isinstance(fault, EndpointError) or not fault.passing:
            return False
        if fault.wait_seconds is None:
            return True
        return fault.wait_seconds if fault.wait_seconds <= self._longest_wait_seconds else False


def service_at(address: ModelAddress, **options: Any) -> Service:
    """The service for an address. Raises ImportError where a library for it is not installed."""
    if address.routed:
        from recallite.remote.router import RoutedService

        return RoutedService(address, **options)
    from recallite.remote.endpoint import Endpoint

    return Endpoint(address, **options)
