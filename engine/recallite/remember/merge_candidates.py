"""Merge candidates for the rows of a batch: records that a row quotes, with its topic, or with a similar vector, both
stored ones and rows of the batch itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from recallite.model.authority import LOWEST_RANK
from recallite.model.checks import now_us
from recallite.model.settings import WritePolicy
from recallite.remember.provenance import claims_hold
from recallite.remember.similar_records import BatchMatches, Neighbor, ThresholdMatches
from recallite.store.columns import RowColumns
from recallite.store.transaction import Reader
from recallite.store.values import CurrentRecord, Row
from recallite.text.quotes import Claim, Quotation
from recallite.text.topics import same_topic
from recallite.text.words import KEY_BYTES

SPARE = 6
"""Neighbours fetched beyond those that may be linked: this batch may replace the text of some."""


class CandidateRecord(Struct):
    """A record that a row may quote, continue or be linked to: a stored one, or one of this batch."""

    record_id: int | None
    public_id: str
    scope: str
    kind: str
    text: str
    context: str | None
    topic: str | None
    pinned: bool
    authority: int
    content_hash: bytes
    recorded_from: int
    # The row of this batch that its text comes from; None while it has the stored text.
    text_row: int | None = None


class Match(NamedTuple):
    """A record near a row; `record` is only its row id where nothing else had to be read.

    `whole` is True where both texts were embedded in one part.
    """

    record: CandidateRecord | int
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
        *,
        report: bool,
    ) -> None:
        """`report` reads what links are reported with."""
        self._reader, self._rows, self._policy = reader, rows, policy
        self._quotations, self._insert_waiting, self._report = quotations, insert_waiting, report
        self._by_id: dict[int, CandidateRecord] = {}
        self._by_key: dict[bytes, list[CandidateRecord]] = {}
        # By scope, kind, topic and authority.
        self._by_topic: dict[tuple[str, str, str, int], CandidateRecord] = {}
        self._by_row: list[CandidateRecord | None] = [None] * len(rows)
        self._now = now_us()
        self._neighbors: Sequence[Sequence[Neighbor]] = [()] * len(rows) if near is None else near.neighbors
        self._batch_matches = None if near is None or len(rows) < 2 else BatchMatches(rows, policy.most_links + SPARE)
        self._load_quoted_or_same_topic()
        self._load_neighbors()

    def near(self, place: int) -> list[Match]:
        """The records near a row, nearest first: stored ones that keep their text, and rows before it."""
        matches = []
        for neighbor in self._neighbors[place]:
            candidate = self._by_id.get(neighbor.record_id)
            if candidate is None or candidate.text_row is None:
                matches.append(
                    Match(neighbor.record_id if candidate is None else candidate, neighbor.cosine, neighbor.whole)
                )
        floor = self._policy.floor
        if self._batch_matches is None or floor is None:
            return matches
        for other, cosine in self._batch_matches.near(place, floor):
            earlier = self._by_row[other]
            if earlier is not None and earlier.text_row == other:
                whole = len(self._rows[place].vectors) == len(self._rows[other].vectors) == 1
                matches.append(Match(earlier, cosine, whole))
        return sorted(matches, key=lambda neighbor: -neighbor.cosine)

    def quoted(self, place: int, row: Row) -> CandidateRecord | None:
        """The record that a row quotes as recall may have returned it."""
        if not self._quotations:
            return None
        context_claim = [] if row.context is None else [("context", row.context)]
        quoted = self._quotations[place].quoted(
            lambda key: self._recallable(key, row.scope),
            lambda candidate, claims: self._claims_hold(candidate, [*context_claim, *claims]),
        )
        return quoted[0] if quoted else None

    def on_topic(self, row: Row, matches: Sequence[Match]) -> tuple[CandidateRecord | None, float | None]:
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
            if not match.whole or not isinstance(record, CandidateRecord) or record.authority > row.authority:
                continue
            if _on_one_topic(row, record):
                return record, match.cosine
        return None, None

    def takes_text_of(self, candidate: CandidateRecord, place: int, row: Row) -> None:
        """Record that a record now has the text of this row."""
        if candidate.text_row != place:
            listed = self._by_key.get(candidate.content_hash[:KEY_BYTES], [])
            if candidate in listed:  # a record that is not indexed is not
                listed.remove(candidate)
        candidate.text, candidate.context, candidate.content_hash = row.text, row.context, row.content_hash
        candidate.text_row, self._by_row[place] = place, candidate
        if candidate.authority != row.authority:
            self._drop_topic(candidate)
            candidate.authority = row.authority
        self._by_key.setdefault(row.content_hash[:KEY_BYTES], []).append(candidate)
        if candidate.topic is not None:
            self._by_topic[_topic_of(candidate)] = candidate

    def replaced(self, record_id: int, place: int, row: Row) -> None:
        """Record that a stored record has been replaced by this row."""
        candidate = self._by_id.get(record_id)
        if candidate is None:
            candidate = self._by_id[record_id] = CandidateRecord(
                record_id, row.public_id, row.scope, row.kind, row.text, row.context, row.topic, row.pinned,
                row.authority, row.content_hash, row.recorded_from, place,
            )  # fmt: skip
        self._drop_topic(candidate)
        candidate.scope, candidate.kind, candidate.topic, candidate.pinned = row.scope, row.kind, row.topic, row.pinned
        self.takes_text_of(candidate, place, row)

    def stored(self, candidate: CandidateRecord, record_id: int) -> None:
        """Record the row id of a row that has been inserted."""
        candidate.record_id = record_id
        self._by_id[record_id] = candidate

    def _load_quoted_or_same_topic(self) -> None:
        """Read the records that a row may quote, or that share its topic."""
        policy = self._policy
        keys = {key for quotation in self._quotations for key in quotation.keys}
        if keys:
            for current in self._reader.records.current_by_text(list(keys), self._now):
                self._add(current)
        topics = {topic for topic in self._rows.topic if topic is not None}
        if topics and policy.merge_strategy != "append":
            for current in self._reader.records.current_by_topic(list(topics), self._now):
                candidate = self._add(current)
                self._by_topic[_topic_of(candidate)] = candidate

    def _drop_topic(self, candidate: CandidateRecord) -> None:
        topic = _topic_of(candidate)
        if self._by_topic.get(topic) is candidate:
            del self._by_topic[topic]

    def _load_neighbors(self) -> None:
        """Read the neighbours of which more than the row id is needed."""
        least = 0.0 if self._report else 2.0 if self._policy.topic_cosine is None else self._policy.topic_cosine
        ids = {neighbor.record_id for some in self._neighbors for neighbor in some if neighbor.cosine >= least}
        if ids:
            for current in self._reader.records.current(list(ids), self._now):
                self._add(current)

    def _add(self, current: CurrentRecord) -> CandidateRecord:
        candidate = self._by_id.get(current.record_id)
        if candidate is None:
            candidate = self._by_id[current.record_id] = CandidateRecord(**current._asdict())
            self._by_key.setdefault(current.content_hash[:KEY_BYTES], []).append(candidate)
        return candidate

    def _recallable(self, key: bytes, scope: str) -> list[CandidateRecord]:
        """The records with this text that a recall in the scope could have returned."""
        candidates = self._by_key.get(key, ())
        return [
            candidate
            for candidate in candidates
            if scope == "/" or candidate.scope == scope or candidate.scope.startswith(scope + "/")
        ]

    def _claims_hold(self, candidate: CandidateRecord, claims: Sequence[Claim]) -> bool:
        """Whether all claims hold of a record."""
        if not claims:
            return True
        self._insert_waiting()
        assert candidate.record_id is not None
        record = self._reader.records.get(candidate.record_id)
        return claims_hold(record, claims)


def _topic_of(candidate: CandidateRecord) -> tuple[str, str, str, int]:
    return candidate.scope, candidate.kind, candidate.topic or "", candidate.authority


def _on_one_topic(row: Row, candidate: CandidateRecord) -> bool:
    one, other = (side.text if side.context is None else f"{side.context}\n{side.text}" for side in (row, candidate))
    return same_topic(one, other)
