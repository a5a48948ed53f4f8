"""What turns a function into a command: its options, `--json`, what is printed, and the exit code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ParamSpec, TypeVar, get_args, get_type_hints

from recollect.cli.options import AsJson
from recollect.cli.output import fail_quietly, print_json

__all__ = ["nothing", "prints"]

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
) -> Callable[[Callable[P, T]], Callable[..., None]]:
    """Make a command of a function that returns what is to be printed.

    The command takes the function's options and `--json`. It prints `show(value)`, or with `--json` the value, or
    what `json` makes of it. The exit code is 1 where `fails(value)`. Parameters `**options: Unpack[SomeOptions]` stand
    for an option for each field of that TypedDict.
    """

    def decorate(function: Callable[P, T]) -> Callable[..., None]:
        @wraps(function)
        def command(*, as_json: bool = False, **options: Any) -> None:
            value = function(**options)  # type: ignore[call-arg]
            if as_json:
                print_json(value if json is None else json(value))
            else:
                show(value)
            fail_quietly(fails is not None and fails(value))

        parameters = [*_parameters(function)]
        parameters.append(
            inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=AsJson)
        )
        # Typer reads both.
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        return command

    return decorate


def _parameters(function: Callable[..., object]) -> Iterator[inspect.Parameter]:
    """The parameters of a function, of which those of an unpacked TypedDict are options that may be left out."""
    function.__annotations__.pop("return", None)  # it may name what only a type checker imports
    hints = get_type_hints(function, include_extras=True)
    for each in inspect.signature(function).parameters.values():
        if each.kind is not inspect.Parameter.VAR_KEYWORD:
            yield each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[each.name])
            continue
        (fields,) = get_args(hints[each.name])
        for name, hint in get_type_hints(fields, include_extras=True).items():
            yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
