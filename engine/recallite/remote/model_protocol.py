"""The protocol of a language model. Any object with this method works."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


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
