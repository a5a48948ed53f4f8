"""Writing new memories: check and tokenise, embed, then insert in one transaction, from which the index is updated.

`Memory.remember` calls `remember_one`: `prepare_all` makes the row, `embed_rows` its vectors, and `write_one` decides,
as the policy says, whether it is a duplicate, is merged into a record, or becomes one and is connected. Many rows are
written in their order.

That is decided inside the write transaction, on neighbours searched at the same commit: of two processes that write the
same text at once, the second finds the record of the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import compress, islice
from typing import NamedTuple

from msgspec import structs

from recallite.embedding.handle import Identity
from recallite.engine import Engine
from recallite.errors import EmbedderMismatch, InvalidInput, InvalidItem, RecalliteError
from recallite.model.authority import authority_of
from recallite.model.checks import check_vectors, now_us, to_datetime
from recallite.model.records import Contradiction, Link, NewRecord, OnExisting, Outcome, Record
from recallite.model.settings import WritePolicy
from recallite.remember.change import replace_record
from recallite.remember.detection import NOTHING, Detected, Detection, Effects, TextDetection
from recallite.remember.embed import (
    EmbeddedText,
    check_embedded,
    embed_rows,
    embedder_of,
    identity_for,
    insert_rows,
    parts_ahead,
)
from recallite.remember.merge_candidates import (
    SPARE,
    CandidateRecord,
    Match,
    MergeCandidates,
    ThresholdMatches,
    index_of,
    threshold_search,
)
from recallite.remember.pending import MANY, comparing_policies, drain_pending, start_comparing, start_judging
from recallite.remember.prepare import Arguments, as_new_record, as_record, prepare_all, prepare_batch
from recallite.remember.relations import KINDS_THAT_LAST, Known, RowRefused
from recallite.store.columns import RowColumns
from recallite.store.store import Progress
from recallite.store.transaction import Writer
from recallite.store.values import EmbedderRow, LinkRow, Parts, Row, StatementCandidate
from recallite.system.messages import shown
from recallite.system.telemetry import traced
from recallite.text.junk import is_junk
from recallite.text.quotes import Quotation

# How many pending records are embedded after each write once the embedder works again.
PENDING_A_WRITE = 32


@traced("remember", lambda record: {"outcome": record.outcome or ""})
def remember_one(
    engine: Engine,
    item: NewRecord,
    *,
    base: str,
    policy: WritePolicy | None = None,
    on_existing: OnExisting = "error",
) -> Record:
    """Store one memory as `policy` (None: that of the settings) says; when this returns, it survives power loss.

    Call it outside a transaction: the text is embedded first.
    """
    policy = check_policy(engine, policy)
    max_chars, last = engine.settings.max_text_chars, engine.last_embedder
    rows = prepare_all(Arguments([item]), base=base, max_text_chars=max_chars, policy=policy)
    if is_skipped(rows[0], policy):
        return structs.replace(as_record(rows[0]), id="", outcome="skipped")
    try:
        record = _embed_and_write_one(engine, rows, item.vector, policy, on_existing, last)
    except (EmbedderMismatch, InvalidInput) as fault:
        # By now another process may have moved the store to another embedder.
        if fault.reason not in (None, "vector") or last is None or last == engine.active_embedder():
            raise
        rows = prepare_all(Arguments([item]), base=base, max_text_chars=max_chars, policy=policy)
        record = _embed_and_write_one(engine, rows, item.vector, policy, on_existing, None)
    embed_some_pending(engine, rows)
    start_comparing(engine)
    return record


@contextmanager
def transaction(engine: Engine, items: Iterable[object], *, base: str) -> Iterator[None]:
    """A transaction of the store, before which items that will be stored in it are embedded."""
    parts: dict[tuple[str, str | None], Parts] = {}
    with suppress(RecalliteError):  # what is wrong with an item is told where it is stored
        lacking = [item for item in map(as_new_record, items) if item.vector is None]
        if lacking:
            policy, max_chars = check_policy(engine, None), engine.settings.max_text_chars
            rows = prepare_all(Arguments(lacking), base=base, max_text_chars=max_chars, policy=policy)
            parts = parts_ahead(engine, rows)
    with engine.embedder.keeping(parts), engine.store.transaction():
        yield


def _embed_and_write_one(
    engine: Engine,
    rows: RowColumns,
    vector: object,
    policy: WritePolicy,
    on_existing: OnExisting,
    active: EmbedderRow | None,
) -> Record:
    """Embed and write one row. `active` is the store's embedder as it was last read; the transaction checks it."""
    identity = identity_for(engine, vector, active)
    embed_rows(engine.embedder, rows, [vector], identity)
    try:
        return write_one(engine, rows, identity, policy, on_existing)
    except RowRefused as refused:
        raise refused.error from None


def is_skipped(row: Row, policy: WritePolicy) -> bool:
    """Whether the policy keeps a row out as junk. "Yes" has a meaning under a topic, or where the context asks."""
    wanted = row.named or row.pinned or row.topic is not None or row.supersedes
    if policy.junk == "store" or row.kind in KINDS_THAT_LAST or wanted:
        return False
    return "?" not in (row.context or "") and is_junk(row.text)


def check_policy(engine: Engine, policy: object) -> WritePolicy:
    """The policy of a write: the one given, else that of the settings. Redaction set there applies to every write."""
    general = engine.settings.write_policy
    if policy is None:
        policy = general
    if not isinstance(policy, WritePolicy):
        raise InvalidInput(f"policy is {shown(policy)}: give a WritePolicy, e.g. WritePolicy(link_cosine=0.85)")
    return policy if general.redact is None else structs.replace(policy, redact=general.redact)


@traced("remember_many", lambda ids: {"memories": len(ids)})
def remember_batches(
    engine: Engine,
    items: Iterable[object],
    *,
    base: str,
    batch_size: int,
    on_progress: Progress | None,
    policy: WritePolicy | None = None,
    on_existing: OnExisting = "error",
) -> list[str]:
    """Store a stream of memories, one transaction per batch; InvalidItem names the item that stopped it.

    Returns an id for each item: of the new record, or of the one that it duplicates or was merged into; an empty one
    for junk that the policy skips.
    """
    policy = check_policy(engine, policy)
    if on_progress is not None and not callable(on_progress):
        raise InvalidInput(f"on_progress is {shown(on_progress)}: give a callable that takes (done, total)")
    total = len(items) if hasattr(items, "__len__") else None  # type: ignore[arg-type]
    ids: list[str] = []
    stream = iter(items)
    while batch := list(islice(stream, batch_size)):
        # Those of a call are compared alike, whatever is left for its last batch.
        later = policy.compare == "later" and (len(batch) >= MANY or bool(ids))
        if later:
            engine.start_kernels(len(batch))
        max_chars = engine.settings.max_text_chars
        rows, vectors = prepare_batch(batch, len(ids), base=base, max_text_chars=max_chars, policy=policy)
        places = [place for place in range(len(rows)) if policy.junk == "store" or not is_skipped(rows[place], policy)]
        stored = rows.select(places)
        try:
            written = _embed_and_write(
                engine, stored, [vectors[place] for place in places], policy, on_existing, later=later
            )
        except RowRefused as refused:
            place = next(place for place, row in zip(places, stored, strict=True) if row is refused.row)
            raise InvalidItem(len(ids) + place, len(ids), refused.error) from refused.error
        except RecalliteError as reason:
            bad = _first_bad_vector(engine, vectors)
            if bad is None:
                raise
            raise InvalidItem(len(ids) + bad, len(ids), reason) from reason
        by_place = dict(zip(places, written, strict=True))
        ids += [by_place.get(place, "") for place in range(len(rows))]
        if on_progress is not None:
            on_progress(len(ids), total)
    start_comparing(engine, added=True)
    return ids


def _embed_and_write(
    engine: Engine,
    rows: RowColumns,
    vectors: Sequence[object],
    policy: WritePolicy,
    on_existing: OnExisting,
    *,
    later: bool,
) -> list[str]:
    identity = identity_for(engine, next((vector for vector in vectors if vector is not None), None))
    embed_rows(engine.embedder, rows, vectors, identity)
    ids = write_rows(engine, rows, identity, policy, on_existing, later=later)
    engine.may_have_uncompared = engine.may_have_uncompared or later
    embed_some_pending(engine, rows)
    return ids


def embed_some_pending(engine: Engine, rows: Sequence[Row]) -> None:
    """Embed some pending records, where the embedder works.

    The rows are already stored, so a failure here is not raised: the next write tries again.
    """
    columns = RowColumns.of(rows)
    columns.copy_decisions_to_columns()  # rows that were merged or repeated were never inserted
    if any(columns.pending):
        engine.may_have_pending = True
    elif not engine.store.writing and engine.may_have_pending and any(columns.vectors):
        with engine.afterwards("embedding"):
            drain_pending(engine, PENDING_A_WRITE)


def _first_bad_vector(engine: Engine, vectors: Sequence[object]) -> int | None:
    """The position of the first vector that cannot be stored, for the error message."""
    identity = identity_for(engine, next((vector for vector in vectors if vector is not None), None))
    for place, vector in enumerate(vectors):
        if vector is not None:
            try:
                if not isinstance(vector, EmbeddedText):
                    check_vectors(vector, None if identity is None else identity.dimension)
                elif identity is not None:
                    check_embedded([vector], identity)
            except EmbedderMismatch:  # no fault of this one
                return None
            except RecalliteError:
                return place
    return None


# Rows in one transaction.

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
    with _batch_transaction(engine, rows, identity, policy, on_existing, report=True) as batch:
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
    with _batch_transaction(engine, columns, identity, policy, on_existing, report=False, later=later) as batch:
        ids = batch.write_all()
        batch.finish()
    if batch.undecided:
        start_judging(engine)
    return ids


@contextmanager
def _batch_transaction(
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
