"""Answers to those who see one scope of a store: documents have names in place of their paths on this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec import structs

from recallite.doors.calls import BootstrapText

# The line of Markdown that names a passage, which ends with its path and lines or page: a heading, or one of a list.
_CITED = re.compile(r'(?m)^((?:#{1,6}|-) [^\n]*\("?)([^()"\n]+)("?\))$')
_PLACE = re.compile(r":\d[\d-]*\Z|, (?:page|p\.) \d+\Z")


def without_server_paths(value: Any) -> Any:
    """A result as plain values, in which documents are named without their folders; or Markdown that cites passages."""
    if isinstance(value, str):
        return _CITED.sub(lambda cited: f"{cited[1]}{_named(cited[2])}{cited[3]}", value)
    if isinstance(value, BootstrapText):
        value = structs.replace(value, text=without_server_paths(value.text))
    return _shown(msgspec.to_builtins(value, enc_hook=lambda array: array.tolist()))


def name_of(source: str) -> str:
    """The name of a file whose whole path is given; any other source as it is."""
    return PurePath(source).name if os.path.isabs(source) else source


def _named(cited: str) -> str:
    place = _PLACE.search(cited)
    path = cited[: place.start()] if place else cited
    return name_of(path) + cited[len(path) :]


def _shown(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [*map(_shown, value)]
    if not isinstance(value, dict):
        return value
    shown = {name: _shown(item) for name, item in value.items()}
    source = value.get("source")
    path = source.get("id") if isinstance(source, dict) else source
    if isinstance(path, str) and os.path.isabs(path) and _is_of_document(value):
        return _replaced(shown, path, name_of(path))
    return shown


def _is_of_document(value: Mapping[str, Any]) -> bool:
    """Whether fields are those of a document or of a passage."""
    said_by = str(value.get("authority") or value.get("said_by") or value.get("saidBy"))
    return said_by.startswith("document") or "media_type" in value or "mediaType" in value


def _replaced(value: Any, path: str, name: str) -> Any:
    if isinstance(value, list):
        return [_replaced(item, path, name) for item in value]
    if isinstance(value, dict):
        return {key: _replaced(item, path, name) for key, item in value.items()}
    if isinstance(value, str) and (value == path or value.endswith(f":{path}") or value.startswith(f"{path}:")):
        return value.replace(path, name)
    return value
