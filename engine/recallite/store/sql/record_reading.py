"""Reading records: the columns of each sort of row, records and their versions, and overviews of a store."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from itertools import islice, starmap
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from recallite.errors import StoreCorrupt
from recallite.model.authority import Rank, authority_of
from recallite.model.checks import to_datetime
from recallite.model.filters import Filter, Versions
from recallite.model.records import EmbeddingState, Outcome, Record, Standing
from recallite.store.columns import CurrentRecord, Row
from recallite.store.sql.relations import Occurrence
from recallite.store.sql.repository import (
    IN_ARRAY,
    NO_LIMIT,
    TAGS_SQL,
    Moment,
    Repository,
    columns_sql,
    json_list,
    read_row,
    read_rows,
)
from recallite.store.sql.vectors import EmbedderRow
from recallite.system.messages import shown
from recallite.system.turnstile import paced

decode = msgspec.json.decode
_object = msgspec.json.Decoder(dict[str, Any]).decode


class Found(NamedTuple):
    """The fields that a hit shows of its record."""

    public_id: str
    text: str
    kind: str
    scope: str
    context: str | None
    tags: tuple[str, ...]
    importance: float
    created_at: Moment
    valid_from: Moment | None
    valid_until: Moment | None
    valid_resolved: bool
    updated_at: Moment
    topic: str | None
    metadata: dict[str, Any]
    source: str | None
    position: int | None
    authority: int


as_found = partial(tuple.__new__, Found)
"""Makes a named tuple from a tuple, without a call of Python's."""


class Version(NamedTuple):
    """One version of a record, with the float32 bytes of its parts where they were asked for, and its further times."""

    record: Record
    vectors: tuple[bytes, ...]
    repeated: Sequence[Occurrence] = ()


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
    superseded_by_rule: str | None
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
        "superseded_by_rule": "(SELECT coalesce(x.reason, '') FROM supersession x WHERE x.old_id = r.id AND "
        "x.known_until IS NULL AND x.by_rule ORDER BY x.holds_from, x.new_id LIMIT 1)",
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


# Records and their versions.

_TAGS_OF = (
    "SELECT rt.record_id, t.name FROM (SELECT DISTINCT value FROM carray(?)) c "
    "CROSS JOIN record_tag rt ON rt.record_id = c.value JOIN tag t ON t.id = rt.tag_id ORDER BY rt.record_id, rt.place"
)

_ORDERS = {
    "newest": "r.id DESC",
    "oldest": "r.id",
    "updated": "r.updated_at DESC, r.id DESC",
    "importance": "r.importance DESC, r.id DESC",
    "created": "r.created_at DESC, r.id DESC",
}


_WRITTEN_FIELDS = (
    "public_id", "kind", "text", "context", "importance", "authority", "topic", "position", "created_at", "valid_from",
    "valid_until", "updated_at", "expires_at", "expires_after", "recorded_from", "metadata", "content_hash", "scope",
    "source",
)  # fmt: skip
_WRITTEN = columns_sql(_WRITTEN_FIELDS)
_CURRENT = (
    f"SELECT r.id, {columns_sql(CurrentRecord.__struct_fields__[1:-1])} FROM record r "
    "JOIN scope s ON s.id = r.scope_id WHERE r.recorded_until IS NULL AND (r.expires_at IS NULL OR r.expires_at > ?1) "
    "AND (r.superseded_at IS NULL OR r.superseded_until <= ?1) AND r.indexed"
)
_CHUNK = 500
# How many rows before and after one tell when it was written.
_NEIGHBOURS = 64


class _Opened(NamedTuple):
    id: int
    public_id: str


# Columns of many records at once, without their texts, for pictures of a whole store.

_DAY_US = 86_400_000_000


class Labels(NamedTuple):
    """Row ids, ascending, and in their order: public ids, scope ids, kinds, and source ids, -1 for none.

    `superseded` says which of them another supersedes though they may still hold.

    `scope_names` and `source_names` give names by id, also of scopes and sources that none of these records has.
    """

    ids: NDArray[np.int64]
    public_ids: list[str]
    scopes: NDArray[np.int64]
    kinds: list[str]
    sources: NDArray[np.int64]
    superseded: NDArray[np.bool_]
    scope_names: dict[int, str]
    source_names: dict[int, str]


def _from(filter: Filter) -> str:
    """The records of a whole store in their order: through an index, as SQLite would read them, takes five times as
    long.
    """
    return "record r NOT INDEXED" if not filter.scopes or "/" in filter.scopes else "record r"


class RecordReader(Repository):
    """The table `record` and what belongs to it, as a reader sees it."""

    def fetch(self, row_ids: Sequence[int] | NDArray[np.int64]) -> dict[int, Found]:
        """The fields that hits show of these records, by row id, read at once; ids that no longer exist are absent."""
        ids = self._id_array(row_ids)
        rows = read_rows(self._execute(FOUND, (ids,)), FoundRow, "record")
        tags: dict[int, list[str]] = {}
        # Tags by a statement of their own, if there are any: a subquery for each of ten records took two thirds of the
        # time.
        if sum([row.tagged for row in rows]):
            for row_id, name in self._execute(_TAGS_OF, (ids,)):
                tags.setdefault(row_id, []).append(name)
        return {
            row.id: as_found(
                (*row[:5], tuple(tags.get(row.id, ())), *row[5:12], metadata_of(row[12], row[0]), *row[13:16])
            )
            if row[12] is not None or row.tagged
            else as_found((*row[:5], (), *row[5:12], {}, *row[13:16]))
            for row in rows
        }

    def written_by(self, row_id: int, now: int, others: Sequence[int] = ()) -> int:
        """The time by which a row was written, as the clocks of rows before and after it tell that are not ahead.

        `others` are rows to go by beside its neighbours. What is backdated has the time of its writing as `updated_at`;
        what a file brings may have an earlier one, so that a row is no older than what was written before it.
        """
        near = f"FROM record WHERE recorded_until IS NULL AND id {{}} ? ORDER BY id {{}} LIMIT {_NEIGHBOURS}"
        ((since,),) = self._execute(
            f"SELECT min(updated_at) FROM (SELECT * FROM (SELECT updated_at {near.format('>', 'ASC')}) AS next "
            f"UNION ALL SELECT updated_at FROM record WHERE id > ? AND id {IN_ARRAY}) AS later WHERE updated_at <= ?",
            (row_id, row_id, self._id_array(sorted(others)), now),
        )
        ((before,),) = self._execute(
            f"SELECT max(updated_at) FROM (SELECT created_at, updated_at {near.format('<', 'DESC')}) AS earlier "
            "WHERE created_at = updated_at AND updated_at <= ?",
            (row_id, now),
        )
        return max(before or 0, now if since is None else since - 1)

    def last_id(self) -> int:
        """The newest row id; 0 without records."""
        return self._number("SELECT coalesce(max(id), 0) FROM record")

    def public_ids(self, ids: Sequence[int]) -> list[str]:
        """Public ids, in the order of the row ids."""
        return self._column(f"SELECT public_id FROM record WHERE id {IN_ARRAY} ORDER BY id", (self._id_array(ids),))

    def public_ids_of(self, ids: Sequence[int]) -> list[str]:
        """Public ids in this order of the row ids, which may be any."""
        names = dict(zip(sorted(ids), self.public_ids(sorted(ids)), strict=True))
        return [names[row_id] for row_id in ids]

    def rows(self, row_ids: Sequence[int], embedder: EmbedderRow | None) -> dict[int, Row]:
        """Return the open, current ones of these records by row id, as `insert` was given them."""
        vectors = {} if embedder is None else self._tx.vectors.values_of(row_ids, embedder)
        written = {}
        rows = self._execute(
            f"SELECT r.id, {TAGS_SQL}, r.pinned, r.valid_resolved, {_WRITTEN} FROM record r {JOINS} "
            f"WHERE r.recorded_until IS NULL AND r.superseded_at IS NULL AND r.indexed AND r.id {IN_ARRAY}",
            (self._id_array(row_ids),),
        )
        for row_id, tags, pinned, resolved, *values in paced(rows):
            written[row_id] = Row(
                **dict(zip(_WRITTEN_FIELDS, values, strict=True)), pinned=bool(pinned), valid_resolved=bool(resolved),
                tags=tuple(decode(tags)), vectors=tuple(vectors.get(row_id, ())),
            )  # fmt: skip
        return written

    def contexts(self, row_ids: NDArray[np.int64]) -> list[str | None]:
        """The contexts of these records, in their order; None where there is no context or no record."""
        contexts = dict(
            self._execute(
                f"SELECT id, context FROM record WHERE id {IN_ARRAY} AND context IS NOT NULL",
                (self._id_array(row_ids),),
            )
        )
        return [contexts.get(key) for key in row_ids.tolist()]

    def source_names(self, row_ids: NDArray[np.int64]) -> list[str | None]:
        """The names of the sources of these records, in their order; None where there is no source or no record."""
        names = dict(
            self._execute(
                f"SELECT r.id, o.name FROM record r JOIN source o ON o.id = r.source_id WHERE r.id {IN_ARRAY}",
                (self._id_array(row_ids),),
            )
        )
        return [names.get(key) for key in row_ids.tolist()]

    def find_ids(self, public_ids: Sequence[str], scope: str) -> dict[str, int]:
        """Row ids by public id, of open records in a scope and its descendants; others are absent."""
        if not public_ids:
            return {}
        condition = self._tx.conditions.in_scopes([scope])
        return dict(
            self._execute(
                "SELECT r.public_id, r.id FROM record r WHERE r.recorded_until IS NULL AND r.public_id IN "
                f"(SELECT value FROM carray(?)) AND ({condition.sql})",
                (self._array(public_ids), *condition.values),
            )
        )

    def matching_ids(
        self, filter: Filter, now: int, *, versions: Versions = "current", among: Sequence[int] | None = None
    ) -> list[int]:
        """Row ids of the records that a filter admits, ascending; only ids in `among`, unless it is None."""
        condition = self._tx.conditions.matching(filter, now, versions)
        listed, bound = "record r", tuple[Any, ...]()
        if among is not None:
            listed, bound = "carray(?) c CROSS JOIN record r ON r.id = c.value", (self._id_array(among),)
        return self._column(
            f"SELECT r.id FROM {listed} WHERE {condition.sql} ORDER BY r.id", (*bound, *condition.values)
        )

    def same_text(self, scope: str, kind: str, content_hash: bytes) -> list[int]:
        """Row ids of open records, superseded or not, of this kind and text in exactly this scope."""
        return self._column(
            "SELECT id FROM record WHERE recorded_until IS NULL AND kind = ? AND content_hash = ? "
            "AND scope_id = (SELECT id FROM scope WHERE path = ?) ORDER BY id",
            (kind, content_hash, scope),
        )

    def admits(self, filter: Filter, now: int, row_id: int) -> bool:
        """Whether a filter admits a record."""
        return bool(self.matching_ids(filter, now, among=[row_id]))

    def find(
        self,
        filter: Filter,
        now: int,
        *,
        versions: Versions = "current",
        order: str = "oldest",
        limit: int | None = None,
        offset: int = 0,
    ) -> Iterator[Record]:
        """The records that a filter admits, streamed."""
        condition = self._tx.conditions.matching(filter, now, versions)
        # The ids first: by themselves they are found through the index of a column and sorted without the texts.
        ids = f"SELECT r.id FROM record r WHERE {condition.sql} ORDER BY {_ORDERS[order]} LIMIT ? OFFSET ?"
        rows = self._execute(
            f"{RECORD} WHERE r.id IN ({ids}) ORDER BY {_ORDERS[order]}",
            (*condition.values, NO_LIMIT if limit is None else limit, offset),
        )
        return map(record_of, rows)

    def get(self, row_id: int, *, outcome: Outcome = "stored") -> Record:
        """The record with this row id."""
        (row,) = self._execute(f"{RECORD} WHERE r.id = ?", (row_id,))
        return record_of(row, outcome)

    def get_many(self, ids: Sequence[int]) -> Iterator[Record]:
        """The records with these row ids, ascending, streamed."""
        rows = self._execute(f"{RECORD} WHERE r.id {IN_ARRAY} ORDER BY r.id", (self._id_array(ids),))
        return map(record_of, rows)

    def history(self, public_id: str, base: str = "/", *, chain: bool = False) -> list[Record]:
        """Every version of a record in the scope `base`, oldest first; the open one is last.

        With `chain` also the versions of records that it supersedes and that supersede it, transitively, in this order.
        """
        ids = self.version_ids(public_id, base)
        if chain:
            chained = self._tx.supersessions.chain(ids[-1])
            ids = [version_id for name in self.public_ids_of(chained) for version_id in self.version_ids(name, base)]
        records = self.by_row_ids(ids)
        return [records[row_id] for row_id in ids]

    def version_ids(self, public_id: str, base: str = "/") -> list[int]:
        """The row ids of `history`."""
        within = self._tx.conditions.in_scopes((base,))
        # Two statements, each by its partial index: as one they scan the table.
        of = f"SELECT r.id FROM record r WHERE r.public_id = ? AND {within.sql} AND r.recorded_until"
        return [
            *self._column(f"{of} IS NOT NULL ORDER BY r.recorded_from, r.id", (public_id, *within.values)),
            *self._column(f"{of} IS NULL", (public_id, *within.values)),
        ]

    def version_at(self, row_id: int, moment: int) -> int:
        """The row id of the version of an open record that was valid at `moment`; the open one if none was."""
        version_id: Any = self._execute(
            "SELECT v.id FROM record r JOIN record v ON v.public_id = r.public_id AND v.recorded_until IS NOT NULL "
            "WHERE r.id = ? AND v.recorded_from <= ? AND v.recorded_until > ?",
            (row_id, moment, moment),
        ).get
        return row_id if version_id is None else int(version_id)

    def count(self, filter: Filter, now: int, *, versions: Versions = "current") -> int:
        """The number of records that a filter admits."""
        condition = self._tx.conditions.matching(filter, now, versions)
        return self._number(f"SELECT count(*) FROM record r WHERE {condition.sql}", condition.values)

    def count_replaced(self, filter: Filter, now: int) -> int:
        """The number of records that a filter leaves out because others have surely replaced them."""
        if filter.include_superseded or filter.valid_at is not None:
            return 0
        everything = filter.replaced(include_superseded=True)
        if filter.as_of is not None:
            return self.count(everything, now) - self.count(filter, now)
        within, shown = (self._tx.conditions.matching(part, now) for part in (everything, filter))
        # From the few that were replaced: none costs nothing, and a list is not read a second time.
        return self._number(
            "SELECT count(*) FROM (SELECT DISTINCT old_id FROM supersession WHERE known_until IS NULL AND certain) x "
            f"CROSS JOIN record r ON r.id = x.old_id WHERE ({within.sql}) AND NOT coalesce(({shown.sql}), false)",
            (*within.values, *shown.values),
        )

    def count_by_scope(self, filter: Filter, now: int) -> list[tuple[str, int]]:
        """The number of records that a filter admits in each scope that has any."""
        condition = self._tx.conditions.matching(filter, now)
        return self._rows(
            "SELECT s.path, n.records FROM (SELECT r.scope_id, count(*) AS records FROM record r "
            f"WHERE {condition.sql} GROUP BY r.scope_id) n JOIN scope s ON s.id = n.scope_id",
            condition.values,
        )

    def count_by_tag(self, filter: Filter, now: int) -> list[tuple[str, int]]:
        """The number of records with each tag that a filter admits."""
        condition = self._tx.conditions.matching(filter, now)
        # Counted here: GROUP BY sorts all rows first, which takes three times as long.
        counts = Counter(
            self._column(
                f"SELECT rt.tag_id FROM record r CROSS JOIN record_tag rt ON rt.record_id = r.id WHERE {condition.sql}",
                condition.values,
            )
        )
        names = self._rows(f"SELECT name, id FROM tag WHERE id {IN_ARRAY}", (self._id_array([*counts]),))
        return [(name, counts[tag_id]) for name, tag_id in names]

    def current(self, ids: Sequence[int], now: int) -> Iterator[CurrentRecord]:
        """The current records with these row ids; superseded ones are none."""
        return self._current("r.id IN (SELECT value FROM carray(?2))", now, self._id_array(ids))

    def current_by_text(self, keys: Sequence[bytes], now: int) -> Iterator[CurrentRecord]:
        """The current records with one of these text keys (`text_key`), in order of storing."""
        condition = "r.id IN (SELECT value FROM carray(?2)) ORDER BY r.id"
        return self._current(condition, now, self._id_array([*self.ids_by_text(keys)]))

    @abstractmethod
    def ids_by_text(self, keys: Sequence[bytes]) -> dict[int, bytes]:
        """The open records with one of these text keys: by row id, each with its key."""

    def current_by_topic(self, topics: Sequence[str], now: int) -> Iterator[CurrentRecord]:
        """The current records of these topics, the last changed last."""
        condition = "r.topic IN (SELECT value FROM carray(?2)) ORDER BY r.recorded_from, r.id"
        return self._current(condition, now, self._array(topics))

    def _current(self, condition: str, now: int, bound: Any) -> Iterator[CurrentRecord]:
        return starmap(CurrentRecord, self._rows(f"{_CURRENT} AND {condition}", (now, bound)))

    def editable_ids(self, filter: Filter) -> list[int]:
        """The row ids of the open records that a filter admits, without chunks of documents, by time of storing."""
        condition = self._tx.conditions.exported(filter, chunks=False)
        return self._column(
            f"SELECT r.id FROM record r WHERE {condition.sql} ORDER BY r.created_at, r.public_id", condition.values
        )

    def versions(self, filter: Filter, embedder: EmbedderRow | None) -> Iterator[Version]:
        """Every version of the open records that a filter admits, in order of storing, each record's oldest first.

        Versions of other scopes than the filter's are left out.
        With `embedder`, with its vectors. Streamed, a few hundred records at a time.
        """
        condition = self._tx.conditions.exported(filter)
        # NOT INDEXED walks by row id: through another index SQLite would first sort every row in memory.
        opened = self._execute(
            f"SELECT r.id, r.public_id FROM record r NOT INDEXED WHERE {condition.sql} ORDER BY r.id", condition.values
        )
        while chunk := list(islice(opened, _CHUNK)):
            yield from self.versions_of(read_rows(chunk, _Opened, "record"), embedder, filter.scopes or ("/",))

    def versions_of(
        self, opened: Sequence[tuple[int, str]], embedder: EmbedderRow | None, scopes: Sequence[str] = ("/",)
    ) -> Iterator[Version]:
        """Every version of these open records, given as row id and public id, as `versions` has them."""
        closed: dict[str, list[int]] = {}
        within = self._tx.conditions.in_scopes(scopes)
        for row_id, public_id in self._execute(
            f"SELECT r.id, r.public_id FROM record r WHERE r.recorded_until IS NOT NULL AND {within.sql} "
            f"AND r.public_id {IN_ARRAY} ORDER BY r.recorded_from, r.recorded_until, r.id",
            (*within.values, self._array([public_id for _, public_id in opened])),
        ):
            closed.setdefault(public_id, []).append(row_id)
        ids = [version for row_id, public_id in opened for version in (*closed.get(public_id, ()), row_id)]
        records = self.by_row_ids(ids)
        parts = {} if embedder is None else self._tx.vectors.values_of(ids, embedder)
        repeated = self._tx.comparisons.occurrences(ids)
        for row_id in ids:
            yield Version(records[row_id], tuple(parts.get(row_id, ())), repeated.get(row_id, ()))

    def by_row_ids(self, ids: Sequence[int]) -> dict[int, Record]:
        """`get_many` by row id."""
        return dict(zip(sorted(ids), self.get_many(ids), strict=True))

    def standing(self, among: Sequence[int] | None = None) -> dict[int, Standing]:
        """Return the row ids, ascending, of standing instructions and preferences, and which of the two each is.

        Only ids in `among`, unless it is None.
        """
        within = ("", ()) if among is None else (f"WHERE record_id {IN_ARRAY} ", (self._id_array(among),))
        return dict(self._execute(f"SELECT record_id, name FROM standing {within[0]}ORDER BY record_id", within[1]))

    def labels(self, filter: Filter, now: int) -> Labels:
        """Ids, scopes, kinds and sources of the records that a filter admits."""
        condition = self._tx.conditions.matching(filter, now)
        # As JSON, which SQLite writes without the GIL: row by row takes 1.3 times as long, and holds it.
        columns = ("id", "public_id", "scope_id", "kind", "coalesce(source_id, -1)", "superseded")
        (row,) = self._execute(
            f"SELECT {', '.join(f'json_group_array({column})' for column in columns)} FROM "
            "(SELECT id, public_id, scope_id, kind, source_id, "
            "CASE WHEN superseded_at IS NULL OR held_until IS NOT NULL THEN 0 ELSE 1 END AS superseded "
            f"FROM {_from(filter)} WHERE {condition.sql} ORDER BY id)",
            condition.values,
        )
        ids, public_ids, scopes, kinds, sources, superseded = map(msgspec.json.decode, row)
        return Labels(
            ids=np.array(ids, dtype=np.int64),
            public_ids=public_ids,
            scopes=np.array(scopes, dtype=np.int64),
            kinds=kinds,
            sources=np.array(sources, dtype=np.int64),
            superseded=np.array(superseded, dtype=np.bool_),
            scope_names=dict(self._execute("SELECT id, path FROM scope")),
            source_names=dict(self._execute("SELECT id, name FROM source")),
        )

    def count_by_day(self, filter: Filter, now: int) -> list[tuple[int, int]]:
        """The number of records that a filter admits of each day that has any: days since 1970 (UTC), ascending.

        A record tells of its valid time, else of when it was created.
        """
        condition = self._tx.conditions.matching(filter, now)
        # Integer division rounds towards zero: times before 1970 are shifted first.
        moment = "coalesce(r.valid_from, r.created_at)"
        day = f"({moment} - ((({moment} % {_DAY_US}) + {_DAY_US}) % {_DAY_US})) / {_DAY_US}"
        return self._rows(
            f"SELECT {day} AS day, count(*) FROM {_from(filter)} WHERE {condition.sql} GROUP BY day ORDER BY day",
            condition.values,
        )
