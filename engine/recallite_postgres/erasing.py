"""Erasure of records: what was stored of them is searched for in every row of the memory.

What PostgreSQL keeps outside of its rows cannot be searched from here: the WAL, its archive, backups and standbys. A
receipt says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from recallite.model.checks import now_us, to_datetime
from recallite.model.reports import ErasureReceipt
from recallite.store.sql.erasing import Erasure
from recallite.store.values import Erased

if TYPE_CHECKING:
    from recallite_postgres.store import PostgresStore
    from recallite_postgres.transaction import PostgresTransaction

_OUTSIDE = (
    "PostgreSQL keeps what was deleted in its WAL, in archives and backups, and on standbys, which cannot be searched "
    "from here: let them expire"
)


class PostgresErasure(Erasure):
    """Erasure in a write transaction."""

    _tx: PostgresTransaction

    def _tables(self) -> list[str]:
        return self._column(
            "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() "
            "AND tablename NOT IN ('feed', 'meta', 'scope_tag', 'tenant') ORDER BY 1"
        )

    def _has_snapshot(self) -> bool:
        path = self._tx.snapshot.path
        return path is not None and os.path.exists(path)

    def _in_a_message(self, word: str) -> bool:
        return bool(self._execute("SELECT EXISTS (SELECT 1 FROM session_words WHERE words @> ?)", ([word],)).get)

    def _searched(self) -> Iterator[tuple[str, str, str]]:
        columns = self._rows(
            "SELECT c.table_name::text, c.column_name::text, c.data_type::text FROM information_schema.columns c "
            "JOIN pg_tables t ON t.schemaname = c.table_schema AND t.tablename = c.table_name "
            "WHERE c.table_schema = current_schema() AND c.data_type IN ('text', 'bytea', 'ARRAY')"
        )
        for table, column, type in columns:
            text = f"array_to_string(t.{column}, ' ')" if type == "ARRAY" else f"t.{column}"
            data = text if type == "bytea" else f"convert_to({text}, 'UTF8')"
            yield table, column, f"position(s.value IN {data}) > 0"


def prove(store: PostgresStore, erased: Erased) -> ErasureReceipt:
    """Free the space of what was deleted, and look for the erased bytes in all rows."""
    store.compact()
    with store.read() as reader:
        elsewhere, _ = reader.erasure.found_in_tables(erased.pieces)
    return ErasureReceipt(
        complete=False, erased_at=to_datetime(now_us()), path=store.path, ids=erased.ids, removed=erased.rows,
        index_snapshot=erased.had_snapshot, searched=len(erased.pieces), too_short=erased.skipped, files={},
        elsewhere=elsewhere, problems=(_OUTSIDE,),
    )  # fmt: skip
