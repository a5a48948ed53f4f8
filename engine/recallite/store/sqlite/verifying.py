"""Checks of what SQLite alone keeps, and of the file itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import apsw
import numpy as np

from recallite.model.reports import Problem, Verification
from recallite.store.sql import verifying
from recallite.store.sql.verifying import REBUILD, RESTORE, found
from recallite.store.sqlite import fts5
from recallite.store.sqlite.records import TEXT_KEYS
from recallite.store.sqlite.transaction import SqliteTransaction
from recallite.store.store import Progress

_CHECKS = {
    "message without words, or words without message": (
        "SELECT 'message ' || id FROM session_message WHERE id NOT IN (SELECT id FROM session_fts_docsize) "
        "UNION ALL SELECT 'message ' || id FROM session_fts_docsize WHERE id NOT IN (SELECT id FROM session_message)"
    ),
    "token codes that are no bytes": (
        "SELECT 'vector ' || vector_id FROM token_code WHERE typeof(codes) != 'blob' AND length(codes) % 8 = 0"
    ),
}


def verify(tx: SqliteTransaction, on_progress: Progress | None = None) -> Verification:
    """Compare everything derived with the records, and have SQLite check the file. Nothing is changed."""
    return verifying.verify(
        tx,
        _CHECKS,
        (partial(_integrity, tx), partial(_texts, tx), partial(fts5.problems, tx.connection)),
        _problem_of,
        on_progress,
    )


def _problem_of(fault: Exception) -> Problem | None:
    if not isinstance(fault, apsw.SQLError | apsw.CorruptError):
        return None
    damaged = isinstance(fault, apsw.CorruptError)
    return Problem(
        name="damaged page" if damaged else "a table is missing or broken",
        count=1,
        examples=(str(fault),),
        remedy=RESTORE if damaged else REBUILD,
    )


def _integrity(tx: SqliteTransaction) -> Iterator[Problem]:
    findings: list[str] = []
    # FTS5's own check uses the segments that this connection last read, and reports those that another connection has
    # merged since as damage; a query reads them again.
    tx.connection.execute("SELECT rowid FROM session_fts WHERE session_fts MATCH ? LIMIT 1", ('"nothing"',)).fetchall()
    try:
        # extend keeps the rows before an error.
        findings.extend(str(row[0]) for row in tx.connection.execute("PRAGMA integrity_check(20)"))
    except apsw.CorruptError as fault:
        findings.append(str(fault))
    if findings != ["ok"]:
        yield from found("SQLite integrity_check", findings, RESTORE)
    broken = tx.connection.execute("PRAGMA foreign_key_check").fetchall()
    yield from found(
        "row that refers to a missing one",
        [f"{table} {rowid} -> {parent}" for table, rowid, parent, _ in broken],
        RESTORE if any(parent == "scope" for *_, parent, _ in broken) else REBUILD,
    )


def _texts(tx: SqliteTransaction) -> Iterator[Problem]:
    """Compare the list of texts with the records."""
    rows: list[Any] = tx.connection.execute(f"{TEXT_KEYS} ORDER BY id").fetchall()
    keys = np.frombuffer(b"".join(row[1] for row in rows), dtype="<i8").tolist()
    stored = set(zip([row[0] for row in rows], keys, strict=True))
    listed = list(zip(*(column.tolist() for column in tx.records.texts.all()), strict=True))
    wrong = {record_id for record_id, _ in stored.symmetric_difference(listed)}
    yield from found("record that is not found by its text", [f"record {column}" for column in sorted(wrong)])
