"""Language models: their protocol, a budget, and one behind any OpenAI-compatible endpoint.

Any object with the protocol's method is a language model; `ask` has questions answered with JSON. Such endpoints have
Ollama, vLLM, llama.cpp and OpenAI.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import cache
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct, structs

from recallite.errors import InvalidInput, LanguageModelError
from recallite.model.checks import check_count, check_finite
from recallite.model.environment import ModelAddress, language_model_address
from recallite.remote.service import EndpointError, cleaned, open_service
from recallite.system.messages import shown

Answer = TypeVar("Answer", bound=Struct)


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
_FENCED = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
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
