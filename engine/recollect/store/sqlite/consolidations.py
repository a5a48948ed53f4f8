"""Consolidation cycles, in SQLite."""

from __future__ import annotations

from typing import Any

from recollect.policies import Consolidation
from recollect.store.rows import read_row, read_rows
from recollect.store.sqlite.repository import Repository
from recollect.store.values import CycleRow

_EPISODES = (
    "r.kind = 'episode' AND r.valid_to IS NULL AND r.scope_id = (SELECT id FROM scope WHERE path = ?) "
    "AND r.id > ? AND r.id <= ?"
)

_CYCLE = (
    "SELECT c.id, p.path, c.trigger_id, c.replayed_id, c.created_at, c.compressed, c.pruned, c.replayed, c.promoted, "
    "c.error FROM consolidation c JOIN scope p ON p.id = c.scope_id"
)


class SqliteConsolidations(Repository):
    """The table `consolidation`, and the importance of episodes."""

    def last_episode(self, scope: str) -> int:
        return self._number(
            "SELECT coalesce(max(r.id), 0) FROM record r WHERE r.kind = 'episode' AND r.valid_to IS NULL "
            "AND r.scope_id = (SELECT id FROM scope WHERE path = ?)",
            (scope,),
        )

    def last(self, scope: str) -> CycleRow | None:
        row: Any = self._execute(f"{_CYCLE} WHERE p.path = ? ORDER BY c.id DESC LIMIT 1", (scope,)).fetchone()
        return None if row is None else read_row(row, CycleRow, "consolidation")

    def listed(self, scope: str, limit: int) -> list[CycleRow]:
        rows = self._rows(f"{_CYCLE} WHERE p.path = ? ORDER BY c.id DESC LIMIT ?", (scope, limit))
        return read_rows(rows, CycleRow, "consolidation")

    def new_episodes(self, scope: str, enough: int) -> int:
        number: int = self._execute(
            "SELECT count(*) FROM (SELECT 1 FROM record r WHERE r.kind = 'episode' AND r.valid_to IS NULL "
            "AND r.scope_id = (SELECT id FROM scope WHERE path = ?1) AND r.id > coalesce((SELECT max(c.trigger_id) "
            "FROM consolidation c JOIN scope p ON p.id = c.scope_id WHERE p.path = ?1), 0) LIMIT ?2)",
            (scope, enough),
        ).get
        return number

    def episodes_between(self, scope: str, after: int, last: int) -> list[int]:
        return self._column(f"SELECT r.id FROM record r WHERE {_EPISODES} ORDER BY r.id", (scope, after, last))

    def compress(self, scope: str, last: int, policy: Consolidation) -> tuple[int, int]:
        chosen = f"{_EPISODES} AND NOT r.pinned"
        bound = (scope, 0, last)
        doomed = [
            row[0]
            for row in self._execute(
                f"SELECT r.id FROM record r LEFT JOIN access a ON a.record_id = r.id WHERE {chosen} "
                "AND r.importance * ? < ? * pow(?, coalesce(a.count, 0))",
                (*bound, policy.decay_factor, policy.prune_threshold, policy.decay_factor**policy.cycles_a_recall),
            )
        ]
        self._tx.records.delete(doomed)
        # What ranks stays as it was given (age is weighed at read time, and would count twice).
        self._execute(
            "UPDATE record AS r SET base_importance = coalesce(r.base_importance, r.importance), "
            f"importance = r.importance * ? WHERE {chosen}",
            (policy.decay_factor, *bound),
        )
        kept = self._connection.changes()
        # What an index holds of episodes stays right, but not the filters by importance that it keeps between changes.
        self._tx.changes.append("update", last)
        return kept + len(doomed), len(doomed)

    def change(self, row: CycleRow) -> None:
        self._execute(
            "UPDATE consolidation SET replayed_id = ?, replayed = ?, promoted = ?, error = ? WHERE id = ?",
            (row.replayed_id, row.replayed, row.promoted, row.error, row.row_id),
        )

    def add(self, scope_id: int, row: CycleRow) -> None:
        self._execute(
            "INSERT INTO consolidation (scope_id, trigger_id, replayed_id, created_at, compressed, pruned, replayed, "
            "promoted, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (scope_id, *row[2:]),
        )
