"""How often procedures were used, in SQLite."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from recollect.store.rows import read_rows
from recollect.store.sqlite.conditions import in_scopes
from recollect.store.sqlite.repository import Repository


class _Use(NamedTuple):
    public_id: str
    success_rate: float
    use_count: int
    success_count: int


class SqliteProcedures(Repository):
    """The table `procedure_use`."""

    def named(self, scope: str, name: str) -> int | None:
        found: int | None = self._execute(
            "SELECT max(r.id) FROM record r WHERE r.kind = 'procedure' AND r.valid_to IS NULL "
            "AND r.scope_id = (SELECT id FROM scope WHERE path = ?) AND json_extract(r.metadata, '$.name') = ?",
            (scope, name),
        ).get
        return found

    def with_id(self, scope: str, public_id: str) -> int | None:
        visible = in_scopes([scope])
        found: int | None = self._execute(
            "SELECT r.id FROM record r WHERE r.kind = 'procedure' AND r.valid_to IS NULL AND r.public_id = ? "
            f"AND {visible.sql}",
            (public_id, *visible.values),
        ).get
        return found

    def set_rate(self, record_id: int, success_rate: float) -> None:
        self._execute(
            "INSERT INTO procedure_use (record_id, success_rate) VALUES (?, ?) "
            "ON CONFLICT DO UPDATE SET success_rate = excluded.success_rate",
            (record_id, success_rate),
        )

    def count_outcome(self, record_id: int, *, success: bool, first_rate: float, weight: float) -> None:
        self._execute(
            "INSERT INTO procedure_use VALUES (?1, (1 - ?4) * ?3 + ?4 * ?2, 1, ?2) ON CONFLICT DO UPDATE SET "
            "success_rate = (1 - ?4) * success_rate + ?4 * ?2, use_count = use_count + 1, "
            "success_count = success_count + ?2",
            (record_id, int(success), first_rate, weight),
        )

    def uses(self, public_ids: list[str]) -> dict[str, tuple[float, int, int]]:
        if not public_ids:
            return {}
        rows = self._rows(
            "SELECT r.public_id, u.success_rate, u.use_count, u.success_count FROM record r "
            "JOIN procedure_use u ON u.record_id = r.id "
            "WHERE r.valid_to IS NULL AND r.public_id IN (SELECT value FROM carray(?))",
            (apsw.carray(tuple(public_ids)),),
        )
        return {row.public_id: row[1:] for row in read_rows(rows, _Use, "procedure_use of")}
