"""Memories in the forms of other systems: what `recallite export --to` writes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct, field

from recallite.errors import InvalidInput
from recallite.memory import Memory
from recallite.model import checks
from recallite.model.records import Link, Plain, Record
from recallite.remember.relations import SUPERSEDES
from recallite.store.store import Progress
from recallite.system import plugins
from recallite.system.messages import shown
from recallite.transfer.lines import writing
from recallite_connect.importers.mapped import paths_of_fields

__all__ = ["ExportToReport", "Target", "export_to", "targets"]


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


_PAGE = 1_000
_DEFAULTS: dict[str, object] = {
    "scope": "/", "kind": "memory", "tags": (), "importance": 0.5, "metadata": {}, "context": None, "topic": None,
    "source": None, "position": None, "valid_from": None, "valid_until": None, "expires_at": None, "pinned": False,
}  # fmt: skip


class ExportToReport(Plain, frozen=True, kw_only=True):
    """The result of `export_to`: what was written, and what of it the form does not hold.

    `lost` counts memories by the field that was not written, links by "links", memories whose earlier versions were not
    written by "versions", and superseded memories, which are not written at all, by "superseded".
    """

    records: int = 0
    path: str = ""
    lost: dict[str, int] = field(default_factory=dict)


def export_to(
    memory: Memory,
    target: str,
    path: str | os.PathLike[str],
    *,
    mapping: Mapping[str, str] | None = None,
    on_progress: Progress | None = None,
    **fields: Any,
) -> ExportToReport:
    """Write the memories that hold now, in the form of another system, named as in `targets()`.

    `fields` are those of a filter, as `Memory.list` takes them. `mapping` says of the target "jsonl" which dotted path
    each field of a memory has there. A file is replaced when all is written; a folder has to be new or empty.
    InvalidInput for a target, a field or a folder that cannot be.
    """
    form: Target = plugins.load("exporters", target)
    output = checks.check_path(path)
    if mapping and not form.mapped:
        mapped = ", ".join(sorted(name for name, other in targets().items() if other.mapped))
        raise InvalidInput(f"map is given, and there is nothing to map here: leave it out, or export to {mapped}")
    if form.folder and output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InvalidInput(f"{output} is there already: give a folder that is new or empty")
    fields.pop("include_superseded", None)
    total = memory.count(**fields)

    def pages() -> Iterator[Record]:
        offset = 0
        while page := memory.list(order="oldest", limit=_PAGE, offset=offset, **fields):
            yield from page
            offset += len(page)

    memories = Memories(
        pages=pages,
        some=lambda ids: memory.get(ids),
        links=lambda id: [
            link for link in memory.neighbors(id, direction="out", limit=None) if link.type != SUPERSEDES
        ],
        mapping=mapping or {},
        store=memory.path,
    )
    lost: Counter[str] = Counter()
    done = 0
    for written in form.write(memories, output):
        done += 1
        record, held = written.record, written.fields
        lost.update(
            name for name, default in _DEFAULTS.items() if name not in held and getattr(record, name) != default
        )
        lost["created_at"] += "created_at" not in held
        lost["versions"] += record.recorded_from > record.created_at
        if "links" not in held:
            lost["links"] += len(memories.links(record.id))
        if on_progress is not None:
            on_progress(done, total)
    lost["superseded"] = memory.count(**fields, include_superseded=True) - total
    return ExportToReport(records=done, path=str(output), lost={name: count for name, count in lost.items() if count})


_PREFIX = "jsonl:"
_encode = msgspec.json.Encoder().encode


def write(memories: Memories, path: Path) -> Iterator[Written]:
    """A line for each memory."""
    paths = paths_of_fields(memories.mapping)
    _check(paths)
    fields = frozenset(paths)
    with writing(path, store=memories.store) as stream:
        for record in memories.pages():
            stream.write(_encode(_item(record, paths)).decode() + "\n")
            yield Written(record, fields)


def _check(paths: Mapping[str, tuple[str, ...]]) -> None:
    taken: dict[tuple[str, ...], str] = {}
    for attribute, parts in paths.items():
        if not parts and attribute != "metadata":
            raise InvalidInput(f"map has '.' for {attribute}: only metadata can be the whole item")
        if any(part.isdecimal() for part in parts):
            raise InvalidInput(f"map has {shown('.'.join(parts))} for {attribute}: a place in a list cannot be written")
        for other, name in taken.items():
            if parts and other and (other[: len(parts)] == parts or parts[: len(other)] == other):
                raise InvalidInput(f"map has one place for {name} and {attribute}: {'.'.join(parts)}")
        taken[parts] = attribute


def _item(record: Record, paths: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    item: dict[str, Any] = {}
    for attribute, parts in sorted(paths.items(), key=lambda item_path: len(item_path[1])):
        value = _value(record, attribute)
        if value is None or value == ():
            continue
        if not parts:
            item = {**value, **item}
            continue
        inner = item
        for part in parts[:-1]:
            below = inner.get(part)
            inner[part] = below if isinstance(below, dict) else {}
            inner = inner[part]
        inner[parts[-1]] = value
    return item


def _value(record: Record, attribute: str) -> Any:
    if attribute.startswith("metadata."):
        return record.metadata.get(attribute.removeprefix("metadata."))
    if attribute == "id":
        return record.id.removeprefix(_PREFIX)
    value = getattr(record, attribute)
    return value.isoformat() if isinstance(value, datetime) else value


TARGET = Target(write, "a file of JSON lines, with --map FIELD=PATH", mapped=True)
