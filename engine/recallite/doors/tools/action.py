"""The base of tools: a tool and its actions, what executing an action needs, common results, and errors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from msgspec import UNSET, Struct, UnsetType

from recallite.doors.tools.fields import Scope
from recallite.errors import InvalidInput
from recallite.model.authority import Authority
from recallite.model.checks import check_flag, check_path
from recallite.system.messages import shown
from recallite.text.quotes import NOTICE

if TYPE_CHECKING:
    from recallite.memory import Memory


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


class Call(NamedTuple):
    """The context of an action: a handle, its scope as the caller names it, and the documents that may be read.

    `token_budget` limits the answers of actions that have a limit; `report(done, total)` takes the progress of long
    ones. What is written is the word of `authority` at most, which changes and forgets nothing of a higher one.
    """

    memory: Memory
    within: str
    documents: DocumentAccess
    token_budget: int = 2_000
    report: Callable[[int, int | None], None] | None = None
    authority: Authority = "agent"

    def scope_of(self, scope: str) -> str:
        """A scope that the handle shows, as the caller names it."""
        if self.within == "/":
            return scope
        return self.within if scope == "/" else self.within + scope


class Action(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="action"):
    """One action that a model may ask for. Its docstring is shown to the model; calling it executes it."""

    scope: Scope | None = None

    def __call__(self, call: Call) -> Struct:
        raise NotImplementedError


class Tool(Struct, frozen=True):
    """A tool: its purpose and its actions."""

    name: str
    description: str
    actions: tuple[type[Action], ...]


class Shown(Struct, frozen=True, kw_only=True):
    """A struct of the engine as a model sees it."""

    @classmethod
    def of(cls, source: object, /, **fields: Any) -> Self:
        """Make it of `fields`, and of the attributes of `source` for the others."""
        for name in cls.__struct_fields__:
            if name not in fields:
                value = getattr(source, name)
                fields[name] = list(value) if isinstance(value, tuple) else value  # as JSON has lists
        return cls(**fields)


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
        super().__init__(message)
        self.failure = ToolFailure(
            type=type, field=None if field is None else _encodable(field), message=_encodable(message),
            allowed=[_encodable(value) for value in allowed], candidates=candidates,
            notice=UNSET if candidates is UNSET else NOTICE,
        )  # fmt: skip


def _encodable(text: str) -> str:
    """Text with lone surrogates, which `json.loads` accepts, escaped."""
    return text.encode("utf-8", "backslashreplace").decode()
