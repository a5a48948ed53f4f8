"""Errors as answers: {"error": {"type", "field", "message"}}, without a traceback and without paths of the machine."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

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


class WrongField(InvalidInput):
    """A request has a field that its operation does not take."""

    def __init__(self, field: str, takes: Collection[str]) -> None:
        known = takes if len(takes) <= _MOST_LISTED else difflib.get_close_matches(field, takes)
        super().__init__(f"there is no field {shown(field)} here: use {', '.join(known) or 'those of /openapi.json'}")
        self.field = field


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
    field = fault.field if isinstance(fault, WrongField) else first if first in fields else None
    headers = {"Retry-After": "1"} if isinstance(fault, StoreUnavailable) else None
    if isinstance(fault, StoreError):
        _log.error("%s: %s", type(fault).__name__, fault)
        fault = plain(fault)
        fault.args = (_STORE_SAYS,)
    return error_json(status, fault, field=field, headers=headers)


async def _of_engine(request: Request, fault: Exception) -> Response:
    assert isinstance(fault, RecalliteError)
    return error_response(fault, getattr(request.scope.get("route"), "fields", ()))


async def _of_http(request: Request, fault: Exception) -> Response:
    assert isinstance(fault, HTTPException)
    if isinstance(fault, Refused):
        return error_json(fault.status_code, fault.error(fault.detail), headers=fault.headers)
    message = f"{request.method} {shown(request.url.path)} is no operation: /openapi.json lists them"
    return error_json(fault.status_code, ServerError(message), headers=fault.headers)


async def _unexpected(_: Request, fault: Exception) -> Response:
    if isinstance(fault, UnicodeError):
        return error_json(422, InvalidInput("a text holds half of a surrogate pair: send valid Unicode", "text"))
    return error_json(500, ServerError("an unexpected failure: the log of the server has it"))


HANDLERS: dict[Any, Any] = {
    RecalliteError: _of_engine, HTTPException: _of_http, UnicodeError: _unexpected, Exception: _unexpected
}  # fmt: skip
"""The answers to failures, for Starlette."""
