"""Writing under a policy: what repeats a memory, what takes the place of one, what is new, and what it is linked to.

Everything is decided inside the write transaction, at a commit that the neighbours were looked up at: of two
processes that write the same at once, the second finds what the first has stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, structs

from recollect.checks import now_us, to_datetime
from recollect.embedding.handle import Identity
from recollect.engine import Engine
from recollect.policies import WritePolicy
from recollect.records import Contradiction, Link, Outcome, Record
from recollect.remember.batch import Among
from recollect.remember.nearby import Near, Neighbor, look
from recollect.remember.prepare import as_record
from recollect.remember.provenance import knows
from recollect.store import changing, feed, filters, reading, standing, vectors, writing
from recollect.store.writing import Row
from recollect.text.contrast import Statement, contradiction, same_statement
from recollect.text.normalise import KEY_BYTES
from recollect.text.quotes import Quotation
from recollect.text.wrappers import Claim

if TYPE_CHECKING:
    import apsw

__all__ = ["write_one", "write_rows"]

# Neighbours looked at beside those that may be linked: some may be of a text that this batch replaces.
_SPARE = 6
# Looking up so few takes the lock for writing a few milliseconds longer.
_FEW = 8


class _Known(Struct):
    """A memory that a row may meet: of the store, or of this batch."""

    record_id: int | None
    public_id: str
    scope: str
    kind: str
    text: str
    context: str | None
    topic: str | None
    pinned: bool
    content_hash: bytes
    valid_from: int
    # The row of this batch whose text it has; None while it has the one that the store had.
    voice: int | None = None


class _Met(NamedTuple):
    """A neighbour of a row; `known` is its row id alone where no more had to be read."""

    known: _Known | int
    cosine: float
    whole: bool


class _Done(NamedTuple):
    """What was done with a row."""

    outcome: Outcome
    known: _Known
    cosine: float | None = None
    linked: Sequence[_Met] = ()
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
            most = policy.most_links + _SPARE
            near = look(engine, connection, rows, most, policy.floor, indexed=not engine.store.nested)
        yield _Batch(engine, connection, rows, identity, policy, near, quotations, report=report)


def _look_before(engine: Engine, rows: Sequence[Row], policy: WritePolicy) -> Near | None:
    """Load the index if that has not been done, and look up many rows, while others may still write."""
    if policy.floor is None:
        return None
    engine.start_kernels()
    many = len(rows) > _FEW
    if engine.answers_from_sql() or not (many or engine.index.sequence < 0):
        return None
    with engine.store.read() as connection:
        if many:
            return look(engine, connection, rows, policy.most_links + _SPARE, policy.floor)
        engine.index.catch_up(connection)
    return None


def _record(connection: apsw.Connection, row: Row, done: _Done, linked_at: int) -> Record:
    if done.outcome == "created":
        record = as_record(row)
    else:
        assert done.known.record_id is not None
        (record,) = reading.records(connection, filters.one_record(done.known.record_id), outcome=done.outcome)
    links = tuple(
        Link(
            source=record.id,
            target=met.known.public_id,
            type="similar",
            strength=_strength(met.cosine),
            created_at=to_datetime(linked_at),
        )
        for met in done.linked
        if isinstance(met.known, _Known)
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
        self._quotations, self._report = quotations, report
        self._by_id: dict[int, _Known] = {}
        self._by_key: dict[bytes, list[_Known]] = {}
        self._by_topic: dict[tuple[str, str, str], _Known] = {}
        self._voices: list[_Known | None] = [None] * len(rows)
        self._waiting: list[tuple[Row, _Known]] = []
        self._links: list[tuple[_Known, _Met]] = []
        self._now = now_us()
        self._neighbors: Sequence[Sequence[Neighbor]] = [()] * len(rows) if near is None else near.neighbors
        self._among = None if near is None or len(rows) < 2 else Among(rows, policy.most_links + _SPARE)
        self._meet_texts()
        self._meet_neighbors()

    def write(self, place: int) -> _Done:
        """Write the next row."""
        row, policy = self._rows[place], self._policy
        met = self._met(place)
        repeated = self._repeated(place, row, met)
        if repeated is not None:
            return _Done("duplicate", *repeated)
        topic, cosine = self._topic(row, met)
        if topic is not None and policy.merge_strategy != "append":
            done = _Done(self._merge(topic, place, row), topic, cosine)
        else:
            if topic is not None and row.topic is None:
                row.topic = topic.topic
            done = _Done("created", self._create(place, row))
        return self._connected(done, row, [each for each in met if each.known is not done.known])

    def _connected(self, done: _Done, row: Row, met: Sequence[_Met]) -> _Done:
        """Links to what is near, and candidates for contradictions among it."""
        policy = self._policy
        linked: list[_Met] = []
        if policy.link_cosine is not None:
            linked = [each for each in met if each.cosine >= policy.link_cosine][: policy.most_links]
            self._links += [(done.known, each) for each in linked]
        return done._replace(linked=linked, contradictions=self._contradictions(row, met))

    def finish(self) -> int:
        """Insert what waits and link what is to be linked; returns the time of the links."""
        self._insert()
        linked_at = now_us()
        rows = []
        for known, met in self._links:
            target = met.known.record_id if isinstance(met.known, _Known) else met.known
            if known.record_id is not None and target is not None:
                rows.append((known.record_id, target, "similar", _strength(met.cosine), linked_at))
        if rows:
            changing.put_links(self.connection, rows)
        return linked_at

    def _meet_texts(self) -> None:
        """Read what has the same text or topic as a row."""
        policy = self._policy
        keys = {key for quotation in self._quotations for key in quotation.keys}
        if policy.duplicate_cosine is not None:
            keys |= {row.content_hash[:KEY_BYTES] for row in self._rows}
        if keys:
            for found in standing.by_keys(self.connection, list(keys), self._now):
                self._know(found)
        topics = {row.topic for row in self._rows if row.topic is not None}
        if topics and policy.merge_strategy != "append":
            for found in standing.by_topics(self.connection, list(topics), self._now):
                known = self._know(found)
                self._by_topic[known.scope, known.kind, found.topic or ""] = known

    def _meet_neighbors(self) -> None:
        """Read those of the neighbours of which more is asked than where they are."""
        policy = self._policy
        told = [cosine for cosine in (policy.duplicate_cosine, policy.topic_cosine) if cosine is not None]
        least = 0.0 if self._report else min(told, default=2.0)
        ids = {each.record_id for some in self._neighbors for each in some if each.cosine >= least}
        if ids:
            for found in standing.by_ids(self.connection, list(ids), self._now):
                self._know(found)

    def _know(self, found: standing.Standing) -> _Known:
        known = self._by_id.get(found.record_id)
        if known is None:
            known = self._by_id[found.record_id] = _Known(
                found.record_id, found.public_id, found.scope, found.kind, found.text, found.context, found.topic,
                found.pinned, found.content_hash, found.valid_from,
            )  # fmt: skip
            self._by_key.setdefault(found.content_hash[:KEY_BYTES], []).append(known)
        return known

    def _met(self, place: int) -> list[_Met]:
        """What is near a row: of the store, save what this batch has given another text, and of this batch."""
        met = []
        for each in self._neighbors[place]:
            known = self._by_id.get(each.record_id)
            if known is None or known.voice is None:
                met.append(_Met(each.record_id if known is None else known, each.cosine, each.whole))
        floor = self._policy.floor
        if self._among is None or floor is None:
            return met
        for other, cosine in self._among.near(place, floor):
            voice = self._voices[other]
            if voice is not None and voice.voice == other:
                whole = len(self._rows[place].vectors) == len(self._rows[other].vectors) == 1
                met.append(_Met(voice, cosine, whole))
        return sorted(met, key=lambda each: -each.cosine)

    def _repeated(self, place: int, row: Row, met: Sequence[_Met]) -> tuple[_Known, float | None] | None:
        """The memory that a row repeats, and the cosine where its text is another."""
        if self._quotations:
            quotation = self._quotations[place]
            said = [] if row.context is None else [("context", row.context)]
            quoted = quotation.quoted(
                lambda key: self._recalled(key, row.scope), lambda known, claims: self._knows(known, [*said, *claims])
            )
            if quoted is not None:
                return quoted[0], None
        least = self._policy.duplicate_cosine
        if least is None:
            return None
        for known in self._by_key.get(row.content_hash[:KEY_BYTES], ()):
            here = (known.scope, known.kind, known.content_hash) == (row.scope, row.kind, row.content_hash)
            if here and row.topic in (None, known.topic):
                return known, None
        for each in met:
            if each.cosine < least:
                break
            known_or_id = each.known
            if each.whole and isinstance(known_or_id, _Known) and row.topic in (None, known_or_id.topic):
                stands = Statement.of(known_or_id.text, known_or_id.context)
                if same_statement(Statement.of(row.text, row.context), stands):
                    return known_or_id, each.cosine
        return None

    def _recalled(self, key: bytes, scope: str) -> list[_Known]:
        """The memories with this text that a recall in the scope could have returned."""
        found = self._by_key.get(key, ())
        return [each for each in found if scope == "/" or each.scope == scope or each.scope.startswith(scope + "/")]

    def _knows(self, known: _Known, claims: Sequence[Claim]) -> bool:
        """Whether all that is said about a memory is known of it."""
        if not claims:
            return True
        self._insert()
        assert known.record_id is not None
        (record,) = reading.records(self.connection, filters.one_record(known.record_id))
        return knows(record, claims)

    def _topic(self, row: Row, met: Sequence[_Met]) -> tuple[_Known | None, float | None]:
        """The memory whose topic a row is on, and the cosine where it was found by that."""
        if row.topic is not None:
            return self._by_topic.get((row.scope, row.kind, row.topic)), None
        least = self._policy.topic_cosine
        for each in met if least is not None else ():
            if least is None or each.cosine < least:
                break
            if each.whole and isinstance(each.known, _Known):
                return each.known, each.cosine
        return None, None

    def _contradictions(self, row: Row, others: Sequence[_Met]) -> tuple[Contradiction, ...]:
        least = self._policy.contradiction_cosine
        if least is None or not self._report:
            return ()
        said = Statement.of(row.text)
        found = []
        for each in others:
            known = each.known
            if each.cosine < least or not isinstance(known, _Known) or known.context != row.context:
                continue
            reason = contradiction(said, Statement.of(known.text))
            if reason is not None:
                found.append(Contradiction(id=known.public_id, text=known.text, cosine=each.cosine, reason=reason))
        return tuple(found)

    def _create(self, place: int, row: Row) -> _Known:
        known = _Known(
            None, row.public_id, row.scope, row.kind, row.text, row.context, row.topic, row.pinned, row.content_hash,
            row.valid_from, place,
        )  # fmt: skip
        self._waiting.append((row, known))
        self._speaks(known, place, row)
        return known

    def _merge(self, known: _Known, place: int, row: Row) -> Outcome:
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
        self._by_key[known.content_hash[:KEY_BYTES]].remove(known)
        known.text, known.context, known.content_hash = row.text, row.context, row.content_hash
        known.pinned = known.pinned or row.pinned
        self._speaks(known, place, row)
        return "merged" if keep or same else "replaced"

    def _speaks(self, known: _Known, place: int, row: Row) -> None:
        """From here on a memory has this row's text."""
        known.voice, self._voices[place] = place, known
        self._by_key.setdefault(row.content_hash[:KEY_BYTES], []).append(known)
        if known.topic is not None:
            self._by_topic[known.scope, known.kind, known.topic] = known

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
            known.record_id = record_id
            self._by_id[record_id] = known
        self._waiting = []


def _strength(cosine: float) -> float:
    return min(1.0, max(0.0, cosine))
