"""Language models, which are optional everywhere: the protocol, and a client for OpenAI-compatible endpoints."""

from __future__ import annotations

from recallite.llm.client import OpenAICompatible
from recallite.llm.protocol import LanguageModel

__all__ = ["LanguageModel", "OpenAICompatible"]
