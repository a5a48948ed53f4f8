"""The fields of an action: their JSON schemas, checks and accepted values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from inspect import cleandoc
from typing import Any

import msgspec
import msgspec.inspect
from msgspec import structs

from recallite.doors.tools.action import Action
from recallite.doors.tools.fields import Check


def schemas_of(kinds: Sequence[Any], ref_template: str = "#/$defs/{name}") -> tuple[Any, dict[str, Any]]:
    """The JSON schemas of types, and of their parts by name, whatever of a docstring's indentation msgspec keeps."""
    roots, parts = msgspec.json.schema_components(kinds, ref_template=ref_template)
    for part in parts.values():
        if "description" in part:
            part["description"] = cleandoc(part["description"])
    return roots, parts


@cache
def properties(action: type[Action]) -> dict[str, Any]:
    """The JSON schema of each field of an action, without null as an alternative.

    Cached, as it takes 3 ms: do not change the result.
    """
    _, components = schemas_of([action])
    schemas: dict[str, Any] = dict(components[action.__name__]["properties"])
    del schemas["action"]
    schemas["scope"] = schemas.pop("scope")  # which every action has, after its own fields
    return {name: _without_null(schema) for name, schema in schemas.items()}


def required(action: type[Action]) -> list[str]:
    """The required fields of an action."""
    return [field.encode_name for field in structs.fields(action) if field.required]


def tag(action: type[Action]) -> str:
    """The action's name, as a model gives it."""
    return str(action.__struct_config__.tag)


@cache
def checks_of(action: type[Action]) -> dict[str, tuple[Check, str]]:
    """The check of each field that has one, and a description of accepted values."""
    fields = msgspec.inspect.type_info(action).fields  # type: ignore[attr-defined]
    return {
        field.name: (metadata.extra["check"], metadata.extra["allowed"])
        for field in fields
        for metadata in getattr(field.type, "types", (field.type,))
        if isinstance(metadata, msgspec.inspect.Metadata) and metadata.extra
    }


def allowed_in(action: type[Action], name: str) -> list[str]:
    """A description of accepted values of a field; none where every value of its type is accepted."""
    checks = checks_of(action)
    return [checks[name][1]] if name in checks else []


def allowed_values(schema: dict[str, Any]) -> list[str]:
    """Accepted values of a field: its choices, or its type with its bounds."""
    if "enum" in schema:
        return [str(value) for value in schema["enum"]]
    if schema["type"] == "array":
        least = " of at least 1" if schema.get("minItems") else ""
        return [f"array of {schema['items']['type']}{least}"]
    low, high = schema.get("minimum"), schema.get("maximum")
    description = str(schema["type"])
    if low is not None and high is not None:
        description += f" from {low:g} to {high:g}"
    elif low is not None:
        description += f" of at least {low:g}"
    if schema.get("minLength"):
        description += " that is not empty"
    return [description]


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    alternatives = [alternative for alternative in schema.get("anyOf", ()) if alternative != {"type": "null"}]
    return dict(alternatives[0]) if len(alternatives) == 1 else schema
