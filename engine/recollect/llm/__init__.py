"""Language models, which are optional everywhere: what is asked of one, and a client of one kind of endpoint."""

from __future__ import annotations

from recollect.llm.client import OpenAICompatible
from recollect.llm.protocol import LanguageModel

__all__ = ["LanguageModel", "OpenAICompatible"]
