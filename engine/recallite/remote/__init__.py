"""Models served over HTTP: the language model, and the endpoint, breaker and router that embedders use too."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recallite.remote.language_model import OpenAICompatible as OpenAICompatible
    from recallite.remote.model_protocol import LanguageModel as LanguageModel

__all__ = ["LanguageModel", "OpenAICompatible"]


def __getattr__(name: str) -> object:
    """Load a name when it is first used: a memory without a remote model needs none of them."""
    if name == "OpenAICompatible":
        from recallite.remote.language_model import OpenAICompatible

        return OpenAICompatible
    if name == "LanguageModel":
        from recallite.remote.model_protocol import LanguageModel

        return LanguageModel
    raise AttributeError(f"module 'recallite.remote' has no attribute {name!r}")
