"""Executing a call of a tool: parse, execute, answer. Mistakes of the model are part of the answer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import msgspec

from recollect.checks import shown
from recollect.errors import InvalidInput, NotFound, SessionDamaged
from recollect.memory import Memory
from recollect.text.quoting import quoted
from recollect.tools.action import Action, Call, DocumentAccess
from recollect.tools.failures import FailureType, ToolFault
from recollect.tools.reading import check_fields, parse, tool_named
from recollect.tools.schema import allowed_in, allowed_values, properties

__all__ = ["as_text", "call"]


def call(
    name: str,
    arguments: object,
    *,
    memory: Memory,
    scope: str | None = None,
    document_folders: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    document_urls: bool = False,
) -> dict[str, Any]:
    """Execute a call of a model; the result can be encoded as JSON.

    `arguments` are an object or JSON text. With `scope`, the call is confined to it, whatever scope the model names.
    For a wrong name or wrong arguments the result is {"error": {"type", "field", "message", "allowed"}}, with
    "candidates" where several memories match. Stored text is under "results", with a "notice".

    A model may ingest documents only from `document_folders`, by path and without following links, and, with
    `document_urls`, from URLs at public addresses.

    Raises InvalidInput for a wrong `memory` or `scope`, and the errors of the store and the embedder.
    """
    if not isinstance(memory, Memory):
        raise InvalidInput(
            f"memory is {type(memory).__name__} {shown(memory)}: give a Memory. Beside an AsyncMemory open a Memory "
            "of the same file, and await asyncio.to_thread(tools.call, name, arguments, memory=...)"
        )
    access = DocumentAccess.of(document_folders, document_urls)
    handle = memory if scope is None else memory.scoped(scope)
    try:
        action = parse(tool_named(name), arguments)
        check_fields(action, memory.settings.max_text_chars)
        within = scope
        if within is None:
            within = getattr(action, "scope", None)
            handle = memory if within is None else _scoped(memory, within, action)
        result = _carried_out(action, Call(handle, within or "/", access))
    except ToolFault as fault:
        result = {"error": fault.failure}
    built: dict[str, Any] = msgspec.to_builtins(result)
    return built


def as_text(result: dict[str, Any]) -> str:
    """A result as text for a model: JSON between delimiters that stored text cannot forge."""
    return quoted(msgspec.json.encode(result).decode())


def _scoped(memory: Memory, scope: str, action: Action) -> Memory:
    try:
        return memory.scoped(scope)
    except InvalidInput as fault:
        raise _fault("invalid_value", fault, action, "scope") from None


def _carried_out(action: Action, call: Call) -> Any:
    try:
        return action(call)
    except NotFound as fault:
        raise _fault("not_found", fault, action, "id") from None
    except SessionDamaged as fault:
        raise _fault("damaged", fault, action, "id") from None
    except InvalidInput as fault:
        raise _fault("invalid_value", fault, action, str(fault).partition(" ")[0]) from None


def _fault(type: FailureType, fault: Exception, action: Action, field: str) -> ToolFault:
    """An error of the engine as the fault of a field, where the action has that field."""
    takes = properties(action.__class__)
    if field not in takes:
        return ToolFault(type, None, str(fault))
    return ToolFault(type, field, str(fault), allowed_in(action.__class__, field) or allowed_values(takes[field]))
