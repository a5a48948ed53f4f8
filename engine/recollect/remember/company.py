"""What the rows of a batch meet: memories of the store and of the batch itself that have their text, their topic, or
are near them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from recollect.checks import now_us
from recollect.policies import WritePolicy
from recollect.records import Contradiction
from recollect.remember.batch import Among
from recollect.remember.nearby import Near, Neighbor
from recollect.remember.provenance import knows
from recollect.store import reading, standing
from recollect.store.writing import Row
from recollect.text.contrast import Statement, contradiction, same_statement
from recollect.text.normalise import KEY_BYTES
from recollect.text.quotes import Quotation
from recollect.text.topics import same_topic
from recollect.text.wrappers import Claim

if TYPE_CHECKING:
    import apsw

__all__ = ["SPARE", "Company", "Known", "Met"]

SPARE = 6
"""Neighbours looked at beside those that may be linked: some may be of a text that this batch replaces."""


class Known(Struct):
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


class Met(NamedTuple):
    """A neighbour of a row; `known` is its row id alone where no more had to be read."""

    known: Known | int
    cosine: float
    whole: bool


class Company:
    """The memories that the rows of one batch may meet, as they stand while the rows are written one after another.

    `settle` inserts the rows that wait: what is said about one of them is checked against its record.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        rows: Sequence[Row],
        policy: WritePolicy,
        near: Near | None,
        quotations: Sequence[Quotation],
        settle: Callable[[], None],
        *,
        report: bool,
    ) -> None:
        """To `report` links and contradictions takes reading more."""
        self._connection, self._rows, self._policy = connection, rows, policy
        self._quotations, self._settle, self._report = quotations, settle, report
        self._by_id: dict[int, Known] = {}
        self._by_key: dict[bytes, list[Known]] = {}
        self._by_topic: dict[tuple[str, str, str], Known] = {}
        self._voices: list[Known | None] = [None] * len(rows)
        self._now = now_us()
        self._neighbors: Sequence[Sequence[Neighbor]] = [()] * len(rows) if near is None else near.neighbors
        self._among = None if near is None or len(rows) < 2 else Among(rows, policy.most_links + SPARE)
        self._meet_texts()
        self._meet_neighbors()

    def near(self, place: int) -> list[Met]:
        """What is near a row: of the store, save what this batch has given another text, and of this batch."""
        met = []
        for each in self._neighbors[place]:
            known = self._by_id.get(each.record_id)
            if known is None or known.voice is None:
                met.append(Met(each.record_id if known is None else known, each.cosine, each.whole))
        floor = self._policy.floor
        if self._among is None or floor is None:
            return met
        for other, cosine in self._among.near(place, floor):
            voice = self._voices[other]
            if voice is not None and voice.voice == other:
                whole = len(self._rows[place].vectors) == len(self._rows[other].vectors) == 1
                met.append(Met(voice, cosine, whole))
        return sorted(met, key=lambda each: -each.cosine)

    def repeated(self, place: int, row: Row, met: Sequence[Met]) -> tuple[Known, float | None] | None:
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
            if each.whole and isinstance(known_or_id, Known) and row.topic in (None, known_or_id.topic):
                stands = Statement.of(known_or_id.text, known_or_id.context)
                if same_statement(Statement.of(row.text, row.context), stands):
                    return known_or_id, each.cosine
        return None

    def on_topic(self, row: Row, met: Sequence[Met]) -> tuple[Known | None, float | None]:
        """The memory whose topic a row is on, and the cosine where it was found by that."""
        if row.topic is not None:
            return self._by_topic.get((row.scope, row.kind, row.topic)), None
        least = self._policy.topic_cosine
        for each in met if least is not None else ():
            if least is None or each.cosine < least:
                break
            if each.whole and isinstance(each.known, Known) and _on_one_topic(row, each.known):
                return each.known, each.cosine
        return None, None

    def contradictions(self, row: Row, others: Sequence[Met]) -> tuple[Contradiction, ...]:
        """Candidates for a contradiction among what is near a row, where they are to be reported."""
        least = self._policy.contradiction_cosine
        if least is None or not self._report:
            return ()
        said = Statement.of(row.text)
        found = []
        for each in others:
            known = each.known
            if each.cosine < least or not isinstance(known, Known) or known.context != row.context:
                continue
            reason = contradiction(said, Statement.of(known.text))
            if reason is not None:
                found.append(Contradiction(id=known.public_id, text=known.text, cosine=each.cosine, reason=reason))
        return tuple(found)

    def speaks(self, known: Known, place: int, row: Row) -> None:
        """From here on a memory has this row's text."""
        if known.voice != place:
            self._by_key[known.content_hash[:KEY_BYTES]].remove(known)
        known.text, known.context, known.content_hash = row.text, row.context, row.content_hash
        known.voice, self._voices[place] = place, known
        self._by_key.setdefault(row.content_hash[:KEY_BYTES], []).append(known)
        if known.topic is not None:
            self._by_topic[known.scope, known.kind, known.topic] = known

    def stored(self, known: Known, record_id: int) -> None:
        """A row that waited has its record."""
        known.record_id = record_id
        self._by_id[record_id] = known

    def _meet_texts(self) -> None:
        """Read what has the same text or topic as a row."""
        policy = self._policy
        keys = {key for quotation in self._quotations for key in quotation.keys}
        if policy.duplicate_cosine is not None:
            keys |= {row.content_hash[:KEY_BYTES] for row in self._rows}
        if keys:
            for found in standing.by_keys(self._connection, list(keys), self._now):
                self._know(found)
        topics = {row.topic for row in self._rows if row.topic is not None}
        if topics and policy.merge_strategy != "append":
            for found in standing.by_topics(self._connection, list(topics), self._now):
                known = self._know(found)
                self._by_topic[known.scope, known.kind, found.topic or ""] = known

    def _meet_neighbors(self) -> None:
        """Read those of the neighbours of which more is asked than where they are."""
        policy = self._policy
        told = [cosine for cosine in (policy.duplicate_cosine, policy.topic_cosine) if cosine is not None]
        least = 0.0 if self._report else min(told, default=2.0)
        ids = {each.record_id for some in self._neighbors for each in some if each.cosine >= least}
        if ids:
            for found in standing.by_ids(self._connection, list(ids), self._now):
                self._know(found)

    def _know(self, found: standing.Standing) -> Known:
        known = self._by_id.get(found.record_id)
        if known is None:
            known = self._by_id[found.record_id] = Known(
                found.record_id, found.public_id, found.scope, found.kind, found.text, found.context, found.topic,
                found.pinned, found.content_hash, found.valid_from,
            )  # fmt: skip
            self._by_key.setdefault(found.content_hash[:KEY_BYTES], []).append(known)
        return known

    def _recalled(self, key: bytes, scope: str) -> list[Known]:
        """The memories with this text that a recall in the scope could have returned."""
        found = self._by_key.get(key, ())
        return [each for each in found if scope == "/" or each.scope == scope or each.scope.startswith(scope + "/")]

    def _knows(self, known: Known, claims: Sequence[Claim]) -> bool:
        """Whether all that is said about a memory is known of it."""
        if not claims:
            return True
        self._settle()
        assert known.record_id is not None
        record = reading.record(self._connection, known.record_id)
        return knows(record, claims)


def _on_one_topic(row: Row, known: Known) -> bool:
    one, other = (each.text if each.context is None else f"{each.context}\n{each.text}" for each in (row, known))
    return same_topic(one, other)
