"""New memories: check, embed, store in one transaction. The index follows through the change feed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import structs

from recollect.checks import check_vector, shown
from recollect.embedding.handle import Identity
from recollect.engine import Engine
from recollect.errors import InvalidInput, InvalidItem, RecollectError, StoreError
from recollect.policies import WritePolicy
from recollect.records import NewRecord, Record
from recollect.remember.embed import embed_rows, identity_for
from recollect.remember.merging import write_one, write_rows
from recollect.remember.pending import Progress, drain_pending
from recollect.remember.prepare import as_new_record, as_record, prepare
from recollect.store import vectors, writing
from recollect.store.writing import Row

if TYPE_CHECKING:
    import apsw

__all__ = ["check_policy", "insert_rows", "remember_batches", "remember_one", "settle"]

# How many records that wait for a vector are embedded along with a write once the embedder works again.
PENDING_A_WRITE = 32


def remember_one(engine: Engine, item: NewRecord, *, base: str, policy: WritePolicy | None = None) -> Record:
    """Store one memory as `policy` (None: that of the settings) says; once this returns, it survives.

    Call it outside a transaction: the text is embedded first.
    """
    policy = check_policy(engine, policy)
    row = prepare(item, base=base, max_text_chars=engine.settings.max_text_chars, policy=policy)
    identity = identity_for(engine, item.vector)
    embed_rows(engine.embedder, [row], [item.vector], identity)
    if policy.idle:
        with engine.atomic() as connection:
            insert_rows(engine, connection, [row], identity)
        record = as_record(row)
    else:
        record = write_one(engine, row, identity, policy)
    settle(engine, [row])
    return record


def check_policy(engine: Engine, policy: object) -> WritePolicy:
    """The policy of a write: the one given, else that of the settings. What these redact, every write does."""
    general = engine.settings.write_policy
    if policy is None:
        policy = general
    if not isinstance(policy, WritePolicy):
        raise InvalidInput(f"policy is {shown(policy)}: give a WritePolicy, e.g. WritePolicy(link_cosine=0.85)")
    return policy if general.redact is None else structs.replace(policy, redact=general.redact)


def remember_batches(
    engine: Engine,
    items: Iterable[object],
    *,
    base: str,
    batch_size: int,
    on_progress: Progress | None,
    policy: WritePolicy | None = None,
) -> list[str]:
    """Store a stream of memories, a transaction a batch; InvalidItem names the item that stopped it.

    Returns an id for each item: of what was stored, or of the memory that `policy` found it to repeat or continue.
    """
    policy = check_policy(engine, policy)
    if on_progress is not None and not callable(on_progress):
        raise InvalidInput(f"on_progress is {shown(on_progress)}: give a callable that takes (done, total)")
    total = len(items) if hasattr(items, "__len__") else None  # type: ignore[arg-type]
    ids: list[str] = []
    for batch in _batches(items, batch_size):
        rows: list[Row] = []
        given: list[object] = []
        for place, item in enumerate(batch):
            try:
                record = as_new_record(item)
                rows.append(prepare(record, base=base, max_text_chars=engine.settings.max_text_chars, policy=policy))
            except RecollectError as reason:
                raise InvalidItem(len(ids) + place, len(ids), reason) from reason
            given.append(record.vector)
        try:
            ids += _write(engine, rows, given, policy)
        except RecollectError as reason:
            bad = _first_bad_vector(engine, given)
            if bad is None:
                raise
            raise InvalidItem(len(ids) + bad, len(ids), reason) from reason
        if on_progress is not None:
            on_progress(len(ids), total)
    return ids


def _write(engine: Engine, rows: Sequence[Row], given: Sequence[object], policy: WritePolicy) -> list[str]:
    identity = identity_for(engine, next((vector for vector in given if vector is not None), None))
    embed_rows(engine.embedder, rows, given, identity)
    if policy.idle:
        with engine.atomic() as connection:
            insert_rows(engine, connection, rows, identity)
        ids = [row.public_id for row in rows]
    else:
        ids = write_rows(engine, rows, identity, policy)
    settle(engine, rows)
    return ids


def settle(engine: Engine, rows: Sequence[Row]) -> None:
    """Embed some of what waits for vectors, where the embedder works.

    The rows are stored: what fails here is tried again with the next write, and no reason to say that they are not.
    """
    if any(row.pending for row in rows):
        engine.may_have_pending = True
    elif engine.may_have_pending and any(row.vectors for row in rows):
        with suppress(StoreError):
            drain_pending(engine, PENDING_A_WRITE)


def insert_rows(
    engine: Engine, connection: apsw.Connection, rows: Sequence[Row], identity: Identity | None
) -> list[int]:
    """Insert rows in this transaction, their vectors under `identity`; returns their row ids."""
    made_by = None
    if identity is not None and any(row.vectors or row.refused for row in rows):
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
