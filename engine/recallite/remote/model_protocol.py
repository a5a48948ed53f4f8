"""The protocol of a language model, which any object with its method has, and questions answered with JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct

from recallite.errors import LanguageModelError

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
