"""Actions of tools, made from the declarations of operations: their fields, their JSON schemas, and what they answer.

The annotation of a field holds the description that models see, and the check of its value.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, cast, get_args

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from recallite.doors.operation import REQUIRED, SERVER, Operation, Tool, kind_of
from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.model.authority import Authority
from recallite.model.checks import check_flag, check_path
from recallite.system.messages import shown
from recallite.system.plugins import imported
from recallite.text.quotes import NOTICE

if TYPE_CHECKING:
    from recallite.memory import Memory


Check = Callable[[Any, str], object]
"""Raises InvalidInput for a value that a field, whose name comes second, does not take."""

_NAME = f"at most {checks.MAX_NAME_CHARS} characters on one line, not blank"
_TEXT = "text that is not blank, without NUL characters"
_MOST = f"text of at most {checks.MAX_QUERY_CHARS:,} characters"
_ID = "an id as results give it"
_WHEN = "a time: 2026-03-01T09:30:00+00:00, 2026-03-01, yesterday or 7d (7 days ago)"


def _field(description: str, check: Check, allowed: str, min_length: int | None = None) -> Meta:
    """A field with a check; `allowed` describes accepted values."""
    return Meta(description=description, min_length=min_length, extra={"check": check, "allowed": allowed})


def _check_text(text: str, name: str) -> None:
    checks.check_text(text, len(text), name)  # the memory has the limit


def _check_tools(tools: object, name: str) -> None:
    from recallite.agents.experience import unique_tools  # which loads the engine

    unique_tools(tools)


# What models are told of an argument, and the check of its value before anything is done; by the argument's name, with
# the group or the operation before it where it means something else there.
_TIME = Annotated[str, _field(
    "2026-03-01T09:30:00+00:00, 2026-03-01, yesterday, or 7d: 7 days ago; expires_at: in 7 days.",
    checks.check_time, _WHEN,
)]  # fmt: skip
_FLAG = Annotated[bool, Meta(description="True or false.")]
_WORDS = Annotated[str, _field("Free text.", _check_text, _TEXT, min_length=1)]
_COUNT = Annotated[int, Meta(ge=0, description="A number of steps or tokens.")]
FIELDS: dict[str, Any] = {
    "text": Annotated[str, _field("The text of the memory.", _check_text, _TEXT)],
    "content": Annotated[str, _field("The text of the message.", checks.encodable, _TEXT)],
    "query": Annotated[str, _field("What is asked, in words.", checks.check_query, _MOST)],
    "tags": Annotated[list[str], _field(
        "Labels. When searching: any of them.", lambda tags, _: checks.check_tags(tags),
        f"array of strings, each {_NAME}",
    )],
    "scope": Annotated[str, _field(
        "A path such as /project/database; it includes everything below it.",
        lambda scope, _: checks.check_scope(scope), "a path such as /team/project",
    )],
    "importance": Annotated[float, Meta(ge=0.0, le=1.0, description="From 0 (trivial) to 1 (critical).")],
    "limit": Annotated[int, Meta(ge=1, le=100, description="The most results to return.")],
    "offset": Annotated[int, Meta(ge=0, description="The number of results to skip.")],
    "diversify_by": Annotated[str, _field(
        "For a whole story: time or source, to cover the relevant times or sources; results come in order of time.",
        lambda value, name: checks.check_choice(value, name, ("time", "source")), "time or source",
    )],
    "since": _TIME, "until": _TIME, "valid_at": _TIME, "as_of": _TIME, "expires_at": _TIME,
    "old_text": Annotated[str, _field(
        "A part of the memory's text that no other memory has.",
        checks.encodable, "a part of the text of one memory", min_length=1,
    )],
    "id": Annotated[str, _field("The id of a memory, as results give it.", checks.check_name, _ID)],
    "remember.id": Annotated[str, _field(
        "An id of your own, such as user:diet; a memory that has it is replaced, with its history.",
        checks.check_name, _NAME,
    )],
    "sessions.id": Annotated[str, _field("The id of a session.", checks.check_name, _ID)],
    "supersedes": Annotated[list[str], _field(
        "Ids of memories that no longer hold, as results give them.",
        lambda ids, name: [checks.check_name(id, name) for id in ids], "array of ids as results give them",
    )],
    "pinned": _FLAG, "success": _FLAG,
    "chain": Annotated[bool, Meta(description="Also forget what it superseded, which would hold again.")],
    "topic": Annotated[str, _field("The topic that the memory is about.", checks.check_name, _NAME)],
    "agent": Annotated[str, _field(
        "The id of an agent.", lambda agent, _: checks.check_agent(agent), "one name such as ada, without slashes"
    )],
    "role": Annotated[str, _field(
        "Who said it: user, assistant, system or tool.", checks.check_name, "user, assistant, system or tool"
    )],
    "provider": Annotated[str, _field("Who answers in the session.", checks.check_name, _NAME, min_length=1)],
    "summary": Annotated[str, _field("Free text.", checks.encodable, "text without NUL characters", min_length=1)],
    "error": _WORDS, "recovery": _WORDS, "steps": _COUNT, "tokens": _COUNT,
    "tools": Annotated[list[str], _field(
        "The tools that were used, in order.", _check_tools, f"array of at least 1 string, each {_NAME}", min_length=1,
    )],
    "tool": Annotated[str, _field("The name of a tool.", checks.check_name, f"the name of a tool, {_NAME}", 1)],
    "task_type": Annotated[str, _field(
        "The type of the task, e.g. query.", checks.check_name, f"a type of task such as query, {_NAME}", min_length=1,
    )],
    "source": Annotated[str, Meta(min_length=1, description="A path, a folder or an http(s) URL.")],
    "metadata": Annotated[dict[str, Any], Meta(description="Metadata to store with the document.")],
    "documentId": Annotated[str, Meta(min_length=1, description="The documentId of a document, as results give it.")],
}  # fmt: skip
_KINDS: dict[str, Any] = {
    "flag": bool, "int": int, "float": float, "days": float, "many": list[str], "numbers": list[float],
    "object": dict[str, Any],
}  # fmt: skip
# Where the functions of a tool are, unless it is one of a service.
_MODULES = {"memory": "memory", SERVER: "server_tools"}


# A tool and its actions, what executing an action needs, common results, and errors.

FailureType = Literal[
    "unknown_tool", "unknown_action", "invalid_json", "missing_field", "unknown_field", "wrong_type", "invalid_value",
    "not_found", "ambiguous", "damaged", "not_allowed", "unreadable",
]  # fmt: skip


class DocumentAccess(Struct, frozen=True):
    """The documents that a model may ingest: those in folders, and those at public URLs. By default none."""

    folders: tuple[Path, ...] = ()
    urls: bool = False

    @classmethod
    def of(cls, folders: object, urls: object) -> DocumentAccess:
        """The arguments of `tools.call`, checked."""
        if isinstance(folders, str | os.PathLike):
            folders = (folders,)
        if not isinstance(folders, Sequence) or not all(isinstance(folder, str | os.PathLike) for folder in folders):
            raise InvalidInput(f"document_folders is {shown(folders)}: give a list of folders")
        return cls(tuple(check_path(path, "document_folders") for path in folders), check_flag(urls, "document_urls"))


class Refused(NamedTuple):
    """A call of a model that needs the user's consent: the action with its fields, and the texts of higher authorities
    that it would change or forget.
    """

    action: str
    fields: dict[str, Any]
    texts: tuple[str, ...]
    reason: str


class Call(NamedTuple):
    """The context of an action: a handle, its scope as the caller names it, and the documents that may be read.

    `token_budget` limits the answers of actions that have a limit; `report(done, total)` takes the progress of long
    ones. What is written is the word of `authority` at most, which changes and forgets nothing of a higher one, unless
    the user says so: `confirm` asks them.
    """

    memory: Memory
    within: str
    documents: DocumentAccess
    token_budget: int = 2_000
    report: Callable[[int, int | None], None] | None = None
    authority: Authority = "agent"
    confirm: Callable[[Refused], bool] | None = None

    def scope_of(self, scope: str) -> str:
        """A scope that the handle shows, as the caller names it."""
        if self.within == "/":
            return scope
        return self.within if scope == "/" else self.within + scope


class Action:
    """One action that a model may ask for: an operation in the form of one of its tools."""

    def __init__(self, operation: Operation, tool: Tool) -> None:
        self._operation, self._tool = operation, tool
        self.name = tool.action or (operation.id if tool.name == SERVER else operation.name.rpartition(".")[2])
        self.also = tool.also
        self.title = tool.title or operation.summary.rstrip(".")
        self.writes, self.destructive = not operation.reads, operation.effect == "destroys"
        self.idempotent = operation.reads or "idempotent" in tool.hints
        self.reaches_out, self.plain = "open" in tool.hints, "plain" in tool.hints

    @property
    def about(self) -> str:
        """The description for a model, on one line."""
        of_server, told = self._tool.name == SERVER, self._tool.about or (self._run and self._run.__doc__)
        about = " ".join((told or (self._operation.about if of_server else self._operation.summary)).split())
        return about if of_server else about[0].lower() + about[1:].rstrip(".")

    @cached_property
    def _run(self) -> Any:
        path, module = self._tool.run, _MODULES.get(self._tool.name, "services")
        return imported(path if ":" in path else f"recallite_tools.{module}:{path}") if path else None

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """The fields with their defaults; every action has a scope, after its own."""
        taken = self._tool.arguments
        if taken is None:  # other defaults have no JSON: what is not given is left to the operation
            fields = self._operation.fields.items()
            kept = int, float, str, type(REQUIRED)
            taken = {name: default if isinstance(default, kept) else None for name, (_, default) in fields}
        return {**{name: default for name, default in taken.items() if name != "scope"}, "scope": None}

    @cached_property
    def types(self) -> dict[str, Any]:
        """The type of each field, annotated with what models are told and with its check."""
        return {name: self._type(name) for name in self.defaults}

    def _type(self, name: str) -> Any:
        operation = self._operation
        for known in (f"{operation.name}.{name}", f"{operation.group}.{name}", name):
            if known in FIELDS:
                return FIELDS[known]
        kind = _KINDS.get(kind_of(operation.fields[name][0]), str)
        return Annotated[kind, Meta(description=operation.argument(name).help or name)]

    @cached_property
    def properties(self) -> dict[str, Any]:
        """The JSON schema of each field. Cached, as it takes 3 ms: do not change the result."""
        schemas = zip(self.defaults.items(), schemas_of([*self.types.values()])[0], strict=True)
        return {
            name: schema if default is None or default is REQUIRED else {**schema, "default": default}
            for (name, default), schema in schemas
        }

    @property
    def required(self) -> list[str]:
        """The fields without a default."""
        return [name for name, default in self.defaults.items() if default is REQUIRED]

    def allowed(self, name: str) -> list[str]:
        """A description of accepted values of a field."""
        return allowed_in(self.types[name]) or allowed_values(self.properties[name])

    @cached_property
    def answers(self) -> type[Struct]:
        """The type of the answer."""
        if self._run is not None:
            return cast("type[Struct]", eval(self._run.__annotations__["return"], self._run.__globals__))
        return Recorded if self._operation.returns is None else Quotes

    def __call__(self, call: Call, fields: Mapping[str, Any]) -> Struct:
        """Carry it out with these fields."""
        if self._run is not None:
            return cast("Struct", self._run(call, **fields))
        kinds = {name: kind_of(hint) for name, (hint, _) in self._operation.fields.items()}
        result = self._operation.apply(call.memory, {
            name: timedelta(days=value) if kinds.get(name) == "days" else value for name, value in fields.items()
        })  # fmt: skip
        if result is None:
            return Recorded(outcome=self._tool.outcome)
        results = msgspec.to_builtins(result if isinstance(result, list) else [result])
        for item in results:
            if isinstance(item, dict) and isinstance(item.get("scope"), str):
                item["scope"] = call.scope_of(item["scope"])
        return Quotes(results=results)


class ActionGroup(NamedTuple):
    """A tool of several actions, as `tools.schemas` shows it."""

    name: str
    description: str
    actions: Mapping[str, Action]


class Quotes(Struct, frozen=True, kw_only=True):
    """Stored texts with their sources; the notice says that they are quotes."""

    results: list[Any]
    notice: str = NOTICE


class Changed(Struct, frozen=True, kw_only=True):
    """The outcome of a change of a memory or document."""

    outcome: str
    id: str


class Recorded(Struct, frozen=True, kw_only=True):
    """The outcome of a change of a session or of recorded experience."""

    outcome: str
    id: str | None = None
    position: int | None = None


class Candidate(Struct, frozen=True, kw_only=True):
    """One of several memories that match."""

    id: str
    text: str


class ToolFailure(Struct, frozen=True, kw_only=True):
    """The `error` of a result: what is wrong, in which field, and what is allowed there.

    Candidates are stored texts, with the notice that they are quotes.
    """

    type: FailureType
    field: str | None
    message: str
    allowed: list[str]
    candidates: list[Candidate] | UnsetType = UNSET
    notice: str | UnsetType = UNSET


class ToolFault(Exception):
    """Raised to make a `ToolFailure` the result of a call."""

    def __init__(
        self,
        type: FailureType,
        field: str | None,
        message: str,
        allowed: Iterable[str] = (),
        candidates: list[Candidate] | UnsetType = UNSET,
    ) -> None:
        def escaped(text: str) -> str:  # `json.loads` accepts lone surrogates
            return text.encode("utf-8", "backslashreplace").decode()

        super().__init__(message)
        self.failure = ToolFailure(
            type=type, field=None if field is None else escaped(field), message=escaped(message),
            allowed=[escaped(value) for value in allowed], candidates=candidates,
            notice=UNSET if candidates is UNSET else NOTICE,
        )  # fmt: skip

    def in_words_of(self, given: Mapping[str, str]) -> ToolFault:
        """The fault with the field and the message in the names that a call gave, by our names."""
        failure = self.failure
        if failure.field is None or failure.field not in given:
            return self
        field = given[failure.field]
        words = failure.message.split(" ")
        named = next((i for i, word in enumerate(words) if word.strip(".,:;'") == failure.field), None)
        if named is not None:
            words[named] = words[named].replace(failure.field, field)
        message = " ".join(words)
        return ToolFault(failure.type, field, message, failure.allowed, failure.candidates)


# The JSON schemas and the checks of fields.


def schemas_of(kinds: Sequence[Any], ref_template: str = "#/$defs/{name}") -> tuple[Any, dict[str, Any]]:
    """The JSON schemas of types, and of their parts by name, whatever of a docstring's indentation msgspec keeps."""
    roots, parts = msgspec.json.schema_components(kinds, ref_template=ref_template)
    for part in parts.values():
        if "description" in part:
            part["description"] = cleandoc(part["description"])
    return roots, parts


def check_field(type_: Any, value: Any, name: str) -> None:
    """Raise a ToolFault for a value that the engine does not accept."""
    if check := (get_args(type_)[1].extra or {}).get("check"):
        try:
            check(value, name)
        except InvalidInput as fault:
            raise ToolFault("invalid_value", name, str(fault), allowed_in(type_)) from None


def allowed_in(type_: Any) -> list[str]:
    """A description of the values that the check of a type accepts; none where there is no check."""
    extra = get_args(type_)[1].extra
    return [extra["allowed"]] if extra else []


def allowed_values(schema: dict[str, Any]) -> list[str]:
    """Accepted values of a field: its choices, or its type with its bounds."""
    if "enum" in schema:
        return [str(value) for value in schema["enum"]]
    if schema["type"] == "array":
        least = " of at least 1" if schema.get("minItems") else ""
        return [f"array of {schema['items']['type']}{least}"]
    low, high = schema.get("minimum"), schema.get("maximum")
    description = str(schema["type"])
    if low is not None and high is not None:
        description += f" from {low:g} to {high:g}"
    elif low is not None:
        description += f" of at least {low:g}"
    if schema.get("minLength"):
        description += " that is not empty"
    return [description]
