"""New memories: check, embed, store in one transaction. The index follows through the change feed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from recollect.checks import check_vector
from recollect.embedding.handle import Identity
from recollect.engine import Engine
from recollect.errors import InvalidItem, RecollectError
from recollect.policies import WritePolicy
from recollect.records import NewRecord, Record
from recollect.remember.embed import embed_rows, identity_for
from recollect.remember.pending import Progress, drain_pending
from recollect.remember.prepare import as_new_record, as_record, prepare
from recollect.store import vectors, writing
from recollect.store.writing import Row

if TYPE_CHECKING:
    import apsw

__all__ = ["insert_rows", "remember_batches", "remember_one"]

# How many records that wait for a vector are embedded along with a write once the embedder works again.
PENDING_A_WRITE = 32


def remember_one(engine: Engine, item: NewRecord, *, base: str, policy: WritePolicy | None = None) -> Record:
    """Store one memory as `policy` (None: that of the settings) says; once this returns, it survives."""
    row = prepare(item, base=base, max_text_chars=engine.settings.max_text_chars)
    _write(engine, [row], [item.vector])
    return as_record(row)


def remember_batches(
    engine: Engine,
    items: Iterable[object],
    *,
    base: str,
    batch_size: int,
    on_progress: Progress | None,
    policy: WritePolicy | None = None,
) -> list[str]:
    """Store a stream of memories, a transaction a batch; InvalidItem names the item that stopped it."""
    total = len(items) if hasattr(items, "__len__") else None  # type: ignore[arg-type]
    ids: list[str] = []
    for batch in _batches(items, batch_size):
        rows: list[Row] = []
        given: list[object] = []
        for place, item in enumerate(batch):
            try:
                record = as_new_record(item)
                rows.append(prepare(record, base=base, max_text_chars=engine.settings.max_text_chars))
            except RecollectError as reason:
                raise InvalidItem(len(ids) + place, len(ids), reason) from reason
            given.append(record.vector)
        try:
            _write(engine, rows, given)
        except RecollectError as reason:
            bad = _first_bad_vector(engine, given)
            if bad is None:
                raise
            raise InvalidItem(len(ids) + bad, len(ids), reason) from reason
        ids.extend(row.public_id for row in rows)
        if on_progress is not None:
            on_progress(len(ids), total)
    return ids


def _write(engine: Engine, rows: Sequence[Row], given: Sequence[object]) -> None:
    identity = identity_for(engine, next((vector for vector in given if vector is not None), None))
    embed_rows(engine.embedder, rows, given, identity)
    with engine.atomic() as connection:
        insert_rows(engine, connection, rows, identity)
    if any(row.pending for row in rows):
        engine.may_have_pending = True
    elif engine.may_have_pending and any(row.vectors for row in rows):
        drain_pending(engine, PENDING_A_WRITE)


def insert_rows(
    engine: Engine, connection: apsw.Connection, rows: Sequence[Row], identity: Identity | None
) -> list[int]:
    """Insert rows in this transaction, their vectors under `identity`; returns their row ids."""
    made_by = None
    if identity is not None and any(row.vectors for row in rows):
        made_by = vectors.register(connection, engine.store.path, **identity._asdict())
    return writing.insert(connection, engine.lexicon, rows, made_by)


def _first_bad_vector(engine: Engine, given: Sequence[object]) -> int | None:
    """The place of the first vector that cannot be stored, to name it in the error."""
    identity = identity_for(engine, next((vector for vector in given if vector is not None), None))
    for place, vector in enumerate(given):
        if vector is not None:
            try:
                check_vector(vector, None if identity is None else identity.dimension)
            except RecollectError:
                return place
    return None


def _batches(items: Iterable[object], size: int) -> Iterator[list[object]]:
    stream = iter(items)
    while batch := list(islice(stream, size)):
        yield batch
