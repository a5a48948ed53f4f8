"""Writing rows in order under a policy: each is a duplicate, is merged into a record, or becomes one and is connected.

Decisions are made inside the write transaction, on neighbours searched at the same commit: of two processes that write
the same text at once, the second finds the record of the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import compress
from typing import NamedTuple

from msgspec import structs

from recallite.embedding.handle import Identity
from recallite.engine import Engine
from recallite.model.authority import authority_of
from recallite.model.checks import now_us, to_datetime
from recallite.model.policies import WritePolicy
from recallite.model.records import Contradiction, Link, OnExisting, Outcome, Record
from recallite.remember.catching_up import comparing_policies
from recallite.remember.compared_records import Known
from recallite.remember.detection import NOTHING, Detected, Detection
from recallite.remember.effects import Effects
from recallite.remember.embed import embedder_of, insert_rows
from recallite.remember.merge_candidates import SPARE, CandidateRecord, Match, MergeCandidates
from recallite.remember.model_judging import start_judging
from recallite.remember.prepare import as_record
from recallite.remember.replacing import replace_record
from recallite.remember.similar_records import ThresholdMatches, index_of, threshold_search
from recallite.remember.text_detection import TextDetection
from recallite.store.columns import RowColumns
from recallite.store.supersession_values import StatementCandidate
from recallite.store.transaction import Writer
from recallite.store.values import LinkRow, Row
from recallite.text.quotes import Quotation

# Searching for this many inside the transaction holds the write lock a few milliseconds longer.
_FEW = 8


class _Written(NamedTuple):
    """The outcome of a row, and the id of the record that it became, repeats or was merged into."""

    outcome: Outcome
    public_id: str
    cosine: float | None = None
    linked: Sequence[Match] = ()
    detected: Detected = NOTHING


def write_one(
    engine: Engine, rows: RowColumns, identity: Identity | None, policy: WritePolicy, on_existing: OnExisting
) -> Record:
    """Write one row as the policy says; the `outcome` of the record says what was done."""
    with _transaction(engine, rows, identity, policy, on_existing, report=True) as batch:
        done = batch.write(0)
        batch.finish()
        record = batch.record(rows[0], done)
    if batch.undecided:
        start_judging(engine)
    return record


def write_rows(
    engine: Engine,
    rows: Sequence[Row],
    identity: Identity | None,
    policy: WritePolicy,
    on_existing: OnExisting = "error",
    *,
    later: bool = False,
) -> list[str]:
    """Write rows in order as the policy says; returns the id of the record that each became or was merged into.

    With `later` they are compared only with records of the same text now, and with others by `start_comparing`.
    """
    columns = RowColumns.of(rows)
    with _transaction(engine, columns, identity, policy, on_existing, report=False, later=later) as batch:
        ids = batch.write_all()
        batch.finish()
    if batch.undecided:
        start_judging(engine)
    return ids


@contextmanager
def _transaction(
    engine: Engine,
    rows: RowColumns,
    identity: Identity | None,
    policy: WritePolicy,
    on_existing: OnExisting,
    *,
    report: bool,
    later: bool = False,
) -> Iterator[_Batch]:
    """The transaction that the rows are written in. Slow work that needs no lock is done before it begins."""
    quotations = [Quotation.of(text) for text in rows.text] if policy.recognise_recalled else []
    before = _search_before(engine, rows, policy)
    with engine.atomic(_locks(rows, on_existing)) as writer:
        near = before
        if policy.floor is not None and (near is None or not writer.changes.matches(near.commit)):
            most, indexed = policy.most_links + SPARE, not engine.store.nested
            # A writer of SQLite keeps its page cache over commits, a reader does not: searching there is faster.
            writes_alone = writer.sees_one_commit or not indexed
            with nullcontext(writer) if writes_alone else engine.store.read() as reader:
                near = threshold_search(engine, reader, rows, most, policy.floor, indexed=indexed)
        asks = policy.judge and engine.language_model is not None
        yield _Batch(
            writer, rows, identity, policy, near, quotations, report=report, asks=asks, on_existing=on_existing,
            later=later,
        )  # fmt: skip


def _locks(rows: RowColumns, on_existing: OnExisting) -> list[str] | None:
    """Return the locks that rows need: scopes and ids that they name; None if they may change other scopes."""
    if any(rows.supersedes) or (on_existing != "error" and any(rows.named)):
        return None
    return [*{*rows.scope}, *(f"id {public_id}" for public_id in compress(rows.public_id, rows.named))]


def _search_before(engine: Engine, rows: Sequence[Row], policy: WritePolicy) -> ThresholdMatches | None:
    """Load the index where it is not loaded, and search for many rows, while other processes may write."""
    if policy.floor is None:
        return None
    engine.start_kernels(len(rows))
    many = len(rows) > _FEW
    index = index_of(engine, rows)
    if not many and index.commit is not None:
        return None
    with engine.store.read() as reader:
        if reader.uncommitted:
            return None
        if many:
            return threshold_search(engine, reader, rows, policy.most_links + SPARE, policy.floor)
        index.catch_up(reader)
    return None


class _Batch:
    """Rows written in order in one transaction."""

    def __init__(
        self,
        writer: Writer,
        rows: RowColumns,
        identity: Identity | None,
        policy: WritePolicy,
        near: ThresholdMatches | None,
        quotations: Sequence[Quotation],
        *,
        report: bool,
        asks: bool,
        on_existing: OnExisting,
        later: bool,
    ) -> None:
        """`report` reads what links are reported with; `asks` has a language model judge what the rules leave open."""
        self._on_existing = on_existing
        # Read when the first row that names an id is written.
        self._named: dict[str, int] | None = None
        self._writer, self._rows, self._identity, self._policy = writer, rows, identity, policy
        self._now = now_us()
        self._candidates = MergeCandidates(writer, rows, policy, near, quotations, self._insert, report=report)
        self._compared_by = comparing_policies(policy) if later else None
        by_text = TextDetection(writer, rows, policy) if later else None
        self._detection = by_text or Detection(writer, rows, policy)
        # Set if nothing but the text of a row decides what becomes of it.
        self._by_text = None if policy.floor is not None or quotations else by_text
        self._effects = Effects(writer, self._detection, self._row_id, self._insert, self._now, asks=asks)
        # The places of the rows to insert, and what was made of some of them.
        self._waiting: list[int] = []
        self._waiting_as: dict[int, CandidateRecord] = {}
        self._waiting_ids: set[str] = set()
        self._row_ids: dict[str, int] = {}
        # The row ids of stored records that rows say again, which are compared again later.
        self._said_again: set[int] = set()
        # What connects records; their row ids are known when all rows are stored.
        self._links: list[tuple[CandidateRecord, Match]] = []

    @property
    def undecided(self) -> bool:
        """Whether a pair waits for a language model."""
        return self._effects.undecided

    def write_all(self) -> list[str]:
        """Write all rows, in order; returns the id of the record that each became, repeats or was merged into."""
        public_ids = [*self._rows.public_id]
        for place, plain in enumerate(self._plain()):
            if plain:
                self._waiting.append(place)
            else:
                public_ids[place] = self.write(place).public_id
        return public_ids

    def _plain(self) -> list[bool]:
        """Whether each row becomes a record of its own without a look at any other."""
        rows = self._rows
        if self._by_text is None:
            return [False] * len(rows)
        merged = self._policy.merge_strategy != "append"
        alone = self._by_text.alone()
        known = self._known_ids()
        counts = Counter(compress(rows.public_id, rows.named))
        return [
            alone[place]
            and not (rows.topic[place] is not None and merged)
            and not rows.supersedes[place]
            and not (rows.named[place] and (rows.public_id[place] in known or counts[rows.public_id[place]] > 1))
            for place in range(len(rows))
        ]

    def write(self, place: int) -> _Written:
        """Write the next row."""
        row = self._rows[place]
        existing = self._existing(row) if row.named else None
        if existing is not None:
            return self._replace(existing, place, row)
        if not row.indexed:  # nothing is derived from it, and it is compared with nothing
            return _Written("created", self._create(place, row).public_id)
        matches = self._candidates.near(place)
        if row.supersedes:  # a record of its own, whatever it resembles
            return self._connected("created", self._create(place, row), matches)
        # What has an id of its own is a record of its own.
        quoted = None if row.named else self._candidates.quoted(place, row)
        if quoted is not None:
            return _Written("duplicate", quoted.public_id)
        topic, cosine = (None, None) if row.named else self._candidates.on_topic(row, matches)
        merges = topic is not None and self._policy.merge_strategy != "append"
        detected = NOTHING if merges and row.topic is not None else self._detection.compared(place)
        if detected.same is not None:
            same = detected.same
            self._effects.add(row, detected)
            if self._compared_by is not None:
                self._compare_again(same.other, row)
            return _Written("duplicate", same.other.public_id, None if same.other.text == row.text else same.cosine)
        if topic is not None and merges:
            return self._connected(self._merge(topic, place, row), topic, matches)._replace(cosine=cosine)
        if topic is not None and row.topic is None:
            row.topic = topic.topic
        created = self._create(place, row)
        self._effects.add(row, detected)
        return self._connected("created", created, matches)._replace(detected=detected)

    def finish(self) -> None:
        """Insert the rows that wait, and connect the records."""
        self._insert()
        self._effects.store()
        if self._compared_by is not None and self._said_again:
            again = self._writer.uncompared.without(sorted(self._said_again))
            self._writer.uncompared.add(again, self._compared_by(False))
            self._writer.statements.derive(again)
        links = []
        for candidate, match in self._links:
            target = match.record.record_id if isinstance(match.record, CandidateRecord) else match.record
            if candidate.record_id is not None and target is not None:
                links.append(LinkRow(candidate.record_id, target, "similar", _strength(match.cosine), self._now))
        if links:
            self._writer.links.put(links)

    def _compare_again(self, known: Known, row: Row) -> None:
        """Have a stored record wait that a row says again, at a time that may change what it does to others."""
        times = self._detection.claim(known).told_at
        told_at = self._detection.told_at(row)
        if isinstance(known, StatementCandidate) and not times[0] <= told_at <= times[-1]:
            self._said_again.add(known.record_id)

    def record(self, row: Row, done: _Written) -> Record:
        """The record of a row that has been written alone, with what was done."""
        detected = done.detected
        marked = row.supersedes or detected.superseded or detected.successors
        if done.outcome == "created" and not marked:
            record = as_record(row)
        else:
            (record_id,) = self._writer.records.find_ids([done.public_id], "/").values()
            record = self._writer.records.get(record_id, outcome=done.outcome)
        links = tuple(
            Link(
                source=record.id,
                target=match.record.public_id,
                type="similar",
                strength=_strength(match.cosine),
                created_at=to_datetime(self._now),
            )
            for match in done.linked
            if isinstance(match.record, CandidateRecord)
        )
        contradictions = tuple(
            Contradiction(
                id=other.public_id,
                text=other.text,
                authority=authority_of(other.authority),
                cosine=cosine,
                reason=verdict.reason,
                strength=verdict.confidence,
            )
            for other, verdict, cosine in detected.contradicted
        )
        return structs.replace(record, cosine=done.cosine, links=links, contradictions=contradictions)

    def _create(self, place: int, row: Row) -> CandidateRecord:
        candidate = CandidateRecord(
            None, row.public_id, row.scope, row.kind, row.text, row.context, row.topic, row.pinned, row.authority,
            row.content_hash, row.recorded_from, place,
        )  # fmt: skip
        self._waiting.append(place)
        self._waiting_as[place] = candidate
        self._waiting_ids.add(row.public_id)
        if row.indexed:
            self._candidates.takes_text_of(candidate, place, row)
            self._detection.wrote(place)
        if row.supersedes:  # at once, so that the rows after this one find what stands
            self._insert()
            self._detection.read_again()
        return candidate

    def _connected(self, outcome: Outcome, candidate: CandidateRecord, matches: Sequence[Match]) -> _Written:
        """Link the written record to the matches that are near enough."""
        policy, least = self._policy, self._policy.link_cosine
        if least is None:
            return _Written(outcome, candidate.public_id)
        others = [match for match in matches if match.record is not candidate]
        linked = [match for match in others if match.cosine >= least][: policy.most_links]
        self._links += [(candidate, match) for match in linked]
        return _Written(outcome, candidate.public_id, linked=linked)

    def _merge(self, candidate: CandidateRecord, place: int, row: Row) -> Outcome:
        """Give a record the text of this row. Fields that the row leaves at their defaults stay, times excepted.

        A text older than the current one goes into the history, or is dropped where no history is kept.
        """
        self._insert()
        assert candidate.record_id is not None
        keep = self._policy.merge_strategy == "latest" or candidate.pinned
        same = candidate.content_hash == row.content_hash
        writer = self._writer
        embedder = None if same else embedder_of(writer, [row], self._identity)
        # A record dated in the future is no newer than a text written now.
        if row.recorded_from < min(candidate.recorded_from, self._now):
            if keep and not same:
                writer.records.insert_earlier(candidate.record_id, row, embedder)
            return "merged"
        if not same:
            writer.records.change_text(candidate.record_id, row, embedder, keep_version=keep)
        candidate.recorded_from = max(row.recorded_from, candidate.recorded_from)
        columns: dict[str, object] = {
            "created_at": row.created_at, "valid_from": row.valid_from, "valid_until": row.valid_until,
            "valid_resolved": row.valid_resolved, "expires_at": row.expires_at, "updated_at": row.updated_at,
        }  # fmt: skip
        if row.importance != 0.5:
            columns["importance"] = row.importance
        if row.metadata is not None:
            columns["metadata"] = row.metadata
        if row.pinned:
            columns["pinned"] = True
        if row.authority != candidate.authority:
            columns["authority"] = row.authority
        if row.source is not None:
            columns |= {"source": row.source, "position": row.position}
        writer.records.change_columns(candidate.record_id, columns, row.tags or None)
        candidate.pinned = candidate.pinned or row.pinned
        self._candidates.takes_text_of(candidate, place, row)
        self._detection.changed(candidate.public_id)
        return "merged" if keep or same else "replaced"

    def _existing(self, row: Row) -> int | None:
        known = self._known_ids()
        if row.public_id in self._waiting_ids:
            self._insert()
        return self._row_ids.get(row.public_id, known.get(row.public_id))

    def _known_ids(self) -> dict[str, int]:
        """The row ids of the stored records whose ids the rows name, by those ids."""
        if self._named is None:
            self._named = self._writer.records.find_ids([*compress(self._rows.public_id, self._rows.named)], "/")
        return self._named

    def _replace(self, record_id: int, place: int, row: Row) -> _Written:
        """Give the record that has the id of a row already what the row has."""
        outcome = replace_record(self._writer, record_id, row, self._identity, self._on_existing)
        self._row_ids[row.public_id] = record_id
        self._candidates.replaced(record_id, place, row)
        self._detection.changed(row.public_id)
        return _Written(outcome, row.public_id)

    def _insert(self) -> None:
        if not self._waiting:
            return
        ids = insert_rows(self._writer, self._rows.select(self._waiting), self._identity, compared_by=self._compared_by)
        for place, record_id in zip(self._waiting, ids, strict=True):
            candidate = self._waiting_as.get(place)
            if candidate is not None:
                self._candidates.stored(candidate, record_id)
                self._row_ids[candidate.public_id] = record_id
        self._waiting, self._waiting_as, self._waiting_ids = [], {}, set()

    def _row_id(self, known: Known) -> int:
        return self._row_ids[known.public_id] if isinstance(known, Row) else known.record_id


def _strength(cosine: float) -> float:
    return min(1.0, max(0.0, cosine))
