"""Supersessions and contradictions by new records: collected as these are written, stored once they have row ids."""

from __future__ import annotations

from collections.abc import Callable

from recallite.remember.compared_records import Known, begins_at, stated_at
from recallite.remember.detection import Detected, Detection, Relation
from recallite.store.supersession_values import Judgement, Standpoint, Supersession
from recallite.store.transaction import Writer
from recallite.store.values import LinkRow, Row


class Effects:
    """Supersessions, contradictions and pairs that a language model judges.

    `row_id` tells the row id of a record, and `insert` gives row ids to all that are new.
    """

    def __init__(
        self,
        writer: Writer,
        detection: Detection,
        row_id: Callable[[Known | Standpoint], int],
        insert: Callable[[], None],
        now: int,
        *,
        asks: bool,
    ) -> None:
        """`asks` has a language model judge what the rules leave open."""
        self._writer, self._detection, self._now, self._asks = writer, detection, now, asks
        self._row_id, self._insert = row_id, insert
        self._superseded: list[tuple[Known | Standpoint, Known | Standpoint, Relation]] = []
        self._contradicted: list[tuple[Row, Relation]] = []
        self._undecided: list[tuple[Row, Relation]] = []

    @property
    def undecided(self) -> bool:
        """Whether a pair waits for a language model."""
        return bool(self._undecided)

    def add(self, row: Row, detected: Detected) -> None:
        """Keep what a new record does to others."""
        for relation in detected.superseded:
            self._superseded.append((relation.other, row, relation))
            self._detection.superseded(relation.other.public_id)
        for relation in detected.successors:
            self._add_late(row, relation)
        self._contradicted += ((row, relation) for relation in detected.contradicted)
        if self._asks:
            self._undecided += ((row, relation) for relation in detected.undecided)

    def _add_late(self, row: Row, relation: Relation) -> None:
        """Put a record that was written late in its place among those that supersede each other."""
        self._insert()
        self._supersede()
        next_, before = self._detection.around(row, self._row_id(relation.other))
        self._superseded.append((row, next_, relation))
        self._superseded += ((former, row, relation) for former in before)
        self._detection.superseded(row.public_id)

    def store(self) -> None:
        """Store all that was added; the records are stored."""
        self._supersede()
        if self._contradicted:
            self._writer.links.put(
                LinkRow(
                    self._row_id(row), self._row_id(relation.other), "contradicts", relation.verdict.confidence,
                    self._now, relation.verdict.reason,
                )
                for row, relation in self._contradicted
            )  # fmt: skip
        if self._undecided:
            self._writer.judgements.put(
                Judgement(
                    self._row_id(old), self._row_id(new), relation.verdict.confidence, relation.verdict.reason,
                    self._now,
                )
                for row, relation in self._undecided
                for old, new in [sorted((row, relation.other), key=stated_at)]
            )  # fmt: skip

    def _supersede(self) -> None:
        self._writer.supersessions.put(
            [
                Supersession(
                    self._row_id(old), self._row_id(new), _holds_from(new, old),
                    max(new.recorded_from, old.recorded_from), None, relation.verdict.reason,
                    relation.verdict.confidence,
                )
                for old, new, relation in self._superseded
            ]
        )  # fmt: skip
        self._superseded = []


def _holds_from(new: Known | Standpoint, old: Known | Standpoint) -> int:
    """Return when the new record takes the old one's place: a future date in its text is that of the change.

    Where the old text names a date too, a date stands in place of a date: "The exam is on 5 May", not on the 4th.
    """
    begins = max(begins_at(new), begins_at(old))
    if isinstance(new, Standpoint) or isinstance(old, Standpoint) or not new.valid_resolved or old.valid_resolved:
        return begins
    return max(begins, new.valid_from or begins)
