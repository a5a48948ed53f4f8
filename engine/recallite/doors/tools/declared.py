"""Actions made from the declarations of operations."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct

from recallite.doors.operation import Operation, kind_of
from recallite.doors.operations import OPERATIONS
from recallite.doors.tools import fields as own
from recallite.doors.tools.action import Action, Call, Quotes, Recorded

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


class _Declared(Action, frozen=True, kw_only=True):
    """The base of actions that are made from declarations."""

    def __call__(self, call: Call) -> Struct:
        operation = _OPERATIONS[type(self)]
        values = {name: getattr(self, name) for name in operation.fields if name in self.__struct_fields__}
        arguments = {name: _python(operation, name, value) for name, value in values.items() if value is not None}
        value = operation.apply(call.memory, arguments)
        if value is None:
            assert operation.tool is not None
            return Recorded(outcome=operation.tool.outcome)
        return Quotes(results=[_shown(item, call) for item in (value if isinstance(value, list) else [value])])


_OPERATIONS: dict[type[Struct], Operation] = {}


@cache
def action_of(operation: Operation, *, mcp: bool = False) -> type[Action]:
    """The action of an operation; for the MCP server, which has no tools around it, with the whole name."""
    tool = operation.tool
    assert tool is not None
    offered = operation.fields if tool.arguments is None else tool.arguments
    declared: list[Any] = []
    for name in operation.fields:
        if name in offered and name != "scope":
            hint, default = operation.fields[name]
            default = default if tool.arguments is None else tool.arguments[name]
            about = Meta(description=operation.argument(name).help or name)
            id_type = own.MemoryId if operation.argument(name).kind == "memory" else own.SessionId
            kind = _TYPES.get(name) or Annotated[_KINDS.get(kind_of(hint), str), about]
            kind = id_type if name == "id" else kind
            # msgspec takes no immutable sequence as the default of a list.
            optional = (kind, default) if isinstance(default, int | float | str) else (kind | None, None)
            declared.append((name, kind) if default is inspect.Parameter.empty else (name, *optional))
    action = tool.action or operation.name.rpartition(".")[2]
    made = msgspec.defstruct(
        "".join(part.title() for part in operation.id.split("_")), declared, bases=(_Declared,), kw_only=True,
        frozen=True, forbid_unknown_fields=True, tag=operation.id if mcp else action,
        tag_field="action", namespace={"__doc__": operation.about if mcp else tool.about or _clause(operation)},
    )  # fmt: skip
    _OPERATIONS[made] = operation
    return cast("type[Action]", made)


def actions_of(tool: str) -> tuple[type[Action], ...]:
    """The actions of a tool that are made from declarations."""
    return tuple(action_of(item) for item in OPERATIONS if item.tool is not None and item.tool.name == tool)


def _clause(operation: Operation) -> str:
    return operation.summary[0].lower() + operation.summary[1:].rstrip(".")


def _python(operation: Operation, name: str, value: Any) -> Any:
    return timedelta(days=value) if kind_of(operation.fields[name][0]) == "days" else value


def _shown(value: Any, call: Call) -> Any:
    """A value of an operation as a model sees it: its scope is as the caller names it."""
    plain = msgspec.to_builtins(value)
    if isinstance(plain, Mapping) and isinstance(plain.get("scope"), str):
        return {**plain, "scope": call.scope_of(plain["scope"])}
    return plain
