"""What turns a function into a command: its options, the memory it acts on, what is printed, and the exit code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import wraps
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

import typer

from recallite.doors.cli.options import AsJson, Within, open_memory
from recallite.doors.cli.output import fail_quietly, print_json, progress

P = ParamSpec("P")
T = TypeVar("T")


def nothing(value: object) -> bool:
    """Whether a command found nothing, which is exit code 1."""
    return not value


def prints(
    show: Callable[[T], object],
    *,
    json: Callable[[T], object] | None = None,
    fails: Callable[[T], bool] | None = None,
    within: bool = False,
    create: bool = False,
    bar: tuple[str, str] | None = None,
) -> Callable[[Callable[P, T]], Callable[..., None]]:
    """Make a command of a function that returns what is to be printed.

    The command takes the function's options and `--json`. It prints `show(value)`, or with `--json` the value, or
    what `json` makes of it. The exit code is 1 where `fails(value)`. Of the function's parameters

    - `memory` is the opened store, with `within` bound to the scope of an option `--scope`; a store that is missing is
      an error unless `create`
    - `report` is the `on_progress` of a bar with the label and unit of `bar`
    - `**options: Unpack[SomeOptions]` stand for an option for each field of that TypedDict
    """

    def decorate(function: Callable[P, T]) -> Callable[..., None]:
        supplied = {"memory", "report"} & inspect.signature(function).parameters.keys()

        @wraps(function)
        def command(*, as_json: bool = False, **given: Any) -> None:
            with ExitStack() as opened:
                if "memory" in supplied:
                    scope = given.pop("scope", None) if within else None
                    given["memory"] = opened.enter_context(open_memory(given.pop("context"), scope, create=create))
                if bar is not None:
                    report = opened.enter_context(progress(*bar))
                    given |= {"report": report} if "report" in supplied else {}
                value = function(**given)  # type: ignore[call-arg]
            if as_json:
                print_json(value if json is None else json(value))
            else:
                show(value)
            fail_quietly(fails is not None and fails(value))

        parameters = [each for each in _parameters(function, supplied) if each.name not in supplied]
        if "memory" in supplied:
            parameters.insert(0, _parameter("context", typer.Context, inspect.Parameter.empty))
        if within:
            parameters.append(_parameter("scope", Within, None))
        parameters.append(_parameter("as_json", AsJson, False))
        # Typer reads both.
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        return command

    return decorate


def _parameters(function: Callable[..., object], supplied: set[str]) -> Iterator[inspect.Parameter]:
    """The parameters of a function, of which those of an unpacked TypedDict are options that may be left out."""
    for name in ("return", *supplied):  # these may name what only a type checker imports
        function.__annotations__.pop(name, None)
    hints = get_type_hints(function, include_extras=True)
    for each in inspect.signature(function).parameters.values():
        if each.kind is not inspect.Parameter.VAR_KEYWORD:
            yield _parameter(each.name, hints.get(each.name), each.default)
            continue
        (fields,) = get_args(hints[each.name])
        for name, hint in get_type_hints(fields, include_extras=True).items():
            yield _parameter(name, hint, None)


def _parameter(name: str, annotation: Any, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
