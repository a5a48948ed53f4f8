"""A language model behind any OpenAI-compatible endpoint: Ollama, vLLM, llama.cpp, OpenAI."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import msgspec
from msgspec import Struct, structs

from recallite.errors import EmbedderMissing, InvalidInput, LanguageModelError
from recallite.model.checks import check_count, check_finite
from recallite.model.environment import language_model_address
from recallite.model.model_address import ModelAddress, require
from recallite.remote.budget import Budget
from recallite.system.extras import install_command
from recallite.system.messages import shown

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

    - timeout_seconds: for one attempt; attempts: how often a request is tried that the endpoint could not serve
      (unreachable, 429, 5xx); longest_wait_seconds: the longest Retry-After that is honoured
    - most_calls, most_tokens: the budget, for this object's lifetime or per interval of `per_seconds`
    - temperature: sent only if given, since some models accept none
    - address: the model's address, instead of base_url, model and api_key

    Raises InvalidInput for a wrong argument and LanguageModelError where the extra `llm` is not installed.
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
        options = {
            "timeout_seconds": timeout_seconds,
            "attempts": check_count(attempts, "attempts"),
            "longest_wait_seconds": check_finite(longest_wait_seconds, "longest_wait_seconds", minimum=0.0),
        }
        try:
            require(address)
            from recallite.remote.json_service import service_at

            self._service = service_at(self._address, **options)
        except EmbedderMissing as missing:
            raise LanguageModelError(str(missing)) from None
        except ImportError as missing:
            raise LanguageModelError(
                f"a language model over HTTP needs {missing.name}: {install_command(address.extra)}"
            ) from missing
        # What the endpoint has been found to accept.
        self._takes_schema = True
        self._limit_name = "max_tokens"

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> str:
        """The answer's text; with `schema`, JSON, by structured output where the endpoint supports it, else by prompt.

        Raises LanguageModelError where there is no answer, it is empty or cut at `max_tokens`, or not JSON although a
        schema was given, and where the budget is spent.
        """
        body: dict[str, Any] = {"model": self._address.model, "messages": _checked(messages)}
        if self._temperature is not None:
            body["temperature"] = self._temperature
        limit = None if max_tokens is None else check_count(max_tokens, "max_tokens")
        completion = self._ask(body, schema, limit)
        return self._text(completion, as_json=schema is not None)

    def variant(self, *, model: str | None = None, temperature: float | None = None) -> OpenAICompatible:
        """Another model at the same endpoint and budget; `temperature` applies only where this one has none."""
        other = copy(self)
        if model is not None:
            other._address = structs.replace(self._address, model=model)
        if self._temperature is None and temperature is not None:
            other._temperature = check_finite(temperature, "temperature", minimum=0.0)
        return other

    def __repr__(self) -> str:
        return f"OpenAICompatible({self._address.base_url!r}, {self._address.model!r})"

    def _ask(self, body: dict[str, Any], schema: Mapping[str, Any] | None, limit: int | None) -> _Completion:
        """The completion; the request is repeated in another form where the endpoint refuses a parameter."""
        from recallite.remote.json_service import EndpointError

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
            raise LanguageModelError(
                f"{self._address} answered {self._service.clean(repr(answer))}, which is no chat completion ({reason})"
            ) from None
        tokens = None if completion.usage is None else completion.usage.total_tokens
        if tokens is None:
            said = "".join(choice.message.content or "" for choice in completion.choices)
            asked = "".join(message["content"] for message in sent["messages"])
            tokens = (len(asked) + len(said)) // _CHARS_PER_TOKEN + 1
        self._budget.add_tokens(tokens)
        return completion

    def _text(self, completion: _Completion, *, as_json: bool) -> str:
        where = f"{self._address}"
        if not completion.choices:
            raise LanguageModelError(f"{where} answered without a choice: ask again, or another model")
        choice = completion.choices[0]
        if choice.finish_reason == "length":
            raise LanguageModelError(f"{where} was cut off in its answer: raise max_tokens, or ask for less")
        if choice.message.refusal or choice.finish_reason == "content_filter":
            raise LanguageModelError(
                f"{where} refused to answer: {self._service.clean(choice.message.refusal or 'filtered')}"
            )
        text = _THOUGHT.sub("", choice.message.content or "", count=1).strip()
        if not text:
            raise LanguageModelError(f"{where} gave an empty answer: ask again, or another model")
        return self._json(text, where) if as_json else text

    def _json(self, text: str, where: str) -> str:
        forms: list[str] = [text, *_FENCED.findall(text)]
        for form in forms:
            try:
                msgspec.json.decode(form)
            except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
                continue
            return form.strip()
        raise LanguageModelError(
            f"{where} answered {self._service.clean(text)}, which is no JSON: ask again, or another model"
        )


def _request(
    body: dict[str, Any], schema: Mapping[str, Any] | None, limit: int | None, *, takes_schema: bool, limit_name: str
) -> dict[str, Any]:
    """The request in the form that the endpoint accepts."""
    sent = dict(body)
    if limit is not None:
        sent[limit_name] = limit
    if schema is None:
        return sent
    if takes_schema:
        named = {"name": "answer", "schema": dict(schema), "strict": True}
        sent["response_format"] = {"type": "json_schema", "json_schema": named}
    else:
        asked = {"role": "system", "content": _WITH_SCHEMA + msgspec.json.encode(dict(schema)).decode()}
        sent["messages"] = [asked, *body["messages"]]
    return sent


def _checked(messages: object) -> list[dict[str, str]]:
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes) or not messages:
        raise InvalidInput(f"messages is {shown(messages)}: give a list of {{'role': …, 'content': …}}")
    for place, message in enumerate(messages):
        if not isinstance(message, Mapping) or not all(
            isinstance(message.get(name), str) for name in ("role", "content")
        ):
            raise InvalidInput(f"messages[{place}] is {shown(message)}: give {{'role': …, 'content': …}}, both str")
    return [{"role": message["role"], "content": message["content"]} for message in messages]
