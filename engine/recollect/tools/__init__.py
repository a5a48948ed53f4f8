"""Tools for agents: what a model may be offered, and one function that carries out what it asks for.

tools = recollect.tools.schemas("openai")        # or "anthropic"; plain JSON schemas without an argument
result = recollect.tools.call("memory", arguments_of_the_model, memory=memory, scope="/users/ada")
reply = recollect.tools.as_text(result)          # JSON between marks that no stored text can forge
"""

from __future__ import annotations

from recollect.tools.calling import as_text, call
from recollect.tools.offering import schemas

__all__ = ["as_text", "call", "schemas"]
