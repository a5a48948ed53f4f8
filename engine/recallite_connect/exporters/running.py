"""An export to the form of another system: written, with what the form does not hold."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import field

from recallite.errors import InvalidInput
from recallite.memory import Memory
from recallite.model import checks
from recallite.model.records import Plain, Record
from recallite.remember.links import SUPERSEDES
from recallite.store.store import Progress
from recallite.system import plugins
from recallite_connect.exporters.targets import Memories, Target, targets

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
    place = checks.check_path(path)
    if mapping and not form.mapped:
        mapped = ", ".join(sorted(name for name, other in targets().items() if other.mapped))
        raise InvalidInput(f"map is given, and there is nothing to map here: leave it out, or export to {mapped}")
    if form.folder and place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InvalidInput(f"{place} is there already: give a folder that is new or empty")
    fields.pop("include_superseded", None)
    total = memory.count(**fields)
    memories = Memories(
        pages=lambda: _pages(memory, fields),
        some=lambda ids: memory.get(ids),
        links=lambda id: [
            link for link in memory.neighbors(id, direction="out", limit=None) if link.type != SUPERSEDES
        ],
        mapping=mapping or {},
        store=memory.path,
    )
    lost: Counter[str] = Counter()
    done = 0
    for written in form.write(memories, place):
        done += 1
        lost.update(_lost(written.record, written.fields))
        if "links" not in written.fields:
            lost["links"] += len(memories.links(written.record.id))
        if on_progress is not None:
            on_progress(done, total)
    lost["superseded"] = memory.count(**fields, include_superseded=True) - total
    return ExportToReport(records=done, path=str(place), lost={name: count for name, count in lost.items() if count})


def _pages(memory: Memory, fields: Mapping[str, Any]) -> Iterator[Record]:
    offset = 0
    while page := memory.list(order="oldest", limit=_PAGE, offset=offset, **fields):
        yield from page
        offset += len(page)


def _lost(record: Record, fields: frozenset[str]) -> Iterator[str]:
    for name, default in _DEFAULTS.items():
        if name not in fields and getattr(record, name) != default:
            yield name
    if "created_at" not in fields:
        yield "created_at"
    if record.recorded_from > record.created_at:
        yield "versions"
