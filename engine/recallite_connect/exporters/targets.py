"""Exporters: functions that write memories in the form of another system."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from recallite.model.records import Link, Record
from recallite.system import plugins


class Memories(NamedTuple):
    """The memories to write, oldest first, as often as they are asked for, and the links from each.

    `store` is the path that a file must not have.
    """

    pages: Callable[[], Iterator[Record]]
    some: Callable[[Iterable[str]], dict[str, Record]]
    links: Callable[[str], list[Link]]
    mapping: Mapping[str, str]
    store: str


class Written(Struct):
    """A memory that was written, with those of its fields that the form holds."""

    record: Record
    fields: frozenset[str]


Writer: TypeAlias = Callable[[Memories, Path], Iterator[Written]]


class Target(NamedTuple):
    """A form to export to, registered as an entry point of the group `recallite.exporters`.

    `path` says what to give as the path, which is a new folder if `folder` is set, else a file. If it is `mapped`,
    `Memories.mapping` says where fields are written.
    """

    write: Writer
    path: str
    folder: bool = False
    mapped: bool = False


def targets() -> dict[str, Target]:
    """Every exporter by the name that `--to` takes."""
    return plugins.load_all("exporters")
