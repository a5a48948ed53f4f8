"""Supersessions and contradictions by new records: collected as these are written, stored once they have row ids."""

from __future__ import annotations

from collections.abc import Callable

from recallite.remember.compared_records import Known, begins_at, said_after
from recallite.remember.detection import Detected, Detection, Relation
from recallite.store.transaction import Writer
from recallite.store.values import Judgement, LinkRow, Row, Supersession


class Effects:
    """Supersessions, contradictions and pairs that a language model judges.

    `row_id` tells the row id of a record, and `insert` gives row ids to all that are new.
    """

    def __init__(
        self,
        writer: Writer,
        detection: Detection,
        row_id: Callable[[Known], int],
        insert: Callable[[], None],
        now: int,
        *,
        asks: bool,
    ) -> None:
        """`asks` has a language model judge what the rules leave open."""
        self._writer, self._detection, self._now, self._asks = writer, detection, now, asks
        self._row_id, self._insert = row_id, insert
        # Old and new records; with the time at which the new one was said again, if it was said before the old one.
        self._superseded: list[tuple[Known, Known, Relation, int]] = []
        self._repeated: list[tuple[Known, Row]] = []
        self._contradicted: list[tuple[Row, Relation]] = []
        self._undecided: list[tuple[Row, Relation]] = []

    @property
    def undecided(self) -> bool:
        """Whether a pair waits for a language model."""
        return bool(self._undecided)

    def add(self, row: Row, detected: Detected) -> None:
        """Keep what a new record does to others, or, if it repeats one, what that one does."""
        new: Known = row
        if detected.same is not None:
            new = detected.same.other
            self._repeated.append((new, row))
            self._detection.said_again(new, row)
        for relation in detected.superseded:
            self._replace(relation.other, new, relation)
            self._detection.superseded(relation.other)
        for relation in detected.successors:
            self._add_late(row, relation)
        self._contradicted += ((row, relation) for relation in detected.contradicted)
        if self._asks:
            self._undecided += ((row, relation) for relation in detected.undecided)

    def add_repetition(self, row: Row, same: Relation) -> None:
        """Keep a stored record as the repetition of another, which stands in its place."""
        self._replace(row, same.other, same)
        self._detection.superseded(row)

    def _add_late(self, row: Row, relation: Relation) -> None:
        """Put a record that was written late in its place among those that supersede each other."""
        self._insert()
        self._supersede()
        next_, before = self._detection.around(row, self._row_id(relation.other))
        self._replace(row, next_, relation)
        for former in before:
            self._replace(former, row, relation)
        self._detection.superseded(row)

    def store(self) -> None:
        """Store all that was added; the records are stored."""
        self._supersede()
        if self._repeated:
            self._writer.occurrences.add(
                (self._row_id(known), told_at, None if (text or row.text) == known.text else text or row.text)
                for known, row in self._repeated
                for told_at, text in ((row.created_at, None), *row.repeated)
            )
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
                for old, new in [sorted((row, relation.other), key=self._detection.told_at)]
            )  # fmt: skip

    def _replace(self, old: Known, new: Known, relation: Relation) -> None:
        """Keep a supersession; if the new one was said before the old one, with the time at which it was said again."""
        claims = self._detection.claim(new), self._detection.claim(old)
        again = said_after(*claims) if claims[0].told_at[0] <= claims[1].told_at[-1] else None
        self._superseded.append((old, new, relation, again or 0))

    def _supersede(self) -> None:
        self._writer.supersessions.put([self._supersession(*replaced) for replaced in self._superseded])
        self._superseded = []

    def _supersession(self, old: Known, new: Known, relation: Relation, again: int) -> Supersession:
        """Return a supersession, from when on the new record takes the old one's place.

        A future date in its text is that of the change. If the old text names a date too, a date stands in place of a
        date: "The exam is on 5 May", not on the 4th. What is said again holds from then on.
        """
        holds_from = max(begins_at(new), begins_at(old), again)
        if new.valid_resolved and not old.valid_resolved:
            holds_from = max(holds_from, new.valid_from or 0)
        return Supersession(
            self._row_id(old), self._row_id(new), holds_from, max(new.recorded_from, old.recorded_from, again), None,
            relation.verdict.reason, relation.verdict.confidence,
        )  # fmt: skip
