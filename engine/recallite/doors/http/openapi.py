"""The description of the API by OpenAPI: requests are described by pydantic, results by msgspec."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import FastAPI

from recallite.documents.outcomes import IngestedDocument
from recallite.doors.operations import SERVED
from recallite.model.records import Hit, Hits
from recallite.model.reports import Imported

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
# `Hits` is a list with attributes, which no schema can be made from.
_HITS = {
    "type": "object",
    "description": "The hits of one query, best first.",
    "properties": {
        "hits": {"type": "array", "items": {"$ref": _REF.format(name="Hit")}},
        "query": {"type": "string"},
        "evidence_gaps": {"type": "array", "items": {"type": "string"}},
        "left_out": {"type": "integer"},
        "sub_queries": {"type": "array", "items": {"type": "string"}},
        "scopes": {"type": "array", "items": {"type": "string"}},
        "diversify_by": {"type": ["string", "null"]},
        "stages": {"type": "object", "additionalProperties": {"type": "number"}, "description": "Milliseconds."},
    },
    "required": ["hits", "query"],
}


_BYTES = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
RAW = {"required": True, "content": _BYTES}
"""A body of raw bytes."""
RAW_ANSWER = {"description": "The bytes", "content": _BYTES}
"""An answer of raw bytes."""


def schema_of(returns: Any) -> dict[str, Any]:
    """The response of an operation that returns this type."""
    return {"description": "Success", "content": {"application/json": {"schema": _schema(returns)}}}


def _schema(returns: Any) -> dict[str, Any]:
    if returns is Hits:
        return {"$ref": _REF.format(name="Hits")}
    if returns == list[Hits]:
        return {"type": "array", "items": {"$ref": _REF.format(name="Hits")}}
    return msgspec.json.schema_components([returns], ref_template=_REF)[0][0]


def describe(app: FastAPI) -> None:
    """Have the application describe itself."""
    made = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is not None:
            return app.openapi_schema
        schema = made()
        returned = [served.returns for served in SERVED if served.returns not in (Hits, list[Hits])]
        _, structs = msgspec.json.schema_components([*returned, Hit, Imported, IngestedDocument], ref_template=_REF)
        components = schema.setdefault("components", {})
        schemas = components.get("schemas", {})
        schemas = {name: schemas[name] for name in schemas if "ValidationError" not in name}
        components["schemas"] = {**schemas, **structs, "Hits": _HITS, "Error": _ERROR}
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}, {}]
        error = {"application/json": {"schema": {"$ref": _REF.format(name="Error")}}}
        failure = {"description": "An error", "content": error}
        for path in schema["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
                operation["responses"]["default"] = failure
        app.openapi_schema = schema
        return schema

    app.openapi = openapi  # type: ignore[method-assign]
