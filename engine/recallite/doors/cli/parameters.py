"""Commands of functions: click's options and arguments as annotations declare them, and groups of commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from difflib import get_close_matches
from functools import partial
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import click

from recallite.doors.operation import REQUIRED

# What an annotation holds: it makes the parameter of a name, a type and a default.
Declared = Callable[[str, Any, Any], click.Parameter]


class Argument(click.Argument):
    """An argument that has a line in help, which click before 8.5 does not write."""

    def __init__(self, name: str, type_: Any, default: Any, *, metavar: str, help: str) -> None:
        super().__init__([name], nargs=-1 if get_origin(type_) is list else 1, **_shared(type_, default, metavar))
        label = type_ if self.nargs < 0 else type_.__name__
        self.line = f"{metavar} <{label}>", "  ".join(filter(None, (help, "[required]" * self.required)))

    def get_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The argument as the usage line has it."""
        shape = "{%s}" if self.required else "[%s]"
        return [shape % self.metavar + "..." * (self.nargs != 1)]


class Command(click.Command):
    """A command that lists its arguments before its options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what help says of arguments and options."""
        if lines := [param.line for param in self.params if isinstance(param, Argument)]:
            with formatter.section("Arguments"):
                formatter.write_dl(lines)
        super().format_options(ctx, formatter)


class Group(click.Group):
    """A group that lists its commands in their own order and suggests those like an unknown one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return [*self.commands]

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str, click.Command | None, list[str]]:
        """The command that the arguments name, and what is left of them; a usage error if there is none."""
        name, *rest = args
        if name not in (known := self.list_commands(ctx)):
            close = " or ".join(map(repr, get_close_matches(name, known)))
            ctx.fail(f"No such command {name!r}.{f' Did you mean {close}?' if close else ''}")
        return name, self.get_command(ctx, name), rest


def option(metavar: str, help: str, *names: str, **attributes: Any) -> Declared:
    """An option, for `Annotated`: called as its parameter unless it has names, and shown with its type or metavar."""

    def made(name: str, type_: Any, default: Any) -> click.Option:
        flags = {"is_flag": True, "type": None} if type_ is bool else {}  # click 8.2.0 sets no flag that has a type
        return click.Option(
            [name, *(names or ["--" + name.replace("_", "-")])],
            **_shared(type_, default, metavar) | {"help": help, "show_default": True} | flags | attributes,
            multiple=get_origin(type_) is list,
        )

    return made


def flag(help: str, *names: str) -> Declared:
    """An option without a metavar: a flag or, called `number`, a value whose type help shows instead."""
    return option("", help, *names)


def argument(metavar: str, help: str = "") -> Declared:
    """An argument, for `Annotated`."""
    return partial(Argument, metavar=metavar, help=help)


number = flag


def _shared(type_: Any, default: Any, metavar: str) -> dict[str, Any]:
    """The attributes that options and arguments have in common. A list that was not given is None."""
    shared = {"metavar": metavar or f"<{type_.__name__}>", "required": default is REQUIRED}
    if get_origin(type_) is list:
        return {**shared, "type": get_args(type_)[0], "callback": lambda ctx, param, values: [*values] or None}
    return {**shared, "type": type_, **({} if default is REQUIRED else {"default": default})}


def parameter(name: str, annotation: Any, default: Any) -> click.Parameter:
    """The parameter that `Annotated[type, option(...)]` declares; `| None` says nothing more than the default."""
    type_, declared = get_args(annotation)
    if get_origin(type_) in (Union, UnionType):
        (type_,) = {*get_args(type_)} - {NoneType}
    return declared(name, type_, default)  # type: ignore[no-any-return]


def command(function: Any, without: Collection[str] = ()) -> Command:
    """Make a command that calls a function with its options and arguments, and its context if that is a parameter.

    The fields of `**options: Unpack[SomeOptions]` are options that may be left out. No parameters are `without`, which
    may have annotations that only a type checker can import.
    """
    params, contexts = list[click.Parameter](), []
    for item in inspect.signature(function).parameters.values():
        if item.name in without:
            continue
        hint = eval(item.annotation, function.__globals__) if isinstance(item.annotation, str) else item.annotation
        if hint is click.Context:
            contexts.append(item.name)
        elif item.kind is not inspect.Parameter.VAR_KEYWORD:
            params.append(parameter(item.name, hint, item.default))
        else:
            fields = (get_type_hints(unpacked, include_extras=True) for unpacked in get_args(hint))
            params += [parameter(*field, None) for hints in fields for field in hints.items()]

    @click.pass_context
    def call(context: click.Context, /, **values: Any) -> object:
        return function(**values, **dict.fromkeys(contexts, context))

    return Command(None, params=params, callback=call, help=inspect.getdoc(function))
