"""Detection among records of one text alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from recallite.model.settings import WritePolicy
from recallite.remember.compared_records import Known
from recallite.remember.detection import Detection, _Compared
from recallite.remember.supersession import KINDS_THAT_LAST
from recallite.store.columns import RowColumns
from recallite.store.transaction import Writer
from recallite.store.values import Row, SoughtText, StatementCandidate
from recallite.text.words import KEY_BYTES


class TextDetection(Detection):
    """Compares rows only with those of the same text: no statement is parsed."""

    def __init__(self, writer: Writer, rows: RowColumns, policy: WritePolicy) -> None:
        super().__init__(writer, rows, policy)
        self._columns, self._alone = rows, [False] * len(rows)

    def alone(self) -> list[bool]:
        """Whether each row is compared with no other: no record, of whatever scope, and no other row has its text."""
        rows = self._columns
        if not self._policy.compares:
            return [True] * len(rows)
        keys = [content_hash[:KEY_BYTES] for content_hash in rows.content_hash]
        times = Counter(keys)
        shared = {key for key, count in times.items() if count > 1}
        shared.update(self._writer.records.ids_by_text([*times]).values())
        self._alone = [
            key not in shared or not indexed or position is not None or kind in KINDS_THAT_LAST
            for key, indexed, position, kind in zip(keys, rows.indexed, rows.position, rows.kind, strict=True)
        ]
        return self._alone

    def _find_said_before(self, near: Sequence[tuple[_Compared, Known, object]]) -> None:
        """Add no times: of one text, none replaces another."""

    def said_again(self, known: Known, row: Row) -> None:
        """Add no times: of one text, none replaces another."""

    def _is_compared(self, place: int) -> bool:
        return not self._alone[place] and super()._is_compared(place)

    def _stored(self, places: Sequence[int], most: int) -> list[list[StatementCandidate]]:
        rows = [self._rows[place] for place in places]
        sought = [SoughtText(row.content_hash[:KEY_BYTES], row.scope, row.kind) for row in rows]
        listed = self._writer.statements.of_text(sought, self._now)
        for row, records in zip(rows, listed, strict=True):
            records.sort(key=lambda record: record.authority == row.authority)  # no other repeats it
        return [records[-most:] for records in listed]

    def _stored_keys(self, row: Row) -> Sequence[int]:
        return (int.from_bytes(row.content_hash[:KEY_BYTES], "little", signed=True),)

    _sought_keys = _stored_keys
