"""Writing records in SQLite, which lists them by their texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recallite.store.columns import RowColumns
from recallite.store.sql.records import Records
from recallite.store.sql.repository import IN_ARRAY, NO_LIMIT
from recallite.store.sql.statements import KeysOf
from recallite.store.sqlite.key_lists import KeyLists
from recallite.store.values import EmbedderRow, Row
from recallite.text.words import KEY_BYTES

if TYPE_CHECKING:
    from recallite.store.sqlite.transaction import SqliteTransaction

# Texts that are listed together.
_AT_ONCE = 65_536
_ALL = 2**40
TEXT_KEYS = (
    "SELECT id, CAST(substr(content_hash, 1, 8) AS BLOB) FROM record WHERE recorded_until IS NULL "
    "AND length(content_hash) >= 8"
)
"""Selects the open records and their `text_key`, by which they are listed."""


class SqliteRecords(Records):
    """The table `record`, and the list of its texts."""

    def __init__(self, transaction: SqliteTransaction) -> None:
        super().__init__(transaction)
        self.texts = KeyLists(transaction, "text")

    def ids_by_text(self, keys: Sequence[bytes]) -> dict[int, bytes]:
        by_number = {int.from_bytes(key, "little", signed=True): key for key in keys}
        by_key = self.texts.newest(by_number, _ALL) if by_number else {}
        return {record_id: by_number[number] for number, ids in by_key.items() for record_id in ids}

    def _put_text(
        self, record_id: int, row: Row, embedder: EmbedderRow | None, recorded_from: int, *, keep_version: bool
    ) -> None:
        self.texts.remove(self._text_keys("id = ?", record_id), erase=True)
        super()._put_text(record_id, row, embedder, recorded_from, keep_version=keep_version)
        self.texts.add(self._text_keys("id = ?", record_id))

    def list_texts(self, first_id: int = 0, last_id: int = NO_LIMIT) -> None:
        """List the texts of all records, or of a range of them; none of these may be listed yet."""
        while rows := self._text_keys("id BETWEEN ? AND ? ORDER BY id LIMIT ?", first_id, last_id, _AT_ONCE):
            self.texts.add(rows)
            first_id = rows[-1][0] + 1

    def _purge(self, record_ids: Sequence[int]) -> None:
        self.texts.remove(self._text_keys(f"id {IN_ARRAY}", self._id_array(record_ids)), erase=True)
        super()._purge(record_ids)

    def _text_keys(self, condition: str, *bound: Any) -> list[KeysOf]:
        """The keys of the texts of open records."""
        return self._rows(f"{TEXT_KEYS} AND {condition}", bound)

    def _insert_rows(
        self, ids: Sequence[int], rows: RowColumns, scopes: Sequence[int], sources: Sequence[int | None]
    ) -> None:
        columns = zip(ids, rows.content_hash, rows.recorded_until, strict=True)
        self.texts.add(
            [(record_id, key[:KEY_BYTES]) for record_id, key, recorded_until in columns if recorded_until is None]
        )
        super()._insert_rows(ids, rows, scopes, sources)
