"""A JSON endpoint over HTTP, with timeouts and error messages that never contain the key."""

from __future__ import annotations

import time
import weakref
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import msgspec

from recallite.errors import InvalidInput
from recallite.model.model_address import ModelAddress
from recallite.remote.json_service import EndpointError, Service

MOST_BYTES = 256 * 1024 * 1024
_KEPT_HEADERS = ("Content-Type", "Retry-After", "Location")
_TOO_MANY = 429
_REFUSED_KEY = (401, 403)
_NOT_THERE = 404
_NOT_IMPLEMENTED = 501


class Endpoint(Service):
    """A `Service` with OpenAI's protocol at one base URL; connections are reused."""

    def __init__(self, address: ModelAddress, **options: Any) -> None:
        super().__init__(address, **options)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if address.api_key is not None:
            headers["Authorization"] = f"Bearer {address.api_key}"
        # Redirects are not followed: the key is meant for this host only.
        self._client = httpx2.Client(timeout=self._timeout_seconds, headers=headers, follow_redirects=False)
        weakref.finalize(self, self._client.close)

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            content = msgspec.json.encode(body)
        except (TypeError, ValueError, RecursionError) as reason:
            raise InvalidInput(f"what was to be sent cannot be written as JSON: {reason}") from None
        url = f"{self._address.base_url}{path}"
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
        """The whole response. The client's timeout restarts with every chunk and would not bound a slow response."""
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
        wait = retry_after(response.headers.get("Retry-After"))
        if wait is not None and wait > self._longest_wait_seconds:
            message += f": it asks to wait {wait:,.0f} s, longer than {self._longest_wait_seconds:g} s"
        return EndpointError(message, status=status, passing=True, wait_seconds=wait)


def _said(response: httpx2.Response) -> str:
    """The error message in a response, in any of the usual fields, else the whole body."""
    try:
        body = msgspec.json.decode(response.content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return response.text or response.reason_phrase
    for name in ("error", "message", "detail"):
        if isinstance(body, dict) and body.get(name):
            body = body[name]
    return body if isinstance(body, str) else response.text


def retry_after(value: str | None) -> float | None:
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
