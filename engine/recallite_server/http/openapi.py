"""The description of the API by OpenAPI, from the declarations of the operations."""

from __future__ import annotations

from functools import cache
from typing import Any

from recallite._version import __version__
from recallite.doors.calls import in_json
from recallite.doors.operation import Operation
from recallite.doors.operations import PREFIX, served
from recallite.doors.tools.schema import schemas_of
from recallite_server.http.requests import ID, request_type

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
