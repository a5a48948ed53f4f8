"""Merging the items of other devices into the store."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import structs

from recallite.embedding.handle import Identity
from recallite.engine import Engine
from recallite.errors import EmbedderError, InvalidInput
from recallite.model import checks
from recallite.remember.change import version_row
from recallite.remember.embed import embed_rows, identity_for
from recallite.remember.links import LINK_TYPES
from recallite.store.sql.synced import SyncedRow
from recallite.store.transaction import Writer
from recallite.store.values import CHUNK_KIND, Row
from recallite.transfer.importing import check_parts
from recallite.transfer.line_types import Embedder
from recallite_connect.sync.states import (
    Item,
    Known,
    LinkFields,
    MemoryFields,
    SupersessionFields,
    Text,
    closing,
    diverged,
    join,
    key_of,
    known_of,
    noticed,
)
from recallite_connect.sync.stored_items import items_named, put_link, put_memory, put_supersession

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
        if not same or self._gives_codes():
            items = [structs.replace(item, texts=_without_vectors(item)) for item in items]
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

    def _gives_codes(self) -> bool:
        """Whether texts get token codes, which do not travel, so that the texts are embedded here."""
        try:
            return self._engine.embedder.enabled and self._engine.embedder.gives_codes
        except EmbedderError:
            return False

    def write(self, writer: Writer, items: Sequence[Item], device: str, number: int) -> Written:
        """Write items; what is to be sent from here, as merging made it, is put under this number."""
        run = Written(writer, device, number, self)
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


class Written:
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


def _without_vectors(item: Item) -> dict[str, Text]:
    return {key: structs.replace(text, vectors=()) for key, text in item.texts.items()}


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
    if fields.kind == CHUNK_KIND or not item.texts:
        raise InvalidInput(f"{item.name[1]} is a chunk of a document, or has no text: devices exchange neither")
    for key, text in item.texts.items():
        checks.check_text(text.text, max_text_chars)
        if key != text.key:
            raise InvalidInput(f"a text of {item.name[1]} does not fit its key")
        if text.vectors:
            check_parts(text.vectors, made_by)
