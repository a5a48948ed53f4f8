"""Tools for agents: schemas to offer to a model, and one function that executes its calls.

tools = recallite.tools.schemas("openai")        # or "anthropic"; plain JSON schemas without an argument
result = recallite.tools.call("memory", arguments_of_the_model, memory=memory, scope="/users/ada")
reply = recallite.tools.as_text(result)          # JSON between delimiters that stored text cannot forge
"""

from __future__ import annotations

from recallite_tools.calling import as_text, call, call_by_source_names, schemas

__all__ = ["as_text", "call", "call_by_source_names", "schemas"]
