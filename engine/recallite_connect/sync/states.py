"""States of what is synchronised, and their join: associative, commutative, idempotent, so that any order will do.

- Of one life of a memory, link or supersession, each group of fields is that of its last writer: the stamp is a hybrid
  logical clock, the time of the change or, if that is not after what it replaces, a microsecond after it; a device's id
  decides between equal times. So an edit made offline last week does not undo one of yesterday, however late it is
  synchronised, and a device whose clock is behind does not lose its change to one that it had already seen.
- Texts of a memory are a set: the newest is current, and the others are its versions. What was purged stays purged.
- Forgetting beats every change of the same life. Only remembering again under the same id begins another life.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from hashlib import blake2b
from itertools import groupby
from posixpath import commonpath
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, structs

from recallite.embedding.handle import Identity
from recallite.engine import Engine
from recallite.errors import EmbedderError, InvalidInput
from recallite.model import checks
from recallite.model.authority import Authority, rank_of
from recallite.model.checks import EARLIEST_US, LATEST_US, check_time
from recallite.model.filters import CHUNK_KIND, MESSAGE_KIND, Filter
from recallite.model.records import Link
from recallite.remember.change import version_row
from recallite.remember.embed import embed_rows, embedder_of, identity_for
from recallite.remember.prepare import metadata_json
from recallite.remember.relations import LINK_TYPES, outranks
from recallite.store.columns import Row
from recallite.store.sql.meta import SyncedRow
from recallite.store.sql.record_reading import Version
from recallite.store.sql.relations import LinkRow, NamedSupersession, Supersession
from recallite.store.transaction import Reader, Writer
from recallite.text.words import content_hash
from recallite.transfer.lines import Embedder
from recallite.transfer.streaming import check_parts

_Moment = Annotated[int, Meta(ge=EARLIEST_US, le=LATEST_US)]
Stamp = tuple[_Moment, str]
"""The time of a change in microseconds, and the device that made it."""
_Unit = Annotated[float, Meta(ge=0, le=1)]
_encode = msgspec.msgpack.Encoder(order="deterministic").encode


class MemoryFields(Struct, frozen=True, tag="memory", forbid_unknown_fields=True, omit_defaults=True):
    """The fields of a memory, or those that a closed version of it had, but for text, context and `indexed`."""

    created_at: _Moment
    kind: str = "memory"
    scope: str = "/"
    tags: tuple[str, ...] = ()
    importance: _Unit = 0.5
    base_importance: _Unit | None = None
    pinned: bool = False
    authority: Authority = "user"
    topic: str | None = None
    source: str | None = None
    position: Annotated[int, Meta(ge=0)] | None = None
    valid_from: _Moment | None = None
    valid_until: _Moment | None = None
    valid_resolved: bool = False
    expires_at: _Moment | None = None
    expires_after: Annotated[int, Meta(gt=0)] | None = None
    metadata: dict[str, Any] = {}


class LinkFields(Struct, frozen=True, tag="link", forbid_unknown_fields=True):
    """The fields of a link."""

    strength: _Unit
    created_at: _Moment
    reason: str | None = None


class SupersessionFields(Struct, frozen=True, tag="supersession", forbid_unknown_fields=True):
    """The fields of a supersession."""

    holds_from: _Moment
    known_until: _Moment | None
    reason: str | None
    strength: _Unit
    certain: bool = True
    by_rule: bool = False


Fields = MemoryFields | LinkFields | SupersessionFields
_TOGETHER = (
    ("importance", "base_importance"), ("valid_from", "valid_until", "valid_resolved"), ("expires_at", "expires_after"),
    ("holds_from", "reason", "strength", "certain", "by_rule"), ("strength", "created_at", "reason"),
)  # fmt: skip


def groups_of(fields: type[Fields]) -> dict[str, tuple[str, ...]]:
    """The fields that are changed together, by the first of them."""
    names = fields.__struct_fields__
    together = [group for group in _TOGETHER if {*group} <= {*names}]
    single = {name for name in names if not any(name in group for group in together)}
    return {group[0]: group for group in (*together, *((name,) for name in names if name in single))}


GROUPS: dict[type[Any], dict[str, tuple[str, ...]]] = {
    kind: groups_of(kind) for kind in (MemoryFields, LinkFields, SupersessionFields)
}


class Text(Struct, frozen=True, omit_defaults=True):
    """A text of a memory, current from `at` on; `closed` are the fields that the memory had when another came."""

    at: _Moment
    text: str
    context: str | None = None
    indexed: bool = True
    repeated: tuple[tuple[_Moment, str | None], ...] = ()
    closed: MemoryFields | None = None
    updated_at: _Moment = 0
    vectors: tuple[bytes, ...] = ()

    @property
    def key(self) -> str:
        """Its name among the texts of its memory."""
        return f"{self.at}-{digest((self.text, self.context)).hex()}"

    @property
    def content(self) -> bytes:
        """A digest of everything that is merged."""
        return digest((self.repeated, self.closed, self.updated_at if self.closed else 0, self.indexed))


class Item(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A memory, link or supersession as one device knows it. One that is gone has neither a name nor fields.

    - name: "memory" and its id; "link", its ends and type; "supersession", old, new and when it was known
    - key: a digest of the name, which a tombstone has in place of it
    - life: the number of times that it was gone before
    - stamps: the last change of each group of fields; "" of all that are not named
    - texts, removed: of a memory, its texts, and the keys of those that were purged
    """

    key: str
    life: int = 0
    name: tuple[str, ...] = ()
    fields: Fields | None = None
    stamps: dict[str, Stamp] = {}
    texts: dict[str, Text] = {}
    removed: tuple[str, ...] = ()
    updated_at: _Moment = 0

    @property
    def order(self) -> tuple[int, bool]:
        """The higher of two beats the other."""
        return self.life, self.fields is None

    @property
    def newest(self) -> Text:
        """The current text."""
        return max(self.texts.values(), key=lambda text: (text.at, text.key))

    def stamp(self, group: str) -> Stamp:
        """The last change of a group of fields."""
        return self.stamps.get(group) or self.stamps[""]


class Known(Struct, frozen=True, array_like=True):
    """An item as it was synchronised last, in digests alone: a store keeps no text twice."""

    life: int = 0
    gone: bool = False
    updated_at: int = 0
    groups: dict[str, bytes] = {}
    stamps: dict[str, Stamp] = {}
    texts: dict[str, bytes] = {}
    removed: tuple[str, ...] = ()


def digest(value: object) -> bytes:
    """Eight bytes that are equal for equal values."""
    return blake2b(_encode(value), digest_size=8).digest()


def key_of(name: tuple[str, ...]) -> str:
    """The key of an item."""
    return blake2b(_encode(name), digest_size=16).hexdigest()


def known_of(item: Item) -> Known:
    """The part of an item that is kept."""
    if item.fields is None:
        return Known(item.life, True)
    groups = {group: _values(item.fields, group) for group in GROUPS[type(item.fields)]}
    texts = {key: text.content for key, text in item.texts.items()}
    return Known(item.life, False, item.updated_at, groups, item.stamps, texts, item.removed)


def noticed(item: Item, known: Known | None, device: str, now: int) -> tuple[Item, bool]:
    """The item as it is stored here with the stamps of what was changed since, and whether anything was."""
    assert item.fields is not None
    written = item.updated_at or now
    if known is None or known.gone:
        return structs.replace(item, life=known.life + 1 if known else 0, stamps={"": (written, device)}), True
    changed_at = now if written == known.updated_at else written
    stamps = {group: known.stamps.get(group) or known.stamps[""] for group in known.groups}
    changed = [group for group, before in known.groups.items() if _values(item.fields, group) != before]
    stamps |= {group: (min(max(changed_at, stamps[group][0] + 1), LATEST_US), device) for group in changed}
    removed = tuple(sorted({*known.removed, *known.texts}.difference(item.texts)))
    item = structs.replace(item, life=known.life, stamps=_short(stamps), removed=removed)
    texts = {key: text.content for key, text in item.texts.items()}
    same = (item.updated_at, texts, removed) == (known.updated_at, known.texts, known.removed)
    return item, bool(changed) or not same


def join(one: Item, other: Item) -> Item:
    """The item as a device that knows both has it."""
    if one.order != other.order or one.fields is None or other.fields is None:
        return max(one, other, key=lambda item: item.order)
    fields, stamps = one.fields, {}
    for group, names in GROUPS[type(fields)].items():
        newer = max(one, other, key=lambda item: (item.stamp(group), _values(item.fields, group)))
        stamps[group] = newer.stamp(group)
        if newer is other:
            fields = structs.replace(fields, **{name: getattr(other.fields, name) for name in names})
    removed = {*one.removed, *other.removed}
    texts = {key: text for key, text in one.texts.items() if key not in removed}
    for key, text in other.texts.items():
        if key not in removed:
            texts[key] = _joined(texts[key], text) if key in texts else text
    return structs.replace(
        one, fields=fields, stamps=_short(stamps), texts=texts, removed=tuple(sorted(removed)),
        updated_at=max(one.updated_at, other.updated_at),
    )  # fmt: skip


def diverged(one: Item, other: Item) -> bool:
    """Whether both sides changed the text of a memory without knowing of the other's."""
    if one.order != other.order or not one.texts or not other.texts:
        return False
    return all(
        mine.newest.key not in theirs.texts and mine.newest.key not in theirs.removed
        for mine, theirs in ((one, other), (other, one))
    )


def closing(item: Item) -> Item:
    """The same memory with the fields of each text that a later one has closed."""
    newest = item.newest.key if item.texts else None
    closed = structs.replace(item.fields, source=None) if newest else None  # type: ignore[type-var]
    texts = {
        key: structs.replace(text, closed=closed, updated_at=item.updated_at)
        if key != newest and text.closed is None
        else text
        for key, text in item.texts.items()
    }
    return structs.replace(item, texts=texts)


def _joined(one: Text, other: Text) -> Text:
    """A text that both have; a closed one stays as it was closed, in the narrowest scope that has both."""
    scopes = {text.closed.scope for text in (one, other) if text.closed is not None}
    one, other = (
        structs.replace(text, closed=structs.replace(text.closed, scope=commonpath(scopes))) if text.closed else text
        for text in (one, other)
    )
    first = max(
        one, other, key=lambda text: (text.closed is not None, text.updated_at, digest(text.closed), text.indexed)
    )
    repeated = {*one.repeated, *other.repeated}
    return structs.replace(
        first,
        repeated=tuple(sorted(repeated, key=lambda again: (again[0], again[1] or ""))),
        vectors=one.vectors or other.vectors,
    )


def _values(fields: Fields | None, group: str) -> bytes:
    return digest([getattr(fields, name) for name in GROUPS[type(fields)][group]])


def _short(stamps: dict[str, Stamp]) -> dict[str, Stamp]:
    """Stamps with the most frequent one under ""."""
    usual = max({*stamps.values()}, key=lambda stamp: ([*stamps.values()].count(stamp), stamp))
    return {"": usual, **{group: stamp for group, stamp in stamps.items() if stamp != usual}}


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
        if record.kind in (CHUNK_KIND, MESSAGE_KIND):
            continue
        texts = [_text(version) for version in listed]
        name = ("memory", public_id)
        yield Item(
            key=key_of(name), name=name, fields=_fields(listed[-1]), texts={text.key: text for text in texts},
            updated_at=_micros(record.updated_at),
        )  # fmt: skip


def _text(version: Version) -> Text:
    record = version.record
    closed = None if record.recorded_until is None else structs.replace(_fields(version), source=None)
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
    fields = SupersessionFields(
        row.holds_from, row.known_until, row.reason, row.strength, bool(row.certain), bool(row.by_rule)
    )
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
    asked = any(row.vectors or row.refused is not None for row in rows)
    active = embedder_of(writer, embedder) if asked else None
    if before is None:
        writer.records.insert(rows, active)
        return
    row_id = writer.records.find_ids([after.name[1]], "/")[after.name[1]]
    if changed:
        writer.records.put_versions(row_id, rows, active)
    columns = _columns(after.fields, after.updated_at)
    stored = _columns(before.fields, before.updated_at)  # type: ignore[arg-type]
    different = {name: value for name, value in columns.items() if stored[name] != value}
    if "importance" in different:
        different["base_importance"] = columns["base_importance"]
    tags = after.fields.tags if before.fields.tags != after.fields.tags else None  # type: ignore[union-attr]
    if different or tags is not None:
        writer.records.change_columns(row_id, different or {"updated_at": after.updated_at}, tags)


def _row(item: Item, text: Text, recorded_until: int | None) -> Row:
    now = item.fields
    fields = now if recorded_until is None or text.closed is None else text.closed
    assert isinstance(now, MemoryFields)
    assert isinstance(fields, MemoryFields)
    scope = now.scope if fields is now else commonpath((fields.scope, now.scope))
    columns = _columns(structs.replace(fields, scope=scope, source=now.source), 0)
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
    row = Supersession(old, new, fields.holds_from, known_from, *structs.astuple(fields)[1:])
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


_PARTS = {"memory": 2, "link": 4, "supersession": 4}


class Merge:
    """The merge of one run, and its figures."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.identity: Identity | None = None
        self._embedded: dict[tuple[str, str | None], Row] = {}
        self.merged = self.forgotten = 0
        self.diverged: set[str] = set()

    def prepare(self, items: Sequence[Item], made_by: Embedder | None) -> list[Item]:
        """Check the items of a file, and embed texts without vectors of this store's embedder. Raises InvalidInput."""
        engine = self._engine
        for item in items:
            _check(item, made_by, engine.settings.max_text_chars)
        self.identity = identity_for(engine, None)
        if self.identity is None and made_by is not None:
            self.identity = Identity(made_by.fingerprint, made_by.name, made_by.dimension)
        same = made_by is not None and self.identity is not None and made_by.fingerprint == self.identity.fingerprint
        with suppress(EmbedderError):  # token codes do not travel, so that texts which get them are embedded here
            same &= not (engine.embedder.enabled and engine.embedder.gives_codes)
        if not same:
            items = [
                structs.replace(
                    item, texts={key: structs.replace(text, vectors=()) for key, text in item.texts.items()}
                )
                for item in items
            ]
        with engine.store.read() as reader:
            rows = reader.synced.rows([item.key for item in items])
        new = {
            (text.text, text.context): version_row(text.text, text.context, indexed=text.indexed)
            for item in items
            for key, text in item.texts.items()
            if not text.vectors and (item.key not in rows or key not in _known(rows[item.key]).texts)
        }
        embed_rows(engine.embedder, [*new.values()], [None] * len(new), self.identity)
        self._embedded = new
        return [*items]

    def write(self, writer: Writer, items: Sequence[Item], device: str, number: int) -> MergedItems:
        """Write items; what is to be sent from here, as merging made it, is put under this number."""
        run = MergedItems(writer, device, number, self)
        memories = [item for item in items if item.fields is None or isinstance(item.fields, MemoryFields)]
        run.join_all(sorted(memories, key=lambda item: item.fields is None))
        run.join_all([item for item in items if isinstance(item.fields, LinkFields)])
        run.join_all([item for item in items if isinstance(item.fields, SupersessionFields)])
        return run

    def complete(self, row: Row) -> None:
        """Give a row the vectors of its text."""
        if row.vectors or not row.indexed:
            return
        made = self._embedded.get((row.text, row.context))
        if made is not None:
            row.vectors, row.codes, row.pending, row.refused = made.vectors, made.codes, made.pending, made.refused
        else:
            row.pending = self._engine.embedder.enabled
        self._engine.may_have_pending |= row.pending


class MergedItems:
    """Items written in one transaction.

    - complete: whether all could be written; else a memory that is linked is in a file that is not here yet
    - sends: whether something is to be sent; outdated: whether files of this device hold what is forgotten
    """

    def __init__(self, writer: Writer, device: str, number: int, merge: Merge) -> None:
        self._writer, self._device, self._number, self._merge = writer, device, number, merge
        self._now = checks.now_us()
        self.complete, self.sends, self.outdated = True, False, False

    def join_all(self, items: Sequence[Item]) -> None:
        """Join items, all memories or all links or all supersessions, with what is stored."""
        writer = self._writer
        rows = writer.synced.rows([item.key for item in items])
        names = {key: msgspec.json.decode(row.name, type=tuple[str, ...]) for key, row in rows.items() if row.name}
        names |= {item.key: item.name for item in items if item.name}
        stored = items_named(writer, names.values())
        joined = [
            result
            for item in items
            if (result := self._join(item, rows.get(item.key), stored.get(item.key))) is not None
        ]
        # Read again: what the store has made of an item is no change of this device.
        stored = items_named(writer, [item.name for item, _, _ in joined if item.name])
        writer.synced.put(
            SyncedRow(
                item.key,
                msgspec.json.encode(item.name).decode() if item.name else None,
                msgspec.msgpack.encode(_as_stored(item, stored.get(item.key))),
                number,
                note,
            )
            for item, number, note in joined
        )

    def _join(self, item: Item, row: SyncedRow | None, stored: Item | None) -> tuple[Item, int, str | None] | None:
        """Join and write one item; returns it with the number and the note of its row. None: nothing is kept of it."""
        known = None if row is None else _known(row)
        ours, changed, after = None, False, item
        if stored is not None:
            ours, changed = noticed(stored, known, self._device, self._now)
        elif known is not None:
            ours, changed = Item(key=item.key, life=known.life), not known.gone
        if ours is not None:
            after = join(ours, item)
        made = closing(after) if after.fields is not None else after
        sends = changed or made != after
        note = None if row is None else row.diverged
        if ours is not None and after.fields is not None and diverged(ours, item):
            note = msgspec.json.encode(sorted((ours.newest.at, item.newest.at))).decode()
            self._merge.diverged.add(item.name[1])
        if ours is None or made != ours:
            if stored is not None and ours is not None and ours.order != made.order:
                self._remove(stored, row)
                stored = None
            if made.fields is None:
                note = None
            elif not self._put(stored, made):
                return None
            if row is not None and row.number and made.removed != ours.removed:  # type: ignore[union-attr]
                self.outdated = True
            self._merge.merged += ours is None or known_of(made) != known_of(ours)
        self.sends |= sends
        return made, self._number if sends else 0 if row is None else row.number, note

    def _remove(self, stored: Item, row: SyncedRow | None) -> None:
        self.outdated |= row is not None and row.number > 0
        kind, end, *key = stored.name
        ids = self._writer.records.find_ids([end, *key[:1]], "/")
        if kind == "memory":
            self._writer.records.delete([ids[end]])
            self._merge.forgotten += 1
        elif end in ids and key[0] in ids and kind == "link":
            self._writer.links.drop(ids[end], ids[key[0]], [key[1]])
        elif end in ids and key[0] in ids:
            self._writer.supersessions.replace(ids[end], ids[key[0]], int(key[1]), None)

    def _put(self, stored: Item | None, item: Item) -> bool:
        """Write an item; False if it joins memories that are not here."""
        if isinstance(item.fields, MemoryFields):
            put_memory(self._writer, stored, item, self._merge.complete, self._merge.identity)
            return True
        ends = item.name[1:3]
        ids = self._writer.records.find_ids(ends, "/")
        absent = [key_of(("memory", end)) for end in ends if end not in ids]
        if absent:
            rows = self._writer.synced.rows(absent)
            self.complete &= any(_known(row).gone for row in rows.values())
            return False
        if isinstance(item.fields, LinkFields):
            put_link(self._writer, item.name, item.fields, ids)
        elif isinstance(item.fields, SupersessionFields):
            put_supersession(self._writer, item.name, item.fields, ids)
        return True


def _as_stored(item: Item, stored: Item | None) -> Known:
    if item.fields is None:
        return Known(item.life, True)
    if stored is None:  # it gave way to another: the next run sends that it is gone
        return known_of(item)
    return known_of(structs.replace(stored, life=item.life, stamps=item.stamps, removed=item.removed))


def _known(row: SyncedRow) -> Known:
    return msgspec.msgpack.decode(row.state, type=Known)


def _check(item: Item, made_by: Embedder | None, max_text_chars: int) -> None:
    """Refuse what no device writes: a folder may be written by others."""
    if item.fields is None:
        if item.name:
            raise InvalidInput(f"an item is gone, and is named {item.name} nevertheless")
        return
    kind = item.name[0] if item.name else ""
    if len(item.name) != _PARTS.get(kind) or key_of(item.name) != item.key or "" not in item.stamps:
        raise InvalidInput(f"an item is named {item.name}, which does not fit its key")
    for end in item.name[1:2] if kind == "memory" else item.name[1:3]:
        checks.check_name(end, "id")
    if isinstance(item.fields, MemoryFields):
        _check_memory(item, item.fields, made_by, max_text_chars)
    elif item.name[1] == item.name[2] or (kind == "link" and item.name[3] not in LINK_TYPES):
        raise InvalidInput(f"{item.name} is no link")
    elif kind == "supersession" and not item.name[3].lstrip("-").isdecimal():
        raise InvalidInput(f"{item.name} is no supersession")


def _check_memory(item: Item, fields: MemoryFields, made_by: Embedder | None, max_text_chars: int) -> None:
    checks.check_scope(fields.scope)
    checks.check_tags(fields.tags)
    checks.check_metadata(fields.metadata)
    for name in ("kind", "topic", "source"):
        if (value := getattr(fields, name)) is not None:
            checks.check_name(value, name)
    if fields.kind in (CHUNK_KIND, MESSAGE_KIND) or not item.texts:
        raise InvalidInput(
            f"{item.name[1]} is a chunk of a document, a message of a session or has no text: devices exchange none"
        )
    for key, text in item.texts.items():
        checks.check_text(text.text, max_text_chars)
        if key != text.key:
            raise InvalidInput(f"a text of {item.name[1]} does not fit its key")
        if text.closed is not None:
            checks.check_scope(text.closed.scope)
        if text.vectors:
            check_parts(text.vectors, made_by)
