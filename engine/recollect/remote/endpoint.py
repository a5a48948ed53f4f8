"""One HTTP endpoint that takes and gives JSON: timeouts, retries, and failures in words, never with the key."""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import msgspec
import stamina

from recollect.checks import shown
from recollect.errors import InvalidInput
from recollect.remote.address import ModelAddress

__all__ = ["Endpoint", "EndpointError"]

MOST_BYTES = 256 * 1024 * 1024
_SHOWN_CHARS = 300
_KEPT_HEADERS = ("Content-Type", "Retry-After", "Location")
_TOO_MANY = 429
_REFUSED_KEY = (401, 403)
_NOT_THERE = 404
_NOT_IMPLEMENTED = 501

# A retry goes to whoever set up logging, not to the standard error of everybody else.
logging.getLogger("stamina").addHandler(logging.NullHandler())


class EndpointError(Exception):
    """No usable answer. `status` is that of HTTP, None where there was no response; `passing` failures may be tried
    again, after `wait_seconds` if the endpoint named a time.
    """

    def __init__(
        self, message: str, *, status: int | None = None, passing: bool = False, wait_seconds: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.passing = passing
        self.wait_seconds = wait_seconds


class Endpoint:
    """Posts JSON to one base URL. May be used from many threads; connections are kept.

    A request is tried `attempts` times when the endpoint cannot be reached, is too busy (429) or fails (5xx), with
    growing pauses, or the pause that it asks for (Retry-After) if that is at most `longest_wait_seconds`. After a
    request that failed so, each is tried once, until one succeeds: whoever can do without is not kept waiting.
    """

    def __init__(
        self, address: ModelAddress, *, timeout_seconds: float, attempts: int, longest_wait_seconds: float
    ) -> None:
        self._address = address
        self._timeout_seconds = timeout_seconds
        self._attempts = attempts
        self._longest_wait_seconds = longest_wait_seconds
        self._down = False
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if address.api_key is not None:
            headers["Authorization"] = f"Bearer {address.api_key}"
        # Redirects are not followed: the key is for this host.
        self._client = httpx2.Client(timeout=timeout_seconds, headers=headers, follow_redirects=False)
        weakref.finalize(self, self._client.close)

    def post(self, path: str, body: dict[str, Any], *, before_each: Callable[[], None] | None = None) -> dict[str, Any]:
        """The JSON object that the endpoint answers; `before_each` is called before every attempt and may raise.

        Raises EndpointError, and InvalidInput for a body that JSON cannot say.
        """
        try:
            content = msgspec.json.encode(body)
        except (TypeError, ValueError, RecursionError) as reason:
            raise InvalidInput(f"what was to be sent cannot be written as JSON: {reason}") from None
        attempts = 1 if self._down else self._attempts
        try:
            for attempt in stamina.retry_context(
                on=self._pause, attempts=attempts, timeout=None, wait_initial=0.5, wait_max=8.0, wait_jitter=0.5
            ):
                with attempt:
                    if before_each is not None:
                        before_each()
                    answer = self._post_once(f"{self._address.base_url}{path}", content)
        except EndpointError as failure:
            self._down = failure.passing
            raise
        self._down = False
        return answer

    def _pause(self, fault: Exception) -> bool | float:
        """Whether to try again, or after how many seconds."""
        if not isinstance(fault, EndpointError) or not fault.passing:
            return False
        if fault.wait_seconds is None:
            return True
        return fault.wait_seconds if fault.wait_seconds <= self._longest_wait_seconds else False

    def _post_once(self, url: str, content: bytes) -> dict[str, Any]:
        try:
            response = self._answer(url, content)
        except httpx2.TimeoutException as reason:
            raise EndpointError(f"{url} gave no answer within {self._timeout_seconds:g} s", passing=True) from reason
        except httpx2.TransportError as reason:
            raise EndpointError(
                f"{url} could not be reached ({type(reason).__name__}: {self.clean(str(reason))}): is it running, "
                "and is the base URL right?",
                passing=True,
            ) from reason
        except (httpx2.HTTPError, httpx2.InvalidURL) as reason:
            raise EndpointError(f"{url} gave no usable answer: {self.clean(str(reason))}") from reason
        if not response.is_success:
            raise self._refused(url, response)
        try:
            answer = msgspec.json.decode(response.content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            kind = response.headers.get("Content-Type", "no content type")
            raise EndpointError(
                f"{url} answered {self.clean(response.text)} ({self.clean(kind)}) instead of a JSON object: is the "
                "base URL that of an OpenAI-compatible endpoint? It usually ends in /v1"
            )
        return answer

    def _answer(self, url: str, content: bytes) -> httpx2.Response:
        """The whole response. The client's own timeout starts anew with every piece, so that a drip never ends."""
        deadline = time.monotonic() + self._timeout_seconds
        body = bytearray()
        with self._client.stream("POST", url, content=content) as response:
            for piece in response.iter_bytes():
                body += piece
                if len(body) > MOST_BYTES:
                    raise EndpointError(f"{url} answered more than {MOST_BYTES:,} bytes: is it the right endpoint?")
                if time.monotonic() > deadline:
                    raise httpx2.ReadTimeout("the answer went on for too long")
            headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
            return httpx2.Response(response.status_code, headers=headers, content=bytes(body))

    def _refused(self, url: str, response: httpx2.Response) -> EndpointError:
        status = response.status_code
        message = f"{url} answered {status}: {self.clean(_said(response))}"
        if status in _REFUSED_KEY:
            message += ": the key is missing or not valid there"
        elif status == _NOT_THERE:
            message += f": is the base URL right (it usually ends in /v1), and is {self._address.model} served there?"
        elif response.is_redirect:
            message += ": redirects are not followed; give the base URL that it leads to"
        if status != _TOO_MANY and (status < 500 or status == _NOT_IMPLEMENTED):
            return EndpointError(message, status=status)
        wait = _retry_after(response.headers.get("Retry-After"))
        if wait is not None and wait > self._longest_wait_seconds:
            message += f": it asks to wait {wait:,.0f} s, longer than {self._longest_wait_seconds:g} s"
        return EndpointError(message, status=status, passing=True, wait_seconds=wait)

    def clean(self, text: str) -> str:
        """Text of the endpoint as it may stand in an error: short, and without the key, which some send back."""
        if self._address.api_key is not None:
            text = text.replace(self._address.api_key, "…")
        return shown(text.strip(), _SHOWN_CHARS)


def _said(response: httpx2.Response) -> str:
    """The message in the body of a failure, wherever endpoints put it, else the whole body."""
    try:
        body = msgspec.json.decode(response.content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return response.text or response.reason_phrase
    for name in ("error", "message", "detail"):
        if isinstance(body, dict) and body.get(name):
            body = body[name]
    return body if isinstance(body, str) else response.text


def _retry_after(value: str | None) -> float | None:
    """Seconds from a Retry-After header (RFC 9110, 10.2.3): a number or a date; None for neither."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(seconds, 0.0) if seconds == seconds else None
