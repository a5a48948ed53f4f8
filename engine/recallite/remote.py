"""Models over HTTP: JSON requests with OpenAI's protocol or through litellm, and language models behind them.

Ollama, vLLM, llama.cpp and OpenAI have endpoints of this protocol. Requests have timeouts, retries and a circuit
breaker, and error messages never contain the key. Any object with the method of `LanguageModel` is one; `ask` has
questions answered with JSON.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from datetime import UTC, datetime
from functools import cache, partial
from importlib import import_module
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
from msgspec import Struct, structs

from recallite.errors import EmbedderError, InvalidInput, LanguageModelError
from recallite.model.checks import check_count, check_finite
from recallite.model.environment import ModelAddress, language_model_address, require
from recallite.system.messages import install_command, shown
from recallite.text.patterns import lazily

if TYPE_CHECKING:
    import httpx2

Answer = TypeVar("Answer", bound=Struct)
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
        self._address, self._cleaned = address, partial(cleaned, address=address)
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
            status, told = response.status_code, answer
            for name in ("error", "message", "detail"):  # the usual fields of a message
                told = told[name] if isinstance(told, dict) and told.get(name) else told
            told = (told if isinstance(told, str) else "") or text or response.reason_phrase
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


def failure_of(message: str, status: int | None, retry_after: str | None) -> EndpointError:
    """Return the error for a status, None if there was no response; 408, 429 and 5xx may pass."""
    passing = status in (None, _TIMED_OUT, _TOO_MANY) or (status >= 500 and status != _NOT_IMPLEMENTED)
    wait_seconds = _seconds(retry_after) if passing else None
    return EndpointError(message, status=status, passing=passing, wait_seconds=wait_seconds)


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


def send_routed(address: ModelAddress, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Send a request of a `Service`, in OpenAI's JSON, to the provider in the model's name.

    The first request imports litellm, which takes seconds. A missing key is read from the provider's own variable
    (VOYAGE_API_KEY, GEMINI_API_KEY, ...).
    """
    litellm = _litellm()
    call = litellm.embedding if path == "/embeddings" else litellm.completion
    try:
        answer: dict[str, Any] = call(
            **{**body, "model": address.model},
            api_base=address.base_url or None,
            api_key=address.api_key,
            timeout=address.timeout_seconds,
            # `Service` retries, by the same rule for all.
            num_retries=0,
            max_retries=0,
        ).model_dump()
    except Exception as fault:  # a class of OpenAI's client, or any other
        first_line = str(fault).strip().split("\n")[0]
        message = f"{address.model} through litellm: {cleaned(first_line, address)}"
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
        send = partial(send_routed, address) if address.routed else HttpSender(address)
    except EmbedderError as fault:
        raise missing(str(fault)) from None
    except ImportError as fault:
        raise missing(f"{address.model} needs {fault.name}: {install_command(address.extra)}") from fault
    return Service(send, **options)


# Language models.


class LanguageModel(Protocol):
    """Answers a conversation. Recallite uses it to decompose long queries and to extract facts from episodes."""

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> str:
        """Return the answer's text to messages of {"role", "content"}; JSON that fits a JSON schema, if one is given.

        Raises LanguageModelError if there is no answer; the caller then continues without a model. May be called from
        many threads.
        """
        ...


def ask(model: LanguageModel, task: str, data: object, kind: type[Answer], *, of: str, max_tokens: int) -> Answer:
    """Return what a model answers to a task about data. Raises LanguageModelError, which names what was asked for."""
    messages = [{"role": "system", "content": task}, {"role": "user", "content": msgspec.json.encode(data).decode()}]
    answer = model.complete(messages, schema=_schema(kind), max_tokens=max_tokens)
    try:
        return msgspec.json.decode(answer, type=kind)
    except (msgspec.DecodeError, TypeError) as fault:
        raise LanguageModelError(f"the model's {of} are not the JSON that was asked for ({fault})") from None


@cache
def _schema(kind: type[Struct]) -> dict[str, Any]:
    """Return a JSON schema as strict endpoints take it: without references, and with all keys required."""
    (root,), parts = msgspec.json.schema_components([kind])

    def inlined(node: dict[str, Any]) -> dict[str, Any]:
        node = parts[node["$ref"].rpartition("/")[2]] if "$ref" in node else node
        if "items" in node:
            return {"type": "array", "items": inlined(node["items"])}
        if "properties" not in node:
            return {key: value for key, value in node.items() if key != "default"}
        properties = {name: inlined(part) for name, part in node["properties"].items()}
        return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}

    return inlined(root)


class Budget:
    """Counts requests and tokens, in total or per interval of `per_seconds`; thread-safe.

    Rejected requests are not counted. Tokens are known only after the answer, so concurrent requests may exceed
    `most_tokens`.
    """

    def __init__(
        self, most_calls: int | None = None, most_tokens: int | None = None, per_seconds: float | None = None
    ) -> None:
        for value, name in ((most_calls, "most_calls"), (most_tokens, "most_tokens")):
            if value is not None:
                check_count(value, name, minimum=0)
        if per_seconds is not None and check_finite(per_seconds, "per_seconds") <= 0:
            raise InvalidInput("per_seconds is not above 0: give seconds, or None for a budget in all")
        self._most_calls = most_calls
        self._most_tokens = most_tokens
        self._per_seconds = per_seconds
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self.calls = 0
        self.tokens = 0

    def take_call(self) -> None:
        """Count one request. Raises LanguageModelError if the budget is spent."""
        with self._lock:
            now = time.monotonic()
            if self._per_seconds is not None and now - self._began >= self._per_seconds:
                self._began, self.calls, self.tokens = now, 0, 0
            limits = (self.calls, self._most_calls, "calls"), (self.tokens, self._most_tokens, "tokens")
            for used, most, unit in limits:
                if most is not None and used >= most:
                    span = "" if self._per_seconds is None else f" in {self._per_seconds:g} s"
                    raise LanguageModelError(
                        f"the language model's budget of {most:,} {unit}{span} is spent ({used:,} used): "
                        f"wait, or raise most_{unit}"
                    )
            self.calls += 1

    def add_tokens(self, tokens: int) -> None:
        """Count the tokens of a request and its answer."""
        with self._lock:
            self.tokens += tokens


_CHARS_PER_TOKEN = 4
# Statuses by which endpoints refuse a parameter: most use 400, some 422 or 501.
_REFUSED_PARAMETER = (400, 422, 501)
_OTHER_LIMIT = "max_completion_tokens"
_FENCED = lazily(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_THOUGHT = lazily(r"\A\s*<think>.*?</think>", re.DOTALL)
_WITH_SCHEMA = (
    "Answer with one JSON value that is valid under this JSON schema, and with nothing else: no explanation, no code "
    "fence.\n\n"
)


class _Message(Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(Struct):
    message: _Message
    finish_reason: str | None = None


class _Usage(Struct):
    total_tokens: int | None = None


class _Completion(Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


class OpenAICompatible:
    """A `LanguageModel` through chat completions. Nothing is sent before the first `complete`; thread-safe.

    Missing arguments are read from RECALLITE_LLM_BASE_URL, RECALLITE_LLM_MODEL and RECALLITE_LLM_API_KEY. The name of a
    model reached through litellm includes its provider, as "gemini/gemini-2.0-flash"; it needs the extra `providers`.

    - timeout_seconds: for one attempt; attempts: the most of a request that the endpoint cannot serve (unreachable,
      429, 5xx); longest_wait_seconds: the longest Retry-After that is honoured
    - most_calls, most_tokens: the budget, for this object's lifetime or per interval of `per_seconds`
    - temperature: sent only if given, since some models accept none
    - address: the model's address, instead of base_url, model and api_key

    Raises InvalidInput for a wrong argument and LanguageModelError if the extra `llm` is not installed.
    """

    def __init__(
        self,
        base_url: str | None = None,
        model: str | None = None,
        *,
        api_key: str | None = None,
        timeout_seconds: float = 60.0,
        attempts: int = 3,
        longest_wait_seconds: float = 30.0,
        most_calls: int | None = None,
        most_tokens: int | None = None,
        per_seconds: float | None = None,
        temperature: float | None = None,
        address: ModelAddress | None = None,
    ) -> None:
        if address is None:
            address = language_model_address(base_url, model, api_key)
        if address is None:
            raise InvalidInput(
                "no language model is named: give base_url and model, or set RECALLITE_LLM_BASE_URL and "
                "RECALLITE_LLM_MODEL"
            )
        if temperature is not None:
            check_finite(temperature, "temperature", minimum=0.0)
        self._address = structs.replace(address, timeout_seconds=timeout_seconds)
        self._temperature = temperature
        self._budget = Budget(most_calls, most_tokens, per_seconds)
        self._service = open_service(
            self._address, LanguageModelError, attempts=attempts, longest_wait_seconds=longest_wait_seconds
        )
        # The form that the endpoint accepts, as far as it is known.
        self._takes_schema = True
        self._limit_name = "max_tokens"

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> str:
        """Return the answer's text; with `schema`, JSON, by structured output if the endpoint has it, else by prompt.

        Raises LanguageModelError if there is no answer, if it is empty or cut at `max_tokens`, or not JSON although a
        schema was given, and if the budget is spent.
        """
        body: dict[str, Any] = {"model": self._address.model, "messages": _checked(messages)}
        if self._temperature is not None:
            body["temperature"] = self._temperature
        limit = None if max_tokens is None else check_count(max_tokens, "max_tokens")
        completion = self._ask(body, schema, limit)
        return self._text(completion, as_json=schema is not None)

    def variant(self, *, model: str | None = None, temperature: float | None = None) -> OpenAICompatible:
        """Return another model at the same endpoint and budget; `temperature` applies only if this one has none."""
        other = copy(self)
        if model is not None:
            other._address = structs.replace(self._address, model=model)
        if self._temperature is None and temperature is not None:
            other._temperature = check_finite(temperature, "temperature", minimum=0.0)
        return other

    def __repr__(self) -> str:
        return f"OpenAICompatible({self._address.base_url!r}, {self._address.model!r})"

    def _ask(self, body: dict[str, Any], schema: Mapping[str, Any] | None, limit: int | None) -> _Completion:
        """Return the completion; repeat the request in another form if the endpoint refuses a parameter."""
        takes_schema, limit_name = self._takes_schema, self._limit_name
        while True:
            sent = _request(body, schema, limit, takes_schema=takes_schema, limit_name=limit_name)
            try:
                answer = self._service.post("/chat/completions", sent, before_each=self._budget.take_call)
                break
            except EndpointError as failure:
                refused = failure.status in _REFUSED_PARAMETER
                if refused and limit_name in sent and _OTHER_LIMIT in str(failure) and limit_name != _OTHER_LIMIT:
                    limit_name = _OTHER_LIMIT
                elif refused and "temperature" in body and "temperature" in str(failure):
                    del body["temperature"]
                elif refused and "response_format" in sent:
                    takes_schema = False
                else:
                    raise LanguageModelError(f"{self._address.model}: {failure}") from failure
        # Send the accepted form first from now on.
        self._limit_name = limit_name
        self._takes_schema = takes_schema
        return self._counted(answer, sent)

    def _counted(self, answer: dict[str, Any], sent: dict[str, Any]) -> _Completion:
        try:
            completion = msgspec.convert(answer, _Completion)
        except msgspec.ValidationError as reason:
            raise self._failure(f"answered {{}}, which is no chat completion ({reason})", repr(answer)) from None
        tokens = None if completion.usage is None else completion.usage.total_tokens
        if tokens is None:
            texts = [*(message["content"] for message in sent["messages"])]
            texts += [choice.message.content or "" for choice in completion.choices]
            tokens = sum(map(len, texts)) // _CHARS_PER_TOKEN + 1
        self._budget.add_tokens(tokens)
        return completion

    def _text(self, completion: _Completion, *, as_json: bool) -> str:
        if not completion.choices:
            raise self._failure("answered without a choice: ask again, or another model")
        choice = completion.choices[0]
        if choice.finish_reason == "length":
            raise self._failure("was cut off in its answer: raise max_tokens, or ask for less")
        if choice.message.refusal or choice.finish_reason == "content_filter":
            raise self._failure("refused to answer: {}", choice.message.refusal or "filtered")
        text = _THOUGHT.sub("", choice.message.content or "", count=1).strip()
        if not text:
            raise self._failure("gave an empty answer: ask again, or another model")
        if not as_json:
            return text
        for candidate in (text, *_FENCED.findall(text)):
            with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
                msgspec.json.decode(candidate)
                return str(candidate).strip()
        raise self._failure("answered {}, which is no JSON: ask again, or another model", text)

    def _failure(self, message: str, quoted: str = "") -> LanguageModelError:
        """Return the error of the model, with a text of its own in place of {}."""
        return LanguageModelError(f"{self._address} {message}".replace("{}", cleaned(quoted, self._address)))


def _request(
    body: dict[str, Any], schema: Mapping[str, Any] | None, limit: int | None, *, takes_schema: bool, limit_name: str
) -> dict[str, Any]:
    """Return the request in the form that the endpoint accepts."""
    sent = dict(body)
    if limit is not None:
        sent[limit_name] = limit
    if schema is None:
        return sent
    if takes_schema:
        json_schema = {"name": "answer", "schema": dict(schema), "strict": True}
        sent["response_format"] = {"type": "json_schema", "json_schema": json_schema}
    else:
        instruction = {"role": "system", "content": _WITH_SCHEMA + msgspec.json.encode(dict(schema)).decode()}
        sent["messages"] = [instruction, *body["messages"]]
    return sent


def _checked(messages: object) -> list[dict[str, str]]:
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes) or not messages:
        raise InvalidInput(f"messages is {shown(messages)}: give a list of {{'role': …, 'content': …}}")
    for i, message in enumerate(messages):
        fields = (message.get("role"), message.get("content")) if isinstance(message, Mapping) else (None,)
        if not all(isinstance(value, str) for value in fields):
            raise InvalidInput(f"messages[{i}] is {shown(message)}: give {{'role': …, 'content': …}}, both str")
    return [{"role": message["role"], "content": message["content"]} for message in messages]
