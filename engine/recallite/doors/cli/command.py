"""Commands: one made from the declaration of an operation, or a function that a command calls, with what it prints."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar, get_args

import click

from recallite.doors.cli.options import AsJson, Within, Yes, open_memory, parse_json
from recallite.doors.cli.output import fail_quietly, hint, named, print_counts, print_json, print_table, progress
from recallite.doors.cli.parameters import Command, argument, command, option, parameter
from recallite.doors.operation import REQUIRED, Operation, imported, kind_of
from recallite.doors.operations import operation_named
from recallite.errors import InvalidInput

P = ParamSpec("P")
T = TypeVar("T")
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
) -> Callable[[Callable[P, T]], Command]:
    """Make a command of a function that returns what is to be printed.

    The command takes the function's options and `--json`. It prints `show(value)`, or with `--json` the value, or
    what `json` makes of it. The exit code is 1 if `fails(value)`. Of the function's parameters

    - `memory` is the opened store, with `within` bound to the scope of an option `--scope`; a store that is missing is
      an error unless `create`
    - `report` is the `on_progress` of a bar with the label and unit of `bar`
    - `**options: Unpack[SomeOptions]` stand for an option for each field of that TypedDict; `**fields` for those
      arguments of the `operation` that are neither parameters nor `without`, as Python takes them
    """

    def decorate(function: Callable[P, T]) -> Command:
        named = inspect.signature(function).parameters.keys()
        supplied = {"memory", "report"} & named
        made = command(function, supplied)
        expanded = [name for name in _expanded(operation) if name not in (*named, *without)]
        call: Any = made.callback

        @click.pass_context
        def run(context: click.Context, /, *, as_json: bool, **values: Any) -> None:
            if expanded:
                values |= parsed(operation_named(operation), {name: values.pop(name) for name in expanded})
            with ExitStack() as opened:
                if "memory" in supplied:
                    scope = values.pop("scope", None) if within else None
                    values["memory"] = opened.enter_context(open_memory(context, scope, create=create))
                if bar is not None:
                    report = opened.enter_context(progress(*bar))
                    values |= {"report": report} if "report" in supplied else {}
                value = call(**values)
            if as_json:
                print_json(value if json is None else json(value))
            else:
                show(value)
            fail_quietly(fails is not None and fails(value))

        made.params += [option_of(operation_named(operation), name) for name in expanded]
        made.params += [parameter("scope", Within, None)] * within + [parameter("as_json", AsJson, False)]
        made.callback = run
        return made

    return decorate


def _expanded(operation: str) -> list[str]:
    """The arguments of an operation that the command line takes: of its options only those that are explained."""
    if not operation:
        return []
    preset = operation_named(operation)
    explained = {parameter.name for parameter in preset.parameters} | preset.arguments.keys()
    return [name for name in preset.options if name in explained and preset.argument(name).kind != "hidden"]


def command_of(operation: Operation) -> click.Command:
    """The command of an operation."""
    declared = operation.command
    assert declared is not None
    if declared.run:
        made: Command = imported(declared.run)
        made.help = made.help or operation.about
        return made
    form, field, fails = declared.show, declared.json, declared.fails

    def call(memory: Any, report: Any = None, **fields: Any) -> Any:
        yes = fields.pop("yes", True)
        if declared.confirm and operation.writes(fields):
            confirm(declared.confirm.format(**fields), yes)
        for name in fields:
            if operation.argument(name).kind == "memory":
                fields[name] = _whole(memory, fields[name])
        takes_report = report is not None and "on_progress" in inspect.signature(operation.call).parameters
        value = operation.apply(memory, fields, **{"on_progress": report} if takes_report else {})
        if value is None and operation.returns is None:
            return {name: fields.get(name, default) for name, (_, default) in operation.fields.items()}
        return value

    def show(value: Any) -> None:
        if form == "=":
            click.echo(value)
        elif form.startswith("# "):
            print_counts(form[2:])(value)
        elif form.startswith("recallite"):
            imported(form)(value)
        else:
            print_table(form)(value)
        if fails == "empty" and not form.startswith("# ") and nothing(value):
            hint("nothing was found")

    made = prints(
        show,
        json=lambda value: imported(field)(value) if ":" in field else named(field)(value) if field else value,
        fails=lambda value: nothing(value) if fails == "empty" else bool(fails) and imported(fails)(value),
        within=declared.within, create=declared.create, bar=declared.bar, operation=operation.name,
        without=("scope",) if declared.within else (),
    )(call)  # fmt: skip
    made.help = operation.about
    if declared.confirm:
        made.params.insert(-1, parameter("yes", Yes, False))
    return made


def confirm(question: str, yes: bool) -> None:
    """Ask on a terminal, and end with exit code 1 unless the answer is yes; elsewhere require `--yes`."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInput(f"{question} This needs --yes where nobody can be asked")
    if not click.confirm(question, err=True):
        hint("nothing was changed")
        raise click.exceptions.Exit(1)


def _whole(memory: Any, values: Any) -> Any:
    from recallite.doors.cli.ids import whole_id

    return whole_id(memory, values) if isinstance(values, str) else [whole_id(memory, item) for item in values]


def option_of(operation: Operation, name: str) -> click.Parameter:
    """The option, or the argument without one, that the command line has for an argument of an operation."""
    (hint, default), meaning = operation.options[name], operation.argument(name)
    kind = kind_of(hint)
    type_ = {"flag": bool, "int": int, "float": float, "many": list[str]}.get(kind, str)
    if meaning.default is not REQUIRED:
        default = meaning.default
    if kind in ("object", "numbers", "days") and default is not REQUIRED:
        default = None
    if meaning.kind == "argument" or (name in operation.required and meaning.kind in ("", "memory")):
        return argument(meaning.metavar or name.upper(), meaning.help)(name, type_, default)
    flags = meaning.flags or ("--" + name.replace("_", "-"))
    if kind == "flag" and "/" not in flags and default is True:
        flags += "/--no-" + name.replace("_", "-")
    names = [flags] if "/" in flags else flags.split(",")
    shows = kind != "flag" and default != ""
    return option(meaning.metavar or "", meaning.help, *names, show_default=shows)(name, type_, default)


def parsed(operation: Operation, values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an operation from the values of its options; those that were not given are left out."""
    fields: dict[str, Any] = {}
    for name, value in values.items():
        if value is None:
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
