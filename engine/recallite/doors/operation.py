"""Operation: one function of a memory, declared once for every door.

`ARGUMENTS` has the meanings of its arguments, `Operation` its forms at each door, and `CODES` those of its errors.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta
from functools import cached_property
from operator import attrgetter
from types import EllipsisType, NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union, Unpack, cast, get_args, get_origin, get_type_hints

from msgspec import Struct

from recallite import errors
from recallite.errors import InvalidInput, Reason, RecalliteError
from recallite.model.filters import FIELD_NAMES, Filter, FilterFields
from recallite.system.plugins import imported

if TYPE_CHECKING:
    from recallite.memory import Memory


class Argument(NamedTuple):
    """The meaning of an argument at every door, and how the command line takes it.

    - flags: the names of its option, if it is another than the argument's; for a switch, as "--success/--failure"
    - kind: "memory" or "document" for the id of one, which people may type in part; "argument" for one without an
      option, as ids are that have no flags; "option" for a required one; "hidden" for one that no command takes
    - default: on the command line alone
    """

    help: str
    metavar: str | None = None
    flags: str = ""
    kind: Literal["", "memory", "document", "argument", "option", "hidden"] = ""
    default: Any = inspect.Parameter.empty


ARGUMENTS: dict[str, Argument] = {
    "id": Argument("The id of a memory, or an unambiguous start or end.", "ID", kind="memory"),
    "ids": Argument("The id of a memory, or an unambiguous start or end.", "ID", kind="memory"),
    "source": Argument("The document or session it comes from.", "NAME"),
    "scope": Argument("Only this scope and those below it.", "/A/B"),
    "kinds": Argument("Only this kind; repeat for more.", "KIND", "--kind"),
    "tags": Argument("Any of these tags; repeat for more.", "TAG", "--tag"),
    "where": Argument("""Only what this matches, e.g. '{"importance": {"gte": 0.5}}'.""", "JSON"),
    "since": Argument("Not older than this: 2026-03-01, 2026-03, yesterday, 7d, or ISO 8601 with an offset.", "TIME"),
    "until": Argument("Not newer than this; a day alone is all of it.", "TIME"),
    "as_of": Argument("What the store knew at this time, or at the end of this day.", "TIME"),
    "valid_at": Argument("What held at this time, superseded since or not.", "TIME"),
    "include_superseded": Argument("Also what others have superseded."),
    "sessions": Argument("Also the messages of sessions."),
    "agent": Argument("The agent; without it, the scope's own.", "NAME"),
    "limit": Argument("The most to show.", flags="--limit,-n"),
    "offset": Argument("The number to leave out first."),
    "order": Argument("newest, oldest, created, updated or importance.", "ORDER"),
    "types": Argument("Only links of this type; repeat for more.", "TYPE", "--type"),
    "direction": Argument("out, in or both.", "DIRECTION"),
    "importance": Argument("From 0 to 1."),
    "strength": Argument("From 0 to 1."),
    "pinned": Argument("Never prune it."),
    "topic": Argument("The topic it belongs to.", "TEXT"),
    "context": Argument("Searched with the text: a speaker, a title.", "TEXT"),
    "position": Argument("Its place in the source."),
    "metadata": Argument("A JSON object. It replaces what it has.", "JSON"),
    "created_at": Argument("When it was learnt. Default: now.", "TIME"),
    "valid_from": Argument("When it happened. Default: when it was learnt.", "TIME"),
    "valid_until": Argument("When what it says ended, or will end.", "TIME"),
    "expires_at": Argument("When it stops being true; or how long after it is stored, or touched: 30d.", "TIME"),
    "vector": Argument("The vector itself, as a JSON list of numbers.", "JSON"),
    "task_type": Argument("Only for this type of task.", "TYPE"),
    "skip_damaged": Argument("Leave out what cannot be read."),
    "query": Argument("The question.", "QUERY"),
    "mode": Argument("hybrid (the default), vector or keyword.", "MODE"),
    "profile": Argument("A named set of recall's options.", "NAME"),
    "diversify_by": Argument(
        "Cover the relevant times or sources, in order of time; or have one_per_source, or one_per_source_over_time.",
        "time|source|...",
    ),
    "token_budget": Argument("Only hits that fit into this number of tokens."),
    "purpose": Argument(
        "inspect: the hits do not count as accessed. explain: nor then; ranks by signal too.", "PURPOSE"
    ),
    "relevant": Argument("Only what answers: nothing if nothing does."),
    "id_of_session": Argument("The id of a session.", "ID"),
    "overrides": Argument("An option of the profile, for this call: neighbor_boost=0.", "NAME=VALUE", "--set"),
    "yes": Argument("Do not ask for confirmation.", flags="--yes,-y"),
}
"""Meanings by name, for every operation unless its command has another."""

# An operation, and its forms as a command and as an action of a tool.

Effect = Literal["reads", "writes", "destroys"]
REQUIRED = inspect.Parameter.empty
"""The default of an argument that has to be given."""
SERVER = "server"
"""The name of a `Tool` that the MCP server has, as a tool of its own."""
SESSION_PREFIX = "session."
"""Prefix of the names of the methods of one session, whose `id` and `agent` are arguments of theirs."""
_SESSION_ID = inspect.Parameter("id", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="str")
_SESSION_AGENT = inspect.Parameter("agent", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="str | None")
# What no request can carry: functions, objects of this process, and what has another form in JSON.
LEFT_OUT = {"on_progress", "batch_size", "body"}


class Command(Struct, frozen=True):
    """The command of an operation.

    - words: "scopes", or "sessions list"; by default the last part of the operation's name
    - show: columns, as "id since:created_at uses:use_count:.0%"; "# WHAT" for a number and what it counts, or
      "# WHAT:attribute; ..." for several; "=" for a value as it is; or a function of `printers`, or "module:function"
    - json: the one field of the JSON of a number or a text, or what makes it: a function of `printers`
      that ends in "_as_json", or "module:function"
    - fails: "empty" for exit code 1 if the value is; or an attribute that tells, as "failed" or "not ok"
    - call: a function of `commands`, or "module:function", in place of the operation's; its docstring is the command's
      help. It takes the memory, or a context to open one itself, options of its own, and other arguments as `**fields`
    - of: "module:Class.method" whose arguments `**fields` are, in place of the operation's, if they have a meaning
    - each: an argument that may be repeated; the values of all calls are a list then
    - within: whether `--scope` binds the memory; create: whether a store that is missing is made
    - bar: the label and the unit of a bar; confirm: a question that `--yes` answers, if it writes; of `each` only if
      there are several, `{count}`
    - arguments: what this command says of its arguments, in place of `ARGUMENTS`
    """

    words: str = ""
    show: str = "="
    json: str = ""
    fails: str = ""
    call: str = ""
    of: str = ""
    each: str = ""
    within: bool = False
    create: bool = False
    bar: tuple[str, str] | None = None
    confirm: str = ""
    arguments: Mapping[str, Argument] = {}


class Tool(Struct, frozen=True):
    """The form in which models see an operation: an action of a tool, or a tool of the MCP server.

    - name: the tool, such as "session", or `SERVER`
    - action: by default the last part of the operation's name
    - arguments: those that a model may give, with their defaults; None: all that JSON can have
    - run: a function of the module for the tool, or "module:function", of the call and the arguments that have a value,
      in place of the operation's
    - also: names that other systems have for arguments, with these
    - about: what the action does, for a model; by default the docstring of `run`, or the operation's summary
    - outcome: what the result of an action says that returns nothing
    - title: of a tool of the server, as hosts show it; by default the operation's summary
    - hints: of a tool of the server: "idempotent" if it writes the same again, "open" if it reaches out, "plain" if its
      text is JSON alone, as ChatGPT reads it; all others put stored text between marks
    """

    name: str
    action: str = ""
    arguments: Mapping[str, Any] | None = None
    run: str = ""
    also: Mapping[str, str] = {}
    about: str = ""
    outcome: str = "done"
    title: str = ""
    hints: str = ""


class Operation:
    """One operation.

    - name: as Python calls it on a memory: "recall", "sessions.list"; "session.pop" is a method of one session
    - about: its documentation; the first sentence is its summary
    - http: method and path, as "GET /memories/{id}"; "" if it is not served. The fields of a request are the arguments
      of the function by name. Those in braces are in the path, percent-encoded; the others are in the query of a GET or
      DELETE and in the JSON object of a POST or PATCH. The answer is what the function returns, as JSON
    - group: what help, references and OpenAPI list it under
    - effect: what it does to the store. A token for reading admits to what "reads" alone
    - writes_if: an argument with which it writes although it reads otherwise
    - call: "module:function", of a memory and the arguments, if it is no method called `name`; or "module:Class.method"
      of a class that is made of a memory
    - returns: the type of its JSON, if another than that of the function
    - tools: how models see it, in one form or several
    - raw: the body of a request is the argument `body`, as bytes, and the fields are in the query. One that returns
      `bytes` is answered by the bytes of an export
    """

    def __init__(
        self,
        name: str,
        about: str,
        *,
        group: str,
        http: str = "",
        effect: Effect = "reads",
        writes_if: str = "",
        call: str = "",
        returns: str = "",
        status: int = 200,
        command: Command | None = None,
        tools: Tool | tuple[Tool, ...] = (),
        raw: bool = False,
    ) -> None:
        self.name, self.about, self.group, self.effect, self.status = name, about, group, effect, status
        self.method, _, self.path = http.partition(" ")
        self.command, self.tools, self.raw = command, (tools,) if isinstance(tools, Tool) else tools, raw
        self.writes_if, self._call, self._returns = writes_if, call, returns

    @property
    def id(self) -> str:
        """Its name as an identifier: in OpenAPI, metrics and names of classes."""
        return self.name.replace(".", "_").rstrip("_")

    @property
    def summary(self) -> str:
        """The first sentence of its documentation."""
        return re.split(r"(?<=\.)\s", self.about, maxsplit=1)[0]

    @property
    def words(self) -> str:
        """The command; "" if there is none."""
        return "" if self.command is None else self.command.words or self.name.rpartition(".")[2].replace("_", "-")

    @property
    def reads(self) -> bool:
        """Whether it changes nothing, beside what recall counts."""
        return self.effect == "reads"

    def writes(self, fields: Mapping[str, Any]) -> bool:
        """Whether it writes with these arguments."""
        return not self.reads or bool(self.writes_if and fields.get(self.writes_if))

    @property
    def python(self) -> str:
        """Its name in Python."""
        owner, _, method = self._call.partition(":")[2].rpartition(".")
        return f"{owner}(memory).{method}" if owner else f"memory.{self.name}"

    @property
    def in_body(self) -> bool:
        """Whether the fields that are not in the path are in a JSON object."""
        return self.method in ("POST", "PATCH") and not self.raw

    @cached_property
    def call(self) -> Callable[..., Any]:
        """The function; its first argument is a memory, or the service or session that it is a method of."""
        if self._call:
            return cast("Callable[..., Any]", imported(self._call))
        from recallite.memory import Memory, class_of

        service, _, method = self.name.rpartition(".")
        if self.name.startswith(SESSION_PREFIX):
            owner = imported("recallite.agents.sessions:Session")
        else:
            owner = class_of(service) if service else Memory
        return cast("Callable[..., Any]", getattr(owner, method))

    @cached_property
    def returns(self) -> Any:
        """The type of what it returns, as JSON has it."""
        call = inspect.unwrap(self.call)
        annotation = self._returns or call.__annotations__["return"]
        return eval(annotation, call.__globals__) if isinstance(annotation, str) else annotation

    @cached_property
    def required(self) -> list[str]:
        """The arguments that are given by position and have no default."""
        named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
        return [p.name for p in self.parameters if p.kind not in named and p.default is inspect.Parameter.empty]

    @cached_property
    def fields(self) -> dict[str, tuple[Any, Any]]:
        """The type and default (`inspect.Parameter.empty`: it has to be given) of each argument by name."""
        fields: dict[str, tuple[Any, Any]] = {}
        names = inspect.unwrap(self.call).__globals__
        for parameter in self.parameters:
            if parameter.name in LEFT_OUT:
                continue
            # Each alone: types of what is returned may be imported for type checkers only.
            hint = eval(parameter.annotation, names)
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                fields[parameter.name] = hint, parameter.default
            elif get_origin(hint) is Unpack:
                fields |= {name: (part, None) for name, part in get_type_hints(get_args(hint)[0]).items()}
        if FIELD_NAMES.keys() <= fields.keys():
            fields.pop("filter", None)  # its fields are arguments
        return {name: field for name, field in fields.items() if name not in LEFT_OUT}

    @property
    def absent(self) -> dict[str, None]:
        """None for the arguments without a default: what may be None need not be given."""
        return {name: None for name, (_, default) in self.fields.items() if default is inspect.Parameter.empty}

    @cached_property
    def options(self) -> dict[str, tuple[Any, Any]]:
        """The fields as a command has them, with the fields of a filter in place of `filter`."""
        options = dict(self.fields)
        if options.pop("filter", None) is not None:
            hints = get_type_hints(FilterFields)
            options |= {name: (hints[name], None) for name in FIELD_NAMES if name not in options}
        return options

    @cached_property
    def parameters(self) -> list[inspect.Parameter]:
        """The parameters of the function after the memory; of a method of a session, with its `id` and `agent`."""
        declared = [*inspect.signature(self.call).parameters.values()][1:]
        if not self.name.startswith(SESSION_PREFIX):
            return declared
        last = [part for part in declared if part.kind is inspect.Parameter.VAR_KEYWORD]
        return [_SESSION_ID, *(part for part in declared if part not in last), _SESSION_AGENT, *last]

    @cached_property
    def arguments(self) -> dict[str, Argument]:
        """Meanings of the arguments that have one."""
        return {**ARGUMENTS, **({} if self.command is None else self.command.arguments)}

    def argument(self, name: str) -> Argument:
        """The meaning of an argument."""
        return self.arguments.get(name) or Argument("")

    def apply(self, memory: Memory, fields: Mapping[str, Any], **extra: Any) -> Any:
        """The result of the function for these arguments; `extra` are arguments that are no fields."""
        arguments = {**self.absent, **fields, **extra}
        if self.name.startswith(SESSION_PREFIX):
            owner: Any = memory.sessions.get(arguments.pop("id"), agent=arguments.pop("agent", None))
        elif "." in self._call.partition(":")[2]:
            owner = imported(self._call.rpartition(".")[0])(memory)
        else:
            service = "" if self._call else self.name.rpartition(".")[0]
            owner = attrgetter(service)(memory) if service else memory
        positional = [p.name for p in self.parameters if p.kind is inspect.Parameter.POSITIONAL_ONLY]
        return self.call(owner, *map(arguments.pop, positional), **arguments)

    def bind(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The arguments of a call, by name. Raises TypeError where Python would, and InvalidInput for a `Filter`."""
        for name in kwargs.keys() - self.fields.keys():
            if kwargs.pop(name) is not None:
                known = ", ".join(difflib.get_close_matches(name, self.fields))
                why = "cannot be sent to a server" if name in LEFT_OUT else f"is no argument of {self.name}"
                raise InvalidInput(f"{name} {why}{f': use {known}' if known else ''}")
        signature = inspect.Signature(self.parameters)
        fields: dict[str, Any] = {}
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            fields |= value if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD else {name: value}
        if isinstance(fields.get("filter"), Filter):
            raise InvalidInput("filter is a Filter, which cannot be sent: give a mapping, as {'since': '2026-01-01'}")
        return fields


_KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict, Mapping), "text": (str, date), "flag": (bool,), "days": (timedelta,), "int": (int,),
    "float": (float,), "many": (Iterable,),
}  # fmt: skip


def kind_of(hint: Any) -> str:
    """Form of a type on the command line: text, int, float, flag, days, many (texts), numbers or object."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = {_kind_of_one(part) for part in parts} - {""}
    if kinds == {"text", "many"}:
        return "many"
    if len(kinds) == 1:
        return kinds.pop()
    return "text" if "text" in kinds else next((kind for kind in _KINDS if kind in kinds), "text")


def _kind_of_one(hint: Any) -> str:
    if hint is object:
        return "numbers"
    if hint in (NoneType, EllipsisType):
        return ""
    if not isinstance(origin := get_origin(hint) or hint, type):
        return "text"
    return next((kind for kind, types in _KINDS.items() if issubclass(origin, types)), "text")


class OperationSet(Struct, frozen=True):
    """The operations that a package registers.

    - command_groups: the help of the first words of their commands that have two
    - tools: what models are told of tools of several actions that only these operations have
    """

    operations: tuple[Operation, ...]
    command_groups: Mapping[str, str] = {}
    tools: Mapping[str, str] = {}


# The codes that stand for an error outside Python: one table for HTTP, the command line and MCP.

INVALID_PARAMS = -32602
"""The code of JSON-RPC for what the caller can put right, who is then told the message."""


class Codes(Struct, frozen=True):
    """The status of HTTP, the exit code of the command line and the error code of MCP: by default an internal error."""

    status: int
    exit: int
    mcp: int = -32603


_WRONG = Codes(422, 2, INVALID_PARAMS)
_STORE, _LATER, _MODEL = Codes(500, 3), Codes(503, 3), Codes(503, 4)
_ROWS: tuple[tuple[type[RecalliteError], tuple[Reason | None, ...], Codes], ...] = (
    (errors.RecalliteError, (None,), Codes(500, 70)),
    (errors.InvalidInput, ("value", "text", "vector", "filter"), _WRONG),
    (errors.InvalidInput, ("authority",), Codes(403, 2, INVALID_PARAMS)),
    (errors.Conflict, ("exists", "superseded"), Codes(409, 2, INVALID_PARAMS)),
    (errors.InvalidItem, (None,), _WRONG),
    (errors.NotFound, (None,), Codes(404, 1, INVALID_PARAMS)),
    (errors.StoreError, ("failed", "full", "io", "denied", "unsupported", "newer_schema", "no_ciphers"), _STORE),
    (errors.StoreError, ("removed",), _LATER),
    (errors.StoreError, ("read_only",), Codes(403, 3)),
    (errors.StoreUnavailable, ("locked", "unreachable", "connection_lost", "timeout"), _LATER),
    (errors.StoreCorrupt, ("store", "message"), _STORE),
    (errors.StoreClosed, ("closed", "forked"), _LATER),
    (errors.NotADatabase, (None,), _STORE),
    (errors.WrongKey, (None,), _STORE),
    (errors.WriteUnknown, (None,), _STORE),
    (errors.EmbedderError, ("failed", "missing", "invalid_model"), _MODEL),
    (errors.EmbedderError, ("text_refused",), Codes(422, 4)),
    (errors.EmbedderMismatch, (None,), _MODEL),
    (errors.DocumentError, ("unreadable", "encrypted", "refused", "parser_missing"), Codes(422, 2)),
    (errors.DocumentError, ("too_large",), Codes(413, 2)),
    (errors.ServerError, ("failed", "unreachable"), Codes(500, 70)),
    (errors.AccessDenied, (None,), Codes(403, 70)),
    (errors.WorkerLost, (None,), Codes(500, 4)),
    (errors.LanguageModelError, (None,), Codes(502, 4)),
    (errors.KernelError, (None,), Codes(422, 4)),
)
CODES = {(kind, reason): codes for kind, reasons, codes in _ROWS for reason in reasons}
"""The codes of each class with each of its reasons, or None."""


def codes_of(fault: RecalliteError) -> Codes:
    """The codes of an error; a caller's own class has the codes of the class that it is derived from."""
    return next(CODES[kind, fault.reason] for kind in type(fault).__mro__ if (kind, fault.reason) in CODES)
