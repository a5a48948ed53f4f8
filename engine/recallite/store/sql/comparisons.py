"""Records that wait to be compared, pairs that wait to be judged, and statements that were repeated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from recallite.errors import InvalidInput
from recallite.model.settings import WritePolicy
from recallite.store.rows import read_row, runs_of
from recallite.store.sql.repository import IN_ARRAY, Repository
from recallite.store.supersession_values import Judgement, Occurrence, Uncompared


class UncomparedRecords(Repository):
    """The table `uncompared`."""

    def first(self, limit: int) -> Uncompared | None:
        """The first `limit` records that wait under a policy that can be read, or fewer; None if none does."""
        entries = (entry for entry in self._entries() if read_policy(entry.policy) is not None)
        entry = next(entries, None)
        return None if entry is None else entry._replace(last_id=min(entry.last_id, entry.first_id + limit - 1))

    def unreadable(self) -> list[Uncompared]:
        """List those that wait under a policy that cannot be read: that of a newer version, or a damaged one."""
        return [entry for entry in self._entries() if read_policy(entry.policy) is None]

    def mend(self) -> None:
        """Have those whose policy cannot be read wait under the default one."""
        usual = msgspec.json.encode(WritePolicy().to_dict()).decode()
        for entry in self.unreadable():
            self._execute("UPDATE uncompared SET policy = ? WHERE first_id = ?", (usual, entry.first_id))

    def _entries(self) -> list[Uncompared]:
        rows = self._rows("SELECT first_id, last_id, policy FROM uncompared ORDER BY first_id")
        return [Uncompared(*row) for row in rows]

    def without(self, ids: Sequence[int]) -> Sequence[int]:
        """Return those of these records that do not wait."""
        ranges = self.ranges()
        if not ranges:
            return ids
        first, last = np.array(ranges, dtype=np.int64).T
        places = np.searchsorted(first, ids, side="right") - 1
        waiting = (places >= 0) & (np.asarray(ids) <= last[places])
        return [record_id for record_id, waits in zip(ids, waiting.tolist(), strict=True) if not waits]

    def ranges(self) -> list[tuple[int, int]]:
        """The first and the last row id of each range that waits, ascending."""
        return self._rows("SELECT first_id, last_id FROM uncompared ORDER BY first_id")

    def count(self) -> int:
        """The number that wait, without those that are forgotten by now."""
        return self._number("SELECT count(*) FROM uncompared u JOIN record r ON r.id BETWEEN u.first_id AND u.last_id")

    def add(self, ids: Sequence[int], policy: str) -> None:
        """Have records wait to be compared under a policy."""
        self._insert_many("uncompared", "first_id, last_id, policy", [(*run, policy) for run in runs_of(ids)])

    def done(self, first: Uncompared) -> None:
        """Have those that `first` returned wait no longer."""
        left = self._column(
            "SELECT r.id FROM uncompared u JOIN record r ON r.id > ? AND r.id <= u.last_id WHERE u.first_id = ?",
            (first.last_id, first.first_id),
        )
        self._execute("DELETE FROM uncompared WHERE first_id = ?", (first.first_id,))
        self.add(left, first.policy)


def read_policy(policy: str) -> WritePolicy | None:
    """Return the policy of records that wait; None if it cannot be read."""
    try:
        return WritePolicy.from_dict(msgspec.json.decode(policy, type=dict[str, Any]))
    except (InvalidInput, msgspec.MsgspecError):
        return None


class Occurrences(Repository):
    """The table `occurrence`."""

    def of(self, record_ids: Sequence[int]) -> dict[int, list[Occurrence]]:
        """The further times of these records, oldest first, by row id; those without are absent."""
        occurrences: dict[int, list[Occurrence]] = {}
        for record_id, *row in self._execute(
            f"SELECT record_id, at, text FROM occurrence WHERE record_id {IN_ARRAY} ORDER BY record_id, at, id",
            (self._id_array(record_ids),),
        ):
            occurrences.setdefault(record_id, []).append(read_row(tuple(row), Occurrence, "an occurrence at"))
        return occurrences

    def add(self, rows: Iterable[tuple[int, int, str | None]]) -> None:
        """Add times, given as row id, time and (where it differs from the record's) text."""
        self._insert_many("occurrence", "record_id, at, text", [*rows])

    def last_id(self) -> int:
        """The number of the newest; a new one is no change of the feed."""
        return self._number("SELECT coalesce(max(id), 0) FROM occurrence")

    def move(self, record_id: int, to_id: int) -> None:
        """Leave the times of a text that has been replaced to its closed version."""
        self._execute("UPDATE occurrence SET record_id = ? WHERE record_id = ?", (to_id, record_id))


class Judgements(Repository):
    """The table `judgement`."""

    def waiting(self, limit: int) -> list[Judgement]:
        """The first pairs, in order of their row ids."""
        rows = self._execute(
            "SELECT old_id, new_id, confidence, reason, created_at FROM judgement ORDER BY old_id, new_id LIMIT ?",
            (limit,),
        )
        return [Judgement(*row) for row in rows]

    def count(self) -> int:
        """The number that wait."""
        return self._number("SELECT count(*) FROM judgement")

    def put(self, rows: Iterable[Judgement]) -> None:
        """Have pairs wait."""
        self._execute_many(
            "INSERT INTO judgement VALUES (?, ?, ?, ?, ?) ON CONFLICT (old_id, new_id) DO UPDATE SET "
            "confidence = excluded.confidence, reason = excluded.reason, created_at = excluded.created_at",
            [*rows],
        )

    def drop(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Remove pairs (old, new)."""
        self._execute_many("DELETE FROM judgement WHERE old_id = ? AND new_id = ?", [*pairs])
