"""Calling a tool: the actions of operations, the schemas that models are offered, and the execution of a call.

A call is parsed, executed and answered. Mistakes of the model are part of the answer.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta, Struct

from recallite.doors.operation import Operation, kind_of
from recallite.doors.operations import OPERATIONS
from recallite.doors.tools import action as own
from recallite.doors.tools.action import (
    Action,
    Call,
    DocumentAccess,
    FailureType,
    Quotes,
    Recorded,
    Refused,
    Tool,
    ToolFault,
    allowed_in,
    allowed_values,
    checks_of,
    properties,
    required,
    tag,
)
from recallite.errors import InvalidInput, NotFound, StoreCorrupt
from recallite.model.authority import Authority, check_authority, speaking_as
from recallite.model.checks import plain_str
from recallite.system import plugins
from recallite.system.messages import shown
from recallite.text.quotes import quoted

if TYPE_CHECKING:
    from recallite.memory import Memory


# Arguments that models are told more of, and whose values are checked before anything is done.
_TYPES: dict[str, Any] = {
    "query": own.Query, "tags": own.Tags, "limit": own.Limit, "offset": own.Offset, "since": own.Time,
    "until": own.Time, "valid_at": own.Time, "as_of": own.Time, "expires_at": own.Time, "importance": own.Unit,
    "topic": own.Topic, "agent": own.Agent, "task_type": own.TaskType, "tools": own.ToolNames, "tool": own.ToolName,
    "error": own.Words, "recovery": own.Words, "success": own.Flag, "steps": own.Count, "tokens": own.Count,
}  # fmt: skip
_KINDS: dict[str, Any] = {
    "flag": bool, "int": int, "float": float, "days": float, "many": list[str], "numbers": list[float],
    "object": dict[str, Any],
}  # fmt: skip


_OPERATIONS: dict[type[Struct], Operation] = {}


class _Declared(Action, frozen=True, kw_only=True):
    """The base of actions that are made from declarations."""

    def __call__(self, call: Call) -> Struct:
        operation = _OPERATIONS[type(self)]
        fields: dict[str, Any] = {}
        for name, (hint, _) in operation.fields.items():
            if (value := getattr(self, name, None)) is not None:
                fields[name] = timedelta(days=value) if kind_of(hint) == "days" else value
        result = operation.apply(call.memory, fields)
        if result is None:
            assert operation.tool is not None
            return Recorded(outcome=operation.tool.outcome)
        results = msgspec.to_builtins(result if isinstance(result, list) else [result])
        for item in results:
            if isinstance(item, dict) and isinstance(item.get("scope"), str):
                item["scope"] = call.scope_of(item["scope"])
        return Quotes(results=results)


@cache
def action_of(operation: Operation, *, mcp: bool = False) -> type[Action]:
    """The action of an operation; for the MCP server, which has no tools around it, with the whole name."""
    tool = operation.tool
    assert tool is not None
    offered = operation.fields if tool.arguments is None else tool.arguments
    declared: list[Any] = []
    kind: Any
    for name in operation.fields:
        if name in offered and name != "scope":
            (hint, default), meaning = operation.fields[name], operation.argument(name)
            default = default if tool.arguments is None else tool.arguments[name]
            if name == "id":
                kind = own.MemoryId if meaning.kind == "memory" else own.SessionId
            else:
                description = Meta(description=meaning.help or name)
                kind = _TYPES.get(name) or Annotated[_KINDS.get(kind_of(hint), str), description]
            # msgspec takes no immutable sequence as the default of a list.
            optional = (kind, default) if isinstance(default, int | float | str) else (kind | None, None)
            declared.append((name, kind) if default is inspect.Parameter.empty else (name, *optional))
    action = tool.action or operation.name.rpartition(".")[2]
    about = operation.about if mcp else tool.about or operation.summary[0].lower() + operation.summary[1:].rstrip(".")
    made = msgspec.defstruct(
        "".join(part.title() for part in operation.id.split("_")), declared, bases=(_Declared,), kw_only=True,
        frozen=True, forbid_unknown_fields=True, tag=operation.id if mcp else action,
        tag_field="action", namespace={"__doc__": about},
    )  # fmt: skip
    _OPERATIONS[made] = operation
    return cast("type[Action]", made)


# The tools on offer: one flat JSON schema each, as providers accept no alternatives at the top level.

TOOLS: dict[str, Tool] = {
    name: Tool(
        tool.name,
        tool.description,
        (*tool.actions, *(action_of(item) for item in OPERATIONS if item.tool is not None and item.tool.name == name)),
    )
    for name, tool in sorted(plugins.load_all("tools").items(), key=lambda item: item[0] != "memory")
}
"""Every tool by name: `memory`, those of the services, and what other packages register."""


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


def _schema(tool: Tool) -> dict[str, Any]:
    merged: dict[str, Any] = {"action": {"enum": [tag(action) for action in tool.actions], "type": "string"}}
    meant: dict[str, dict[str, list[str]]] = {}
    for action in tool.actions:
        for name, schema in properties(action).items():
            merged.setdefault(name, {key: value for key, value in schema.items() if key != "default"})
        for name, field in action.also.items():
            meant.setdefault(name, {}).setdefault(field, []).append(tag(action))
    for name, fields in meant.items():
        same = "; ".join(f"{field} ({', '.join(actions)})" for field, actions in fields.items())
        merged[name] = {"type": "string", "description": f"Another name of {same}."}
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


# Executing a call.

# Texts shown when the user is asked.
_MOST_ASKED = 10
# How deep metadata may be nested.
_DEEPEST = 64
_PATH = re.compile(r" - at `\$\.?([^`]*)`$")


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
        return execute(_tool_named(name), arguments, call, fixed=scope is not None)
    except ToolFault as fault:
        return _built({"error": fault.failure})


def execute(tool: Tool, arguments: object, call: Call, *, fixed: bool) -> dict[str, Any]:
    """The result of an action of `tool`, as JSON values. Unless the scope is `fixed`, the action may name one."""
    given: dict[str, str] = {}
    try:
        action = _parse(tool, arguments, given)
        _check_fields(action)
        if not fixed and action.scope is not None:
            call = call._replace(within=action.scope, memory=call.memory.scoped(action.scope))
        return _built(_carried_out(action, call))
    except ToolFault as fault:
        return _built({"error": fault.in_words_of(given).failure})


def _built(result: object) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(result)
    return built


def as_text(result: dict[str, Any]) -> str:
    """A result as text for a model: JSON between delimiters that stored text cannot forge."""
    return quoted(msgspec.json.encode(result).decode())


def _carried_out(action: Action, call: Call) -> Any:
    try:
        with speaking_as(call.authority):
            return action(call)
    except NotFound as fault:
        raise _fault("not_found", fault, action, "id") from None
    except StoreCorrupt as fault:
        if fault.reason != "message":
            raise
        raise _fault("damaged", fault, action, "id") from None
    except InvalidInput as fault:
        if fault.reason == "authority":
            if call.confirm is not None and call.confirm(_refused_of(action, call, str(fault))) is True:
                return _carried_out(action, call._replace(authority="user", confirm=None))
            raise ToolFault("not_allowed", None, str(fault)) from None
        raise _fault("invalid_value", fault, action, str(fault).partition(" ")[0]) from None


def _refused_of(action: Action, call: Call, reason: str) -> Refused:
    """The question to the user about an action that its authority may not take."""
    fields = {name: value for name, value in msgspec.to_builtins(action).items() if name in properties(type(action))}
    ids = [id for id in (fields.get("id"), *(fields.get("supersedes") or ())) if id is not None]
    named: dict[str, Any] = {"id": {"in": ids}}
    if fields.get("old_text"):
        named = {"text": {"contains": fields["old_text"]}}
    with speaking_as(call.authority):
        texts = tuple(record.text for record in call.memory.list(where=named, limit=_MOST_ASKED))
    return Refused(tag(type(action)), {name: value for name, value in fields.items() if value}, texts, reason)


def _fault(type: FailureType, fault: Exception, action: Action, field: str) -> ToolFault:
    """An error of the engine as the fault of a field, where the action has that field."""
    takes = properties(action.__class__)
    if field not in takes:
        return ToolFault(type, None, str(fault))
    return ToolFault(type, field, str(fault), allowed_in(action.__class__, field) or allowed_values(takes[field]))


def _tool_named(name: object) -> Tool:
    """The tool of this name."""
    if isinstance(name, str) and name in TOOLS:
        return TOOLS[name]
    if isinstance(name, str) and name in plugins.names("tools"):  # and cannot be imported: this raises the reason
        plugins.load("tools", name)
    raise ToolFault("unknown_tool", "name", f"there is no tool {shown(name)}: use one of {', '.join(TOOLS)}", TOOLS)


def _parse(tool: Tool, arguments: object, given: dict[str, str]) -> Action:
    """The action that the arguments, an object or its JSON text, describe. Null is as if not given.

    `given` takes the names of other systems that the arguments have, by the fields that they stand for.
    """
    values = _object(tool, arguments)
    actions = {tag(action): action for action in tool.actions}
    named = values.pop("action", None)
    if named is None:
        raise ToolFault("missing_field", "action", f"action is missing: use one of {', '.join(actions)}", actions)
    if not isinstance(named, str) or named not in actions:
        raise ToolFault(
            "unknown_action", "action", f"action is {shown(named)}: use one of {', '.join(actions)}", actions
        )
    action = actions[named]
    takes = properties(action)
    for name, field in action.also.items():
        if values.get(name) is None:
            continue
        if values.get(field) is not None:
            raise ToolFault("unknown_field", name, f"{name} is another name of {field}: give one of them", [field])
        values[field], given[field] = values.pop(name), name
    for name, value in list(values.items()):
        if value is None and any(name in properties(other) or name in other.also for other in tool.actions):
            del values[name]
        elif name not in takes:
            raise ToolFault(
                "unknown_field",
                name if isinstance(name, str) else shown(name),
                f"{named} has no field {shown(name)}: it takes {', '.join(takes)}",
                takes,
            )
    for name in required(action):
        if name not in values:
            allowed = allowed_values(takes[name])
            names = " or ".join([name, *(other for other, field in action.also.items() if field == name)])
            raise ToolFault("missing_field", name, f"{named} needs {names}: give {' or '.join(allowed)}", allowed)
    try:
        return msgspec.convert({**values, "action": named}, action)
    except msgspec.ValidationError as fault:
        raise _refused(str(fault), values, takes) from None
    except UnicodeError:
        # A lone surrogate in a field that is not text: msgspec fails to encode it in its own error.
        name = next(
            name for name, value in values.items() if isinstance(value, str) and takes[name]["type"] != "string"
        )
        allowed = allowed_values(takes[name])
        raise ToolFault(
            "wrong_type", name, f"{name} is {shown(values[name])}: give {' or '.join(allowed)}", allowed
        ) from None


def _check_fields(action: Action) -> None:
    """Raise a ToolFault for the first field that holds what the engine does not accept, before anything is done."""
    for name, (check, _) in checks_of(type(action)).items():
        value = getattr(action, name)
        if value is None:
            continue
        try:
            check(value, name)
        except InvalidInput as fault:
            raise ToolFault("invalid_value", name, str(fault), allowed_in(type(action), name)) from None


def _object(tool: Tool, arguments: object) -> dict[Any, Any]:
    value = arguments
    if isinstance(arguments, str | bytes | bytearray):
        try:
            value = msgspec.json.decode(plain_str(arguments) if isinstance(arguments, str) else arguments)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
            raise ToolFault(
                "invalid_json", None, f"the arguments are not JSON ({fault}): give an object with an action", ["object"]
            ) from None
    if not isinstance(value, Mapping):
        raise ToolFault(
            "wrong_type", None, f"the arguments of {tool.name} are {shown(value)}: give an object with an action",
            ["object"],
        )  # fmt: skip
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


def _refused(message: str, values: Mapping[str, Any], takes: Mapping[str, Any]) -> ToolFault:
    """An error of msgspec as a fault of the field at the path that ends its message."""
    match = _PATH.search(message)
    path = match[1] if match else ""
    name = re.split(r"[.\[]", path)[0]
    allowed = allowed_values(takes[name]) if name in takes else []
    wrong_type = not re.search(r"(<=|>=|length)", message)
    problem = f"{path or 'the arguments'}: {_PATH.sub('', message)}; it is {shown(values.get(name))}"
    return ToolFault("wrong_type" if wrong_type else "invalid_value", name or None, problem, allowed)


# Calls whose results have the words of Reeve and Hermes, which name the text of a memory and of a passage `content`.


def call_by_source_names(name: str, arguments: object, **options: Any) -> dict[str, Any]:
    """Execute a call as `call` does, with `content` for `text` in its results. `options` are those of `call`."""
    result: dict[str, Any] = _with_content(call(name, arguments, **options))
    return result


def _with_content(value: Any) -> Any:
    if isinstance(value, dict):
        return {"content" if key == "text" else key: _with_content(part) for key, part in value.items()}
    return [_with_content(part) for part in value] if isinstance(value, list) else value
