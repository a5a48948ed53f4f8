"""Tool patterns and error recoveries. Every function runs inside `Store.read()` or `Store.atomic()`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from recollect.store.rows import read_rows

__all__ = ["Recovery", "ToolPattern", "add_recovery", "add_run", "patterns", "recoveries"]


class ToolPattern(NamedTuple):
    """What is known of one tool list for one type of task; averages are None where no run told its figure."""

    task_type: str
    pattern: str
    total_count: int
    success_count: int
    avg_steps: float | None
    avg_tokens: float | None


class Recovery(NamedTuple):
    """What helped against an error of a tool."""

    tool: str
    error_pattern: str
    error: str
    recovery: str
    total_count: int


def add_run(
    connection: apsw.Connection,
    key: tuple[int, str, str],
    *,
    success: bool,
    steps: int | None,
    tokens: int | None,
    now: int,
) -> None:
    """Count one run under (scope id, task type, pattern)."""
    connection.execute(
        "INSERT INTO tool_pattern VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "total_count = total_count + 1, success_count = success_count + excluded.success_count, "
        "total_steps = total_steps + excluded.total_steps, "
        "steps_measured = steps_measured + excluded.steps_measured, "
        "total_tokens = total_tokens + excluded.total_tokens, "
        "tokens_measured = tokens_measured + excluded.tokens_measured, updated_at = excluded.updated_at",
        (*key, success, steps or 0, steps is not None, tokens or 0, tokens is not None, now, now),
    )


def patterns(connection: apsw.Connection, scopes: Sequence[str], task_type: str | None) -> list[ToolPattern]:
    """The patterns of exactly these scopes together, by task type and pattern; of all types for None."""
    rows: Any = connection.execute(
        "SELECT t.task_type, t.pattern, sum(t.total_count), sum(t.success_count), "
        "total(t.total_steps) / nullif(sum(t.steps_measured), 0), "
        "total(t.total_tokens) / nullif(sum(t.tokens_measured), 0) "
        "FROM tool_pattern t JOIN scope p ON p.id = t.scope_id "
        "WHERE p.path IN (SELECT value FROM json_each(?)) AND (?2 IS NULL OR t.task_type = ?2) "
        "GROUP BY t.task_type, t.pattern ORDER BY t.task_type, t.pattern",
        (_json(scopes), task_type),
    )
    return read_rows(rows, ToolPattern, "tool_pattern")


def add_recovery(
    connection: apsw.Connection, key: tuple[int, str, str], *, error: str, recovery: str, now: int
) -> None:
    """Count one recovery under (scope id, tool, error pattern); the latest is what is kept, counted from its first."""
    connection.execute(
        "INSERT INTO error_recovery VALUES (?, ?, ?, ?, ?, 1, ?, ?) ON CONFLICT DO UPDATE SET "
        "total_count = CASE WHEN recovery = excluded.recovery THEN total_count + 1 ELSE 1 END, "
        "error = excluded.error, recovery = excluded.recovery, updated_at = excluded.updated_at",
        (*key, error, recovery, now, now),
    )


def recoveries(connection: apsw.Connection, scopes: Sequence[str], tool: str) -> list[Recovery]:
    """What is known of a tool's errors in exactly these scopes, the most frequent first."""
    rows: Any = connection.execute(
        "SELECT e.tool, e.error_pattern, e.error, e.recovery, e.total_count FROM error_recovery e "
        "JOIN scope p ON p.id = e.scope_id WHERE p.path IN (SELECT value FROM json_each(?)) AND e.tool = ? "
        "ORDER BY e.total_count DESC, e.error_pattern, p.path",
        (_json(scopes), tool),
    )
    return read_rows(rows, Recovery, "error_recovery")


def _json(values: Sequence[str]) -> str:
    return msgspec.json.encode(list(values)).decode()
