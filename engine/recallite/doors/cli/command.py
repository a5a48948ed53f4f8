"""Commands: one made from the declaration of an operation, or a function that a command calls, with what it prints."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from datetime import timedelta
from functools import wraps
from types import NoneType
from typing import Annotated, Any, ParamSpec, TypeVar, get_args, get_type_hints

import typer

from recallite.doors.cli.options import AsJson, Within, Yes, open_memory, parse_json
from recallite.doors.cli.output import fail_quietly, hint, named, print_counts, print_json, print_table, progress
from recallite.doors.operation import Operation, imported, kind_of
from recallite.doors.operations import BY_NAME
from recallite.errors import InvalidInput

P = ParamSpec("P")
T = TypeVar("T")
_NONE = inspect.Parameter.empty
_INTEGER = re.compile(r"-?[0-9]{1,9}")


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
    operation: str = "",
    without: Collection[str] = (),
) -> Callable[[Callable[P, T]], Callable[..., None]]:
    """Make a command of a function that returns what is to be printed.

    The command takes the function's options and `--json`. It prints `show(value)`, or with `--json` the value, or
    what `json` makes of it. The exit code is 1 if `fails(value)`. Of the function's parameters

    - `memory` is the opened store, with `within` bound to the scope of an option `--scope`; a store that is missing is
      an error unless `create`
    - `report` is the `on_progress` of a bar with the label and unit of `bar`
    - `**options: Unpack[SomeOptions]` stand for an option for each field of that TypedDict; `**fields` for those
      arguments of the `operation` that are neither parameters nor `without`, as Python takes them
    """

    def decorate(function: Callable[P, T]) -> Callable[..., None]:
        named = inspect.signature(function).parameters.keys()
        supplied = {"memory", "report"} & named
        expanded = [name for name in _expanded(operation) if name not in (*named, *without)]

        @wraps(function)
        def command(*, as_json: bool = False, **values: Any) -> None:
            with ExitStack() as opened:
                if "memory" in supplied:
                    scope = values.pop("scope", None) if within else None
                    values["memory"] = opened.enter_context(open_memory(values.pop("ctx"), scope, create=create))
                if bar is not None:
                    report = opened.enter_context(progress(*bar))
                    values |= {"report": report} if "report" in supplied else {}
                if expanded:
                    values = {name: values[name] for name in values.keys() - {*expanded}} | parsed(
                        BY_NAME[operation], {name: values[name] for name in values.keys() & {*expanded}}
                    )
                value = function(**values)  # type: ignore[call-arg]
            if as_json:
                print_json(value if json is None else json(value))
            else:
                show(value)
            fail_quietly(fails is not None and fails(value))

        parameters = [
            item for item in _parameters(function, supplied, operation, expanded) if item.name not in supplied
        ]
        if "memory" in supplied:
            parameters.insert(0, _parameter("ctx", typer.Context, _NONE))
        if within:
            parameters.append(_parameter("scope", Within, None))
        parameters.append(_parameter("as_json", AsJson, False))
        return _signed(command, parameters)

    return decorate


def _signed(command: Any, parameters: Iterable[inspect.Parameter]) -> Callable[..., None]:
    """A command with the parameters that Typer reads, from two places."""
    command.__signature__ = inspect.Signature([*parameters])
    command.__annotations__ = {item.name: item.annotation for item in command.__signature__.parameters.values()}
    return command  # type: ignore[no-any-return]


def _expanded(operation: str) -> list[str]:
    """The arguments of an operation that the command line takes: of its options only those that are explained."""
    if not operation:
        return []
    preset = BY_NAME[operation]
    explained = {parameter.name for parameter in preset.parameters} | preset.arguments.keys()
    return [name for name in preset.options if name in explained and preset.argument(name).kind != "hidden"]


def _parameters(
    function: Callable[..., object], supplied: set[str], operation: str, expanded: Collection[str]
) -> Iterator[inspect.Parameter]:
    """The parameters of a function, of which those of an unpacked TypedDict are options that may be left out."""
    for name in ("return", *supplied):  # these may name what only a type checker imports
        function.__annotations__.pop(name, None)
    hints = get_type_hints(function, include_extras=True)
    for item in inspect.signature(function).parameters.values():
        if item.kind is not inspect.Parameter.VAR_KEYWORD:
            yield _parameter(item.name, hints.get(item.name), item.default)
            continue
        if operation:
            yield from (option_of(BY_NAME[operation], name) for name in expanded)
            continue
        (fields,) = get_args(hints[item.name])
        for name, annotation in get_type_hints(fields, include_extras=True).items():
            yield _parameter(name, annotation, None)


def _parameter(name: str, annotation: Any, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


# ── from a declaration ─────────────────────────────────────────────────────────────────────────────────────────────


def command_of(operation: Operation) -> Callable[..., None]:
    """The command of an operation."""
    declared = operation.command
    assert declared is not None
    if declared.run:
        made: Callable[..., None] = imported(declared.run)
        made.__doc__ = operation.about if made.__doc__ is None else made.__doc__
        return made

    def command(ctx: typer.Context, as_json: bool, yes: bool = True, **values: Any) -> None:
        scope = values.pop("scope", None) if declared.within else None
        fields = parsed(operation, values)
        with ExitStack() as opened:
            memory = opened.enter_context(open_memory(ctx, scope, create=declared.create))
            if declared.confirm and operation.writes(fields):
                confirm(declared.confirm.format(**fields), yes)
            for name in fields:
                if operation.argument(name).kind == "memory":
                    fields[name] = _whole(memory, fields[name])
            report = None if declared.bar is None else opened.enter_context(progress(*declared.bar))
            takes_report = report is not None and "on_progress" in inspect.signature(operation.call).parameters
            value = operation.apply(memory, fields, **{"on_progress": report} if takes_report else {})
        if value is None and operation.returns is None:
            value = {name: fields.get(name, default) for name, (_, default) in operation.fields.items()}
        _print(declared, value, as_json=as_json)

    command.__doc__ = operation.about
    names = _expanded(operation.name)
    parameters = [_parameter("ctx", typer.Context, _NONE), *(option_of(operation, name) for name in names)]
    if declared.within:
        parameters = [item for item in parameters if item.name != "scope"] + [_parameter("scope", Within, None)]
    if declared.confirm:
        parameters.append(_parameter("yes", Yes, False))
    return _signed(command, [*parameters, _parameter("as_json", AsJson, False)])


def _print(declared: Any, value: Any, *, as_json: bool) -> None:
    if as_json:
        field = declared.json
        print_json(imported(field)(value) if ":" in field else named(field)(value) if field else value)
    elif declared.show == "=":
        typer.echo(value)
    elif declared.show.startswith("# "):
        print_counts(declared.show[2:])(value)
    elif declared.show.startswith("recallite."):
        imported(declared.show)(value)
    else:
        print_table(declared.show)(value)
    fails = declared.fails
    if fails == "empty" and not as_json and not declared.show.startswith("# ") and nothing(value):
        hint("nothing was found")
    fail_quietly(nothing(value) if fails == "empty" else bool(fails) and imported(fails)(value))


def confirm(question: str, yes: bool) -> None:
    """Ask on a terminal, and end with exit code 1 unless the answer is yes; elsewhere require `--yes`."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInput(f"{question} This needs --yes where nobody can be asked")
    if not typer.confirm(question, err=True):
        hint("nothing was changed")
        raise typer.Exit(1)


def _whole(memory: Any, values: Any) -> Any:
    from recallite.doors.cli.ids import whole_id

    return whole_id(memory, values) if isinstance(values, str) else [whole_id(memory, item) for item in values]


def option_of(operation: Operation, name: str) -> inspect.Parameter:
    """The option, or the argument without one, that the command line has for an argument of an operation."""
    (hint, default), argument = operation.options[name], operation.argument(name)
    kind, takes_none = kind_of(hint), NoneType in get_args(hint)
    required = default is _NONE and argument.default is _NONE
    type_ = {"flag": bool, "int": int, "float": float, "many": list[str]}.get(kind, str)
    preset = default if argument.default is _NONE else argument.default
    if kind in ("many", "object", "numbers", "days") and not required:
        preset = None
    positional = argument.kind == "argument" or (name in operation.required and argument.kind in ("", "memory"))
    metavar = argument.metavar or (name.upper() if positional else None)
    if positional:
        shown = typer.Argument(metavar=metavar, help=argument.help or None, show_default=False)
        return _parameter(name, Annotated[type_ if required else type_ | None, shown], _NONE if required else preset)
    flags = argument.flags or ("--" + name.replace("_", "-"))
    if kind == "flag" and "/" not in flags and preset is True:
        flags += "/--no-" + name.replace("_", "-")
    names = [flags] if "/" in flags else flags.split(",")
    info = typer.Option(
        *names, metavar=None if kind == "flag" else metavar, help=argument.help, show_default=kind != "flag"
    )
    optional = not required and (takes_none or preset is None)
    return _parameter(name, Annotated[type_ | None if optional else type_, info], _NONE if required else preset)


def parsed(operation: Operation, values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an operation from the values of its options; those that were not given are left out."""
    fields: dict[str, Any] = {}
    for name, value in values.items():
        if value is None or value == []:
            continue
        kind, flag = kind_of(operation.options[name][0]), "--" + name.replace("_", "-")
        if kind in ("object", "numbers"):
            fields[name] = parse_json(value, flag, kind=dict if kind == "object" else list)
        elif kind == "days":
            fields[name] = duration(value, operation.argument(name).flags or flag)
        elif kind == "text" and int in get_args(operation.options[name][0]) and _INTEGER.fullmatch(value):
            fields[name] = int(value)
        else:
            fields[name] = value
    return fields


def duration(text: str, option: str) -> timedelta:
    """A length of time as an option gives it: a number of days, or of another unit that follows it."""
    from recallite.model.relative_times import length_of

    text = text.strip()
    try:
        length = length_of(text if text[-1:].isalpha() else f"{text}d")
    except OverflowError:
        raise InvalidInput(f"{option} is {text}: give at most 365,250 days") from None
    if length is None:
        raise InvalidInput(f"{option} is {text}: give a number of days, or a number and m, h, d or w, such as 30d")
    return length
