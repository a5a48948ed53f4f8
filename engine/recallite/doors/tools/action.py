"""Actions of tools: the types of their fields, their base, and the JSON schemas made of them.

The annotation of a field holds the description that models see, and the check of its value.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
import msgspec.inspect
from msgspec import UNSET, Meta, Struct, UnsetType, structs

from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.model.authority import Authority
from recallite.model.checks import check_flag, check_path
from recallite.system.messages import shown
from recallite.text.quotes import NOTICE

if TYPE_CHECKING:
    from recallite.memory import Memory


Check = Callable[[Any, str], object]
"""Raises InvalidInput for a value that a field, whose name comes second, does not take."""

_NAME = f"at most {checks.MAX_NAME_CHARS} characters on one line, not blank"
_TEXT = "text that is not blank, without NUL characters"
_MOST = f"text of at most {checks.MAX_QUERY_CHARS:,} characters"
_WHEN = "a time: 2026-03-01T09:30:00+00:00, 2026-03-01, yesterday or 7d (7 days ago)"


def _field(description: str, check: Check, allowed: str, min_length: int | None = None) -> Meta:
    """A field with a check; `allowed` describes accepted values."""
    return Meta(description=description, min_length=min_length, extra={"check": check, "allowed": allowed})


def _check_text(text: str, name: str) -> None:
    checks.check_text(text, len(text), name)  # the memory has the limit


def _check_tools(tools: object, name: str) -> None:
    from recallite.agents.experience import unique_tools  # which loads the engine

    unique_tools(tools)


MemoryText = Annotated[str, _field("The text of the memory.", _check_text, _TEXT)]
MessageText = Annotated[str, _field("The text of the message.", checks.encodable, _TEXT)]
Query = Annotated[str, _field("What is asked, in words.", checks.check_query, _MOST)]
Tags = Annotated[list[str], _field(
    "Labels. When searching: any of them.", lambda tags, _: checks.check_tags(tags), f"array of strings, each {_NAME}",
)]  # fmt: skip
Scope = Annotated[str, _field(
    "A path such as /project/database; it includes everything below it.",
    lambda scope, _: checks.check_scope(scope), "a path such as /team/project",
)]  # fmt: skip
Unit = Annotated[float, Meta(ge=0.0, le=1.0, description="From 0 (trivial) to 1 (critical).")]
Limit = Annotated[int, Meta(ge=1, le=100, description="At most so many results.")]
DiversifyBy = Annotated[str, _field(
    "For a whole story: time or source, to cover the relevant times or sources; results come in order of time.",
    lambda value, name: checks.check_choice(value, name, ("time", "source")), "time or source",
)]  # fmt: skip
Offset = Annotated[int, Meta(ge=0, description="Leave out so many at the beginning.")]
Time = Annotated[str, _field(
    "2026-03-01T09:30:00+00:00, 2026-03-01, yesterday, or 7d: 7 days ago; expires_at: in 7 days.",
    checks.check_time, _WHEN,
)]  # fmt: skip
OldText = Annotated[str, _field(
    "A part of the memory's text that no other memory has.",
    checks.encodable, "a part of the text of one memory", min_length=1,
)]  # fmt: skip
MemoryId = Annotated[str, _field(
    "The id of a memory, as results give it.", checks.check_name, "an id as results give it"
)]  # fmt: skip
OwnId = Annotated[str, _field(
    "An id of your own, such as user:diet; a memory that has it is replaced, with its history.",
    checks.check_name, _NAME,
)]  # fmt: skip
MemoryIds = Annotated[list[str], _field(
    "Ids of memories that no longer hold, as results give them.",
    lambda ids, name: [checks.check_name(id, name) for id in ids], "array of ids as results give them",
)]  # fmt: skip
SessionId = Annotated[str, _field("The id of a session.", checks.check_name, "an id as results give it")]
Agent = Annotated[str, _field(
    "The id of an agent.", lambda agent, _: checks.check_agent(agent), "one name such as ada, without slashes"
)]  # fmt: skip
Role = Annotated[str, _field(
    "Who said it: user, assistant, system or tool.", checks.check_name, "user, assistant, system or tool"
)]  # fmt: skip
Topic = Annotated[str, _field("The topic that the memory is about.", checks.check_name, _NAME)]
Provider = Annotated[str, _field("Who answers in the session.", checks.check_name, _NAME, min_length=1)]
Summary = Annotated[str, _field("Free text.", checks.encodable, "text without NUL characters", min_length=1)]
Words = Annotated[str, _field("Free text.", _check_text, _TEXT, min_length=1)]
Flag = Annotated[bool, Meta(description="True or false.")]
Chain = Annotated[bool, Meta(description="Also forget what it superseded, which would hold again.")]
Count = Annotated[int, Meta(ge=0, description="A number of steps or tokens.")]
ToolNames = Annotated[list[str], _field(
    "The tools that were used, in order.", _check_tools, f"array of at least 1 string, each {_NAME}", min_length=1,
)]  # fmt: skip
TaskType = Annotated[str, _field(
    "The type of the task, e.g. query.", checks.check_name, f"a type of task such as query, {_NAME}", min_length=1,
)]  # fmt: skip
ToolName = Annotated[str, _field(
    "The name of a tool.", checks.check_name, f"the name of a tool, {_NAME}", min_length=1
)]  # fmt: skip
DocumentSource = Annotated[str, Meta(min_length=1, description="A path, a folder or an http(s) URL.")]
Metadata = Annotated[dict[str, Any], Meta(description="Metadata to store with the document.")]
DocumentId = Annotated[str, Meta(min_length=1, description="The documentId of a document, as results give it.")]


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


class Action(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="action"):
    """One action that a model may ask for. Its docstring is shown to the model; calling it executes it.

    `also` are names that other systems have for its fields, with the fields.
    """

    also: ClassVar[Mapping[str, str]] = {}

    scope: Scope | None = None

    def __call__(self, call: Call) -> Struct:
        raise NotImplementedError


class Tool(Struct, frozen=True):
    """A tool: its purpose and its actions."""

    name: str
    description: str
    actions: tuple[type[Action], ...]


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


# The fields of an action: their JSON schemas, checks and accepted values.


def schemas_of(kinds: Sequence[Any], ref_template: str = "#/$defs/{name}") -> tuple[Any, dict[str, Any]]:
    """The JSON schemas of types, and of their parts by name, whatever of a docstring's indentation msgspec keeps."""
    roots, parts = msgspec.json.schema_components(kinds, ref_template=ref_template)
    for part in parts.values():
        if "description" in part:
            part["description"] = cleandoc(part["description"])
    return roots, parts


@cache
def properties(action: type[Action]) -> dict[str, Any]:
    """The JSON schema of each field of an action, without null as an alternative.

    Cached, as it takes 3 ms: do not change the result.
    """
    _, components = schemas_of([action])
    schemas: dict[str, Any] = dict(components[action.__name__]["properties"])
    del schemas["action"]
    schemas["scope"] = schemas.pop("scope")  # which every action has, after its own fields
    for name, schema in schemas.items():
        alternatives = [alternative for alternative in schema.get("anyOf", ()) if alternative != {"type": "null"}]
        schemas[name] = dict(alternatives[0]) if len(alternatives) == 1 else schema
    return schemas


def required(action: type[Action]) -> list[str]:
    """The required fields of an action."""
    return [field.encode_name for field in structs.fields(action) if field.required]


def tag(action: type[Action]) -> str:
    """The action's name, as a model gives it."""
    return str(action.__struct_config__.tag)


@cache
def checks_of(action: type[Action]) -> dict[str, tuple[Check, str]]:
    """The check of each field that has one, and a description of accepted values."""
    fields = msgspec.inspect.type_info(action).fields  # type: ignore[attr-defined]
    return {
        field.name: (metadata.extra["check"], metadata.extra["allowed"])
        for field in fields
        for metadata in getattr(field.type, "types", (field.type,))
        if isinstance(metadata, msgspec.inspect.Metadata) and metadata.extra
    }


def allowed_in(action: type[Action], name: str) -> list[str]:
    """A description of accepted values of a field; none where every value of its type is accepted."""
    checks = checks_of(action)
    return [checks[name][1]] if name in checks else []


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
