"""Errors as answers: {"error": {"type", "field", "message"}}, without a traceback and without paths of the machine."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from recallite.doors.error_codes import codes_of
from recallite.errors import (
    InvalidInput,
    InvalidItem,
    RecalliteError,
    ServerError,
    StoreError,
    StoreUnavailable,
    plain,
)
from recallite.system.logs import logger
from recallite.system.messages import shown

_log = logger(__name__)
# Of more fields than these only those like a wrong one are named.
_MOST_LISTED = 20
_FIRST = re.compile(r"[ .:,\[]")
UNKNOWN = "unknown_field"
"""The type of pydantic's error for a field that there is not."""
# What is said of a failure whose own message names files.
_STORE_SAYS = "the store cannot do this now; the log of the server says why"
# Of a body that is refused the rest is not read.
_BESIDE = {
    401: {"WWW-Authenticate": "Bearer"},
    408: {"Connection": "close"},
    413: {"Connection": "close"},
    503: {"Connection": "close", "Retry-After": "1"},
}


class Refused(HTTPException):
    """A request that is refused before an operation begins; `error` is the class of the error for the client."""

    def __init__(self, status: int, message: str, *, error: type[RecalliteError] = InvalidInput) -> None:
        super().__init__(status, message, _BESIDE.get(status))
        self.error = error


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A value as JSON."""
    return Response(msgspec.json.encode(value, enc_hook=_plain), status, dict(headers or {}), "application/json")


def _plain(value: Any) -> Any:
    """An array of numpy as lists."""
    return value.tolist()


def error_json(
    status: int, fault: RecalliteError, *, field: str | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """An error as JSON."""
    return json_response({"error": {"field": field, **_as_fields(plain(fault))}}, status, headers)


def _as_fields(fault: RecalliteError) -> dict[str, Any]:
    fields = {"type": type(fault).__name__, "reason": fault.reason, "message": str(fault)}
    if isinstance(fault, InvalidItem):
        of_item = {"position": fault.position, "stored": fault.stored, "label": fault.label}
        return {**fields, **of_item, "item": _as_fields(fault.error)}
    return fields


def error_response(fault: RecalliteError, fields: Collection[str] = ()) -> Response:
    """An error of the engine as JSON; its field is the one that its message begins with."""
    status, first = codes_of(fault).status, _FIRST.split(str(fault), 1)[0]
    headers = {"Retry-After": "1"} if isinstance(fault, StoreUnavailable) else None
    if isinstance(fault, StoreError):
        _log.error("%s: %s", type(fault).__name__, fault)
        fault = plain(fault)
        fault.args = (_STORE_SAYS,)
    return error_json(status, fault, field=first if first in fields else None, headers=headers)


def install(app: FastAPI) -> None:
    """Have the application answer every failure so."""

    async def of_engine(request: Request, fault: Exception) -> Response:
        assert isinstance(fault, RecalliteError)
        return error_response(fault, _fields(request))

    async def of_fields(request: Request, fault: Exception) -> Response:
        assert isinstance(fault, RequestValidationError)
        return _of_fields(fault.errors(), _fields(request))

    async def of_http(request: Request, fault: Exception) -> Response:
        assert isinstance(fault, HTTPException)
        wrong = InvalidInput if fault.status_code in (400, 413, 415) else ServerError
        kind = fault.error if isinstance(fault, Refused) else wrong
        message = str(fault.detail)
        if not isinstance(fault, Refused) and fault.status_code == 400:
            message = "the body is not JSON in UTF-8, or is nested too deep: give an object"
        if not isinstance(fault, Refused) and fault.status_code in (404, 405):
            message = f"{request.method} {shown(request.url.path)} is no operation: /openapi.json lists them"
        return error_json(fault.status_code, kind(message), headers=fault.headers)

    async def unexpected(_: Request, fault: Exception) -> Response:
        if isinstance(fault, UnicodeError):
            return error_json(422, InvalidInput("a text holds half of a surrogate pair: send valid Unicode", "text"))
        return error_json(500, ServerError("an unexpected failure: the log of the server has it"))

    app.add_exception_handler(RecalliteError, of_engine)
    app.add_exception_handler(RequestValidationError, of_fields)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(UnicodeError, unexpected)
    app.add_exception_handler(Exception, unexpected)


def _fields(request: Request) -> Collection[str]:
    """The fields of the operation of a request."""
    takes: Collection[str] = getattr(request.scope.get("route"), "fields", ())
    return takes


def _of_fields(faults: Sequence[Any], takes: Collection[str]) -> Response:
    """The first fault that pydantic found."""
    fault = faults[0]
    if fault["type"] == "json_invalid" and fault["loc"][0] == "body":
        message = f"the body is not JSON ({fault['ctx']['error']} at byte {fault['loc'][-1]}): give an object"
        return error_json(400, InvalidInput(message))
    path = [str(part) for part in fault["loc"][1:]]
    field = fault["ctx"]["field"] if fault["type"] == UNKNOWN else path[0] if path else None
    if field is None:
        return error_json(422, InvalidInput(f"the body is {shown(fault['input'])}: give a JSON object"))
    if fault["type"] in (UNKNOWN, "extra_forbidden"):
        known = takes if len(takes) <= _MOST_LISTED else difflib.get_close_matches(field, takes)
        message = f"there is no field {shown(field)} here: use {', '.join(known) or 'those of /openapi.json'}"
        return error_json(422, InvalidInput(message), field=field)
    if fault["type"] == "missing":
        return error_json(422, InvalidInput(f"{field} is missing: give it"), field=field)
    place = ".".join(part for part in path if part in takes or part.isdigit())
    message = f"{place or field} is {shown(fault['input'])}: {fault['msg'][0].lower()}{fault['msg'][1:]}"
    return error_json(422, InvalidInput(message), field=field)
