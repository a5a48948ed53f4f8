"""Rows of records as they are read: the columns of each sort of row, and what is made of them."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

import msgspec

from recallite.errors import StoreCorrupt
from recallite.model.authority import Rank, authority_of
from recallite.model.checks import to_datetime
from recallite.model.records import EmbeddingState, Outcome, Record
from recallite.store.rows import Moment, read_row
from recallite.store.sql.repository import TAGS_SQL, columns_sql, json_list
from recallite.store.values import Found
from recallite.system.messages import shown
from recallite.text.standing import Standing

decode = msgspec.json.decode
_object = msgspec.json.Decoder(dict[str, Any]).decode
as_found = partial(tuple.__new__, Found)
"""Makes a named tuple from a tuple, without a call of Python's."""


class _RecordRow(NamedTuple):
    """The columns of a record, named as the fields of `Record`; tags, metadata and the last three are JSON."""

    id: str
    text: str
    kind: str
    scope: str
    context: str | None
    tags: str
    importance: float
    base_importance: float | None
    pinned: bool | int
    authority: Rank
    topic: str | None
    source: str | None
    position: int | None
    created_at: Moment
    valid_from: Moment | None
    valid_until: Moment | None
    valid_resolved: bool | int
    updated_at: Moment
    accessed_at: Moment | None
    expires_at: Moment | None
    expires_after: int | None
    access_count: int
    recorded_from: Moment
    recorded_until: Moment | None
    superseded_at: Moment | None
    held_until: Moment | None
    metadata: str | None
    embedding_state: EmbeddingState
    indexed: bool | int
    standing: Standing | None
    supersedes: str
    superseded_by: str
    occurred_at: str


class FoundRow(NamedTuple):
    """The columns of a hit's record, named as the fields of `Found`; metadata is JSON."""

    public_id: str
    text: str
    kind: str
    scope: str
    context: str | None
    importance: float
    created_at: Moment
    valid_from: Moment | None
    valid_until: Moment | None
    valid_resolved: bool | int
    updated_at: Moment
    topic: str | None
    metadata: str | None
    source: str | None
    position: int | None
    authority: Rank
    id: int
    tagged: bool | int


JOINS = "JOIN scope s ON s.id = r.scope_id LEFT JOIN source o ON o.id = r.source_id"
# The records at the other end of the standing supersessions of `r`, as JSON.
_SUPERSESSIONS = json_list(
    "e.public_id",
    "x.holds_from, e.id",
    "supersession x JOIN record e ON e.id = x.{far} WHERE x.{near} = r.id AND x.known_until IS NULL",
)
_RECORD_COLUMNS = columns_sql(
    _RecordRow._fields,
    {
        "id": "r.public_id",
        "tags": TAGS_SQL,
        "accessed_at": "a.accessed_at",
        "access_count": "coalesce(a.count, 0)",
        "standing": "(SELECT name FROM standing WHERE record_id = r.id)",
        "supersedes": _SUPERSESSIONS.format(far="old_id", near="new_id"),
        "superseded_by": _SUPERSESSIONS.format(far="new_id", near="old_id"),
        "occurred_at": json_list("o.at", "o.id", "occurrence o WHERE o.record_id = r.id"),
    },
)
RECORD = f"SELECT {_RECORD_COLUMNS} FROM record r {JOINS} LEFT JOIN access a ON a.record_id = r.id"
"""Selects the rows that `record_of` takes."""
_FOUND_COLUMNS = columns_sql(
    FoundRow._fields, {"tagged": "EXISTS (SELECT 1 FROM record_tag t WHERE t.record_id = r.id)"}
)
# Rows in the order of the array: IN_ARRAY sorts them first, which takes twice the time.
FOUND = f"SELECT {_FOUND_COLUMNS} FROM carray(?) c CROSS JOIN record r ON r.id = c.value {JOINS}"
"""Selects rows of the type `FoundRow`."""


def record_of(row: tuple[Any, ...], outcome: Outcome = "stored") -> Record:
    """The record of a row of `RECORD`."""
    fields: dict[str, Any] = read_row(row, _RecordRow, "record")._asdict()
    again = fields.pop("occurred_at")
    if again != "[]":
        times = sorted([fields["created_at"], *decode(again)])
        fields |= {"occurrences": len(times), "occurred_at": tuple(map(to_datetime, times))}
    for name in ("created_at", "valid_from", "valid_until", "updated_at", "accessed_at", "expires_at", "recorded_from",
                 "recorded_until", "superseded_at", "held_until"):  # fmt: skip
        if fields[name] is not None:
            fields[name] = to_datetime(fields[name])
    for name in ("pinned", "valid_resolved", "indexed"):
        fields[name] = bool(fields[name])
    for name in ("tags", "supersedes", "superseded_by"):
        fields[name] = () if fields[name] == "[]" else tuple(decode(fields[name]))
    fields["authority"] = authority_of(fields["authority"])
    if fields["expires_after"] is not None:
        fields["expires_after"] = timedelta(microseconds=fields["expires_after"])
    fields["metadata"] = metadata_of(fields["metadata"], fields["id"])
    return Record(**fields, outcome=outcome)


def metadata_of(text: object, public_id: object) -> dict[str, Any]:
    """Stored metadata, {} for None."""
    if text is None:
        return {}
    try:
        return _object(text)  # type: ignore[arg-type]
    except (msgspec.DecodeError, TypeError, RecursionError) as fault:
        raise StoreCorrupt(
            f"the metadata of record {shown(public_id)} is not what was stored ({fault}): another program changed it"
        ) from None
