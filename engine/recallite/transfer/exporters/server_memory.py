"""The knowledge graph of @modelcontextprotocol/server-memory: the reverse of the importer of that name.

An entity is what memories are about: their topic, else their context or scope. What was imported as a relation is one
again, and a link between memories of two entities becomes one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from recallite.model.records import Record
from recallite.transfer.exporters.targets import Memories, Target, Written
from recallite.transfer.formats import writing

_KEPT = frozenset({"topic", "links"})
_RELATION = ("from", "to", "relation_type")
_encode = msgspec.json.Encoder().encode


class _Entity(Struct):
    type: str
    observations: list[str]


def write(memories: Memories, path: Path) -> Iterator[Written]:
    """A line for each entity and relation. Entities are held in memory: each is one line."""
    entities: dict[str, _Entity] = {}
    names: dict[str, str] = {}  # the entity of each memory
    relations: dict[tuple[str, str, str], None] = {}
    for record in memories.pages():
        if all(isinstance(record.metadata.get(name), str) for name in _RELATION):
            source, target, kind = (str(record.metadata[name]) for name in _RELATION)
            relations[source, target, kind] = None
            yield Written(record, _KEPT | {"metadata"})
            continue
        name = names[record.id] = _entity_of(record)
        stated = record.metadata.get("entity_type")
        entity = entities.setdefault(name, _Entity(stated if isinstance(stated, str) else record.kind, []))
        if record.text not in entity.observations:
            entity.observations.append(record.text)
        only_entity = {"entity", "entity_type"} >= record.metadata.keys()
        yield Written(
            record, _KEPT | ({"metadata", "context"} if only_entity and record.context in (None, name) else set())
        )
    for id, name in names.items():
        for link in memories.links(id):
            other = names.get(link.target)
            if other is not None and other != name:
                relations[name, other, link.type] = None
    with writing(path, store=memories.store) as stream:
        for name, entity in entities.items():
            line = {"type": "entity", "name": name, "entityType": entity.type, "observations": entity.observations}
            stream.write(_encode(line).decode() + "\n")
        for source, target, kind in relations:
            line = {"type": "relation", "from": source, "to": target, "relationType": kind}
            stream.write(_encode(line).decode() + "\n")


def _entity_of(record: Record) -> str:
    stated = record.metadata.get("entity")
    named = stated if isinstance(stated, str) else record.topic or record.context
    return named or record.scope.rpartition("/")[2] or "memories"


TARGET = Target(write, "memory.jsonl of @modelcontextprotocol/server-memory")
