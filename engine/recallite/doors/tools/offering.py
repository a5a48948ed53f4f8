"""Schemas of the tools: one flat JSON schema each, as providers accept no alternatives at the top level."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Literal

from recallite.doors.tools.action import Tool
from recallite.doors.tools.declared import actions_of
from recallite.doors.tools.schema import properties, required, tag
from recallite.errors import InvalidInput
from recallite.system import plugins
from recallite.system.messages import shown

TOOLS: dict[str, Tool] = {
    name: Tool(tool.name, tool.description, (*tool.actions, *actions_of(name)))
    for name, tool in sorted(plugins.load_all("tools").items(), key=lambda item: item[0] != "memory")
}
"""Every tool by name: `memory`, those of the services, and what other packages register."""


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
    key = "parameters" if shape == "openai" else "input_schema"
    functions = [{"name": name, "description": _description(tool), key: _schema(tool)} for name, tool in TOOLS.items()]
    return [{"type": "function", "function": function} for function in functions] if shape == "openai" else functions


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
        line = f"- {tag(action)}: {action.__doc__}."
        line += f" Needs {', '.join(needs)}." if needs else ""
        lines.append(line + (f" Takes {', '.join(takes)}." if takes else ""))
    return "\n".join(lines)
