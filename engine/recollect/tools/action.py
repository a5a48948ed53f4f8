"""A tool, the actions that it offers to models, and what carrying one out needs and answers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from recollect.checks import check_path, shown
from recollect.errors import InvalidInput
from recollect.memory import Memory
from recollect.text.quoting import NOTICE

__all__ = ["Action", "Call", "Changed", "DocumentAccess", "Quotes", "Recorded", "Tool"]


class DocumentAccess(Struct, frozen=True):
    """From where a model may ingest: folders, and whether URLs of public addresses. By default from nowhere."""

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
    """What an action works on: a handle, its scope as the caller names it, and the documents that it may read."""

    memory: Memory
    within: str
    documents: DocumentAccess

    def scope_of(self, scope: str) -> str:
        """A scope that the handle shows, as the caller names it."""
        if self.within == "/":
            return scope
        return self.within if scope == "/" else self.within + scope


class Action(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="action"):
    """One thing a model may ask for. The docstring is what the model is told; calling it carries it out."""

    def __call__(self, call: Call) -> Struct:
        raise NotImplementedError


class Tool(Struct, frozen=True):
    """A tool: what it is for, and its actions."""

    name: str
    description: str
    actions: tuple[type[Action], ...]


class Quotes(Struct, frozen=True, kw_only=True):
    """Stored texts, with where each is from; the notice says that they are quotes."""

    results: list[Any]
    notice: str = NOTICE

    @classmethod
    def of(cls, results: Iterable[Struct]) -> Quotes:
        """Results under the notice."""
        return cls(results=list(results))


class Changed(Struct, frozen=True, kw_only=True):
    """What was done to which memory or document."""

    outcome: str
    id: str


class Recorded(Struct, frozen=True, kw_only=True):
    """What an action on a session, or a record of experience, did."""

    outcome: str
    id: str | None = None
    position: int | None = None
