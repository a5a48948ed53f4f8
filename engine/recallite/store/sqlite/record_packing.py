"""The packed columns of many new records at once: the bytes that the trigger `record_inserted` makes of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recallite.store.columns import RowColumns
from recallite.store.sqlite.blocks import PACKED_RECORD
from recallite.store.values import NEVER


def pack_records(
    ids: Sequence[int], rows: RowColumns, scopes: Sequence[int], sources: Sequence[int | None], kinds: Sequence[int]
) -> list[bytes]:
    """`record_packed.value` of each row, given its row id and the ids of its scope, source and kind."""
    packed = np.empty(len(rows), dtype=PACKED_RECORD)
    packed["ids"], packed["scopes"], packed["kinds"] = ids, scopes, kinds
    packed["sources"] = _filled(sources, -1)
    packed["positions"] = _filled(rows.position, NEVER)
    packed["created_at"] = packed["moments"] = rows.created_at
    if any(moment is not None for moment in rows.event_at):
        moments = zip(rows.created_at, rows.event_at, strict=True)
        packed["moments"] = [created if moment is None else moment for created, moment in moments]
    packed["moments_until"] = _filled(rows.event_until, NEVER)
    packed["valid_from"] = rows.valid_from
    packed["valid_to"] = _filled(rows.valid_to, NEVER)
    packed["expires_at"] = _filled(rows.expires_at, NEVER)
    packed["superseded_at"] = packed["held_until"] = NEVER
    both = zip(rows.importance, rows.base_importance, strict=True)
    importance = [importance if base is None else base for importance, base in both]
    # As round() of SQLite does it: halves go up.
    packed["importance"] = (np.array(importance, dtype=np.float64) * 1e15 + 0.5).astype(np.int64)
    packed["resolved"] = rows.event_resolved
    whole, size = packed.tobytes(), PACKED_RECORD.itemsize
    return [whole[start : start + size] for start in range(0, len(whole), size)]


def _filled(values: Sequence[int | None], absent: int) -> list[int] | int:
    """The values with `absent` for None; itself if all are None."""
    if values.count(None) == len(values):
        return absent
    return [absent if value is None else value for value in values]
