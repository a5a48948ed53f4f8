"""Writing under a policy: each row is a duplicate, is merged into a record, or becomes a record, and is linked.

Decisions are made inside the write transaction, on neighbours searched at the same commit: of two processes that write
the same text at once, the second finds the record of the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from msgspec import structs

from recollect.checks import now_us, to_datetime
from recollect.embedding.handle import Identity
from recollect.engine import Engine
from recollect.policies import WritePolicy
from recollect.records import Contradiction, Link, Outcome, Record
from recollect.remember.embed import embedder_of, insert_rows
from recollect.remember.merge_candidates import SPARE, CandidateRecord, Match, MergeCandidates
from recollect.remember.prepare import as_record
from recollect.remember.threshold_search import ThresholdMatches, threshold_search
from recollect.store.protocol import Reader, Writer
from recollect.store.values import LinkRow, Row
from recollect.text.quotes import Quotation

# Searching for this many inside the transaction holds the write lock a few milliseconds longer.
_FEW = 8


class _Written(NamedTuple):
    """What was done with a row, and the record that it became or was merged into."""

    outcome: Outcome
    candidate: CandidateRecord
    cosine: float | None = None
    linked: Sequence[Match] = ()
    contradictions: tuple[Contradiction, ...] = ()


def write_one(engine: Engine, row: Row, identity: Identity | None, policy: WritePolicy) -> Record:
    """Write a row as the policy says; the `outcome` of the record says what was done."""
    with _transaction(engine, [row], identity, policy, report=True) as batch:
        done = batch.write(0)
        linked_at = batch.finish()
        return _record(batch.writer, row, done, linked_at)


def write_rows(engine: Engine, rows: Sequence[Row], identity: Identity | None, policy: WritePolicy) -> list[str]:
    """Write rows in order as the policy says; returns the id of the record that each became or was merged into."""
    with _transaction(engine, rows, identity, policy, report=False) as batch:
        ids = [batch.write(place).candidate.public_id for place in range(len(rows))]
        batch.finish()
    return ids


@contextmanager
def _transaction(
    engine: Engine, rows: Sequence[Row], identity: Identity | None, policy: WritePolicy, *, report: bool
) -> Iterator[_Batch]:
    """The transaction that the rows are written in. Slow work that needs no lock is done before it begins."""
    quotations = [Quotation.of(row.text) for row in rows] if policy.recognise_recalled else []
    before = _search_before(engine, rows, policy)
    with engine.atomic() as writer:
        near = before
        # The writer keeps its page cache over commits, a reader does not: searching here is faster.
        if policy.floor is not None and (near is None or near.commit != writer.changes.commit()):
            most = policy.most_links + SPARE
            near = threshold_search(engine, writer, rows, most, policy.floor, indexed=not engine.store.nested)
        yield _Batch(engine, writer, rows, identity, policy, near, quotations, report=report)


def _search_before(engine: Engine, rows: Sequence[Row], policy: WritePolicy) -> ThresholdMatches | None:
    """Load the index where it is not loaded, and search for many rows, while other processes may write."""
    if policy.floor is None:
        return None
    engine.start_kernels(len(rows))
    many = len(rows) > _FEW
    if not many and engine.index.commit is not None:
        return None
    with engine.store.read() as reader:
        if many:
            return threshold_search(engine, reader, rows, policy.most_links + SPARE, policy.floor)
        engine.index.catch_up(reader)
    return None


def _record(reader: Reader, row: Row, done: _Written, linked_at: int) -> Record:
    if done.outcome == "created":
        record = as_record(row)
    else:
        assert done.candidate.record_id is not None
        record = reader.records.get(done.candidate.record_id, outcome=done.outcome)
    links = tuple(
        Link(
            source=record.id,
            target=match.record.public_id,
            type="similar",
            strength=_strength(match.cosine),
            created_at=to_datetime(linked_at),
        )
        for match in done.linked
        if isinstance(match.record, CandidateRecord)
    )
    return structs.replace(record, cosine=done.cosine, links=links, contradictions=done.contradictions)


class _Batch:
    """Rows written in order in one transaction."""

    def __init__(
        self,
        engine: Engine,
        writer: Writer,
        rows: Sequence[Row],
        identity: Identity | None,
        policy: WritePolicy,
        near: ThresholdMatches | None,
        quotations: Sequence[Quotation],
        *,
        report: bool,
    ) -> None:
        """`report` reads what links and contradictions are reported with."""
        self.writer = writer
        self._engine, self._rows, self._identity, self._policy = engine, rows, identity, policy
        self._now = now_us()
        self._candidates = MergeCandidates(writer, rows, policy, near, quotations, self._insert, report=report)
        self._waiting: list[tuple[Row, CandidateRecord]] = []
        self._links: list[tuple[CandidateRecord, Match]] = []

    def write(self, place: int) -> _Written:
        """Write the next row."""
        row, policy = self._rows[place], self._policy
        matches = self._candidates.near(place)
        if row.supersedes:  # a memory of its own, whatever it resembles
            return self._connected(_Written("created", self._create(place, row)), row, matches)
        repeated = self._candidates.repeated(place, row, matches)
        if repeated is not None:
            return _Written("duplicate", *repeated)
        topic, cosine = self._candidates.on_topic(row, matches)
        if topic is not None and policy.merge_strategy != "append":
            done = _Written(self._merge(topic, place, row), topic, cosine)
        else:
            if topic is not None and row.topic is None:
                row.topic = topic.topic
            done = _Written("created", self._create(place, row))
        return self._connected(done, row, [each for each in matches if each.record is not done.candidate])

    def _connected(self, done: _Written, row: Row, matches: Sequence[Match]) -> _Written:
        """Add links to the matches, and possible contradictions among them."""
        policy = self._policy
        linked: list[Match] = []
        if policy.link_cosine is not None:
            linked = [each for each in matches if each.cosine >= policy.link_cosine][: policy.most_links]
            self._links += [(done.candidate, each) for each in linked]
        return done._replace(linked=linked, contradictions=self._candidates.contradictions(row, matches))

    def finish(self) -> int:
        """Insert the rows that wait and store the links; returns the time of the links."""
        self._insert()
        linked_at = now_us()
        rows = []
        for candidate, match in self._links:
            target = match.record.record_id if isinstance(match.record, CandidateRecord) else match.record
            if candidate.record_id is not None and target is not None:
                rows.append(LinkRow(candidate.record_id, target, "similar", _strength(match.cosine), linked_at))
        if rows:
            self.writer.links.put(rows)
        return linked_at

    def _create(self, place: int, row: Row) -> CandidateRecord:
        candidate = CandidateRecord(
            None, row.public_id, row.scope, row.kind, row.text, row.context, row.topic, row.pinned, row.content_hash,
            row.valid_from, place,
        )  # fmt: skip
        self._waiting.append((row, candidate))
        self._candidates.takes_text_of(candidate, place, row)
        return candidate

    def _merge(self, candidate: CandidateRecord, place: int, row: Row) -> Outcome:
        """Give a record the text of this row. Fields that the row leaves at their defaults stay, times excepted.

        A text older than the current one goes into the history, or is dropped where no history is kept.
        """
        self._insert()
        assert candidate.record_id is not None
        keep = self._policy.merge_strategy == "latest" or candidate.pinned
        same = candidate.content_hash == row.content_hash
        reader = self.writer
        embedder = None if same else embedder_of(reader, [row], self._identity)
        # A record dated in the future is no newer than a text written now.
        if row.valid_from < min(candidate.valid_from, self._now):
            if keep and not same:
                reader.records.insert_earlier(candidate.record_id, row, embedder)
            return "merged"
        if not same:
            reader.records.change_text(candidate.record_id, row, embedder, keep_version=keep)
        candidate.valid_from = max(row.valid_from, candidate.valid_from)
        columns: dict[str, object] = {
            "created_at": row.created_at, "event_at": row.event_at, "event_until": row.event_until,
            "event_resolved": row.event_resolved, "expires_at": row.expires_at, "updated_at": row.updated_at,
        }  # fmt: skip
        if row.importance != 0.5:
            columns["importance"] = row.importance
        if row.metadata is not None:
            columns["metadata"] = row.metadata
        if row.pinned:
            columns["pinned"] = True
        if row.source is not None:
            columns |= {"source": row.source, "position": row.position}
        reader.records.change_columns(candidate.record_id, columns, row.tags or None)
        candidate.pinned = candidate.pinned or row.pinned
        self._candidates.takes_text_of(candidate, place, row)
        return "merged" if keep or same else "replaced"

    def _insert(self) -> None:
        """Insert the new rows not stored yet."""
        if not self._waiting:
            return
        rows = [row for row, _ in self._waiting]
        ids = insert_rows(self.writer, rows, self._identity)
        for record_id, (_, candidate) in zip(ids, self._waiting, strict=True):
            self._candidates.stored(candidate, record_id)
        self._waiting = []


def _strength(cosine: float) -> float:
    return min(1.0, max(0.0, cosine))
