"""Standing instructions and preferences among the records. Derived: `rebuild` makes the table from the texts again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from recallite.store.sql.repository import IN_ARRAY, Repository
from recallite.text.standing import Standing, standing_of


class StandingRecords(Repository):
    """The table `standing`; most records are not in it."""

    def put(self, named: Iterable[tuple[int, Standing | None]]) -> None:
        """Mark records, by row id, as instructions and preferences; None marks nothing."""
        self._insert_many("standing", "record_id, name", [row for row in named if row[1] is not None])

    def derive(self, ids: Sequence[int]) -> None:
        """Mark these records again by what is stored of them."""
        self._execute(f"DELETE FROM standing WHERE record_id {IN_ARRAY}", (self._id_array(ids),))
        rows = self._rows(
            f"SELECT id, kind, text, context FROM record WHERE indexed AND authority = 0 AND id {IN_ARRAY}",
            (self._id_array(ids),),
        )
        self.put((row_id, standing_of(*fields)) for row_id, *fields in rows)

    def copy(self, record_id: int, to_id: int) -> None:
        """Give a record the mark of another."""
        self._execute("INSERT INTO standing SELECT ?, name FROM standing WHERE record_id = ?", (to_id, record_id))

    def named(self, among: Sequence[int] | None = None) -> dict[int, Standing]:
        """Return the row ids, ascending, with the name of each; only those in `among`, unless it is None."""
        if among is None:
            return dict(self._execute("SELECT record_id, name FROM standing ORDER BY record_id"))
        return dict(
            self._execute(
                f"SELECT record_id, name FROM standing WHERE record_id {IN_ARRAY} ORDER BY record_id",
                (self._id_array(among),),
            )
        )
