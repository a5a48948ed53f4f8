"""What the engine would refuse of an action's fields, said under the tool's own names and before anything is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recollect import checks
from recollect.errors import InvalidInput
from recollect.tiers.experience import unique_tools
from recollect.tools import arguments as asked
from recollect.tools.arguments import Action
from recollect.tools.failures import ToolFault

__all__ = ["allowed_in", "check_fields"]

_NAME = f"at most {checks.MAX_NAME_CHARS} characters on one line, not blank"
_TIME = "ISO 8601 time with an offset, e.g. 2026-03-01T09:30:00+00:00"
_TEXT = "text that is not blank, without NUL characters"
_Check = Callable[[Any, str], object]
_CHECKS: dict[str, tuple[_Check, str]] = {
    "scope": (lambda value, _: checks.check_scope(value), "a path such as /team/project"),
    "agent": (lambda value, _: checks.check_agent(value), "one name such as ada, without slashes"),
    "since": (checks.check_time, _TIME),
    "until": (checks.check_time, _TIME),
    "expires_at": (checks.check_time, _TIME),
    "tags": (lambda value, _: checks.check_tags(value), f"array of strings, each {_NAME}"),
    "tools": (lambda value, _: unique_tools(value), f"array of at least 1 string, each {_NAME}"),
    "topic": (checks.check_name, _NAME),
    "provider": (checks.check_name, _NAME),
    "role": (checks.check_name, "user, assistant, system or tool"),
    "task_type": (checks.check_name, f"a type of task such as query, {_NAME}"),
    "tool": (checks.check_name, f"the name of a tool, {_NAME}"),
    "id": (checks.check_name, "an id as results give it"),
    "query": (checks.check_query, f"text of at most {checks.MAX_QUERY_CHARS:,} characters"),
    "old_text": (checks.encodable, "a part of the text of one memory"),
    "summary": (checks.encodable, "text without NUL characters"),
    "error": (lambda value, name: checks.check_text(value, len(value), name), _TEXT),
    "recovery": (lambda value, name: checks.check_text(value, len(value), name), _TEXT),
}


def check_fields(action: Action, max_text_chars: int) -> None:
    """Raise a ToolFault for the first field that holds what the engine does not take."""
    for name in action.__struct_fields__:
        value = getattr(action, name)
        if value is None:
            continue
        try:
            if name == "content":
                _check_content(action, value, max_text_chars)
            elif name in _CHECKS:
                _CHECKS[name][0](value, name)
        except InvalidInput as fault:
            raise ToolFault("invalid_value", name, str(fault), allowed_in(name)) from None


def allowed_in(name: str) -> list[str]:
    """What a field of this name may hold, in a few words; nothing for one that may hold anything of its type."""
    if name == "content":
        return [_TEXT]
    return [_CHECKS[name][1]] if name in _CHECKS else []


def _check_content(action: Action, content: str, max_text_chars: int) -> None:
    """What is stored as a memory is not blank; a message may be; a question is only limited in length."""
    if isinstance(action, asked.Write | asked.Replace):
        checks.check_text(content, max_text_chars, "content")
    elif isinstance(action, asked.AppendMessage):
        checks.encodable(content, "content")
    elif isinstance(action, asked.Recall):
        checks.check_query(content, "content")
