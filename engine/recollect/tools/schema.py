"""The tools as models are shown them: one flat JSON schema each, as providers take no alternatives at the top."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import Any, Literal

import msgspec
from msgspec import structs

from recollect.checks import shown
from recollect.errors import InvalidInput
from recollect.tools.arguments import TOOLS, Action, Tool

__all__ = ["properties", "required", "schemas", "tag"]


def schemas(shape: Literal["plain", "openai", "anthropic"] = "plain") -> Any:
    """The JSON schemas of the tools.

    - "plain": {name: schema}
    - "openai": a list of {"type": "function", "function": {"name", "description", "parameters"}}
    - "anthropic": a list of {"name", "description", "input_schema"}
    """
    if shape not in ("plain", "openai", "anthropic"):
        raise InvalidInput(f"shape is {shown(shape)}: 'plain', 'openai' or 'anthropic'")
    if shape == "plain":
        return {
            name: {"title": name, "description": _description(tool), **_schema(tool)} for name, tool in TOOLS.items()
        }
    if shape == "openai":
        return [
            {
                "type": "function",
                "function": {"name": name, "description": _description(tool), "parameters": _schema(tool)},
            }
            for name, tool in TOOLS.items()
        ]
    return [
        {"name": name, "description": _description(tool), "input_schema": _schema(tool)} for name, tool in TOOLS.items()
    ]


@cache
def properties(action: type[Action]) -> dict[str, Any]:
    """The JSON schema of each field of an action; one that may be null is shown as what it is otherwise.

    Kept, as it takes 3 ms: not to be changed.
    """
    (_, components) = msgspec.json.schema_components([action])
    found: dict[str, Any] = dict(components[action.__name__]["properties"])
    del found["action"]
    return {name: _without_null(schema) for name, schema in found.items()}


def required(action: type[Action]) -> list[str]:
    """The fields that an action cannot do without."""
    return [field.encode_name for field in structs.fields(action) if field.required]


def tag(action: type[Action]) -> str:
    """The action's name, as a model gives it."""
    return str(action.__struct_config__.tag)


def _schema(tool: Tool) -> dict[str, Any]:
    merged: dict[str, Any] = {"action": {"enum": [tag(action) for action in tool.actions], "type": "string"}}
    for action in tool.actions:
        for name, schema in properties(action).items():
            merged.setdefault(name, {key: value for key, value in schema.items() if key != "default"})
    return {"type": "object", "properties": deepcopy(merged), "required": ["action"], "additionalProperties": False}


def _description(tool: Tool) -> str:
    lines = [tool.description, "Actions:"]
    for action in tool.actions:
        needs = required(action)
        takes = [name for name in properties(action) if name not in needs]
        said = f"- {tag(action)}: {action.__doc__}."
        said += f" Needs {', '.join(needs)}." if needs else ""
        lines.append(said + (f" Takes {', '.join(takes)}." if takes else ""))
    return "\n".join(lines)


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    alternatives = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    return dict(alternatives[0]) if len(alternatives) == 1 else schema
