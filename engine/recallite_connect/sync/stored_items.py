"""Items as the store has them: read from its tables, and written to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from msgspec import structs

from recallite.embedding.handle import Identity
from recallite.model.authority import rank_of
from recallite.model.checks import check_time
from recallite.model.filters import Filter
from recallite.model.records import Link
from recallite.remember.compared_records import outranks
from recallite.remember.embed import embedder_of
from recallite.remember.prepare import metadata_json
from recallite.store.supersession_values import NamedSupersession, Supersession
from recallite.store.transaction import Reader, Writer
from recallite.store.values import CHUNK_KIND, LinkRow, Row, Version
from recallite.text.normalise import content_hash
from recallite_connect.sync.states import (
    Item,
    LinkFields,
    MemoryFields,
    SupersessionFields,
    Text,
    key_of,
)

Complete = Callable[[Row], None]
"""Gives a row its vectors."""
_SHARED = [name for name in MemoryFields.__struct_fields__ if name not in ("tags", "authority", "metadata")]


def all_items(reader: Reader) -> Iterator[Item]:
    """Every memory, link and supersession that devices exchange, without vectors; chunks of documents are not."""
    everything = Filter()
    yield from _memories(reader.records.versions(everything, None))
    yield from map(_of_link, reader.links.between(everything, chunks=False))
    yield from map(_of_supersession, reader.supersessions.between(everything))


def items_named(reader: Reader, names: Iterable[tuple[str, ...]]) -> dict[str, Item]:
    """Stored items of these names, by key, with vectors."""
    wanted = [*names]
    ids = [name[1] for name in wanted if name[0] == "memory"]
    opened = [(row_id, public_id) for public_id, row_id in reader.records.find_ids(ids, "/").items()]
    versions = reader.records.versions_of(sorted(opened), reader.vectors.active_embedder())
    items = [*_memories(versions)]
    for kind, end, *key in wanted:
        row_id = reader.records.find_ids([end], "/").get(end) if kind != "memory" else None
        if row_id is not None and kind == "link":
            links = reader.links.of(row_id, incoming=False, types=[key[1]])
            items += [_of_link(link) for link in links if link.target == key[0]]
        elif row_id is not None:
            edges = [row for row in reader.supersessions.edges([row_id]) if str(row.known_from) == key[1]]
            news = reader.records.public_ids_of([row.new_id for row in edges])
            named = [NamedSupersession(end, new, *row[2:]) for row, new in zip(edges, news, strict=True)]
            items += [_of_supersession(row) for row in named if row.new == key[0]]
    return {item.key: item for item in items}


def _memories(versions: Iterator[Version]) -> Iterator[Item]:
    for public_id, group in groupby(versions, key=lambda version: version.record.id):
        listed = [*group]
        record = listed[-1].record
        if record.kind == CHUNK_KIND:
            continue
        texts = [_text(version) for version in listed]
        name = ("memory", public_id)
        yield Item(
            key=key_of(name), name=name, fields=_fields(listed[-1]), texts={text.key: text for text in texts},
            updated_at=_micros(record.updated_at),
        )  # fmt: skip


def _text(version: Version) -> Text:
    record = version.record
    closed = None if record.recorded_until is None else structs.replace(_fields(version), scope="/", source=None)
    return Text(
        at=_micros(record.recorded_from), text=record.text, context=record.context, indexed=record.indexed,
        repeated=tuple((again.at, again.text) for again in version.repeated), closed=closed,
        updated_at=0 if closed is None else _micros(record.updated_at), vectors=version.vectors,
    )  # fmt: skip


def _fields(version: Version) -> MemoryFields:
    record = version.record
    return MemoryFields(**{name: _micros(getattr(record, name)) for name in MemoryFields.__struct_fields__})


def _micros(value: Any) -> Any:
    """A time as microseconds since 1970, a length of time as microseconds; anything else as it is."""
    if isinstance(value, datetime):
        return check_time(value, "time")
    return value // timedelta(microseconds=1) if isinstance(value, timedelta) else value


def _of_link(link: Link) -> Item:
    name = ("link", link.source, link.target, link.type)
    created_at = _micros(link.created_at)
    return Item(
        key=key_of(name), name=name, fields=LinkFields(link.strength, created_at, link.reason), updated_at=created_at
    )


def _of_supersession(row: NamedSupersession) -> Item:
    name = ("supersession", row.old, row.new, str(row.known_from))
    fields = SupersessionFields(row.holds_from, row.known_until, row.reason, row.strength)
    return Item(key=key_of(name), name=name, fields=fields, updated_at=row.known_until or row.known_from)


def put_memory(writer: Writer, before: Item | None, after: Item, complete: Complete, embedder: Identity | None) -> None:
    """Write a memory in place of what is stored of it."""
    assert isinstance(after.fields, MemoryFields)
    ordered = sorted(after.texts.values(), key=lambda text: (text.at, text.key))
    ends = [text.at for text in ordered[1:]]
    rows = [_row(after, text, until) for text, until in zip(ordered, [*ends, None], strict=True)]
    texts_before = {} if before is None else {key: text.content for key, text in before.texts.items()}
    changed = texts_before != {key: text.content for key, text in after.texts.items()}
    if changed:
        for row in rows:
            complete(row)
    active = embedder_of(writer, rows, embedder)
    if before is None:
        writer.standing.derive(writer.records.insert(rows, active))
        return
    record_id = writer.records.find_ids([after.name[1]], "/")[after.name[1]]
    if changed:
        writer.records.put_versions(record_id, rows, active)
    columns = _columns(after.fields, after.updated_at)
    stored = _columns(before.fields, before.updated_at)  # type: ignore[arg-type]
    different = {name: value for name, value in columns.items() if stored[name] != value}
    if "importance" in different:
        different["base_importance"] = columns["base_importance"]
    tags = after.fields.tags if before.fields.tags != after.fields.tags else None  # type: ignore[union-attr]
    if different or tags is not None:
        writer.records.change_columns(record_id, different or {"updated_at": after.updated_at}, tags)


def _row(item: Item, text: Text, recorded_until: int | None) -> Row:
    now = item.fields
    fields = now if recorded_until is None or text.closed is None else text.closed
    assert isinstance(now, MemoryFields)
    assert isinstance(fields, MemoryFields)
    columns = _columns(structs.replace(fields, scope=now.scope, source=now.source), 0)
    columns["updated_at"] = text.updated_at if fields is text.closed else item.updated_at
    return Row(
        public_id=item.name[1], text=text.text, context=text.context, recorded_from=text.at, indexed=text.indexed,
        recorded_until=recorded_until, content_hash=content_hash(text.text, text.context), tags=fields.tags,
        repeated=text.repeated, vectors=text.vectors, **columns,
    )  # fmt: skip


def _columns(fields: MemoryFields, updated_at: int) -> dict[str, Any]:
    return {
        **{name: getattr(fields, name) for name in _SHARED},
        "authority": rank_of(fields.authority),
        "metadata": metadata_json(fields.metadata),
        "updated_at": updated_at,
    }


def put_link(writer: Writer, name: Sequence[str], fields: LinkFields, ids: Mapping[str, int]) -> None:
    """Write a link in place of what is stored of it."""
    source, target = ids[name[1]], ids[name[2]]
    writer.links.drop(source, target, [name[3]])
    writer.links.put([LinkRow(source, target, name[3], fields.strength, fields.created_at, fields.reason)])


def put_supersession(writer: Writer, name: Sequence[str], fields: SupersessionFields, ids: Mapping[str, int]) -> None:
    """Write a supersession in place of what is stored of it.

    Of two that stand between the same memories, and of those that would make a circle, the one known last gives way:
    it is not stored, and so the next run says that it is gone. So does a lower authority in the place of a higher one.
    """
    old, new, known_from = ids[name[1]], ids[name[2]], int(name[3])
    row = Supersession(old, new, fields.holds_from, known_from, fields.known_until, fields.reason, fields.strength)
    writer.supersessions.replace(old, new, known_from, None)
    points = writer.supersessions.standpoints([old, new])
    if row.known_until is None and not outranks(points[new].authority, points[old].authority):
        return
    while row.known_until is None and (rivals := _rivals(writer, row)):
        last = max((*rivals, row), key=lambda edge: (edge.known_from, *writer.records.public_ids_of(edge[:2])))
        if last is row:
            return
        writer.supersessions.replace(last.old_id, last.new_id, last.known_from, None)
    writer.supersessions.replace(old, new, known_from, row)


def _rivals(writer: Writer, row: Supersession) -> list[Supersession]:
    """The standing supersessions that cannot stand beside this one."""
    same = [edge for edge in writer.supersessions.of_old([row.old_id]) if edge.new_id == row.new_id]
    beyond = writer.supersessions.following([row.new_id])
    if same or row.old_id not in beyond:
        return same
    circle = [node for node in {*beyond, row.new_id} if row.old_id in writer.supersessions.following([node])]
    return [edge for edge in writer.supersessions.of_old(circle) if edge.new_id in {*circle, row.old_id}]
