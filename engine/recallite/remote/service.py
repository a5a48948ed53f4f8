"""JSON requests to a model: over HTTP with OpenAI's protocol, or through litellm; with retries and a circuit breaker.

Requests have timeouts, and error messages never contain the key.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from recallite.errors import EmbedderError, InvalidInput
from recallite.model.checks import check_count, check_finite
from recallite.model.environment import ModelAddress, require
from recallite.system.messages import install_command, shown
from recallite.text.patterns import lazily

if TYPE_CHECKING:
    import httpx2


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

        def pause_after(fault: Exception) -> bool | float:
            """Whether to try again, or after how many seconds."""
            if not isinstance(fault, EndpointError) or not fault.passing:
                return False
            return True if fault.wait_seconds is None else fault.wait_seconds

        attempts = 1 if self._breaker.failures else self._attempts
        with self._breaker:
            for attempt in stamina.retry_context(
                on=pause_after, attempts=attempts, timeout=None, wait_initial=0.5, wait_max=8.0, wait_jitter=0.5
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


def cleaned(text: str, address: ModelAddress) -> str:
    """Return a service's text for an error message: shortened, and without the key, which some services echo."""
    if address.api_key is not None:
        text = text.replace(address.api_key, "…")
    return shown(text.strip(), _SHOWN_CHARS)


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
        import httpx2  # here: only the extra `llm` has it

        self._library = httpx2
        # Redirects are not followed: the key is meant for this host only.
        self._client = httpx2.Client(timeout=address.timeout_seconds, headers=headers, follow_redirects=False)
        weakref.finalize(self, self._client.close)

    def __call__(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Post a body and return the JSON object of the answer."""
        url, httpx = f"{self._address.base_url}{path}", self._library
        try:
            content = msgspec.json.encode(body)
        except (TypeError, ValueError, RecursionError) as reason:
            raise InvalidInput(f"the request cannot be written as JSON: {reason}") from None
        try:
            response, data = self._exchange(url, content)
        except httpx.TimeoutException as reason:
            seconds = self._address.timeout_seconds
            raise EndpointError(f"{url} gave no answer within {seconds:g} s", passing=True) from reason
        except httpx.TransportError as reason:
            fault = f"{type(reason).__name__}: {self._cleaned(str(reason))}"
            message = f"{url} could not be reached ({fault}): is it running, and is the base URL right?"
            raise EndpointError(message, passing=True) from reason
        except (httpx.HTTPError, httpx.InvalidURL) as reason:
            raise EndpointError(f"{url} gave no usable answer: {self._cleaned(str(reason))}") from reason
        answer, text = None, data.decode("utf-8", "replace")
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            answer = msgspec.json.decode(data)
        if not response.is_success:
            status, told = response.status_code, _message_of(answer) or text or response.reason_phrase
            advice = _ADVICE.get(status, "").format(model=self._address.model)
            if response.is_redirect:
                advice = ": redirects are not followed; give the base URL that it leads to"
            message = f"{url} answered {status}: {self._cleaned(told)}{advice}"
            raise failure_of(message, status, response.headers.get("Retry-After"))
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
                    raise self._library.ReadTimeout("the answer went on for too long")
        return response, bytes(body)

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
        from email.utils import parsedate_to_datetime  # which loads sockets

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
_NO_KEY = lazily(r"missing .{0,40}(api key|credentials)|api[ _]key.{0,40}(not set|missing|required)", re.IGNORECASE)


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
        except Exception as fault:  # a class of OpenAI's client, or any other
            first_line = str(fault).strip().split("\n")[0]
            message = f"{self._address.model} through litellm: {cleaned(first_line, self._address)}"
            status = 401 if _NO_KEY.search(first_line) else getattr(fault, "status_code", None)
            headers = getattr(getattr(fault, "response", None), "headers", None) or {}
            status = status if isinstance(status, int) else None
            raise failure_of(message, status, headers.get("retry-after")) from fault
        return answer


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


def open_service(address: ModelAddress, missing: Callable[[str], Exception], **options: Any) -> Service:
    """Return the service at an address. Raises `missing` if a library for it is not installed."""
    try:
        require(address)
        import_module("stamina")
        send = RoutedSender(address) if address.routed else HttpSender(address)
    except EmbedderError as fault:
        raise missing(str(fault)) from None
    except ImportError as fault:
        raise missing(f"{address.model} needs {fault.name}: {install_command(address.extra)}") from fault
    return Service(send, **options)
