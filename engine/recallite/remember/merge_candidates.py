"""Merge candidates for the rows of a batch, both stored records and rows of the batch itself.

A row may be merged into a record that it quotes, with its topic, or with a similar vector: its cosine to the new text
reaches a threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from posixpath import commonpath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recallite.engine import Engine
from recallite.index.memory_index import MemoryIndex
from recallite.index.table import RowFilter
from recallite.model.authority import LOWEST_RANK, said_by
from recallite.model.checks import now_us
from recallite.model.filters import MESSAGE_KIND, Filter
from recallite.model.match_reasons import MATCH_REASONS
from recallite.model.records import Record
from recallite.model.settings import WritePolicy
from recallite.remember.relations import Known
from recallite.store.columns import CurrentRecord, Row, RowColumns
from recallite.store.sql.derived import StatementCandidate
from recallite.store.sql.meta import Commit
from recallite.store.sql.vectors import EmbedderRow
from recallite.store.transaction import Reader
from recallite.system.numerics import cosines_to, kernel_errors, kernels, products
from recallite.system.parallel import run_tasks
from recallite.text.patterns import lazily
from recallite.text.quotes import Claim, Quotation
from recallite.text.topics import same_topic
from recallite.text.words import KEY_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray


SPARE = 6
"""Neighbours fetched beyond those that may be linked: this batch may replace the text of some."""


class Match(NamedTuple):
    """A record near a row; `record` is only its row id where nothing else had to be read.

    `whole` is True where both texts were embedded in one part.
    """

    record: CurrentRecord | int
    cosine: float
    whole: bool


class MergeCandidates:
    """The candidates for each row of a batch, kept up to date while the rows are written in order.

    `insert_waiting` inserts the rows not stored yet: claims about a record are checked against what is stored.
    """

    def __init__(
        self,
        reader: Reader,
        rows: RowColumns,
        policy: WritePolicy,
        near: ThresholdMatches | None,
        quotations: Sequence[Quotation],
        insert_waiting: Callable[[], None],
        now: int,
    ) -> None:
        self._reader, self._rows, self._policy, self._now = reader, rows, policy, now
        self._quotations, self._insert_waiting = quotations, insert_waiting
        self._by_id: dict[int, CurrentRecord] = {}
        self._by_key: dict[bytes, list[CurrentRecord]] = {}
        # By scope, kind, topic and authority.
        self._by_topic: dict[tuple[str, str, str, int], CurrentRecord] = {}
        self._by_row: list[CurrentRecord | None] = [None] * len(rows.text)
        self._neighbors: Sequence[Sequence[Neighbor]] = [()] * len(rows) if near is None else near.neighbors
        self._batch_matches = None if near is None or len(rows) < 2 else BatchMatches(rows, policy.most_links + SPARE)
        # The records that a row may quote or that share its topic, and neighbours for more than their row id.
        records = reader.records
        if quotations and (keys := {key for quotation in quotations for key in quotation.keys}):
            for current in records.current_by_text(list(keys), now):
                self._add(current)
        topics = {topic for topic in rows.topic if topic} if policy.merge_strategy != "append" else ()
        if topics:
            for current in records.current_by_topic(list(topics), now):
                candidate = self._add(current)
                self._by_topic[_topic_of(candidate)] = candidate
        if near is not None:
            # A single write reports what it is linked to.
            least = 0.0 if len(rows) == 1 else 2.0 if policy.topic_cosine is None else policy.topic_cosine
            if ids := {neighbor.row_id for some in near.neighbors for neighbor in some if neighbor.cosine >= least}:
                for current in records.current(list(ids), now):
                    self._add(current)

    def near(self, i: int) -> list[Match]:
        """The records near a row, nearest first: stored ones that keep their text, and rows before it."""
        matches = []
        for neighbor in self._neighbors[i]:
            candidate = self._by_id.get(neighbor.row_id)
            if candidate is None or candidate.text_row is None:
                matches.append(Match(candidate or neighbor.row_id, neighbor.cosine, neighbor.whole))
        floor = self._policy.floor
        if self._batch_matches is None or floor is None:
            return matches
        for other, cosine in self._batch_matches.near(i, floor):
            earlier = self._by_row[other]
            if earlier is not None and earlier.text_row == other:
                whole = len(self._rows[i].vectors) == len(self._rows[other].vectors) == 1
                matches.append(Match(earlier, cosine, whole))
        return sorted(matches, key=lambda neighbor: -neighbor.cosine)

    def quoted(self, i: int, row: Row) -> CurrentRecord | None:
        """The record that a row quotes as recall may have returned it."""
        if not self._quotations:
            return None
        of_context = [] if row.context is None else [("context", row.context)]

        def recallable(key: bytes) -> list[CurrentRecord]:
            """The records with this text that a recall in the scope could have returned; a message is no memory."""
            return [
                candidate
                for candidate in self._by_key.get(key, ())
                if candidate.kind != MESSAGE_KIND
                if row.scope == "/" or candidate.scope == row.scope or candidate.scope.startswith(row.scope + "/")
            ]

        def hold(candidate: CurrentRecord, claims: Sequence[Claim]) -> bool:
            if not of_context and not claims:
                return True
            self._insert_waiting()
            record = self._reader.records.get(candidate.row_id)
            return all(_holds(record, name, value) for name, value in (*of_context, *claims))

        quoted = self._quotations[i].quoted(recallable, hold)
        return quoted[0] if quoted else None

    def on_topic(self, row: Row, matches: Sequence[Match]) -> tuple[CurrentRecord | None, float | None]:
        """The record on the topic of a row, and the cosine where it was found by similarity."""
        if row.topic is not None:
            for rank in range(row.authority, LOWEST_RANK - 1, -1):
                if candidate := self._by_topic.get((row.scope, row.kind, row.topic, rank)):
                    return candidate, None
            return None, None
        least = self._policy.topic_cosine
        for match in matches if least is not None else ():
            if least is None or match.cosine < least:
                break
            record = match.record
            if not match.whole or not isinstance(record, CurrentRecord) or record.authority > row.authority:
                continue
            one, other = (
                side.text if side.context is None else f"{side.context}\n{side.text}" for side in (row, record)
            )
            if same_topic(one, other):
                return record, match.cosine
        return None, None

    def of(self, known: Known) -> CurrentRecord | None:
        """The candidate that a record is, a stored one or a row of the batch."""
        if isinstance(known, StatementCandidate):
            return next(map(self._add, self._reader.records.current([known.row_id], self._now)), None)
        return next((record for record in self._by_row if record and record.public_id == known.public_id), None)

    def takes_text_of(self, candidate: CurrentRecord, i: int, row: Row) -> None:
        """Record that a record now has the text of this row."""
        if candidate.text_row != i:
            same_text = self._by_key.get(candidate.content_hash[:KEY_BYTES], [])
            if candidate in same_text:  # a record that is not indexed is not
                same_text.remove(candidate)
        candidate.text, candidate.context, candidate.content_hash = row.text, row.context, row.content_hash
        candidate.text_row, self._by_row[i] = i, candidate
        if candidate.authority != row.authority:
            self._drop_topic(candidate)
            candidate.authority = row.authority
        self._by_key.setdefault(row.content_hash[:KEY_BYTES], []).append(candidate)
        if candidate.topic is not None:
            self._by_topic[_topic_of(candidate)] = candidate

    def replaced(self, row_id: int, i: int, row: Row) -> CurrentRecord:
        """Record that a stored record has been replaced by this row; returns it."""
        candidate = self._by_id.get(row_id)
        if candidate is None:
            candidate = self._by_id[row_id] = CurrentRecord.of(row, i, row_id)
        self._drop_topic(candidate)
        candidate.scope, candidate.kind, candidate.topic, candidate.pinned = row.scope, row.kind, row.topic, row.pinned
        self.takes_text_of(candidate, i, row)
        return candidate

    def stored(self, candidate: CurrentRecord) -> None:
        """Record that a row has been inserted."""
        self._by_id[candidate.row_id] = candidate

    def _drop_topic(self, candidate: CurrentRecord) -> None:
        topic = _topic_of(candidate)
        if self._by_topic.get(topic) is candidate:
            del self._by_topic[topic]

    def _add(self, current: CurrentRecord) -> CurrentRecord:
        if current.row_id not in self._by_id:
            self._by_id[current.row_id] = current
            self._by_key.setdefault(current.content_hash[:KEY_BYTES], []).append(current)
        return self._by_id[current.row_id]


def _topic_of(candidate: CurrentRecord) -> tuple[str, str, str, int]:
    return candidate.scope, candidate.kind, candidate.topic or "", candidate.authority


# Records near a text: a search among the stored ones, and cosines within a batch.

# How many new records the index may lack; their vectors are read from the store.
_LATE = 24
# Rows of a batch compared at once.
_BLOCK = 256


class Neighbor(NamedTuple):
    """A record near a text: its row id, the cosine, and whether both texts were embedded in one part.

    Only then does a cosine near 1 mean that the texts are alike: long texts are compared by their nearest parts.
    """

    row_id: int
    cosine: float
    whole: bool


class ThresholdMatches(NamedTuple):
    """The neighbours of each text, nearest first, as of this commit."""

    commit: Commit
    neighbors: list[list[Neighbor]]


def threshold_search(
    engine: Engine, reader: Reader, rows: Sequence[Row], most: int, floor: float, *, indexed: bool = True
) -> ThresholdMatches:
    """Find at most `most` records at a cosine of at least `floor` for each row; none for a row without a vector.

    The store measures the cosines, of its float32 vectors. `indexed` is False in a transaction that has written: the
    index lacks its uncommitted rows, so every record of the scope and kind is read from the store.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for i, row in enumerate(rows):
        if row.vectors:
            groups.setdefault((row.scope, row.kind), []).append(i)
    neighbors: list[list[Neighbor]] = [[] for _ in rows]
    with kernel_errors(), ExitStack() as stack:
        if indexed:
            index = index_of(engine, rows)
            embedder, late = stack.enter_context(nearly_current(index, reader, _LATE))
        else:
            embedder = reader.vectors.active_embedder()
        commit = reader.changes.commit()
        if embedder is None or not groups:
            return ThresholdMatches(commit, neighbors)
        now = now_us()
        scopes = reader.scopes.ids(list({scope for scope, _ in groups}))
        for (scope, kind), indices in groups.items():
            if scope not in scopes:
                continue
            query = ThresholdQuery(scopes[scope], kind, now, most, floor)
            vectors = _first_parts([rows[i] for i in indices], embedder.dimension)
            likely: list[Likely] = [{} for _ in indices]
            if indexed and index.vectors is not None:
                likely = likely_in_index(index, vectors, query)
            unindexed = Filter(where={"scope": scope}, kinds=kind)
            if ids := late if indexed else reader.records.matching_ids(unindexed, now):
                stored = likely_among(reader.vectors.of_current(ids, embedder), vectors, query)
                likely = [a | b for a, b in zip(likely, stored, strict=True)]
            for i, vector, records in zip(indices, vectors, likely, strict=True):
                cosines = reader.vectors.cosines(embedder, vector, list(records)) if records else ()
                single_part = len(rows[i].vectors) == 1
                near = [
                    Neighbor(row_id, float(cosine), single_part and whole)
                    for (row_id, whole), cosine in zip(records.items(), cosines, strict=True)
                    if cosine >= floor
                ]
                near.sort(key=lambda neighbor: (-neighbor.cosine, neighbor.row_id))
                neighbors[i] = near[:most]
    return ThresholdMatches(commit, neighbors)


def index_of(engine: Engine, rows: Sequence[Row]) -> MemoryIndex:
    """The index that has the records of the rows' scopes."""
    return engine.index_within(commonpath({row.scope for row in rows}))


def _first_parts(rows: Sequence[Row], dimension: int) -> NDArray[np.float32]:
    """The vector of each row's first part, float32 (rows, dimension)."""
    return np.frombuffer(b"".join(row.vectors[0] for row in rows), dtype="<f4").reshape(len(rows), dimension)


# Records of a scope and kind that may reach the cosine.

# Queries per kernel call, as in recall.
_GROUP = 32
# The error of a cosine from int8 codes: at most 0.004 was measured.
_CODE_ERROR = 0.02
_ROUNDING = 1e-4

# Row ids of the records to measure the cosine of, and whether each was embedded in one part.
Likely = dict[int, bool]


class ThresholdQuery(NamedTuple):
    """A search for records of exactly this scope and kind, not expired `now`, with a cosine of at least `floor`.

    It finds at most `most` of them.
    """

    scope_id: int
    kind: str
    now: int
    most: int
    floor: float


def likely_among(
    records: Iterable[tuple[int, int, str, int, NDArray[np.float32]]],
    queries: NDArray[np.float32],
    search: ThresholdQuery,
) -> list[Likely]:
    """The records among some, as `Vectors.of_current` gives them, that may match each query; all are compared."""
    likely: list[Likely] = [{} for _ in queries]
    of_scope = [
        (row_id, parts)
        for row_id, scope_id, kind, expires_at, parts in records
        if (scope_id, kind) == (search.scope_id, search.kind) and expires_at > search.now
    ]
    if not of_scope:
        return likely
    sizes = np.array([len(parts) for _, parts in of_scope])
    cosines = products(queries, np.concatenate([parts for _, parts in of_scope]))
    rough = np.maximum.reduceat(cosines, np.cumsum(sizes) - sizes, axis=1)
    bounds = np.full((len(queries), 1), search.floor)
    if len(of_scope) > search.most:
        bounds = np.maximum(bounds, np.partition(rough, -search.most, axis=1)[:, -search.most, None])
    # The rounding of a matrix product depends on the other rows, which may belong to another scope.
    for query, i in np.argwhere(rough >= bounds - _ROUNDING).tolist():
        likely[query][of_scope[i][0]] = bool(sizes[i] == 1)
    return likely


def likely_in_index(index: MemoryIndex, queries: NDArray[np.float32], search: ThresholdQuery) -> list[Likely]:
    """The records that may match each query, float32 (q, dimension) of unit length, while the index is held."""
    hidden = index.table.superseded_rows()
    visible = RowFilter(now=search.now, scopes=(search.scope_id,), kinds=(search.kind,), hidden=hidden)
    mask = index.selection(visible)
    assert index.vectors is not None
    indices = None if mask is None else np.flatnonzero(index.vectors.admitted(mask))
    starts = range(0, len(queries), _GROUP)
    groups = run_tasks([partial(_nearest, index, queries[start : start + _GROUP], search, indices) for start in starts])
    return [likely for group in groups for likely in group]


def _nearest(
    index: MemoryIndex, queries: NDArray[np.float32], search: ThresholdQuery, indices: NDArray[np.int64] | None
) -> list[Likely]:
    """The records of the vectors at these indices that are nearest to each query by their codes."""
    vectors = index.vectors
    assert vectors is not None
    # The parts of one record may fill the list.
    nearest, cosines = vectors.nearest(queries, indices, search.most * (4 if vectors.has_parts else 1))
    likely = []
    for near, cosine in zip(nearest, cosines, strict=True):
        rows = vectors.owners(near[cosine >= search.floor - _CODE_ERROR])
        rows = rows[np.sort(np.unique(rows, return_index=True)[1])[: search.most]]
        likely.append(dict(zip(index.table.ids[rows].tolist(), (vectors.parts(rows) == 1).tolist(), strict=True)))
    return likely


# The few records that an index lacks, for a writer that searches in its own transaction.


@contextmanager
def nearly_current(index: MemoryIndex, reader: Reader, most: int) -> Iterator[tuple[EmbedderRow | None, list[int]]]:
    """Hold an index that lacks at most `most` new records that `reader` sees.

    Yields the active embedder and the row ids of these new records. Updating the index takes 1 to 2 ms for one record
    and hardly more for a hundred.
    """
    while True:
        embedder = reader.vectors.active_embedder()
        with index.lock.reading():
            changes = None if index.commit is None else reader.changes.since(index.commit)
            if changes is not None and {"insert", "link"}.issuperset([change.operation for change in changes]):
                count = sum(change.last_id - change.first_id + 1 for change in changes)
                if count <= most and embedder == index.embedder:
                    new = (change for change in changes if change.operation == "insert")
                    yield embedder, [row_id for each in new for row_id in range(each.first_id, each.last_id + 1)]
                    return
        index.catch_up(reader)
        with index.lock.reading():
            if index.matches(reader):
                yield embedder, []
                return
        reader.changes.refresh()


class BatchMatches:
    """Cosines between the rows of a batch that share scope and kind, computed a block at a time."""

    def __init__(self, rows: Sequence[Row], most: int) -> None:
        self._most = most
        groups: dict[tuple[str, str], list[int]] = {}
        self._seat: list[tuple[tuple[str, str], int] | None] = [None] * len(rows)
        for i, row in enumerate(rows):
            if row.vectors:
                group = groups.setdefault((row.scope, row.kind), [])
                self._seat[i] = (row.scope, row.kind), len(group)
                group.append(i)
        self._places = {key: np.array(indices) for key, indices in groups.items()}
        self._vectors = {
            key: _first_parts([rows[i] for i in indices], len(rows[indices[0]].vectors[0]) // 4)
            for key, indices in groups.items()
        }
        self._block: tuple[tuple[str, str], int, NDArray[np.float32]] | None = None

    def near(self, i: int, floor: float) -> list[tuple[int, float]]:
        """The nearest earlier rows at a cosine of at least `floor`, nearest first."""
        seat = self._seat[i]
        if seat is None or not seat[1]:
            return []
        key, seat_row = seat
        start = seat_row - seat_row % _BLOCK
        if self._block is None or self._block[:2] != (key, start):
            every = self._vectors[key]
            self._block = key, start, products(every[start : start + _BLOCK], every[: start + _BLOCK])
        cosines = self._block[2][seat_row - start, :seat_row]
        likely = np.flatnonzero(cosines >= floor - _ROUNDING)
        exact = cosines_to(self._vectors[key][likely], self._vectors[key][seat_row]).astype(np.float32)
        order = np.argsort(-exact, kind="stable")
        matching = order[exact[order] >= floor][: self._most]
        return [*zip(self._places[key][likely[matching]].tolist(), exact[matching].tolist(), strict=True)]


# Whether what a quoting text claims about a record is true of it: the text then adds nothing new.

_NUMBERS = frozenset(["score", "confidence", "relevance", "similarity", "importance", "position", "left_out"])
_NUMBER = lazily(r"\d+(?:\.\d+)?\s?%?")
_SIGNALS = lazily(rf"(?:{'|'.join(kernels.Signals._fields)})(?:_rank)?")
# As recall words its evidence gaps.
_GAP = lazily(
    r"no hit has (?:an? )?[a-z ]{1,40}|no hit mentions (['\"])[\w'-]{1,60}\1|the best hit's confidence is \d\.\d\d"
)
_TIMES = {
    "created": "created_at", "created_at": "created_at", "event": "valid_from", "valid_from": "valid_from",
    "updated": "updated_at", "updated_at": "updated_at", "accessed": "accessed_at", "accessed_at": "accessed_at",
    "valid_until": "valid_until", "held_until": "held_until",
}  # fmt: skip


def _holds(record: Record, name: str, value: Any) -> bool:
    """Whether a claim holds of a record. Numbers that depend on the query (scores) always do."""
    if value is None or value == [] or value == {}:
        return name in _NUMBERS or name in _TIMES or name in _FIELDS
    if name in _NUMBERS:
        return _is_number(value)
    if name in _TIMES:
        return _is_time(value, getattr(record, _TIMES[name]))
    check = _FIELDS.get(name)
    return check is not None and check(record, value)


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_time(value: Any, moment: datetime | None) -> bool:
    """Whether a text names this moment, to its own precision; without an offset it is UTC."""
    if not isinstance(value, str) or moment is None:
        return False
    try:
        claimed = datetime.fromisoformat(value)
    except ValueError:
        return False
    claimed = claimed.replace(tzinfo=UTC) if claimed.tzinfo is None else claimed.astimezone(UTC)
    if len(value) == len("2026-01-02"):
        return claimed.date() == moment.date()
    if value.count(":") == 1:
        return claimed == moment.replace(second=0, microsecond=0)
    return claimed == (moment if "." in value else moment.replace(microsecond=0))


def _all_in(value: Any, allowed: Sequence[str] | frozenset[str]) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and item in allowed for item in value)


def _is_source(record: Record, value: Any) -> bool:
    if isinstance(value, Mapping):
        claimed = {name: item for name, item in value.items() if item is not None}
        return claimed.items() <= {"id": record.source, "position": record.position}.items()
    return bool(value == record.source)


_FIELDS: Mapping[str, Any] = {
    "id": lambda record, value: isinstance(value, str) and value.lower() == record.id,
    # Scopes may be relative to the scope of a handle: the end of the path is compared.
    "scope": lambda record, value: (
        isinstance(value, str) and value.startswith("/") and (value == "/" or record.scope.endswith(value))
    ),
    "date": lambda record, value: _is_time(value, record.created_at) or _is_time(value, record.valid_from),
    "kind": lambda record, value: value == record.kind,
    "authority": lambda record, value: value == record.authority,
    "said_by": lambda record, value: value == said_by(record.authority, record.source),
    "topic": lambda record, value: value == record.topic,
    "context": lambda record, value: value == record.context,
    "source": _is_source,
    "superseded_by": lambda record, value: _all_in(value, record.superseded_by),
    "supersedes": lambda record, value: (
        isinstance(value, list)
        and all(isinstance(former, Mapping) and former.get("id") in record.supersedes for former in value)
    ),
    "tags": lambda record, value: _all_in(value, record.tags),
    "metadata": lambda record, value: value == record.metadata,
    "match_reasons": lambda _, value: _all_in(value, MATCH_REASONS),
    "evidence_gaps": lambda _, value: (
        isinstance(value, list) and all(isinstance(gap, str) and _GAP.fullmatch(gap) for gap in value)
    ),
    "sub_queries": lambda *_: False,
    "signals": lambda _, value: (
        isinstance(value, dict)
        and all(_SIGNALS.fullmatch(name) and _is_number(number) for name, number in value.items())
    ),
}
