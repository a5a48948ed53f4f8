"""The packed columns of many new records at once: the bytes that the trigger `record_inserted` makes of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from recallite.store.sqlite.blocks import PACKED_RECORD
from recallite.store.values import NEVER, Row


def pack_records(
    ids: Sequence[int], rows: Sequence[Row], scopes: Sequence[int], sources: Sequence[int | None], kinds: Sequence[int]
) -> list[bytes]:
    """`record_packed.value` of each row, given its row id and the ids of its scope, source and kind."""
    packed = np.empty(len(rows), dtype=PACKED_RECORD)
    packed["ids"], packed["scopes"], packed["kinds"] = ids, scopes, kinds
    packed["sources"] = [-1 if source is None else source for source in sources]
    packed["positions"] = [NEVER if row.position is None else row.position for row in rows]
    packed["created_at"] = [row.created_at for row in rows]
    packed["moments"] = [row.created_at if row.event_at is None else row.event_at for row in rows]
    packed["moments_until"] = [NEVER if row.event_until is None else row.event_until for row in rows]
    packed["valid_from"] = [row.valid_from for row in rows]
    packed["valid_to"] = [NEVER if row.valid_to is None else row.valid_to for row in rows]
    packed["expires_at"] = [NEVER if row.expires_at is None else row.expires_at for row in rows]
    packed["superseded_at"] = packed["held_until"] = NEVER
    importance = [row.importance if row.base_importance is None else row.base_importance for row in rows]
    # As round() of SQLite does it: halves go up.
    packed["importance"] = (np.array(importance, dtype=np.float64) * 1e15 + 0.5).astype(np.int64)
    packed["resolved"] = [row.event_resolved for row in rows]
    whole, size = packed.tobytes(), PACKED_RECORD.itemsize
    return [whole[start : start + size] for start in range(0, len(whole), size)]
