"""Tool patterns and error recoveries, in SQLite."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from recollect.store.rows import read_rows
from recollect.store.sqlite.repository import Repository
from recollect.store.values import Recovery, ToolPattern


class SqliteExperience(Repository):
    """The tables `tool_pattern` and `error_recovery`."""

    def add_run(
        self, key: tuple[int, str, str], *, success: bool, steps: int | None, tokens: int | None, now: int
    ) -> None:
        self._execute(
            "INSERT INTO tool_pattern VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "total_count = total_count + 1, success_count = success_count + excluded.success_count, "
            "total_steps = total_steps + excluded.total_steps, "
            "steps_measured = steps_measured + excluded.steps_measured, "
            "total_tokens = total_tokens + excluded.total_tokens, "
            "tokens_measured = tokens_measured + excluded.tokens_measured, updated_at = excluded.updated_at",
            (*key, success, steps or 0, steps is not None, tokens or 0, tokens is not None, now, now),
        )

    def patterns(self, scopes: Sequence[str], task_type: str | None) -> list[ToolPattern]:
        rows = self._rows(
            "SELECT t.task_type, t.pattern, sum(t.total_count), sum(t.success_count), "
            "total(t.total_steps) / nullif(sum(t.steps_measured), 0), "
            "total(t.total_tokens) / nullif(sum(t.tokens_measured), 0) "
            "FROM tool_pattern t JOIN scope p ON p.id = t.scope_id "
            "WHERE p.path IN (SELECT value FROM json_each(?)) AND (?2 IS NULL OR t.task_type = ?2) "
            "GROUP BY t.task_type, t.pattern ORDER BY t.task_type, t.pattern",
            (_json(scopes), task_type),
        )
        return read_rows(rows, ToolPattern, "tool_pattern")

    def add_recovery(self, key: tuple[int, str, str], *, error: str, recovery: str, now: int) -> None:
        self._execute(
            "INSERT INTO error_recovery VALUES (?, ?, ?, ?, ?, 1, ?, ?) ON CONFLICT DO UPDATE SET "
            "total_count = CASE WHEN recovery = excluded.recovery THEN total_count + 1 ELSE 1 END, "
            "error = excluded.error, recovery = excluded.recovery, updated_at = excluded.updated_at",
            (*key, error, recovery, now, now),
        )

    def recoveries(self, scopes: Sequence[str], tool: str) -> list[Recovery]:
        rows = self._rows(
            "SELECT e.tool, e.error_pattern, e.error, e.recovery, e.total_count FROM error_recovery e "
            "JOIN scope p ON p.id = e.scope_id WHERE p.path IN (SELECT value FROM json_each(?)) AND e.tool = ? "
            "ORDER BY e.total_count DESC, e.error_pattern, p.path",
            (_json(scopes), tool),
        )
        return read_rows(rows, Recovery, "error_recovery")


def _json(values: Sequence[str]) -> str:
    return msgspec.json.encode(list(values)).decode()
