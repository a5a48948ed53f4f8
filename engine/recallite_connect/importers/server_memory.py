"""The knowledge graph of @modelcontextprotocol/server-memory: a JSON line for each entity and relation, or
what its tool `read_graph` returns.

An entity's observations are memories, whose topic is the entity. A relation is a memory that says it, linked to the
first memory of each of its two entities. https://github.com/modelcontextprotocol/servers/tree/main/src/memory
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from recallite.model.records import NewRecord
from recallite.model.reports import FileTrouble
from recallite.system.messages import shown
from recallite_connect.importers.reading import (
    Entries,
    FoundLink,
    FoundMemory,
    array,
    cleaned_json,
    json_document,
    label_of,
    lines_of,
    mapping,
)
from recallite_connect.importers.sources import Source


class _Entity(Struct, tag_field="type", tag="entity", rename="camel"):
    name: str
    entity_type: str | None = ""
    observations: list[Any] | None = []


class _Relation(Struct, tag_field="type", tag="relation", rename="camel"):
    from_: str = msgspec.field(name="from")
    to: str
    relation_type: str


_decode = msgspec.json.Decoder(_Entity | _Relation).decode


def read(path: Path) -> Entries:
    """The memories of a `memory.jsonl`."""
    firsts: dict[str, str] = {}  # the first memory of each entity
    relations: list[tuple[str, str, str, int | None]] = []  # which may stand before their entities
    graph = mapping(json_document(path))
    lines: Iterable[tuple[int | None, bytes]] = lines_of(path)
    if isinstance(graph.get("entities"), list):  # as `read_graph` returns it
        lines = (
            (None, msgspec.json.encode({**mapping(cleaned_json(item)), "type": kind}))
            for kind, key in (("entity", "entities"), ("relation", "relations"))
            for item in array(graph.get(key))
        )
    for number, raw in lines:
        try:
            line = _decode(raw)
        except (msgspec.DecodeError, ValueError, RecursionError) as fault:
            yield FileTrouble(path=path.name, line=number, reason=f"not an entity or a relation: {fault}")
            continue
        if isinstance(line, _Entity):
            for entry in _observations(line, path.name, number):
                if isinstance(entry, FoundMemory):
                    firsts.setdefault(line.name, entry.record.id or "")
                yield entry
            continue
        id = _id(line.from_, line.relation_type, line.to)
        text = f"{line.from_} {line.relation_type.replace('_', ' ')} {line.to}"
        metadata = {"from": line.from_, "to": line.to, "relation_type": line.relation_type}
        yield FoundMemory(record=NewRecord(id=id, text=text, metadata=metadata), path=path.name, line=number)
        relations.append((id, line.from_, line.to, number))
    for id, source, target, relation_line in relations:
        for end in (source, target):
            if end in firsts:
                yield FoundLink(source=id, target=firsts[end], type="elaborates", path=path.name, line=relation_line)


def _observations(entity: _Entity, path: str, line: int | None) -> Iterator[FoundMemory | FileTrouble]:
    """The memories of an entity; one without observations is a memory of its type."""
    name, kind = label_of(entity.name), entity.entity_type
    stated = [text for text in entity.observations or () if isinstance(text, str) and text.strip()]
    for number, other in enumerate(entity.observations or (), 1):
        if not (isinstance(other, str) and other.strip()):
            reason = f"observation {number} of {shown(entity.name)} is {shown(other)}, no text: it is left out"
            yield FileTrouble(path=path, line=line, reason=reason)
    metadata = {"entity": entity.name, **({"entity_type": kind} if kind else {})}
    for text in stated or [f"{entity.name} is a {kind}" if kind else entity.name]:
        record = NewRecord(id=_id(entity.name, text), text=text, context=name, topic=name, metadata=metadata)
        yield FoundMemory(record=record, path=path, line=line)


def _id(*parts: str) -> str:
    """Lines have no ids: one is the hash of what they say."""
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


SOURCE = Source(
    read, "memory.jsonl of @modelcontextprotocol/server-memory", authority="agent", changes=True, local_ids=True
)
