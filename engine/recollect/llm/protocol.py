"""What a language model is. Any object with this method will do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

__all__ = ["LanguageModel"]


class LanguageModel(Protocol):
    """Answers a conversation. Recollect asks one to split long questions and to find durable facts in episodes."""

    def complete(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> str:
        """The answer's text to messages of {"role", "content"}; JSON that fits `schema`, a JSON schema, where given.

        Raises LanguageModelError when there is no answer: whoever asks then goes on as without a model. May be called
        from many threads.
        """
        ...
