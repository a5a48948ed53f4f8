"""Tools for agents: schemas to offer to a model, and one function that executes its calls.

tools = recollect.tools.schemas("openai")        # or "anthropic"; plain JSON schemas without an argument
result = recollect.tools.call("memory", arguments_of_the_model, memory=memory, scope="/users/ada")
reply = recollect.tools.as_text(result)          # JSON between delimiters that stored text cannot forge
"""

from __future__ import annotations

from recollect.tools.calling import as_text, call
from recollect.tools.offering import schemas

__all__ = ["as_text", "call", "schemas"]
