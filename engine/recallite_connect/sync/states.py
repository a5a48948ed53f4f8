"""States of what is synchronised, and their join: associative, commutative, idempotent, so that any order will do.

- Of one life of a memory, link or supersession, each group of fields is that of its last writer: the stamp is a hybrid
  logical clock, the time of the change or, if that is not after what it replaces, a microsecond after it; a device's id
  decides between equal times. So an edit made offline last week does not undo one of yesterday, however late it is
  synchronised, and a device whose clock is behind does not lose its change to one that it had already seen.
- Texts of a memory are a set: the newest is current, and the others are its versions. What was purged stays purged.
- Forgetting beats every change of the same life. Only remembering again under the same id begins another life.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, structs

from recallite.model.authority import Authority
from recallite.model.checks import EARLIEST_US, LATEST_US

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


Fields = MemoryFields | LinkFields | SupersessionFields
_TOGETHER = (
    ("importance", "base_importance"), ("valid_from", "valid_until", "valid_resolved"), ("expires_at", "expires_after"),
    ("holds_from", "reason", "strength"), ("strength", "created_at", "reason"),
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
    """The item as it is for those who know both."""
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
    closed = structs.replace(item.fields, scope="/", source=None) if newest else None  # type: ignore[type-var]
    texts = {
        key: structs.replace(text, closed=closed, updated_at=item.updated_at)
        if key != newest and text.closed is None
        else text
        for key, text in item.texts.items()
    }
    return structs.replace(item, texts=texts)


def _joined(one: Text, other: Text) -> Text:
    """A text that both have; a closed one stays as it was closed."""
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
