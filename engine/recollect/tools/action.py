"""The base of tools: a tool and its actions, what executing an action needs, and common results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from msgspec import Struct

from recollect.checks import check_path, shown
from recollect.errors import InvalidInput
from recollect.memory import Memory
from recollect.text.quoting import NOTICE

__all__ = ["Action", "Call", "Changed", "DocumentAccess", "Quotes", "Recorded", "Shown", "Tool"]


class DocumentAccess(Struct, frozen=True):
    """The documents that a model may ingest: those in folders, and those at public URLs. By default none."""

    folders: tuple[Path, ...] = ()
    urls: bool = False

    @classmethod
    def of(cls, folders: object, urls: object) -> DocumentAccess:
        """The arguments of `tools.call`, checked."""
        if isinstance(folders, str | os.PathLike):
            folders = (folders,)
        if not isinstance(folders, Sequence) or not all(isinstance(each, str | os.PathLike) for each in folders):
            raise InvalidInput(f"document_folders is {shown(folders)}: give a list of folders")
        if not isinstance(urls, bool):
            raise InvalidInput(f"document_urls is {shown(urls)}: True or False")
        return cls(tuple(check_path(each, "document_folders") for each in folders), urls)


class Call(NamedTuple):
    """The context of an action: a handle, its scope as the caller names it, and the documents that may be read."""

    memory: Memory
    within: str
    documents: DocumentAccess

    def scope_of(self, scope: str) -> str:
        """A scope that the handle shows, as the caller names it."""
        if self.within == "/":
            return scope
        return self.within if scope == "/" else self.within + scope


class Action(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="action"):
    """One action that a model may ask for. Its docstring is shown to the model; calling it executes it."""

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
    def of(cls, found: object, /, **fields: Any) -> Self:
        """What is not in `fields` has the value that `found` has under the same name."""
        for name in cls.__struct_fields__:
            if name not in fields:
                value = getattr(found, name)
                fields[name] = list(value) if isinstance(value, tuple) else value  # as JSON has lists
        return cls(**fields)


class Quotes(Struct, frozen=True, kw_only=True):
    """Stored texts with their sources; the notice says that they are quotes."""

    results: list[Any]
    notice: str = NOTICE

    @classmethod
    def of(cls, results: Iterable[Struct]) -> Quotes:
        """Results under the notice."""
        return cls(results=list(results))


class Changed(Struct, frozen=True, kw_only=True):
    """What was done to a memory or document."""

    outcome: str
    id: str


class Recorded(Struct, frozen=True, kw_only=True):
    """What was done to a session, or that experience was recorded."""

    outcome: str
    id: str | None = None
    position: int | None = None
