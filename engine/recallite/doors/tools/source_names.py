"""Calls of tools in the words of Reeve and Hermes, which name the text of a memory and of a passage `content`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from recallite.doors.tools.calling import call

__all__ = ["call_by_source_names"]


def call_by_source_names(name: str, arguments: Mapping[str, Any] | str, **options: Any) -> dict[str, Any]:
    """Execute a call as `call` does, with `content` for `text` in its arguments and results.

    `content` is the question of the action "recall". `options` are those of `call`, `memory` among them.
    """
    try:
        fields = dict(msgspec.json.decode(arguments) if isinstance(arguments, str) else arguments)
    except (msgspec.DecodeError, TypeError, ValueError):
        return call(name, arguments, **options)  # which says what is wrong with them
    if "content" in fields:
        fields["query" if fields.get("action") == "recall" else "text"] = fields.pop("content")
    result: dict[str, Any] = _with_content(call(name, fields, **options))
    return result


def _with_content(value: Any) -> Any:
    if isinstance(value, dict):
        return {"content" if key == "text" else key: _with_content(part) for key, part in value.items()}
    return [_with_content(part) for part in value] if isinstance(value, list) else value
