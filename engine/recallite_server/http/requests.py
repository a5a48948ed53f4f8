"""Requests of operations, made from the signatures of their functions, and the OpenAPI description of all of them."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import date, timedelta
from functools import cache, reduce
from inspect import Parameter
from operator import or_
from types import EllipsisType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from urllib.parse import unquote

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, structs
from starlette.requests import ClientDisconnect, Request

from recallite._version import __version__
from recallite.doors.operation import Operation, kind_of
from recallite.doors.operations import PREFIX, served
from recallite.errors import InvalidInput
from recallite.model.filters import FIELD_NAMES, Filter
from recallite.model.settings import Profile, WritePolicy
from recallite.system.messages import shown
from recallite_server.http.request_checks import Refused, WrongField
from recallite_server.operations import in_json
from recallite_tools.action import schemas_of

ID = "{id}"
"""The part of a path that is the id of a memory, session or document."""
_MISSING = re.compile(r"Object missing required field `(.*)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")


def fields_of(operation: Operation) -> dict[str, tuple[Any, Any]]:
    """The types and defaults of an operation's fields that are not in its path."""
    return {name: field for name, field in operation.fields.items() if name != "id" or ID not in operation.path}


@cache
def request_type(operation: Operation) -> type[Struct]:
    """The type of an operation's request, without what is in its path."""
    fields: list[Any] = []
    for name, (hint, default) in fields_of(operation).items():
        required = default is Parameter.empty and NoneType not in get_args(hint)
        accepted = _in_json(hint)
        if not operation.in_body and kind_of(hint) == "many":
            accepted = reduce(or_, (part for part in _parts(accepted) if part is not str))  # one is a list of one
        fields.append((name, accepted) if required else (name, accepted | UnsetType, UNSET))
    name = "".join(part.title() for part in operation.id.split("_"))
    return msgspec.defstruct(f"{name}Request", fields, kw_only=True, forbid_unknown_fields=True)


def _parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (UnionType, Union) else (hint,)


def _in_json(hint: Any) -> Any:
    """A type as JSON can have it. What a text may be beside a text is for the function to read."""
    members = [_in_json_alone(part) for part in _parts(hint) if part not in (EllipsisType, Profile)]
    if str in members:
        members = [part for part in members if part is not timedelta and get_origin(part) is not Annotated]
    return reduce(or_, members)


def _in_json_alone(hint: Any) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:  # the function names what it takes
        return Annotated[str, Meta(extra_json_schema={"enum": [*arguments]})]
    if origin in (Mapping, dict) or hint in (WritePolicy, Filter):
        return dict[str, Any]
    if origin in (Sequence, Iterable, list, tuple):
        return list[_in_json(arguments[0])]  # type: ignore[misc]
    if isinstance(hint, type) and issubclass(hint, date):
        return str
    return Any if hint is object else hint


async def values_of(operation: Operation, request: Request) -> dict[str, Any]:
    """The arguments of an operation's function from a request. Raises InvalidInput, and Refused for what is no JSON."""
    values = await _body(request) if operation.in_body else dict(_query(operation, request))
    if not isinstance(values, dict):
        raise InvalidInput(f"the body is {shown(values)}: give a JSON object")
    if "content" not in operation.fields:
        values = _with_own_name(values, "text" if "text" in operation.fields else "query", operation.fields)
    if isinstance(items := values.get("items"), list):
        values["items"] = [_with_own_name(item, "text", {"text"}) for item in items]
    try:
        fields = structs.asdict(msgspec.convert(values, request_type(operation), strict=operation.in_body))
    except msgspec.ValidationError as fault:
        raise _refused(str(fault), values, fields_of(operation)) from None
    fields = {name: value for name, value in fields.items() if value is not UNSET}
    if fields.get("filter") is not None:
        fields["filter"] = Filter(**_known("filter", fields["filter"], FIELD_NAMES))
    if fields.get("policy") is not None:
        try:
            policy = _known("policy", fields["policy"], WritePolicy.__struct_fields__)
            fields["policy"] = msgspec.convert(policy, WritePolicy)
        except msgspec.ValidationError as fault:
            raise InvalidInput(f"policy: {fault}") from None
    if ID in operation.path:
        fields["id"] = unquote(request.path_params["id"], errors="surrogateescape")
    return fields


def _with_own_name(values: Any, name: str, fields: Container[str]) -> Any:
    """An object with our name of what other systems call `content`: a text, or the question of a recall."""
    if not isinstance(values, dict) or values.get("content") is None or name not in fields:
        return values
    if values.get(name) is not None:
        raise WrongField("content", [name])
    return {name if key == "content" else key: value for key, value in values.items() if key != name}


async def _body(request: Request) -> Any:
    """The JSON of a body; no body is an empty object."""
    try:
        body = await request.body()
        # Unlike msgspec it reads half of a surrogate pair, which the function refuses by the name of the field.
        return json.loads(body) if body else {}
    except ClientDisconnect:
        raise Refused(400, "the body did not come whole") from None
    except json.JSONDecodeError as fault:
        raise Refused(400, f"the body is not JSON ({fault.msg} at byte {fault.pos}): give an object") from None
    except (UnicodeDecodeError, RecursionError):
        raise Refused(400, "the body is not JSON in UTF-8, or is nested too deep: give an object") from None


def _query(operation: Operation, request: Request) -> Iterable[tuple[str, Any]]:
    """The fields of a query: lists are repeated, objects are JSON, and None is empty if it is not the default."""
    for name in request.query_params:
        values = request.query_params.getlist(name)
        hint, default = operation.fields.get(name, (str, None))
        if values == [""] and default is not None and NoneType in get_args(hint):
            yield name, None
        elif (kind := kind_of(hint)) == "object":
            try:
                yield name, msgspec.json.decode(values[-1])
            except (msgspec.DecodeError, UnicodeError, RecursionError) as fault:
                raise InvalidInput(f"{name} is {shown(values[-1])}: give a JSON object ({fault})") from None
        else:
            yield name, values if kind == "many" else values[-1]


def _refused(message: str, values: Mapping[str, Any], takes: Mapping[str, Any]) -> InvalidInput:
    """The fault that msgspec found, as an error that names the field first."""
    if missing := _MISSING.fullmatch(message):
        return InvalidInput(f"{missing[1]} is missing: give it")
    if unknown := _UNKNOWN.fullmatch(message):
        return WrongField(unknown[1], takes)
    problem, _, path = message.partition(" - at `$")
    path = path.removeprefix(".").removesuffix("`")
    name = re.split(r"[.\[]", path)[0]
    where = "" if path == name else f" at {path}"
    return InvalidInput(f"{name} is {shown(values.get(name))}: {problem[0].lower()}{problem[1:]}{where}")


def _known(name: str, fields: dict[str, Any], known: Iterable[str]) -> dict[str, Any]:
    if unknown := fields.keys() - {*known}:
        raise InvalidInput(f"{name} has no field {shown(min(unknown))}: use {', '.join(known)}")
    return fields


_REF = "#/components/schemas/{name}"
_ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "type": {"type": "string", "description": "The name of the error, as in Python."},
                "reason": {"type": ["string", "null"], "description": "What tells apart errors of one type."},
                "field": {"type": ["string", "null"], "description": "The field that is wrong."},
                "message": {"type": "string", "description": "What is wrong, and what to do."},
                "position": {"type": "integer", "description": "Of InvalidItem: the item, from 0."},
                "stored": {"type": "integer", "description": "Of InvalidItem: how many items are stored."},
                "label": {"type": ["string", "null"], "description": "Of InvalidItem: the name of the item."},
                "item": {"type": "object", "description": "Of InvalidItem: type, reason and message of its error."},
            },
            "required": ["type", "reason", "field", "message"],
        }
    },
    "required": ["error"],
}
_BYTES: dict[str, Any] = {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
_FAILURE = {
    "description": "An error", "content": {"application/json": {"schema": {"$ref": _REF.format(name="Error")}}}
}  # fmt: skip
_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}


@cache
def description() -> dict[str, Any]:
    """The description of the API."""
    requests = [request_type(operation) for operation in served()]
    returned = [in_json(operation.returns) for operation in served() if operation.returns is not bytes]
    schemas = schemas_of([*requests, *returned], _REF)[1]
    paths: dict[str, Any] = {}
    for operation, request in zip(served(), requests, strict=True):
        name = request.__name__
        fields = schemas[name] if operation.in_body else schemas.pop(name)
        described: dict[str, Any] = {
            "tags": [operation.group], "summary": operation.summary, "description": operation.about,
            "operationId": operation.id, "responses": {str(operation.status): _answer(operation), "default": _FAILURE},
            "parameters": [_ID] if ID in operation.path else [],
        }  # fmt: skip
        required = fields.get("required", [])
        if operation.in_body:
            content = {"application/json": {"schema": {"$ref": _REF.format(name=name)}}}
            described["requestBody"] = {"required": bool(required), "content": content}
        else:
            described["parameters"] += [
                {"name": field, "in": "query", "required": field in required, "schema": schema}
                for field, schema in fields["properties"].items()
            ]
        if operation.raw:
            described["requestBody"] = {"required": True, **_BYTES}
        paths.setdefault(PREFIX + operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "Recallite", "summary": "Long-term memory for AI agents.", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {**schemas, "Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _answer(operation: Operation) -> dict[str, Any]:
    """The response of an operation that succeeds."""
    if operation.returns is bytes:
        return {"description": "The bytes", **_BYTES}
    schema = schemas_of([in_json(operation.returns)], _REF)[0][0]
    return {"description": "Success", "content": {"application/json": {"schema": schema}}}
