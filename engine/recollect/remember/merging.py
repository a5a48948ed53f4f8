"""Writing under a policy: what repeats a memory, what takes the place of one, what is new, and what it is linked to.

Everything is decided inside the write transaction, at a commit that the neighbours were looked up at: of two
processes that write the same at once, the second finds what the first has stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from recollect.checks import now_us, to_datetime
from recollect.embedding.handle import Identity
from recollect.engine import Engine
from recollect.policies import WritePolicy
from recollect.records import Contradiction, Link, Outcome, Record
from recollect.remember.company import SPARE, Company, Known, Met
from recollect.remember.nearby import Near, look
from recollect.remember.prepare import as_record
from recollect.store import changing, feed, reading, vectors, writing
from recollect.store.writing import Row
from recollect.text.quotes import Quotation

if TYPE_CHECKING:
    import apsw

__all__ = ["write_one", "write_rows"]

# Looking up so few takes the lock for writing a few milliseconds longer.
_FEW = 8


class _Done(NamedTuple):
    """What was done with a row."""

    outcome: Outcome
    known: Known
    cosine: float | None = None
    linked: Sequence[Met] = ()
    contradictions: tuple[Contradiction, ...] = ()


def write_one(engine: Engine, row: Row, identity: Identity | None, policy: WritePolicy) -> Record:
    """Write a row as the policy says; the record says what was done."""
    with _opened(engine, [row], identity, policy, report=True) as batch:
        done = batch.write(0)
        linked_at = batch.finish()
        return _record(batch.connection, row, done, linked_at)


def write_rows(engine: Engine, rows: Sequence[Row], identity: Identity | None, policy: WritePolicy) -> list[str]:
    """Write rows as the policy says, each seeing those before it; returns the ids that stand for them."""
    with _opened(engine, rows, identity, policy, report=False) as batch:
        ids = [batch.write(place).known.public_id for place in range(len(rows))]
        batch.finish()
    return ids


@contextmanager
def _opened(
    engine: Engine, rows: Sequence[Row], identity: Identity | None, policy: WritePolicy, *, report: bool
) -> Iterator[_Batch]:
    """A transaction in which the rows are written. What takes long and needs no lock comes before it."""
    quotations = [Quotation.of(row.text) for row in rows] if policy.recognise_recalled else []
    before = _look_before(engine, rows, policy)
    with engine.atomic() as connection:
        near = before
        # A reader's pages are read anew after each commit, those of the writer are not: looking here is quicker.
        if policy.floor is not None and (near is None or near.sequence != feed.last_sequence(connection)):
            most = policy.most_links + SPARE
            near = look(engine, connection, rows, most, policy.floor, indexed=not engine.store.nested)
        yield _Batch(engine, connection, rows, identity, policy, near, quotations, report=report)


def _look_before(engine: Engine, rows: Sequence[Row], policy: WritePolicy) -> Near | None:
    """Load the index if that has not been done, and look up many rows, while others may still write."""
    if policy.floor is None:
        return None
    engine.start_kernels(len(rows))
    many = len(rows) > _FEW
    if not many and engine.index.sequence >= 0:
        return None
    with engine.store.read() as connection:
        if many:
            return look(engine, connection, rows, policy.most_links + SPARE, policy.floor)
        engine.index.catch_up(connection)
    return None


def _record(connection: apsw.Connection, row: Row, done: _Done, linked_at: int) -> Record:
    if done.outcome == "created":
        record = as_record(row)
    else:
        assert done.known.record_id is not None
        record = reading.record(connection, done.known.record_id, outcome=done.outcome)
    links = tuple(
        Link(
            source=record.id,
            target=met.known.public_id,
            type="similar",
            strength=_strength(met.cosine),
            created_at=to_datetime(linked_at),
        )
        for met in done.linked
        if isinstance(met.known, Known)
    )
    return structs.replace(record, cosine=done.cosine, links=links, contradictions=done.contradictions)


class _Batch:
    """Rows that are written one after another in one transaction."""

    def __init__(
        self,
        engine: Engine,
        connection: apsw.Connection,
        rows: Sequence[Row],
        identity: Identity | None,
        policy: WritePolicy,
        near: Near | None,
        quotations: Sequence[Quotation],
        *,
        report: bool,
    ) -> None:
        """To `report` links and contradictions takes reading more."""
        self.connection = connection
        self._engine, self._rows, self._identity, self._policy = engine, rows, identity, policy
        self._now = now_us()
        self._company = Company(connection, rows, policy, near, quotations, self._insert, report=report)
        self._waiting: list[tuple[Row, Known]] = []
        self._links: list[tuple[Known, Met]] = []

    def write(self, place: int) -> _Done:
        """Write the next row."""
        row, policy = self._rows[place], self._policy
        met = self._company.near(place)
        repeated = self._company.repeated(place, row, met)
        if repeated is not None:
            return _Done("duplicate", *repeated)
        topic, cosine = self._company.on_topic(row, met)
        if topic is not None and policy.merge_strategy != "append":
            done = _Done(self._merge(topic, place, row), topic, cosine)
        else:
            if topic is not None and row.topic is None:
                row.topic = topic.topic
            done = _Done("created", self._create(place, row))
        return self._connected(done, row, [each for each in met if each.known is not done.known])

    def _connected(self, done: _Done, row: Row, met: Sequence[Met]) -> _Done:
        """Links to what is near, and candidates for contradictions among it."""
        policy = self._policy
        linked: list[Met] = []
        if policy.link_cosine is not None:
            linked = [each for each in met if each.cosine >= policy.link_cosine][: policy.most_links]
            self._links += [(done.known, each) for each in linked]
        return done._replace(linked=linked, contradictions=self._company.contradictions(row, met))

    def finish(self) -> int:
        """Insert what waits and link what is to be linked; returns the time of the links."""
        self._insert()
        linked_at = now_us()
        rows = []
        for known, met in self._links:
            target = met.known.record_id if isinstance(met.known, Known) else met.known
            if known.record_id is not None and target is not None:
                rows.append((known.record_id, target, "similar", _strength(met.cosine), linked_at))
        if rows:
            changing.put_links(self.connection, rows)
        return linked_at

    def _create(self, place: int, row: Row) -> Known:
        known = Known(
            None, row.public_id, row.scope, row.kind, row.text, row.context, row.topic, row.pinned, row.content_hash,
            row.valid_from, place,
        )  # fmt: skip
        self._waiting.append((row, known))
        self._company.speaks(known, place, row)
        return known

    def _merge(self, known: Known, place: int, row: Row) -> Outcome:
        """Give a memory this row's text; what the row leaves at its default, times aside, stays as it was.

        A text that is older than the one that stands goes into the history, or nowhere where none is kept.
        """
        self._insert()
        assert known.record_id is not None
        keep = self._policy.merge_strategy == "latest" or known.pinned
        same = known.content_hash == row.content_hash
        connection = self.connection
        made_by = None
        if row.vectors and self._identity is not None and not same:
            made_by = vectors.register(connection, self._engine.store.path, **self._identity._asdict())
        # One that was dated into the future is no newer than what is said now.
        if row.valid_from < min(known.valid_from, self._now):
            if keep and not same:
                changing.insert_earlier(connection, self._engine.lexicon, known.record_id, row, made_by)
            return "merged"
        if not same:
            changing.change_text(connection, self._engine.lexicon, known.record_id, row, made_by, keep_version=keep)
        known.valid_from = max(row.valid_from, known.valid_from)
        columns: dict[str, object] = {
            "created_at": row.created_at, "event_at": row.event_at, "expires_at": row.expires_at,
            "updated_at": row.updated_at,
        }  # fmt: skip
        if row.importance != 0.5:
            columns["importance"] = row.importance
        if row.metadata is not None:
            columns["metadata"] = row.metadata
        if row.pinned:
            columns["pinned"] = True
        if row.source is not None:
            columns |= {"source": row.source, "position": row.position}
        changing.change_columns(connection, known.record_id, columns, row.tags or None)
        known.pinned = known.pinned or row.pinned
        self._company.speaks(known, place, row)
        return "merged" if keep or same else "replaced"

    def _insert(self) -> None:
        """Insert the new rows that wait."""
        if not self._waiting:
            return
        rows = [row for row, _ in self._waiting]
        made_by = None
        if self._identity is not None and any(row.vectors for row in rows):
            made_by = vectors.register(self.connection, self._engine.store.path, **self._identity._asdict())
        ids = writing.insert(self.connection, self._engine.lexicon, rows, made_by)
        for record_id, (_, known) in zip(ids, self._waiting, strict=True):
            self._company.stored(known, record_id)
        self._waiting = []


def _strength(cosine: float) -> float:
    return min(1.0, max(0.0, cosine))
