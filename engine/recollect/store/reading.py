"""Reading records. Every function runs inside `Store.read()` or `Store.atomic()`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
import msgspec

from recollect.checks import optional_datetime, shown, to_datetime
from recollect.errors import StoreCorrupt
from recollect.filters import Filter, Versions
from recollect.records import EmbeddingState, Link, Outcome, Record
from recollect.store.arrays import id_array
from recollect.store.conditions import Condition, in_scopes, matching
from recollect.store.rows import Moment, read_row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "Found",
    "admits",
    "count",
    "fetch",
    "find_ids",
    "history",
    "inhabited_scopes",
    "link",
    "links_of",
    "matching_ids",
    "record",
    "records",
    "records_of",
    "same_text",
    "scopes_within",
    "version_at",
    "version_ids",
]

_decode = msgspec.json.decode
_object = msgspec.json.Decoder(dict[str, Any]).decode

_TAGS = (
    "(SELECT json_group_array(t.name ORDER BY rt.place) FROM record_tag rt JOIN tag t ON t.id = rt.tag_id "
    "WHERE rt.record_id = r.id)"
)
_JOINS = "FROM record r JOIN scope s ON s.id = r.scope_id LEFT JOIN source o ON o.id = r.source_id"
_RECORD = (
    f"SELECT r.public_id, r.text, r.kind, s.path, r.context, {_TAGS}, r.importance, r.base_importance, "
    "r.pinned, r.topic, o.name, r.position, r.created_at, r.event_at, r.updated_at, a.accessed_at, r.expires_at, "
    f"coalesce(a.count, 0), r.valid_from, r.valid_to, r.metadata, r.embedding_state {_JOINS} "
    "LEFT JOIN access a ON a.record_id = r.id"
)
_ORDERS = {"newest": "r.id DESC", "oldest": "r.id", "importance": "r.importance DESC, r.id DESC"}


class Found(NamedTuple):
    """What a hit shows of its record."""

    public_id: str
    text: str
    kind: str
    scope: str
    context: str | None
    tags: tuple[str, ...]
    importance: float
    created_at: Moment
    event_at: Moment | None
    metadata: dict[str, Any]
    source: str | None
    position: int | None


class _LinkRow(NamedTuple):
    source: str
    target: str
    type: str
    strength: float
    created_at: Moment


class _RecordRow(NamedTuple):
    """The columns of `_RECORD`; tags and metadata are JSON."""

    public_id: str
    text: str
    kind: str
    scope: str
    context: str | None
    tags: str
    importance: float
    base_importance: float | None
    pinned: int
    topic: str | None
    source: str | None
    position: int | None
    created_at: Moment
    event_at: Moment | None
    updated_at: Moment
    accessed_at: Moment | None
    expires_at: Moment | None
    access_count: int
    valid_from: Moment
    valid_to: Moment | None
    metadata: str | None
    embedding_state: EmbeddingState


def fetch(connection: apsw.Connection, record_ids: Sequence[int] | NDArray[np.int64]) -> dict[int, Found]:
    """The records with these row ids; one statement for all. Ids that no longer exist are absent."""
    found: dict[int, Found] = {}
    for (
        row_id,
        public_id,
        text,
        kind,
        scope,
        context,
        tags,
        importance,
        created,
        event,
        metadata,
        source,
        position,
    ) in connection.execute(
        f"SELECT r.id, r.public_id, r.text, r.kind, s.path, r.context, {_TAGS}, r.importance, r.created_at, "
        f"r.event_at, r.metadata, o.name, r.position {_JOINS} WHERE r.id IN (SELECT value FROM carray(?))",
        (id_array(record_ids),),
    ):
        values = (
            public_id,
            text,
            kind,
            scope,
            context,
            () if tags == "[]" else tuple(_decode(tags)),
            importance,
            created,
            event,
            _metadata(metadata, public_id),
            source,
            position,
        )
        found[row_id] = read_row(values, Found, "record")
    return found


def public_ids(connection: apsw.Connection, ids: Sequence[int]) -> list[str]:
    """The public ids of records, in the order of their row ids."""
    rows = connection.execute(
        "SELECT public_id FROM record WHERE id IN (SELECT value FROM carray(?)) ORDER BY id", (id_array(ids),)
    )
    return [row[0] for row in rows]


def find_ids(connection: apsw.Connection, public_ids: Sequence[str], scope: str) -> dict[str, int]:
    """Row ids of the open records of a scope and its descendants, by public id; others are absent."""
    if not public_ids:
        return {}
    condition = in_scopes([scope])
    return dict(
        connection.execute(
            "SELECT r.public_id, r.id FROM record r WHERE r.valid_to IS NULL AND r.public_id IN "
            f"(SELECT value FROM carray(?)) AND ({condition.sql})",
            (apsw.carray(tuple(public_ids)), *condition.values),
        )
    )


def matching_ids(connection: apsw.Connection, chosen: Filter, now: int, *, versions: Versions = "current") -> list[int]:
    """Row ids of the records that a filter admits, ascending."""
    return _ids(connection, matching(chosen, now, versions))


def same_text(connection: apsw.Connection, scope: str, kind: str, content_hash: bytes) -> list[int]:
    """Row ids of the open records of a kind in exactly this scope that have this text."""
    return _ids(
        connection,
        Condition(
            "r.valid_to IS NULL AND r.kind = ? AND r.content_hash = ? "
            "AND r.scope_id = (SELECT id FROM scope WHERE path = ?)",
            (kind, content_hash, scope),
        ),
    )


def admits(connection: apsw.Connection, chosen: Filter, now: int, record_id: int) -> bool:
    """Whether a filter admits a record."""
    return bool(_ids(connection, Condition("r.id = ?", (record_id,)) & matching(chosen, now)))


def records(
    connection: apsw.Connection,
    chosen: Filter,
    now: int,
    *,
    versions: Versions = "current",
    order: str = "oldest",
    limit: int | None = None,
    offset: int = 0,
) -> Iterator[Record]:
    """The records that a filter admits, streamed."""
    condition = matching(chosen, now, versions)
    # The ids first: by themselves they are found through the index of a column and sorted without the texts.
    ids = f"SELECT r.id FROM record r WHERE {condition.sql} ORDER BY {_ORDERS[order]} LIMIT ? OFFSET ?"
    rows = connection.execute(
        f"{_RECORD} WHERE r.id IN ({ids}) ORDER BY {_ORDERS[order]}",
        (*condition.values, -1 if limit is None else limit, offset),
    )
    return map(_record, rows)


def record(connection: apsw.Connection, record_id: int, *, outcome: Outcome = "stored") -> Record:
    """The record with this row id."""
    (row,) = connection.execute(f"{_RECORD} WHERE r.id = ?", (record_id,))
    return _record(row, outcome)


def records_of(connection: apsw.Connection, ids: Sequence[int]) -> Iterator[Record]:
    """The records with these row ids, ascending, streamed."""
    rows = connection.execute(f"{_RECORD} WHERE r.id IN (SELECT value FROM carray(?)) ORDER BY r.id", (id_array(ids),))
    return map(_record, rows)


def history(connection: apsw.Connection, public_id: str) -> list[Record]:
    """Every version of a record, oldest first; the open one is last."""
    # Two halves, each by its partial index: asked for together they cost a scan of the table.
    closed = connection.execute(
        f"{_RECORD} WHERE r.public_id = ? AND r.valid_to IS NOT NULL ORDER BY r.valid_from, r.id", (public_id,)
    ).fetchall()
    standing = connection.execute(f"{_RECORD} WHERE r.public_id = ? AND r.valid_to IS NULL", (public_id,)).fetchall()
    rows = [*closed, *standing]
    return [_record(row) for row in rows]


def version_ids(connection: apsw.Connection, public_id: str) -> list[int]:
    """The row ids of what `history` gives, in its order."""
    rows: Any = connection.execute(
        "SELECT id FROM record WHERE public_id = ? AND valid_to IS NOT NULL ORDER BY valid_from, id", (public_id,)
    ).fetchall()
    standing: Any = connection.execute(
        "SELECT id FROM record WHERE public_id = ? AND valid_to IS NULL", (public_id,)
    ).fetchall()
    return [row[0] for row in (*rows, *standing)]


def version_at(connection: apsw.Connection, record_id: int, moment: int) -> int:
    """The row id of the version of an open record that stood at `moment`; the open one if none did."""
    found: Any = connection.execute(
        "SELECT v.id FROM record r JOIN record v ON v.public_id = r.public_id AND v.valid_to IS NOT NULL "
        "WHERE r.id = ? AND v.valid_from <= ? AND v.valid_to > ?",
        (record_id, moment, moment),
    ).get
    return record_id if found is None else int(found)


def count(connection: apsw.Connection, chosen: Filter, now: int, *, versions: Versions = "current") -> int:
    """How many records a filter admits."""
    condition = matching(chosen, now, versions)
    number: int = connection.execute(f"SELECT count(*) FROM record r WHERE {condition.sql}", condition.values).get
    return number


def scopes_within(connection: apsw.Connection, scopes: Sequence[str]) -> list[int]:
    """The ids of these scopes and their descendants, each once."""
    found = {
        row[0]
        for scope in scopes
        for row in connection.execute(
            "SELECT id FROM scope WHERE path = ? OR (path >= ? AND path < ?)",
            (scope, scope + "/", scope + "0"),
        )
    }
    return sorted(found)


def inhabited_scopes(connection: apsw.Connection, scopes: Sequence[str], limit: int) -> list[str]:
    """Paths of these scopes (none: of all) and those below that hold a record as it stands, shallow ones first."""
    rows = connection.execute(
        "SELECT s.path FROM scope s WHERE (? OR s.id IN (SELECT value FROM carray(?))) AND EXISTS "
        "(SELECT 1 FROM record r WHERE r.scope_id = s.id AND r.valid_to IS NULL) "
        "ORDER BY length(s.path) - length(replace(s.path, '/', '')), s.path LIMIT ?",
        (not scopes, id_array(scopes_within(connection, scopes)), limit),
    )
    return [row[0] for row in rows]


def links_of(connection: apsw.Connection, record_id: int, *, incoming: bool, types: Sequence[str]) -> list[Link]:
    """The links that leave (or reach) a record, strongest first."""
    near, far = ("target_id", "source_id") if incoming else ("source_id", "target_id")
    chosen = "" if not types else "AND l.type IN (SELECT value FROM json_each(?))"
    bound = () if not types else (msgspec.json.encode(list(types)).decode(),)
    return [
        link(row)
        for row in connection.execute(
            "SELECT a.public_id, b.public_id, l.type, l.strength, l.created_at FROM link l "
            "JOIN record a ON a.id = l.source_id JOIN record b ON b.id = l.target_id "
            f"WHERE l.{near} = ? {chosen} ORDER BY l.strength DESC, l.{far}, l.type",
            (record_id, *bound),
        )
    ]


def link(row: tuple[Any, ...]) -> Link:
    """A link of the public ids of its ends, its type, strength and time."""
    source, target, kind, strength, created = read_row(row, _LinkRow, "a link of")
    return Link(source=source, target=target, type=kind, strength=strength, created_at=to_datetime(created))


def _metadata(text: object, public_id: object) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        return _object(text)  # type: ignore[arg-type]
    except (msgspec.DecodeError, TypeError, RecursionError) as fault:
        raise StoreCorrupt(
            f"the metadata of record {shown(public_id)} is not what was stored ({fault}): another program changed it"
        ) from None


def _record(row: tuple[Any, ...], outcome: Outcome = "stored") -> Record:
    (
        public_id, text, kind, scope, context, tags, importance, given, pinned, topic, source, position, created,
        event, updated, accessed, expires, accesses, valid_from, valid_to, metadata, state,
    ) = read_row(row, _RecordRow, "record")  # fmt: skip
    return Record(
        id=public_id,
        text=text,
        kind=kind,
        scope=scope,
        context=context,
        tags=tuple(_decode(tags)),
        importance=importance,
        base_importance=given,
        pinned=bool(pinned),
        topic=topic,
        source=source,
        position=position,
        created_at=to_datetime(created),
        event_at=optional_datetime(event),
        updated_at=to_datetime(updated),
        accessed_at=optional_datetime(accessed),
        expires_at=optional_datetime(expires),
        access_count=accesses,
        valid_from=to_datetime(valid_from),
        valid_to=optional_datetime(valid_to),
        metadata=_metadata(metadata, public_id),
        embedding_state=state,
        outcome=outcome,
    )


def _ids(connection: apsw.Connection, condition: Condition) -> list[int]:
    rows = connection.execute(f"SELECT r.id FROM record r WHERE {condition.sql} ORDER BY r.id", condition.values)
    return [row[0] for row in rows]
