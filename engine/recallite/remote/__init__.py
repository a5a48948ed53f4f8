"""Models served over HTTP: the language model, and the endpoint, breaker and router that embedders use too."""

from __future__ import annotations

from recallite.remote.language_model import OpenAICompatible
from recallite.remote.model_protocol import LanguageModel

__all__ = ["LanguageModel", "OpenAICompatible"]
