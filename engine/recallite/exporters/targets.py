"""The systems in whose form memories are written, by the name that `--to` takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from recallite import checks
from recallite.errors import InvalidInput
from recallite.records import Link, Record


class Memories(NamedTuple):
    """What is to be written: memories, oldest first, as often as they are asked for, and the links from each.

    `store` is the path that a file must not have.
    """

    pages: Callable[[], Iterator[Record]]
    some: Callable[[Iterable[str]], dict[str, Record]]
    links: Callable[[str], list[Link]]
    mapping: Mapping[str, str]
    store: str


class Written(Struct):
    """A memory that was written, with the fields of it that the form holds."""

    record: Record
    kept: frozenset[str]


Writer: TypeAlias = Callable[[Memories, Path], Iterator[Written]]


class Target(NamedTuple):
    """A form: what the path is. Its writer is `write` of the module `recallite.exporters.NAME`."""

    module: str
    path: str
    folder: bool = False

    @property
    def write(self) -> Writer:
        """The writer, imported when it is first needed."""
        writer: Writer = import_module(f"recallite.exporters.{self.module}").write
        return writer


TARGETS: dict[str, Target] = {
    "basic-memory": Target("basic_memory", "a new folder, of notes with observations and relations", folder=True),
    "jsonl": Target("mapped", "a file of JSON lines, with --map FIELD=PATH"),
    "obsidian": Target("obsidian", "a new folder, of notes with properties and wikilinks", folder=True),
    "openclaw": Target("openclaw", "a new folder, of MEMORY.md and memory/YYYY-MM-DD.md", folder=True),
    "server-memory": Target("server_memory", "memory.jsonl of @modelcontextprotocol/server-memory"),
}


def target_named(name: str) -> Target:
    """The target of that name; InvalidInput for another."""
    if name not in TARGETS:
        raise InvalidInput(f"to is {checks.shown(name)}: use one of {', '.join(sorted(TARGETS))}")
    return TARGETS[name]
