"""What a request may hold: a model of pydantic for each operation, made from the signature of its function."""

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
from recallite.doors.operations import Operation
from recallite.errors import InvalidInput
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
            kept = _in_json(hint, query=not operation.in_body)
            if not operation.in_body and default is not None and NoneType in get_args(hint):
                kept = Annotated[kept, BeforeValidator(_blank)]
            fields[name] = kept, Field(... if required else None)
    config = ConfigDict(extra="forbid", strict=operation.in_body, arbitrary_types_allowed=True)
    name = "".join(part.title() for part in operation.name.split("_"))
    checked: dict[str, Any] = {"known": model_validator(mode="before")(classmethod(_known))}  # type: ignore[arg-type]
    return create_model(
        f"{name}Request", __config__=config, __doc__=operation.call.__doc__,
        __validators__=checked, **fields,
    )  # fmt: skip


def _known(kind: type[BaseModel], given: Any) -> Any:
    """Refuse the first field that there is not, before an error is made of each."""
    if isinstance(given, Mapping):
        for name in given:
            if name not in kind.model_fields:
                raise PydanticCustomError(UNKNOWN, "{field}", {"field": name})
    return given


def _in_json(hint: Any, *, query: bool) -> Any:
    """A type as a request can have it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (UnionType, Union):
        kept = [_in_json(each, query=query) for each in arguments if each not in (EllipsisType, Profile)]
        if query and any(get_origin(each) is list for each in kept):
            kept = [each for each in kept if each is not str]  # one is a list of one
        return reduce(or_, dict.fromkeys(kept)) if kept else Any
    if origin in (Mapping, dict) or hint is WritePolicy:
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
    """The arguments of an operation's function. Raises InvalidInput for a policy that is none."""
    given = {name: getattr(request, name) for name in request.model_fields_set}
    if isinstance(policy := given.get("policy"), dict):
        if unknown := policy.keys() - set(WritePolicy.__struct_fields__):
            known = ", ".join(WritePolicy.__struct_fields__)
            raise InvalidInput(f"policy has no field {shown(min(unknown))}: use {known}")
        try:
            given["policy"] = msgspec.convert(policy, WritePolicy)
        except msgspec.ValidationError as fault:
            raise InvalidInput(f"policy: {fault}") from None
    if id is not None:
        given["id"] = id
    # What may be None need not be given, even where the function has no default.
    needed = {name: None for name, (_, default) in operation.fields.items() if default is Parameter.empty}
    return needed | given
