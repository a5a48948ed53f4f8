"""Writing new memories: check and tokenise, embed, then insert in one transaction, from which the index is updated.

`Memory.remember` calls `remember_one`: `prepare_all` makes the row, `embed_rows` its vectors, and `Batch` decides,
as the policy says, whether it is a duplicate, is merged into a record, or becomes one and is connected. Many rows are
written in their order.

That is decided inside the write transaction, on neighbours searched at the same commit: of two processes that write the
same text at once, the second finds the record of the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cached_property
from itertools import compress, islice
from typing import NamedTuple, TypeVar

from msgspec import structs

from recallite.embedding.handle import Identity
from recallite.engine import Engine
from recallite.errors import EmbedderError, EmbedderMismatch, InvalidInput, InvalidItem, RecalliteError
from recallite.model.authority import authority_of
from recallite.model.checks import check_vectors, to_datetime
from recallite.model.records import DEFAULT_IMPORTANCE, Contradiction, Link, NewRecord, OnExisting, Outcome, Record
from recallite.model.settings import WritePolicy
from recallite.remember.change import replace_record
from recallite.remember.detection import (
    NOTHING,
    Detected,
    Detection,
    Effects,
    TextDetection,
    holds_instead_from,
)
from recallite.remember.embed import (
    EmbeddedText,
    check_embedded,
    embed_rows,
    embedder_of,
    identity_for,
    insert_rows,
)
from recallite.remember.merge_candidates import (
    SPARE,
    Match,
    MergeCandidates,
    ThresholdMatches,
    index_of,
    threshold_search,
)
from recallite.remember.pending import MANY, embed_pending, policy_json, start_comparing, start_judging, waits_under
from recallite.remember.prepare import Arguments, as_new_record, as_record, prepare_all, prepare_batch
from recallite.remember.relations import KINDS_THAT_LAST, Known, RowRefused
from recallite.store.columns import CurrentRecord, Parts, Row, RowColumns
from recallite.store.sql.derived import StatementCandidate
from recallite.store.sql.relations import LinkRow
from recallite.store.store import Progress
from recallite.store.transaction import Writer
from recallite.system.messages import shown
from recallite.system.telemetry import traced
from recallite.text.junk import is_junk
from recallite.text.quotes import Quotation
from recallite.text.statements import BY_FORM

# How many pending records are embedded after each write once the embedder works again.
_PENDING_A_WRITE = 32
# Searching for this many inside the transaction holds the write lock a few milliseconds longer.
_FEW = 8
_Written = TypeVar("_Written")


@traced("remember", lambda record: {"outcome": record.outcome or ""})
def remember_one(
    engine: Engine, item: NewRecord, *, base: str, policy: WritePolicy | None = None, on_existing: OnExisting = "error"
) -> Record:
    """Store one memory under `policy` (None: the settings'); when this returns, it survives power loss.

    Call it outside a transaction: the text is embedded first.
    """
    policy, max_chars = check_policy(engine, policy), engine.settings.max_text_chars
    # The store's embedder as it was last read; the transaction checks it.
    active = engine.last_embedder
    while True:
        rows = prepare_all(Arguments([item]), base=base, max_text_chars=max_chars, policy=policy)
        if policy.junk == "skip" and is_skipped(rows[0], policy):
            return structs.replace(as_record(rows[0]), id="", outcome="skipped")
        try:
            identity = identity_for(engine, item.vector, active)
            embed_rows(engine.embedder, rows, [item.vector], identity)
            record = write_rows(engine, rows, identity, policy, on_existing, Batch.write_one)
            break
        except RowRefused as refused:
            raise refused.error from None
        except (EmbedderMismatch, InvalidInput) as fault:
            # By now another process may have moved the store to another embedder.
            if fault.reason not in (None, "vector") or active is None or active == engine.active_embedder():
                raise
            active = None
    embed_some_pending(engine, rows.pending, rows.vectors)
    if engine.may_have_uncompared:
        start_comparing(engine)
    return record


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
    stream, max_chars = iter(items), engine.settings.max_text_chars
    while batch := list(islice(stream, batch_size)):
        # The batches of one call are compared alike, whatever is left for the last one.
        later = policy.compares_later and (len(batch) >= MANY or bool(ids))
        if later:
            engine.start_kernels(len(batch))
        rows, vectors = prepare_batch(batch, len(ids), base=base, max_text_chars=max_chars, policy=policy)
        indices = [i for i in range(len(rows)) if policy.junk == "store" or not is_skipped(rows[i], policy)]
        stored, given = rows.select(indices), [vectors[i] for i in indices]
        try:
            identity = _identity_for(engine, given)
            embed_rows(engine.embedder, stored, given, identity)
            written = write_rows(engine, stored, identity, policy, on_existing, Batch.write_all, later=later)
        except RowRefused as refused:
            i = next(i for i, row in zip(indices, stored, strict=True) if row is refused.row)
            raise InvalidItem(len(ids) + i, len(ids), refused.error) from refused.error
        except RecalliteError as reason:
            bad = _first_bad_vector(engine, vectors)
            if bad is None:
                raise
            raise InvalidItem(len(ids) + bad, len(ids), reason) from reason
        engine.may_have_uncompared = engine.may_have_uncompared or (later and policy.compares)
        embed_some_pending(engine, stored.pending, stored.vectors)
        by_index = dict(zip(indices, written, strict=True))
        ids += [by_index.get(i, "") for i in range(len(rows))]
        if on_progress is not None:
            on_progress(len(ids), total)
    start_comparing(engine, added=True)
    return ids


@contextmanager
def transaction(engine: Engine, items: Iterable[object], *, base: str) -> Iterator[None]:
    """A transaction of the store, before which items that will be stored in it are embedded."""
    parts: dict[tuple[str, str | None], Parts] = {}
    with suppress(RecalliteError):  # what is wrong with an item is told where it is stored
        lacking = [item for item in map(as_new_record, items) if item.vector is None]
        if lacking and engine.embedder.enabled:
            policy, max_chars = check_policy(engine, None), engine.settings.max_text_chars
            prepared = prepare_all(Arguments(lacking), base=base, max_text_chars=max_chars, policy=policy)
            rows = [row for row in prepared if row.indexed]
            problem = embed_rows(engine.embedder, rows, [None] * len(rows), identity_for(engine, None))
            for row in rows:  # one that could not be embedded is not tried again in the transaction
                reason = row.refused or (problem if row.pending else None)
                parts[row.text, row.context] = Parts(row.vectors, row.codes, reason, refused=row.refused is not None)
    with engine.embedder.keeping(parts), engine.transaction():
        yield


def check_policy(engine: Engine, policy: object) -> WritePolicy:
    """Return the policy of a write: the one given, else the settings'; the settings' redaction always applies."""
    general = engine.write_policy
    if policy is None:
        policy = general
    if not isinstance(policy, WritePolicy):
        raise InvalidInput(f"policy is {shown(policy)}: give a WritePolicy, e.g. WritePolicy(link_cosine=0.85)")
    return policy if general.redact is None else structs.replace(policy, redact=general.redact)


def is_skipped(row: Row, policy: WritePolicy) -> bool:
    """Whether the policy keeps a row out as junk. "Yes" has a meaning under a topic, or where the context asks."""
    deliberate = row.named or row.pinned or row.topic is not None or row.supersedes
    if policy.junk == "store" or row.kind in KINDS_THAT_LAST or deliberate:
        return False
    return "?" not in (row.context or "") and is_junk(row.text)


def embed_some_pending(engine: Engine, pending: Iterable[bool], vectors: Iterable[object]) -> None:
    """Embed some pending records, where the embedder works: none of the rows just written is `pending`, some have
    `vectors`.

    The rows are already stored, so a failure here is not raised: the next write tries again.
    """
    if any(pending):
        engine.may_have_pending = True
    elif engine.may_have_pending and any(vectors) and not engine.store.writing:
        with engine.afterwards("embedding"), suppress(EmbedderError):
            embed_pending(engine, limit=_PENDING_A_WRITE)


def _identity_for(engine: Engine, vectors: Sequence[object]) -> Identity | None:
    """Return the embedder of a batch, by the first vector that is given."""
    return identity_for(engine, next((vector for vector in vectors if vector is not None), None))


def _first_bad_vector(engine: Engine, vectors: Sequence[object]) -> int | None:
    """Return the index of the first vector that cannot be stored, for the error message."""
    identity = _identity_for(engine, vectors)
    for i, vector in enumerate(vectors):
        try:
            if isinstance(vector, EmbeddedText):
                if identity is not None:
                    check_embedded([vector], identity)
            elif vector is not None:
                check_vectors(vector, None if identity is None else identity.dimension)
        except EmbedderMismatch:  # no fault of this one
            return None
        except RecalliteError:
            return i
    return None


# Rows in one transaction.


def write_rows(
    engine: Engine,
    rows: RowColumns,
    identity: Identity | None,
    policy: WritePolicy,
    on_existing: OnExisting,
    work: Callable[[Batch], _Written],
    *,
    later: bool = False,
) -> _Written:
    """Write rows in order in one transaction, as the policy says; returns what `work` does, a method of `Batch`.

    With `later` they are compared only with records of the same text now, and with others by `start_comparing`. Slow
    work that needs no lock is done before the transaction begins.
    """
    floor = policy.floor
    quotations = [Quotation.of(text) for text in rows.text] if policy.recognise_recalled else []
    near = None if floor is None else _search_before(engine, rows, policy.most_links, floor)
    # Scopes and ids that the rows name are locked; all where they may change records of other scopes.
    locks = [*{*rows.scope}, *map("id {}".format, compress(rows.public_id, rows.named))]
    changes_others = any(rows.supersedes) or (on_existing != "error" and any(rows.named))
    with engine.atomic(None if changes_others else locks, counts="due" if len(rows) <= _FEW else "many") as writer:
        if floor is not None and (near is None or not writer.changes.matches(near.commit)):
            most, indexed = policy.most_links + SPARE, not engine.store.nested
            # A writer of SQLite keeps its page cache over commits, a reader does not: searching there is faster.
            writes_alone = writer.sees_one_commit or not indexed
            with nullcontext(writer) if writes_alone else engine.store.read() as reader:
                near = threshold_search(engine, reader, rows, most, floor, indexed=indexed)
        asks = policy.judge and engine.language_model is not None
        batch = Batch(writer, rows, identity, policy, on_existing, near, quotations, later=later, asks=asks)
        written = work(batch)
    if batch.effects.undecided:
        start_judging(engine)
    return written


def _search_before(engine: Engine, rows: Sequence[Row], most_links: int, floor: float) -> ThresholdMatches | None:
    """Load the index where it is not loaded, and search for many rows, while other processes may write."""
    engine.start_kernels(len(rows))
    many = len(rows) > _FEW
    index = index_of(engine, rows)
    if not many and index.commit is not None:
        return None
    with engine.store.read() as reader:
        if reader.uncommitted:
            return None
        if many:
            return threshold_search(engine, reader, rows, most_links + SPARE, floor)
        index.catch_up(reader)
    return None


class Decision(NamedTuple):
    """What becomes of a row, what is linked to that, and what it does to others.

    `record` is the one that it becomes, repeats, is merged into (at this `cosine`) or replaces; None for one of its own
    that no other row is compared with.
    """

    i: int
    outcome: Outcome
    record: CurrentRecord | Known | None = None
    cosine: float | None = None
    linked: Sequence[Match] = ()
    detected: Detected = NOTHING


class Batch:
    """Rows written in order in one transaction: what becomes of each is decided first, and stored as late as possible.

    `_decide` reads only. New records are inserted together by `apply`, and connected at the end, by `_finish`; a
    decision that changes a record is carried out at once: the rows after it are compared with what the store has then.
    """

    def __init__(
        self,
        writer: Writer,
        rows: RowColumns,
        identity: Identity | None,
        policy: WritePolicy,
        on_existing: OnExisting,
        near: ThresholdMatches | None,
        quotations: Sequence[Quotation],
        *,
        later: bool,
        asks: bool,
    ) -> None:
        """`later`: see `write_rows`. `asks` has a language model judge what the rules leave open."""
        self._writer, self._rows, self._identity = writer, rows, identity
        self._policy, self._on_existing = policy, on_existing
        rows.waits_under = waits_under(rows, policy) if later else None
        by_text = TextDetection(writer, rows, policy) if later else None
        self._detection = by_text or Detection(writer, rows, policy)
        self._now = self._detection.now
        # Set if nothing but the text of a row decides what becomes of it.
        self._by_text = None if near is not None or quotations else by_text
        # None where no row is merged into another, or linked to it.
        self._candidates: MergeCandidates | None = None
        if near is not None or quotations or policy.merge_strategy != "append":
            self._candidates = MergeCandidates(writer, rows, policy, near, quotations, self.apply, self._now)
        self.effects = Effects(writer, self._detection, self._row_id, self.apply, asks=asks)
        self._decisions: list[Decision] = []
        self._applied = 0
        # The records of this batch that others may look at, by public id.
        self._made: dict[str, CurrentRecord] = {}

    @cached_property
    def _known_ids(self) -> dict[str, int]:
        """The row ids of the stored records that the rows name, by public id."""
        return self._writer.records.find_ids([*compress(self._rows.public_id, self._rows.named)], "/")

    def write_one(self) -> Record:
        """Write the only row; returns its record, with what was done."""
        decision = self._write(0)
        self._finish()
        return self._record(decision)

    def write_all(self) -> list[str]:
        """Write all rows, in order; returns the id of the record that each became, repeats or was merged into."""
        rows = self._rows
        public_ids = [*rows.public_id]
        alone = [False] * len(rows) if self._by_text is None else self._by_text.alone()
        merges = self._policy.merge_strategy != "append"
        counts = Counter(compress(rows.public_id, rows.named))
        for i, public_id in enumerate(rows.public_id):
            if (
                alone[i]
                and not (rows.topic[i] is not None and merges)
                and not rows.supersedes[i]
                and not (rows.named[i] and (public_id in self._known_ids or counts[public_id] > 1))
            ):  # it becomes a record of its own, without a look at any other
                self._decisions.append(Decision(i, "created"))
            else:
                if (record := self._write(i).record) is not None:
                    public_ids[i] = record.public_id
        self._finish()
        return public_ids

    def _write(self, i: int) -> Decision:
        """Decide what becomes of a row, and have the rows after it compared with that."""
        row = self._rows[i]
        decision = self._decide(i, row)
        self._decisions.append(decision)
        candidate = decision.record
        if decision.outcome == "duplicate" or not isinstance(candidate, CurrentRecord):
            pass  # nothing changes but what `_finish` adds
        elif decision.outcome == "created":
            self._made[row.public_id] = candidate
            if row.indexed:
                if self._candidates is not None:
                    self._candidates.takes_text_of(candidate, i, row)
                self._detection.wrote(i)
            if row.supersedes:  # at once, so that the rows after this one find what stands
                self.apply()
                self._detection.read_again()
        elif row.named:
            self._replace(candidate, i, row)
        else:
            self._merge(candidate, i, row)
        if decision.detected is not NOTHING:
            self.effects.add(row, decision.detected)
        return decision

    def _decide(self, i: int, row: Row) -> Decision:
        """Decide what becomes of a row, by the records before it."""
        row_id = self._known_ids.get(row.public_id) if row.named else None
        existing = self._made.get(row.public_id) if row.named else None
        if existing is not None or row_id is not None:
            outcome: Outcome = "updated" if self._on_existing == "version" else "replaced"
            return Decision(i, outcome, existing or CurrentRecord.of(row, i, row_id or 0))
        if not row.indexed:  # nothing is derived from it, and it is compared with nothing
            return Decision(i, "created", CurrentRecord.of(row, i))
        matches = () if self._candidates is None else self._candidates.near(i)
        if row.supersedes:  # a record of its own, whatever it resembles
            return self._created(i, row, matches)
        topic, cosine = None, None
        if self._candidates is not None and not row.named:  # one with a caller's id is never merged into another
            if (quoted := self._candidates.quoted(i, row)) is not None:
                return Decision(i, "duplicate", quoted)
            topic, cosine = self._candidates.on_topic(row, matches)
        merges = topic is not None and self._policy.merge_strategy != "append"
        detected = NOTHING if merges and row.topic is not None else self._detection.compared(i)
        if (same := detected.same) is not None:
            told_otherwise = None if same.other.text == row.text else same.cosine
            return Decision(i, "duplicate", same.other, told_otherwise, detected=detected)
        if topic is None and self._policy.merge_strategy == "replace":
            topic, cosine = self._said_to_have_changed(row, detected)
            merges = topic is not None
        if topic is not None and merges:
            # A text older than the current one goes into the history.
            keep = self._is_older(row, topic) or self._keeps_text(topic) or topic.content_hash == row.content_hash
            return Decision(i, "merged" if keep else "replaced", topic, cosine, self._linked(topic, matches))
        if topic is not None and row.topic is None:
            row.topic = self._rows.topic[i] = topic.topic
        return self._created(i, row, matches, detected)

    def _created(self, i: int, row: Row, matches: Sequence[Match], detected: Detected = NOTHING) -> Decision:
        candidate = CurrentRecord.of(row, i)
        return Decision(i, "created", candidate, None, self._linked(candidate, matches) if matches else (), detected)

    def _linked(self, candidate: CurrentRecord, matches: Sequence[Match]) -> Sequence[Match]:
        """The matches of a record that are near enough to be linked to it."""
        least = self._policy.link_cosine
        if least is None:
            return ()
        others = [match for match in matches if match.record is not candidate and match.cosine >= least]
        return others[: self._policy.most_links]

    def _said_to_have_changed(self, row: Row, detected: Detected) -> tuple[CurrentRecord | None, float | None]:
        """The only record that a row surely supersedes from now on and says so, and their cosine."""
        if row.topic is not None or row.named or len(detected.superseded) != 1 or detected.successors:
            return None, None
        other, verdict, cosine = detected.superseded[0]
        if not verdict.certain or verdict.reason == BY_FORM or holds_instead_from(row, other, self._now) > self._now:
            return None, None
        return None if self._candidates is None else self._candidates.of(other), cosine

    def _is_older(self, row: Row, than: CurrentRecord) -> bool:
        """Whether a row was said before a record; one dated after now, by a clock ahead, was written before it."""
        return row.recorded_from < (than.recorded_from if than.recorded_from <= self._now else row.updated_at)

    def _keeps_text(self, candidate: CurrentRecord) -> bool:
        """Whether the text that a record has goes into its history when it gets another."""
        return self._policy.merge_strategy == "latest" or candidate.pinned

    def apply(self) -> None:
        """Insert the rows that are new and not inserted yet, together."""
        indices = [decision.i for decision in self._decisions[self._applied :] if decision.outcome == "created"]
        self._applied = len(self._decisions)
        if not indices:
            return
        ids = insert_rows(self._writer, self._rows.select(indices), self._identity)
        for i, row_id in zip(indices, ids, strict=True) if self._made else ():
            candidate = self._made.get(self._rows.public_id[i])
            if candidate is not None:
                candidate.row_id = row_id
                if self._candidates is not None:
                    self._candidates.stored(candidate)

    def _replace(self, candidate: CurrentRecord, i: int, row: Row) -> None:
        """Give the record that has the id of a row already what the row has."""
        if not candidate.row_id:
            self.apply()
        replace_record(self._writer, candidate.row_id, row, self._identity, self._on_existing)
        self._made[row.public_id] = (
            CurrentRecord.of(row, i, candidate.row_id)
            if self._candidates is None
            else self._candidates.replaced(candidate.row_id, i, row)
        )
        self._detection.changed(row.public_id)

    def _merge(self, candidate: CurrentRecord, i: int, row: Row) -> None:
        """Give a record the text of this row. Fields that the row leaves at their defaults stay, times excepted.

        A text older than the current one goes into the history, or is dropped where no history is kept.
        """
        self.apply()
        keep, same = self._keeps_text(candidate), candidate.content_hash == row.content_hash
        records = self._writer.records
        embedder = None if same else embedder_of(self._writer, self._identity, row)
        if self._is_older(row, candidate):
            if keep and not same:
                records.insert_earlier(candidate.row_id, row, embedder)
            return
        if not same:
            records.change_text(candidate.row_id, row, embedder, keep_version=keep)
        candidate.recorded_from = max(row.recorded_from, candidate.recorded_from)
        columns: dict[str, object] = {
            "created_at": row.created_at, "valid_from": row.valid_from, "valid_until": row.valid_until,
            "valid_resolved": row.valid_resolved, "expires_at": row.expires_at, "updated_at": row.updated_at,
        }  # fmt: skip
        given = {
            "importance": row.importance != DEFAULT_IMPORTANCE, "metadata": row.metadata is not None,
            "pinned": row.pinned, "authority": row.authority != candidate.authority,
            "source": row.source is not None, "position": row.source is not None,
        }  # fmt: skip
        columns |= {name: getattr(row, name) for name, is_given in given.items() if is_given}
        records.change_columns(candidate.row_id, columns, row.tags or None)
        candidate.pinned = candidate.pinned or row.pinned
        if self._candidates is not None:
            self._candidates.takes_text_of(candidate, i, row)
        self._detection.changed(candidate.public_id)

    def _row_id(self, known: Known) -> int:
        return self._made[known.public_id].row_id if isinstance(known, Row) else known.row_id

    def _finish(self) -> None:
        """Write all that is left, and connect the records."""
        self.apply()
        self.effects.store()
        # Stored records that were said again outside of the times at which they were said: there they may do something
        # else to others, so they are compared again.
        again = set[int]()
        links = []
        for decision in self._decisions:
            known = decision.record
            if isinstance(known, StatementCandidate) and self._rows.waits_under is not None:
                times = self._detection.claim(known).told_at
                if not times[0] <= self._detection.told_at(self._rows[decision.i]) <= times[-1]:
                    again.add(known.row_id)
            for record, cosine, _ in decision.linked:
                target = record.row_id if isinstance(record, CurrentRecord) else record
                if isinstance(known, CurrentRecord):
                    links.append(LinkRow(known.row_id, target, "similar", _strength(cosine), self._now))
        if again:
            uncompared = self._writer.comparisons.without(sorted(again))
            self._writer.comparisons.add(uncompared, policy_json(self._policy))
            self._writer.statements.derive(uncompared)
        if links:
            self._writer.links.put(links)

    def _record(self, decision: Decision) -> Record:
        """Return the record of a row that has been written alone, with what was done."""
        row, detected, of = self._rows[decision.i], decision.detected, decision.record
        assert of is not None
        if decision.outcome != "created" or row.supersedes or detected.superseded or detected.successors:
            (row_id,) = self._writer.records.find_ids([of.public_id], "/").values()
            record = self._writer.records.get(row_id, outcome=decision.outcome)
        else:
            record = as_record(row)
        if not (decision.linked or detected.contradicted or decision.cosine is not None):
            return record
        links = [
            Link(
                source=record.id, target=match.record.public_id, type="similar", strength=_strength(match.cosine),
                created_at=to_datetime(self._now),
            )
            for match in decision.linked
            if isinstance(match.record, CurrentRecord)
        ]  # fmt: skip
        contradictions = [
            Contradiction(
                id=other.public_id, text=other.text, authority=authority_of(other.authority), cosine=cosine,
                reason=verdict.reason, strength=verdict.confidence,
            )
            for other, verdict, cosine in detected.contradicted
        ]  # fmt: skip
        return structs.replace(record, cosine=decision.cosine, links=tuple(links), contradictions=tuple(contradictions))


def _strength(cosine: float) -> float:
    return min(1.0, max(0.0, cosine))
