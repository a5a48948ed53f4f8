"""The tiers' own tables: consolidation cycles, experience, uses of procedures, working memories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from recallite.model.settings import Consolidation
from recallite.store.rows import read_rows
from recallite.store.service_rows import CycleRow, Recovery, ToolPattern
from recallite.store.sql.repository import IN_ARRAY, Repository

_EPISODES = (
    "r.kind = 'episode' AND r.recorded_until IS NULL AND r.scope_id = (SELECT id FROM scope WHERE path = ?) "
    "AND r.id > ? AND r.id <= ?"
)

_CYCLE = (
    "SELECT c.id, p.path, c.trigger_id, c.replayed_id, c.created_at, c.compressed, c.pruned, c.replayed, c.promoted, "
    "c.error FROM consolidation c JOIN scope p ON p.id = c.scope_id"
)


_SUM = "CAST(sum(t.{}) AS BIGINT)"
_MEAN = "sum(CAST(t.total_{0} AS DOUBLE PRECISION)) / nullif(sum(t.{0}_measured), 0)"
_SUMS = ", ".join(
    f"{name} = tool_pattern.{name} + excluded.{name}"
    for name in (
        "total_count", "success_count", "total_steps", "steps_measured", "total_tokens", "tokens_measured",
    )
)  # fmt: skip


class Consolidations(Repository):
    """The table `consolidation`, and the importance of episodes."""

    def last_episode(self, scope: str) -> int:
        """The row id of the newest episode of exactly this scope; 0 for none."""
        return self._number(
            "SELECT coalesce(max(r.id), 0) FROM record r WHERE r.kind = 'episode' AND r.recorded_until IS NULL "
            "AND r.scope_id = (SELECT id FROM scope WHERE path = ?)",
            (scope,),
        )

    def last(self, scope: str) -> CycleRow | None:
        """The newest cycle of exactly this scope."""
        return next(iter(self.listed(scope, 1)), None)

    def listed(self, scope: str, limit: int) -> list[CycleRow]:
        """The cycles of exactly this scope, newest first."""
        rows = self._rows(f"{_CYCLE} WHERE p.path = ? ORDER BY c.id DESC LIMIT ?", (scope, limit))
        return read_rows(rows, CycleRow, "consolidation")

    def new_episodes(self, scope: str, enough: int) -> int:
        """The number of episodes of exactly this scope that are newer than its last cycle, counted up to `enough`."""
        return self._number(
            "SELECT count(*) FROM (SELECT 1 FROM record r WHERE r.kind = 'episode' AND r.recorded_until IS NULL "
            "AND r.scope_id = (SELECT id FROM scope WHERE path = ?1) AND r.id > coalesce((SELECT max(c.trigger_id) "
            "FROM consolidation c JOIN scope p ON p.id = c.scope_id WHERE p.path = ?1), 0) LIMIT ?2)",
            (scope, enough),
        )

    def episodes_between(self, scope: str, after: int, last: int) -> list[int]:
        """The row ids of the episodes of exactly this scope after one and up to another, ascending."""
        return self._column(f"SELECT r.id FROM record r WHERE {_EPISODES} ORDER BY r.id", (scope, after, last))

    def compress(self, scope: str, last: int, policy: Consolidation) -> tuple[int, int]:
        """Multiply the importance of the episodes up to row id `last` that are not pinned; purge what falls too low.

        An episode is purged when its new importance is under prune_threshold * decay_factor ** (cycles_a_recall *
        accesses). Returns how many were multiplied, the purged among them, and how many were purged.
        """
        condition = f"{_EPISODES} AND NOT r.pinned"
        bound = (scope, 0, last)
        doomed = self._column(
            f"SELECT r.id FROM record r LEFT JOIN access a ON a.record_id = r.id WHERE {condition} "
            "AND r.importance * ? < ? * pow(?, coalesce(a.count, 0))",
            (*bound, policy.decay_factor, policy.prune_threshold, policy.decay_factor**policy.cycles_a_recall),
        )
        self._tx.records.delete(doomed)
        # Ranking uses base_importance: recency applies at query time, and would count twice.
        self._execute(
            "UPDATE record AS r SET base_importance = coalesce(r.base_importance, r.importance), "
            f"importance = r.importance * ? WHERE {condition}",
            (policy.decay_factor, *bound),
        )
        multiplied = self._connection.changes()
        # An index stays right but for the filters by importance that it caches.
        self._tx.changes.append("update", last)
        return multiplied + len(doomed), len(doomed)

    def change(self, row: CycleRow) -> None:
        """Update a cycle after its episodes were extracted."""
        self._execute(
            "UPDATE consolidation SET replayed_id = ?, replayed = ?, promoted = ?, error = ? WHERE id = ?",
            (row.replayed_id, row.replayed, row.promoted, row.error, row.row_id),
        )

    def add(self, row: CycleRow) -> None:
        """Add a cycle."""
        self._execute(
            "INSERT INTO consolidation (scope_id, trigger_id, replayed_id, created_at, compressed, pruned, replayed, "
            "promoted, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (self._tx.scopes.id_of(row.scope), *row[2:]),
        )


class Experience(Repository):
    """The tables `tool_pattern` and `error_recovery`."""

    def add_run(
        self, key: tuple[str, str, str], *, success: bool, steps: int | None, tokens: int | None, now: int
    ) -> None:
        """Count one run under (scope, task type, pattern)."""
        self._execute(
            "INSERT INTO tool_pattern VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?) "
            f"ON CONFLICT (scope_id, task_type, pattern) DO UPDATE SET {_SUMS}, updated_at = excluded.updated_at",
            (
                self._tx.scopes.id_of(key[0]),
                *key[1:],
                int(success),
                steps or 0,
                int(steps is not None),
                tokens or 0,
                int(tokens is not None),
                now,
                now,
            ),
        )

    def patterns(self, scopes: Sequence[str], task_type: str | None) -> list[ToolPattern]:
        """The patterns of exactly these scopes, summed, by task type and pattern; None is all types."""
        rows = self._rows(
            f"SELECT t.task_type, t.pattern, {_SUM.format('total_count')}, {_SUM.format('success_count')}, "
            f"{_MEAN.format('steps')}, {_MEAN.format('tokens')} FROM tool_pattern t JOIN scope p ON p.id = t.scope_id "
            f"WHERE p.path {IN_ARRAY} {'' if task_type is None else 'AND t.task_type = ?'} GROUP BY t.task_type, "
            "t.pattern ORDER BY t.task_type, t.pattern",
            (self._array(scopes), *([] if task_type is None else [task_type])),
        )
        return read_rows(rows, ToolPattern, "tool_pattern")

    def add_recovery(self, key: tuple[str, str, str], *, error: str, recovery: str, now: int) -> None:
        """Count one recovery under (scope, tool, error pattern); only the latest is kept, with its own count."""
        self._execute(
            "INSERT INTO error_recovery VALUES (?, ?, ?, ?, ?, 1, ?, ?) ON CONFLICT "
            "(scope_id, tool, error_pattern) DO UPDATE SET total_count = "
            "CASE WHEN error_recovery.recovery = excluded.recovery THEN error_recovery.total_count + 1 ELSE 1 END, "
            "error = excluded.error, recovery = excluded.recovery, updated_at = excluded.updated_at",
            (self._tx.scopes.id_of(key[0]), *key[1:], error, recovery, now, now),
        )

    def recoveries(self, scopes: Sequence[str], tool: str) -> list[Recovery]:
        """The recoveries from errors of a tool in exactly these scopes, most frequent first."""
        rows = self._rows(
            "SELECT e.tool, e.error_pattern, e.error, e.recovery, e.total_count FROM error_recovery e "
            f"JOIN scope p ON p.id = e.scope_id WHERE p.path {IN_ARRAY} AND e.tool = ? "
            "ORDER BY e.total_count DESC, e.error_pattern, p.path",
            (self._array(scopes), tool),
        )
        return read_rows(rows, Recovery, "error_recovery")


class _Use(NamedTuple):
    public_id: str
    success_rate: float
    use_count: int
    success_count: int


class Procedures(Repository):
    """The table `procedure_use`."""

    def named(self, scope: str, name: str) -> int | None:
        """The row id of the procedure of this name in exactly this scope; the last stored of several."""
        named = self._tx.conditions.of_metadata(["name"], "eq", name)
        row_id: int | None = self._execute(
            "SELECT max(r.id) FROM record r WHERE r.kind = 'procedure' AND r.recorded_until IS NULL "
            f"AND r.scope_id = (SELECT id FROM scope WHERE path = ?) AND {named.sql}",
            (scope, *named.values),
        ).get
        return row_id

    def with_id(self, scope: str, public_id: str) -> int | None:
        """The row id of the procedure with this public id in a scope or below it."""
        visible = self._tx.conditions.in_scopes([scope])
        row_id: int | None = self._execute(
            "SELECT r.id FROM record r WHERE r.kind = 'procedure' AND r.recorded_until IS NULL AND r.public_id = ? "
            f"AND {visible.sql}",
            (public_id, *visible.values),
        ).get
        return row_id

    def set_rate(self, record_id: int, success_rate: float) -> None:
        """Set the success rate; counts stay."""
        self._execute(
            "INSERT INTO procedure_use (record_id, success_rate) VALUES (?, ?) "
            "ON CONFLICT (record_id) DO UPDATE SET success_rate = excluded.success_rate",
            (record_id, success_rate),
        )

    def count_outcome(self, record_id: int, *, success: bool, first_rate: float, weight: float) -> None:
        """Count one use and move the rate by `weight` towards its outcome, from `first_rate` at the first use."""
        self._execute(
            "INSERT INTO procedure_use VALUES (?1, ?3, 1, ?2) ON CONFLICT (record_id) DO UPDATE SET "
            "success_rate = (1.0 - ?4) * procedure_use.success_rate + ?5, use_count = procedure_use.use_count + 1, "
            "success_count = procedure_use.success_count + ?2",
            (record_id, int(success), (1 - weight) * first_rate + weight * success, weight, weight * success),
        )

    def uses(self, public_ids: list[str]) -> dict[str, tuple[float, int, int]]:
        """(rate, uses, successes) of procedures by public id; those never used are absent."""
        if not public_ids:
            return {}
        rows = self._rows(
            "SELECT r.public_id, u.success_rate, u.use_count, u.success_count FROM record r JOIN procedure_use u ON "
            f"u.record_id = r.id WHERE r.recorded_until IS NULL AND r.public_id {IN_ARRAY}",
            (self._array(public_ids),),
        )
        return {row.public_id: row[1:] for row in read_rows(rows, _Use, "procedure_use of")}


class Working(Repository):
    """The table `working_state`."""

    def save(self, scope: str, items: str, now: int) -> None:
        """Replace the working memory of exactly this scope, as JSON."""
        self._execute(
            "INSERT INTO working_state VALUES (?, ?, ?) "
            "ON CONFLICT (scope_id) DO UPDATE SET items = excluded.items, updated_at = excluded.updated_at",
            (self._tx.scopes.id_of(scope), items, now),
        )

    def load(self, scope: str) -> str | None:
        """The working memory of exactly this scope, as JSON."""
        items: Any = self._execute(
            "SELECT w.items FROM working_state w JOIN scope p ON p.id = w.scope_id WHERE p.path = ?", (scope,)
        ).get
        return None if items is None else str(items)
