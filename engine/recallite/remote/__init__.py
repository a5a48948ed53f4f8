"""Models served over HTTP: the language model, and the service that embedders use too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recallite.remote.model_protocol import LanguageModel as LanguageModel

if TYPE_CHECKING:
    from recallite.remote.language_model import OpenAICompatible as OpenAICompatible

__all__ = ["LanguageModel", "OpenAICompatible"]


def __getattr__(name: str) -> object:
    """Load the language model when it is first used: a memory without one does not need it."""
    if name != "OpenAICompatible":
        raise AttributeError(f"module 'recallite.remote' has no attribute {name!r}")
    from recallite.remote.language_model import OpenAICompatible

    return OpenAICompatible
