"""Commands: made from functions or from the declarations of operations, with the options and ids that they share.

Annotations declare click's options and arguments.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from difflib import get_close_matches
from functools import partial
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import click

from recallite.doors.operation import ARGUMENTS, REQUIRED, Operation, kind_of
from recallite.doors.operations import operation_named
from recallite.errors import InvalidInput, NotFound
from recallite.system.plugins import imported
from recallite_cli.output import fail_quietly, hint, named, print_counts, print_json, print_table, progress

if TYPE_CHECKING:
    from recallite.memory import Memory
    from recallite.model.settings import Settings


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
    """A command that lists its arguments before its options.

    `declare` makes its parameters when it is run or shown: those of an operation import what carries it out. `fields`
    are then the types and defaults of those that are declared as arguments of an operation. If it `prints`, its
    `result` is a function of the context and the values of its parameters; `as_json` makes what `--json` prints of it,
    and `failed` says whether the exit code is 1.
    """

    result: Callable[[click.Context, dict[str, Any]], Any]
    as_json: Callable[[Any], object]
    failed: Callable[[Any], bool]

    def __init__(self, declare: Callable[[], list[click.Parameter]], **attributes: Any) -> None:
        super().__init__(None, **attributes)
        self.declare, self.fields = declare, dict[str, tuple[Any, Any]]()
        del self.params

    def __getattr__(self, name: str) -> Any:
        if name != "params":
            raise AttributeError(name)
        self.params = self.declare()
        return self.params

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
        if (found := self.get_command(ctx, name)) is None:
            close = " or ".join(map(repr, get_close_matches(name, self.list_commands(ctx))))
            ctx.fail(f"No such command {name!r}.{f' Did you mean {close}?' if close else ''}")
        return name, found, rest


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


def command(function: Any, without: Collection[str] = (), operation: str = "") -> Command:
    """Make a command that calls a function with its options and arguments, and its context if that is a parameter.

    The fields of `**options: Unpack[SomeOptions]` are options that may be left out. Parameters of plain types, and
    `**fields`, are arguments of the `operation`. No parameters are `without`, which may have annotations that only a
    type checker can import.
    """
    contexts: list[str] = []

    def declare() -> list[click.Parameter]:
        params: list[click.Parameter] = []
        parameters = inspect.signature(function).parameters
        for item in parameters.values():
            if item.name in without:
                continue
            hint = eval(item.annotation, function.__globals__) if isinstance(item.annotation, str) else item.annotation
            if hint is click.Context:
                contexts.append(item.name)
            elif item.kind is inspect.Parameter.VAR_KEYWORD:
                unpacked = [get_type_hints(part, include_extras=True) for part in get_args(hint)]
                params += [parameter(*field, None) for hints in unpacked for field in hints.items()]
                made.fields |= _expanded(operation, {*without, *parameters}) if hint is Any else {}
            elif get_origin(hint) is Annotated:
                params.append(parameter(item.name, hint, item.default))
            else:
                made.fields[item.name] = hint, item.default
        return params + [option_of(operation_named(operation), name, *field) for name, field in made.fields.items()]

    @click.pass_context
    def call(context: click.Context, /, **values: Any) -> object:
        return function(**values, **dict.fromkeys(contexts, context))

    made = Command(declare, callback=call, help=inspect.getdoc(function))
    return made


# The options that commands share, each declared once, and what becomes of their text.

SETTINGS = "recallite.settings"
"""Key under which a context keeps the path that --settings gives."""

AsJson = Annotated[bool, flag("Print JSON.", "--json")]
Overrides = Annotated[list[str] | None, option("NAME=VALUE", ARGUMENTS["overrides"].help, "--set")]
Format = Annotated[
    str | None, option("FORMAT", "jsonl, csv, text or markdown (a folder). Default: by the file's name.")
]
Within = Annotated[str | None, option("/A/B", "Within this scope.", "--scope")]
Yes = Annotated[bool, flag(ARGUMENTS["yes"].help, "--yes", "-y")]


@contextmanager
def open_memory(
    context: click.Context, scope: str | None = None, *, create: bool = False, lasting: bool = False,
    dry_run: bool = False, embedder: str | None = None,
) -> Iterator[Memory]:  # fmt: skip
    """The memory that --db names, or that the context has, bound to a scope if one is given.

    Its settings are those of --settings, but for an `embedder` that is given. Unless it is `lasting`, no kernels are
    compiled. What a `dry_run` would create is kept in memory. Raises InvalidInput where the file is missing, unless
    `create`: a typing error makes no store.
    """
    from msgspec import structs

    from recallite.memory import Memory
    from recallite.store.opening import shown_path, store_exists

    if isinstance(context.obj, Memory):
        yield context.obj if scope is None else context.obj.scoped(scope)
        return
    settings, path = chosen_settings(context), store_path(context)
    if not create and not store_exists(path):
        raise InvalidInput(
            f"there is no store at {shown_path(path)}: check --db and RECALLITE_DB, or make one with remember, "
            "import or knowledge ingest"
        )
    if dry_run and not store_exists(path):
        path = ":memory:"
    with Memory(path, settings=settings, embedder=embedder) as memory:
        if not lasting:  # a command that ends at once starts no compiler
            memory._engine.tuning = structs.replace(memory._engine.tuning, compile_kernels=False)
        yield memory if scope is None else memory.scoped(scope)


def store_path(context: click.Context) -> str:
    """The path or address of --db, or the default one."""
    from recallite.model.environment import default_path

    return default_path() if context.obj is None else context.obj


def chosen_settings(context: click.Context) -> Settings:
    """The settings of --settings or RECALLITE_SETTINGS."""
    from recallite.model.environment import environment
    from recallite.model.settings import Settings

    if (path := context.meta.get(SETTINGS) or environment("RECALLITE_SETTINGS")) is None:
        return Settings()
    from recallite.compat import load_settings

    return load_settings(path)


@contextmanager
def packages_of(extra: str) -> Iterator[None]:
    """Around imports for a server: a missing package is an error that says how to install it."""
    try:
        yield
    except ModuleNotFoundError as fault:
        from recallite.system.messages import install_command

        raise InvalidInput(f"the server needs the package {fault.name}: {install_command(extra)}") from None


def parse_json(text: str | None, option: str, *, kind: type = dict) -> Any:
    """The value of an option that takes JSON."""
    if text is None:
        return None
    import msgspec

    from recallite.system.messages import shown

    name = "object" if kind is dict else "list"
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as fault:
        raise InvalidInput(
            f"{option} {shown(text)} is not JSON ({fault}): give a JSON {name} in single quotes"
        ) from None
    if not isinstance(value, kind):
        raise InvalidInput(f"{option} is {shown(text)}: give a JSON {name}")
    return value


def parse_overrides(pairs: Sequence[str] | None) -> dict[str, Any]:
    """The options of `--set name=value`."""
    from recallite.model.settings import OPTIONS

    return parse_pairs(pairs, "--set", [name for name in OPTIONS if name != "limit"])  # which has its own option


def recall_fields(fields: Mapping[str, Any], overrides: Sequence[str] | None) -> dict[str, Any]:
    """The arguments of a recall from its options and `--set`."""
    from recallite.recall.request import recall_arguments

    return recall_arguments({**fields, **parse_overrides(overrides)})


def parse_pairs(pairs: Sequence[str] | None, option: str, allowed: Sequence[str]) -> dict[str, Any]:
    """The values of a repeated option `name=value`: JSON values, and plain words as they are."""
    import msgspec

    from recallite.system.messages import shown

    values: dict[str, Any] = {}
    for pair in pairs or ():
        name, equals, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in allowed:
            raise InvalidInput(f"{option} is {shown(pair)}: give name=value with one of {', '.join(allowed)}")
        try:
            values[name] = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            values[name] = text
    return values


# Ids as people type them: whole, or the start or end of one.

_LEAST_CHARS, _MOST_CHARS = 4, 64
_MOST_NAMED = 5
_AFTER_ANY = "\U0010ffff"


def whole_id(memory: Memory, typed: str) -> str:
    """The id of the memory that `typed` names: its id, or what only this id starts or ends with.

    Where there is none it is `typed` itself. Raises InvalidInput where several ids start or end with it.
    """
    try:
        return memory.get(typed).id
    except NotFound:
        if not _LEAST_CHARS <= len(typed) <= _MOST_CHARS or not typed.isprintable():
            return typed
    between = {"id": {"gte": typed, "lt": typed + _AFTER_ANY}}
    starting = memory.list(where=between, include_superseded=True, limit=_MOST_NAMED + 1)
    containing = {"id": {"contains": typed}}
    matches = [entry.id for entry in starting or memory.list(where=containing, include_superseded=True, limit=None)]
    return _only(typed, [id for id in matches if id.startswith(typed) or id.endswith(typed)])


def document_id(memory: Memory, typed: str) -> str:
    """The id of the document that `typed` names; a source is itself."""
    documents = memory.knowledge.list()
    if len(typed) < _LEAST_CHARS or any(typed in (entry.id, entry.source) for entry in documents):
        return typed
    return _only(typed, [entry.id for entry in documents if entry.id.startswith(typed) or entry.id.endswith(typed)])


def _only(typed: str, ids: Sequence[str]) -> str:
    if len(ids) > 1:
        first = ", ".join(ids[:_MOST_NAMED])
        raise InvalidInput(f"{typed!r} is part of several ids: {first}{'' if len(ids) <= _MOST_NAMED else ', ...'}")
    return ids[0] if ids else typed


# A command made from the declaration of an operation, or from a function, with what it prints.

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
    - those of plain types, and `**fields` for others of the `operation` that are not `without`, come as Python takes
      them, with ids whole, if they were given; all others as `command` says
    """

    def decorate(function: Callable[P, T]) -> Command:
        supplied = {"memory", "report"} & inspect.signature(function).parameters.keys()
        made = command(function, {*supplied, *without}, operation)
        call: Any = made.callback
        own = made.declare

        def declare() -> list[click.Parameter]:
            return [*own(), *[parameter("scope", Within, None)] * within, parameter("as_json", AsJson, False)]

        def result(context: click.Context, values: dict[str, Any]) -> T:
            if made.fields:
                preset = operation_named(operation)
                values |= parsed(preset, made.fields, {name: values.pop(name) for name in made.fields})
            with ExitStack() as opened:
                if "memory" in supplied:
                    scope = values.pop("scope", None) if within else None
                    values["memory"] = memory = opened.enter_context(open_memory(context, scope, create=create))
                    for name in made.fields.keys() & values.keys():
                        if find := {"memory": whole_id, "document": document_id}.get(preset.argument(name).kind):
                            typed = values[name]
                            values[name] = (
                                find(memory, typed) if isinstance(typed, str) else [find(memory, id) for id in typed]
                            )
                if bar is not None:
                    report = opened.enter_context(progress(*bar))
                    values |= {"report": report} if "report" in supplied else {}
                return call(**values)  # type: ignore[no-any-return]

        @click.pass_context
        def run(context: click.Context, /, *, as_json: bool, **values: Any) -> None:
            value = result(context, values)
            print_json(made.as_json(value)) if as_json else show(value)
            fail_quietly(made.failed(value))

        made.declare, made.callback, made.result = declare, run, result
        made.as_json, made.failed = json or (lambda value: value), fails or (lambda value: False)
        return made

    return decorate


def _expanded(operation: str, without: Collection[str]) -> dict[str, tuple[Any, Any]]:
    """The arguments of an operation that the command line takes: only explained options."""
    preset = operation_named(operation)
    explained, options = {parameter.name for parameter in preset.parameters}, preset.options
    if preset.command is not None and preset.command.of:
        explained, options = set(), Operation(preset.name, "", group="", call=preset.command.of).options
    return {
        name: field
        for name, field in options.items()
        if name in explained | preset.arguments.keys()
        and name not in without
        and preset.argument(name).kind != "hidden"
    }


def command_of(operation: Operation) -> click.Command:
    """The command of an operation."""
    declared = operation.command
    assert declared is not None
    form, field, fails = declared.show, declared.json, declared.fails

    def call(memory: Any, report: Any = None, **fields: Any) -> Any:
        yes, each = fields.pop("yes", True), dict.fromkeys(fields.pop(declared.each, ()))
        if declared.confirm and operation.writes(fields) and (not declared.each or len(each) > 1):
            confirm(declared.confirm.format(**fields, count=len(each)), yes)
        if declared.each:
            return [operation.apply(memory, {**fields, declared.each: value}) for value in each]
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
        elif form.startswith("print_") or ":print_" in form:
            _found(form, "printers")(value)
        else:
            print_table(form)(value)
        if fails == "empty" and not form.startswith("# ") and nothing(value):
            hint("nothing was found")

    def failed(value: Any) -> bool:
        if fails in ("", "empty"):
            return bool(fails) and nothing(value)
        return bool(getattr(value, fails.removeprefix("not "))) != fails.startswith("not ")

    def json(value: Any) -> Any:
        made_of = _found(field, "printers") if ":" in field or field.endswith("_as_json") else named(field)
        return made_of(value) if field else value

    made = prints(
        show,
        json=json,
        fails=failed,
        within=declared.within, create=declared.create, bar=declared.bar, operation=operation.name,
        without=("scope",) if declared.within else (),
    )(_found(declared.call, "commands") if declared.call else call)  # fmt: skip
    made.help = made.help or operation.about
    if declared.confirm:
        made.params.insert(-1, parameter("yes", Yes, False))
    return made


def _found(path: str, module: str) -> Any:
    """The object at "module:name", or of this name in a module beside this one."""
    return imported(path if ":" in path else f"recallite_cli.{module}:{path}")


def confirm(question: str, yes: bool) -> None:
    """Ask on a terminal, and end with exit code 1 unless the answer is yes; elsewhere require `--yes`."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInput(f"{question} This needs --yes where nobody can be asked")
    if not click.confirm(question, err=True):
        hint("nothing was changed")
        raise click.exceptions.Exit(1)


def option_of(operation: Operation, name: str, hint: Any, default: Any) -> click.Parameter:
    """The option, or the argument without one, that the command line has for an argument of an operation."""
    meaning, kind = operation.argument(name), kind_of(hint)
    type_ = {"flag": bool, "int": int, "float": float, "many": list[str]}.get(kind, str)
    if meaning.default is not REQUIRED:
        default = meaning.default
    if kind in ("object", "numbers", "days") and default is not REQUIRED:
        default = None
    if operation.command is not None and name == operation.command.each:
        type_ = list[str]
    is_id = meaning.kind in ("memory", "document") and not meaning.flags
    if meaning.kind == "argument" or is_id or (name in operation.required and not meaning.kind):
        return argument(meaning.metavar or name.upper(), meaning.help)(name, type_, default)
    flags = meaning.flags or ("--" + name.replace("_", "-"))
    if kind == "flag" and "/" not in flags and default is True:
        flags += "/--no-" + name.replace("_", "-")
    names = [flags] if "/" in flags else flags.split(",")
    shows = kind != "flag" and default != ""
    return option(meaning.metavar or "", meaning.help, *names, show_default=shows)(name, type_, default)


def parsed(operation: Operation, fields: Mapping[str, tuple[Any, Any]], values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an operation from the values of its options, without options not given."""
    arguments: dict[str, Any] = {}
    for name, value in values.items():
        if value is None:
            continue
        hint, flag = fields[name][0], "--" + name.replace("_", "-")
        kind = kind_of(hint)
        if kind in ("object", "numbers"):
            arguments[name] = parse_json(value, flag, kind=dict if kind == "object" else list)
        elif kind == "days":
            arguments[name] = duration(value, operation.argument(name).flags or flag)
        elif kind == "text" and int in get_args(hint) and _INTEGER.fullmatch(value):
            arguments[name] = int(value)
        else:
            arguments[name] = value
    return arguments


def duration(text: str, option: str) -> timedelta:
    """A length of time as an option gives it: a number of days, or of another unit that follows it."""
    from recallite.model.checks import length_of

    text = text.strip()
    try:
        length = length_of(text if text[-1:].isalpha() else f"{text}d")
    except OverflowError:
        raise InvalidInput(f"{option} is {text}: give at most 365,250 days") from None
    if length is None:
        raise InvalidInput(f"{option} is {text}: give a number of days, or a number and m, h, d or w, such as 30d")
    return length
