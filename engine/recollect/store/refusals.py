"""Texts that an embedder refused, and why. They are not embedded again while text and embedder are the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import apsw

from recollect.store.conditions import in_scopes

__all__ = ["add", "copy", "count", "drop", "examples", "forget", "mark"]


def add(connection: apsw.Connection, embedder_id: int, reasons: Mapping[int, str]) -> None:
    """Note why records were refused; keys are row ids."""
    connection.executemany(
        "INSERT INTO refusal (record_id, embedder_id, reason) VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET reason = excluded.reason",
        [(record_id, embedder_id, reason) for record_id, reason in reasons.items()],
    )


def mark(connection: apsw.Connection) -> None:
    """Make `refused` the state of the records that the active embedder refused."""
    connection.execute(
        "UPDATE record SET embedding_state = 'refused' WHERE id IN (SELECT f.record_id FROM refusal f "
        "JOIN embedder e ON e.id = f.embedder_id AND e.active)"
    )


def copy(connection: apsw.Connection, record_id: int, to_id: int) -> None:
    """Give a record the refusals of another."""
    connection.execute(
        "INSERT INTO refusal SELECT ?, embedder_id, reason FROM refusal WHERE record_id = ?", (to_id, record_id)
    )


def drop(connection: apsw.Connection, record_id: int) -> None:
    """Forget the refusals of a record."""
    connection.execute("DELETE FROM refusal WHERE record_id = ?", (record_id,))


def forget(connection: apsw.Connection, embedder_id: int) -> None:
    """Forget what an embedder refused: those records wait for it again."""
    connection.execute("DELETE FROM refusal WHERE embedder_id = ?", (embedder_id,))
    connection.execute(
        "UPDATE record SET embedding_state = 'pending' WHERE embedding_state = 'refused' "
        "AND id NOT IN (SELECT record_id FROM refusal)"
    )


def count(connection: apsw.Connection, scope: str) -> int:
    """How many open records of a scope and its descendants are refused."""
    visible = in_scopes([scope])
    found: int = connection.execute(
        "SELECT count(*) FROM record r WHERE r.embedding_state = 'refused' AND r.valid_to IS NULL "
        f"AND {visible.sql}", visible.values,
    ).get  # fmt: skip
    return found


def examples(connection: apsw.Connection, scope: str, limit: int) -> list[tuple[str, str | None, str]]:
    """(id, source, reason) of the first open records of a scope that the active embedder refused."""
    visible = in_scopes([scope])
    rows: Any = connection.execute(
        "SELECT r.public_id, o.name, f.reason FROM refusal f JOIN embedder e ON e.id = f.embedder_id AND e.active "
        "JOIN record r ON r.id = f.record_id LEFT JOIN source o ON o.id = r.source_id "
        f"WHERE r.embedding_state = 'refused' AND r.valid_to IS NULL AND {visible.sql} ORDER BY r.id LIMIT ?",
        (*visible.values, limit),
    ).fetchall()
    return list(rows)
