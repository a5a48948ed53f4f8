"""Calling a tool: the schemas that models are offered, and the execution of a call.

A call is parsed, executed and answered. Mistakes of the model are part of the answer.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from recallite.doors.operation import SERVER
from recallite.doors.operations import SERVER_FIRST, every_operation, every_tool_group
from recallite.errors import InvalidInput, NotFound, StoreCorrupt
from recallite.model.authority import Authority, check_authority, speaking_as
from recallite.model.checks import plain_str
from recallite.system.messages import shown
from recallite.text.quotes import quoted
from recallite_tools.action import (
    Action,
    ActionGroup,
    Call,
    DocumentAccess,
    FailureType,
    Refused,
    ToolFault,
    allowed_values,
    check_field,
)

if TYPE_CHECKING:
    from recallite.memory import Memory


def actions_of(name: str, first: str) -> dict[str, Action]:
    """The actions of a tool by name: the `first`, and then the others in the order of their operations."""
    made = [Action(item, tool) for item in every_operation() for tool in item.tools if tool.name == name]
    names = first.split()
    made.sort(key=lambda action: names.index(action.name) if action.name in names else len(names))
    return {action.name: action for action in made}


# The tools on offer: one flat JSON schema each, as providers accept no alternatives at the top level.

TOOLS: dict[str, ActionGroup] = {
    name: ActionGroup(name, about, actions_of(name, first)) for name, (about, first) in every_tool_group().items()
}
"""Every tool by name: `memory`, those of the services, and what other packages register."""
SERVER_TOOLS = actions_of(SERVER, SERVER_FIRST)
"""The tools of the MCP server, an action each."""


def schemas(shape: Literal["plain", "openai", "anthropic"] = "plain") -> Any:
    """The JSON schemas of the tools.

    - "plain": {name: schema}
    - "openai": a list of {"type": "function", "function": {"name", "description", "parameters"}}
    - "anthropic": a list of {"name", "description", "input_schema"}
    """
    described = [(name, _description(tool), _schema(tool)) for name, tool in TOOLS.items()]
    if shape == "plain":
        return {name: {"title": name, "description": about, **schema} for name, about, schema in described}
    if shape == "anthropic":
        return [{"name": name, "description": about, "input_schema": schema} for name, about, schema in described]
    if shape == "openai":
        functions = [{"name": name, "description": about, "parameters": schema} for name, about, schema in described]
        return [{"type": "function", "function": function} for function in functions]
    raise InvalidInput(f"shape is {shown(shape)}: 'plain', 'openai' or 'anthropic'")


def _schema(tool: ActionGroup) -> dict[str, Any]:
    merged: dict[str, Any] = {"action": {"enum": [*tool.actions], "type": "string"}}
    meant: dict[str, dict[str, list[str]]] = {}
    for action in tool.actions.values():
        for name, schema in action.properties.items():
            merged.setdefault(name, {key: value for key, value in schema.items() if key != "default"})
        for name, field in action.also.items():
            meant.setdefault(name, {}).setdefault(field, []).append(action.name)
    for name, fields in meant.items():
        same = "; ".join(f"{field} ({', '.join(actions)})" for field, actions in fields.items())
        merged[name] = {"type": "string", "description": f"Another name of {same}."}
    return {"type": "object", "properties": deepcopy(merged), "required": ["action"], "additionalProperties": False}


def _description(tool: ActionGroup) -> str:
    lines = [tool.description, "Actions:"]
    for action in tool.actions.values():
        takes = [name for name in action.defaults if name not in action.required]
        line = f"- {action.name}: {action.about}."
        line += f" Needs {', '.join(action.required)}." if action.required else ""
        lines.append(line + (f" Takes {', '.join(takes)}." if takes else ""))
    return "\n".join(lines)


# Executing a call.

# Texts shown when the user is asked.
_MOST_ASKED = 10
# How deep metadata may be nested.
_DEEPEST = 64
_PATH = re.compile(r" - at `\$([^`]*)`$")


def call(
    name: str,
    arguments: object,
    *,
    memory: Memory,
    scope: str | None = None,
    document_folders: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    document_urls: bool = False,
    authority: Authority = "agent",
    confirm: Callable[[Refused], bool] | None = None,
) -> dict[str, Any]:
    """Execute a call of a model; the result can be encoded as JSON.

    `arguments` are an object or JSON text. With `scope`, the call is confined to it, whatever scope the model names.
    For a wrong name or wrong arguments the result is {"error": {"type", "field", "message", "allowed"}}, with
    "candidates" where several memories match. Stored text is under "results", with a "notice".

    A model may ingest documents only from `document_folders`, by path and without following links, and, with
    `document_urls`, from URLs at public addresses.

    What it writes is the word of `authority` at most, and it changes and forgets nothing of a higher one: give "user"
    to a model that acts on what the user tells it, and reads nothing that others wrote. Or give `confirm`: it is called
    with what the model may not do by itself, and where it returns True, the user said so and it is done.

    Raises InvalidInput for a wrong `memory` or `scope` and for a tool whose package cannot be imported, and the errors
    of the store and the embedder.
    """
    from recallite.memory import Memory  # here: a server lists its tools before it opens a memory

    if not isinstance(memory, Memory):
        raise InvalidInput(
            f"memory is {type(memory).__name__} {shown(memory)}: give a Memory. Beside an AsyncMemory open a Memory "
            "of the same file, and await asyncio.to_thread(tools.call, name, arguments, memory=...)"
        )
    access = DocumentAccess.of(document_folders, document_urls)
    handle = memory if scope is None else memory.scoped(scope)
    if confirm is not None and not callable(confirm):
        raise InvalidInput(
            f"confirm is {shown(confirm)}: give a callable that takes what was refused, and returns a bool"
        )
    call = Call(handle, scope or "/", access, authority=check_authority(authority, "authority"), confirm=confirm)
    try:
        if not isinstance(name, str) or name not in TOOLS:
            known = ", ".join(TOOLS)
            raise ToolFault("unknown_tool", "name", f"there is no tool {shown(name)}: use one of {known}", TOOLS)
        tool = TOOLS[name]
        values = _object(arguments, tool.name)
        return execute(_action_named(tool, values), values, call, fixed=scope is not None, beside=tool.actions.values())
    except ToolFault as fault:
        return _built({"error": fault.failure})


def execute(
    action: Action, arguments: object, call: Call, *, fixed: bool = False, beside: Iterable[Action] = ()
) -> dict[str, Any]:
    """The result of an action, as JSON values. Unless the scope is `fixed`, the arguments may name one.

    `beside` are the other actions of its tool, whose fields may be null.
    """
    given: dict[str, str] = {}
    try:
        fields = _parsed(action, _object(arguments, action.name), (action, *beside), given)
        within = fields.pop("scope", None)
        if not fixed and within is not None:
            call = call._replace(within=within, memory=call.memory.scoped(within))
        return _built(_carried_out(action, fields, call))
    except ToolFault as fault:
        return _built({"error": fault.in_words_of(given).failure})


def _built(result: object) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(result)
    return built


def as_text(result: dict[str, Any]) -> str:
    """A result as text for a model: JSON between delimiters that stored text cannot forge."""
    return quoted(msgspec.json.encode(result).decode())


def _carried_out(action: Action, fields: dict[str, Any], call: Call) -> Any:
    try:
        with speaking_as(call.authority):
            return action(call, fields)
    except NotFound as fault:
        raise _fault("not_found", fault, action, "id") from None
    except StoreCorrupt as fault:
        if fault.reason != "message":
            raise
        raise _fault("damaged", fault, action, "id") from None
    except InvalidInput as fault:
        if fault.reason == "authority":
            if call.confirm is not None and call.confirm(_refused_of(action, fields, call, str(fault))) is True:
                return _carried_out(action, fields, call._replace(authority="user", confirm=None))
            raise ToolFault("not_allowed", None, str(fault)) from None
        raise _fault("invalid_value", fault, action, str(fault).partition(" ")[0]) from None


def _refused_of(action: Action, fields: dict[str, Any], call: Call, reason: str) -> Refused:
    """The question to the user about an action that its authority may not take."""
    ids = [id for id in (fields.get("id"), *fields.get("supersedes", ())) if id is not None]
    named: dict[str, Any] = {"id": {"in": ids}}
    if fields.get("old_text"):
        named = {"text": {"contains": fields["old_text"]}}
    with speaking_as(call.authority):
        texts = tuple(record.text for record in call.memory.list(where=named, limit=_MOST_ASKED))
    return Refused(action.name, {name: value for name, value in fields.items() if value}, texts, reason)


def _fault(type: FailureType, fault: Exception, action: Action, field: str) -> ToolFault:
    """An error of the engine as the fault of a field, where the action has that field."""
    if field not in action.defaults:
        return ToolFault(type, None, str(fault))
    return ToolFault(type, field, str(fault), action.allowed(field))


def _action_named(tool: ActionGroup, values: dict[Any, Any]) -> Action:
    """The action that the arguments name, which is taken out of them."""
    named, choices = values.pop("action", None), f"use one of {', '.join(tool.actions)}"
    if named is None:
        raise ToolFault("missing_field", "action", f"action is missing: {choices}", tool.actions)
    if not isinstance(named, str) or named not in tool.actions:
        raise ToolFault("unknown_action", "action", f"action is {shown(named)}: {choices}", tool.actions)
    return tool.actions[named]


def _parsed(action: Action, values: dict[Any, Any], known: Sequence[Action], given: dict[str, str]) -> dict[str, Any]:
    """The fields of an action that have a value, checked. Null is as if not given, in fields of all `known` actions.

    `given` takes the names of other systems that the values have, by the fields that they stand for.
    """
    for name, field in action.also.items():
        if values.get(name) is None:
            continue
        if values.get(field) is not None:
            raise ToolFault("unknown_field", name, f"{name} is another name of {field}: give one of them", [field])
        values[field], given[field] = values.pop(name), name
    for name, value in list(values.items()):
        if value is None and any(name in other.defaults or name in other.also for other in known):
            del values[name]
        elif name not in action.defaults:
            raise ToolFault(
                "unknown_field",
                name if isinstance(name, str) else shown(name),
                f"{action.name} has no field {shown(name)}: it takes {', '.join(action.defaults)}",
                action.defaults,
            )
    for name in action.required:
        if name not in values:
            allowed = allowed_values(action.properties[name])
            names = " or ".join([name, *(other for other, field in action.also.items() if field == name)])
            raise ToolFault("missing_field", name, f"{action.name} needs {names}: give {' or '.join(allowed)}", allowed)
    typed = {name: _typed(action, name, value) for name, value in values.items()}
    fields = {name: typed.get(name, default) for name, default in action.defaults.items()}
    fields = {name: value for name, value in fields.items() if value is not None}
    for name, value in fields.items():
        check_field(action.types[name], value, name)
    return fields


def _typed(action: Action, name: str, value: object) -> Any:
    """A value of the type that a field has."""
    try:
        return msgspec.convert(value, action.types[name])
    except msgspec.ValidationError as fault:
        match = _PATH.search(str(fault))
        problem = f"{name}{match[1] if match else ''}: {_PATH.sub('', str(fault))}; it is {shown(value)}"
        kind: FailureType = "invalid_value" if re.search(r"(<=|>=|length)", str(fault)) else "wrong_type"
    except UnicodeError:  # a lone surrogate in a field that is not text: msgspec fails to encode it in its own error
        kind, problem = "wrong_type", f"{name} has another type: it is {shown(value)}"
    raise ToolFault(kind, name, problem, allowed_values(action.properties[name])) from None


def _object(arguments: object, tool: str) -> dict[Any, Any]:
    """The arguments of a tool, an object or its JSON text."""
    value = arguments
    if isinstance(arguments, str | bytes | bytearray):
        try:
            value = msgspec.json.decode(plain_str(arguments) if isinstance(arguments, str) else arguments)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
            raise ToolFault(
                "invalid_json", None, f"the arguments are not JSON ({fault}): give an object with an action", ["object"]
            ) from None
    if not isinstance(value, Mapping):
        problem = f"the arguments of {tool} are {shown(value)}: give an object with an action"
        raise ToolFault("wrong_type", None, problem, ["object"])
    return {_plain(key, 0): _plain(item, 0) for key, item in value.items()}


def _plain(value: Any, depth: int) -> Any:
    """A value with instances of str subclasses, which msgspec refuses, as plain str."""
    if isinstance(value, str):
        return plain_str(value)
    if depth < _DEEPEST and isinstance(value, dict):
        return {_plain(key, depth + 1): _plain(item, depth + 1) for key, item in value.items()}
    if depth < _DEEPEST and isinstance(value, list | tuple):
        return [_plain(item, depth + 1) for item in value]
    return value


# Calls whose results have the words of Reeve and Hermes, which name the text of a memory and of a passage `content`.


def call_by_source_names(name: str, arguments: object, **options: Any) -> dict[str, Any]:
    """Execute a call as `call` does, with `content` for `text` in its results. `options` are those of `call`."""
    result: dict[str, Any] = _with_content(call(name, arguments, **options))
    return result


def _with_content(value: Any) -> Any:
    if isinstance(value, dict):
        return {"content" if key == "text" else key: _with_content(part) for key, part in value.items()}
    return [_with_content(part) for part in value] if isinstance(value, list) else value
