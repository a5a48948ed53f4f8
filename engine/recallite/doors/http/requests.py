"""Models of requests: one of pydantic for each operation, made from the signature of its function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import reduce
from inspect import Parameter
from operator import or_
from types import EllipsisType, NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    Json,
    Strict,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from recallite.doors.http.failures import UNKNOWN
from recallite.doors.operation import Operation
from recallite.errors import InvalidInput
from recallite.model.filters import FIELD_NAMES, Filter
from recallite.model.policies import WritePolicy
from recallite.model.profiles import Profile
from recallite.system.messages import shown

_IN_PATH = "{id}"


class _Hashable(FailFast):
    """FailFast, which equals itself alone, so that unions can hold it."""

    __hash__ = object.__hash__


_FIRST_FAULT = _Hashable()


def request_model(operation: Operation) -> type[BaseModel]:
    """The model of an operation's request, without what is in its path.

    In a body types are as JSON has them; a query is text, and is converted.
    """
    fields: dict[str, Any] = {}
    for name, (hint, default) in operation.fields.items():
        if not (name == "id" and _IN_PATH in operation.path):
            required = default is Parameter.empty and NoneType not in get_args(hint)
            accepted = _in_json(hint, query=not operation.in_body)
            if not operation.in_body and default is not None and NoneType in get_args(hint):
                accepted = Annotated[accepted, BeforeValidator(_blank)]
            fields[name] = accepted, Field(... if required else None)
    config = ConfigDict(extra="forbid", strict=operation.in_body, arbitrary_types_allowed=True)
    name = "".join(part.title() for part in operation.id.split("_"))
    checked: dict[str, Any] = {"known": model_validator(mode="before")(classmethod(_known))}  # type: ignore[arg-type]
    return create_model(
        f"{name}Request", __config__=config, __doc__=operation.about,
        __validators__=checked, **fields,
    )  # fmt: skip


def _known(kind: type[BaseModel], values: Any) -> Any:
    """Refuse the first field that there is not, before an error is made of each."""
    if isinstance(values, Mapping):
        for name in values:
            if name not in kind.model_fields:
                raise PydanticCustomError(UNKNOWN, "{field}", {"field": name})
    return values


def _in_json(hint: Any, *, query: bool) -> Any:
    """A type as a request can have it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (UnionType, Union):
        accepted = [_in_json(member, query=query) for member in arguments if member not in (EllipsisType, Profile)]
        if query and any(get_origin(member) is list for member in accepted):
            accepted = [member for member in accepted if member is not str]  # one is a list of one
        return reduce(or_, dict.fromkeys(accepted)) if accepted else Any
    if origin in (Mapping, dict) or hint in (WritePolicy, Filter):
        return Json[dict[str, Any]] if query else dict[str, Any]
    if origin in (Sequence, Iterable, list, tuple):
        # The first wrong item is enough: one error for each of a million blocked the server for minutes.
        return Annotated[list[_in_json(arguments[0], query=query)], _FIRST_FAULT]  # type: ignore[misc]
    if hint is timedelta:
        return Annotated[timedelta, Strict(False)]
    if isinstance(hint, type) and issubclass(hint, date | datetime):
        return str
    return Any if hint is object else NoneType if hint is None else hint


def _blank(value: Any) -> Any:
    """A field of a query without a value as None, where None means something else than leaving it out."""
    return None if value in ("", [""]) else value


def arguments(operation: Operation, request: BaseModel, id: str | None) -> dict[str, Any]:
    """The arguments of an operation's function. Raises InvalidInput for a policy or filter that is none."""
    values = {name: getattr(request, name) for name in request.model_fields_set}
    if isinstance(fields := values.get("filter"), dict):
        if unknown := fields.keys() - FIELD_NAMES.keys():
            raise InvalidInput(f"filter has no field {shown(min(unknown))}: use {', '.join(FIELD_NAMES)}")
        values["filter"] = Filter(**fields)
    if isinstance(policy := values.get("policy"), dict):
        if unknown := policy.keys() - set(WritePolicy.__struct_fields__):
            known = ", ".join(WritePolicy.__struct_fields__)
            raise InvalidInput(f"policy has no field {shown(min(unknown))}: use {known}")
        try:
            values["policy"] = msgspec.convert(policy, WritePolicy)
        except msgspec.ValidationError as fault:
            raise InvalidInput(f"policy: {fault}") from None
    if id is not None:
        values["id"] = id
    return values
