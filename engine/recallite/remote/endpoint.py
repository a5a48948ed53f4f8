"""HTTP requests to an endpoint with OpenAI's protocol, and models of providers with their own, through litellm.

Requests have timeouts, and error messages never contain the key.
"""

from __future__ import annotations

import os
import re
import time
import weakref
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

import httpx2
import msgspec

from recallite.errors import InvalidInput
from recallite.model.environment import ModelAddress
from recallite.remote.json_service import EndpointError, cleaned

MOST_BYTES = 256 * 1024 * 1024
_TIMED_OUT, _TOO_MANY, _NOT_IMPLEMENTED = 408, 429, 501
_ADVICE = {
    401: ": the key is missing or not valid there",
    403: ": the key is missing or not valid there",
    404: ": is the base URL right (it usually ends in /v1), and is {model} served there?",
}


class HttpSender:
    """Sends requests of a `Service` to one base URL; connections are reused."""

    def __init__(self, address: ModelAddress) -> None:
        self._address = address
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if address.api_key is not None:
            headers["Authorization"] = f"Bearer {address.api_key}"
        # Redirects are not followed: the key is meant for this host only.
        self._client = httpx2.Client(timeout=address.timeout_seconds, headers=headers, follow_redirects=False)
        weakref.finalize(self, self._client.close)

    def __call__(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Post a body and return the JSON object of the answer."""
        url = f"{self._address.base_url}{path}"
        try:
            content = msgspec.json.encode(body)
        except (TypeError, ValueError, RecursionError) as reason:
            raise InvalidInput(f"the request cannot be written as JSON: {reason}") from None
        try:
            response, data = self._exchange(url, content)
        except httpx2.TimeoutException as reason:
            seconds = self._address.timeout_seconds
            raise EndpointError(f"{url} gave no answer within {seconds:g} s", passing=True) from reason
        except httpx2.TransportError as reason:
            fault = f"{type(reason).__name__}: {self._cleaned(str(reason))}"
            message = f"{url} could not be reached ({fault}): is it running, and is the base URL right?"
            raise EndpointError(message, passing=True) from reason
        except (httpx2.HTTPError, httpx2.InvalidURL) as reason:
            raise EndpointError(f"{url} gave no usable answer: {self._cleaned(str(reason))}") from reason
        answer, text = None, data.decode("utf-8", "replace")
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            answer = msgspec.json.decode(data)
        if not response.is_success:
            raise self._refusal(url, response, _message_of(answer) or text or response.reason_phrase)
        if not isinstance(answer, dict):
            kind = self._cleaned(response.headers.get("Content-Type", "no content type"))
            raise EndpointError(
                f"{url} answered {self._cleaned(text)} ({kind}) instead of a JSON object: is the base URL that "
                "of an OpenAI-compatible endpoint? It usually ends in /v1"
            )
        return answer

    def _exchange(self, url: str, content: bytes) -> tuple[httpx2.Response, bytes]:
        """Return the response with its body. The client's timeout restarts with every chunk and bounds no slow body."""
        deadline = time.monotonic() + self._address.timeout_seconds
        body = bytearray()
        with self._client.stream("POST", url, content=content) as response:
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise EndpointError(f"{url} answered more than {MOST_BYTES:,} bytes: is it the right endpoint?")
                if time.monotonic() > deadline:
                    raise httpx2.ReadTimeout("the answer went on for too long")
        return response, bytes(body)

    def _refusal(self, url: str, response: httpx2.Response, reason: str) -> EndpointError:
        status = response.status_code
        advice = _ADVICE.get(status, "").format(model=self._address.model)
        if response.is_redirect:
            advice = ": redirects are not followed; give the base URL that it leads to"
        message = f"{url} answered {status}: {self._cleaned(reason)}{advice}"
        return failure_of(message, status, response.headers.get("Retry-After"))

    def _cleaned(self, text: str) -> str:
        return cleaned(text, self._address)


def failure_of(message: str, status: int | None, retry_after: str | None) -> EndpointError:
    """Return the error for a status, None if there was no response; 408, 429 and 5xx may pass."""
    passing = status in (None, _TIMED_OUT, _TOO_MANY) or (status >= 500 and status != _NOT_IMPLEMENTED)
    wait_seconds = _seconds(retry_after) if passing else None
    return EndpointError(message, status=status, passing=passing, wait_seconds=wait_seconds)


def _message_of(answer: object) -> str | None:
    """Return the error message of a JSON answer, in any of the usual fields; None if there is none."""
    for name in ("error", "message", "detail"):
        if isinstance(answer, dict) and answer.get(name):
            answer = answer[name]
    return answer if isinstance(answer, str) else None


def _seconds(retry_after: str | None) -> float | None:
    """Return the seconds of a Retry-After header (RFC 9110, 10.2.3): a number or a date; None for neither."""
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return max(seconds, 0.0) if seconds == seconds else None


# Without these litellm downloads a price list from GitHub when imported, and a list of headers for beta features of
# Anthropic's models; without the last it reads a file `.env`.
_QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_MODE": "PRODUCTION",
}
_NO_KEY = re.compile(r"missing .{0,40}(api key|credentials)|api[ _]key.{0,40}(not set|missing|required)", re.IGNORECASE)


class RoutedSender:
    """Sends requests of a `Service`, in OpenAI's JSON, to the provider in the model's name.

    The first request imports litellm, which takes seconds. A missing key is read from the provider's own variable
    (VOYAGE_API_KEY, GEMINI_API_KEY, ...).
    """

    def __init__(self, address: ModelAddress) -> None:
        self._address = address

    def __call__(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send a body and return the JSON object of the answer."""
        litellm = _litellm()
        call = litellm.embedding if path == "/embeddings" else litellm.completion
        try:
            answer: dict[str, Any] = call(
                **{**body, "model": self._address.model},
                api_base=self._address.base_url or None,
                api_key=self._address.api_key,
                timeout=self._address.timeout_seconds,
                # `Service` retries, by the same rule for all.
                num_retries=0,
                max_retries=0,
            ).model_dump()
        except Exception as fault:
            raise self._failure(fault) from fault
        return answer

    def _failure(self, fault: Exception) -> EndpointError:
        """Return the error for an exception of litellm: a class of OpenAI's client, or any other."""
        first_line = str(fault).strip().split("\n")[0]
        message = f"{self._address.model} through litellm: {cleaned(first_line, self._address)}"
        status = getattr(fault, "status_code", None)
        headers = getattr(getattr(fault, "response", None), "headers", None) or {}
        if _NO_KEY.search(first_line):
            status = 401
        return failure_of(message, status if isinstance(status, int) else None, headers.get("retry-after"))


@cache
def _litellm() -> Any:
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    import litellm

    litellm.suppress_debug_info = True  # it prints advice to standard output
    if litellm.disable_hf_tokenizer_download is None:
        # Otherwise it downloads the tokenizers of some models from Hugging Face to count tokens.
        litellm.disable_hf_tokenizer_download = True
    return litellm
