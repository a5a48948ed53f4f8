"""Writing new memories: check and tokenise, embed, then insert in one transaction, from which the index is updated.

`Memory.remember` calls `remember_one`: `prepare_all` makes the row, `embed_rows` its vectors, and `write_one` decides,
as the policy says, what is inserted and what it is connected with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice

from msgspec import structs

from recallite.engine import Engine
from recallite.errors import EmbedderMismatch, InvalidInput, InvalidItem, RecalliteError
from recallite.model.policies import WritePolicy
from recallite.model.records import NewRecord, OnExisting, Record
from recallite.model.vector_checks import check_vectors
from recallite.remember.batch import write_one, write_rows
from recallite.remember.catching_up import MANY, start_comparing
from recallite.remember.embed import embed_rows, identity_for, parts_ahead
from recallite.remember.embedded import EmbeddedText, check_embedded
from recallite.remember.pending import drain_pending
from recallite.remember.prepare import Arguments, as_new_record, as_record, prepare_all, prepare_batch
from recallite.remember.supersession import KINDS_THAT_LAST, RowRefused
from recallite.store.columns import RowColumns
from recallite.store.store import Progress
from recallite.store.values import EmbedderRow, Parts, Row
from recallite.system.messages import shown
from recallite.system.tracing import traced
from recallite.text.junk import is_junk

# How many pending records are embedded after each write once the embedder works again.
PENDING_A_WRITE = 32


@traced("remember", lambda record: {"outcome": record.outcome or ""})
def remember_one(
    engine: Engine,
    item: NewRecord,
    *,
    base: str,
    policy: WritePolicy | None = None,
    on_existing: OnExisting = "error",
) -> Record:
    """Store one memory as `policy` (None: that of the settings) says; when this returns, it survives power loss.

    Call it outside a transaction: the text is embedded first.
    """
    policy = check_policy(engine, policy)
    max_chars, last = engine.settings.max_text_chars, engine.last_embedder
    rows = prepare_all(Arguments([item]), base=base, max_text_chars=max_chars, policy=policy)
    if is_skipped(rows[0], policy):
        return structs.replace(as_record(rows[0]), id="", outcome="skipped")
    try:
        record = _write_one(engine, rows, item.vector, policy, on_existing, last)
    except (EmbedderMismatch, InvalidInput) as fault:
        # By now another process may have moved the store to another embedder.
        if fault.reason not in (None, "vector") or last is None or last == engine.active_embedder():
            raise
        rows = prepare_all(Arguments([item]), base=base, max_text_chars=max_chars, policy=policy)
        record = _write_one(engine, rows, item.vector, policy, on_existing, None)
    embed_some_pending(engine, rows)
    start_comparing(engine)
    return record


@contextmanager
def transaction(engine: Engine, items: Iterable[object], *, base: str) -> Iterator[None]:
    """A transaction of the store, before which items that will be stored in it are embedded."""
    parts: dict[tuple[str, str | None], Parts] = {}
    with suppress(RecalliteError):  # what is wrong with an item is told where it is stored
        lacking = [item for item in map(as_new_record, items) if item.vector is None]
        if lacking:
            policy, max_chars = check_policy(engine, None), engine.settings.max_text_chars
            rows = prepare_all(Arguments(lacking), base=base, max_text_chars=max_chars, policy=policy)
            parts = parts_ahead(engine, rows)
    with engine.embedder.keeping(parts), engine.store.transaction():
        yield


def _write_one(
    engine: Engine,
    rows: RowColumns,
    vector: object,
    policy: WritePolicy,
    on_existing: OnExisting,
    active: EmbedderRow | None,
) -> Record:
    """Embed and write one row. `active` is the store's embedder as it was last read; the transaction checks it."""
    identity = identity_for(engine, vector, active)
    embed_rows(engine.embedder, rows, [vector], identity)
    try:
        return write_one(engine, rows, identity, policy, on_existing)
    except RowRefused as refused:
        raise refused.error from None


def is_skipped(row: Row, policy: WritePolicy) -> bool:
    """Whether the policy keeps a row out as junk. "Yes" has a meaning under a topic, or where the context asks."""
    wanted = row.named or row.pinned or row.topic is not None or row.supersedes
    if policy.junk == "store" or row.kind in KINDS_THAT_LAST or wanted:
        return False
    return "?" not in (row.context or "") and is_junk(row.text)


def check_policy(engine: Engine, policy: object) -> WritePolicy:
    """The policy of a write: the one given, else that of the settings. Redaction set there applies to every write."""
    general = engine.settings.write_policy
    if policy is None:
        policy = general
    if not isinstance(policy, WritePolicy):
        raise InvalidInput(f"policy is {shown(policy)}: give a WritePolicy, e.g. WritePolicy(link_cosine=0.85)")
    return policy if general.redact is None else structs.replace(policy, redact=general.redact)


@traced("remember_many", lambda ids: {"memories": len(ids)})
def remember_batches(
    engine: Engine,
    items: Iterable[object],
    *,
    base: str,
    batch_size: int,
    on_progress: Progress | None,
    policy: WritePolicy | None = None,
    on_existing: OnExisting = "error",
) -> list[str]:
    """Store a stream of memories, one transaction per batch; InvalidItem names the item that stopped it.

    Returns an id for each item: of the new record, or of the one that it duplicates or was merged into; an empty one
    for junk that the policy skips.
    """
    policy = check_policy(engine, policy)
    if on_progress is not None and not callable(on_progress):
        raise InvalidInput(f"on_progress is {shown(on_progress)}: give a callable that takes (done, total)")
    total = len(items) if hasattr(items, "__len__") else None  # type: ignore[arg-type]
    ids: list[str] = []
    stream = iter(items)
    while batch := list(islice(stream, batch_size)):
        # Those of a call are compared alike, whatever is left for its last batch.
        later = policy.compare == "later" and (len(batch) >= MANY or bool(ids))
        if later:
            engine.start_kernels(len(batch))
        max_chars = engine.settings.max_text_chars
        rows, vectors = prepare_batch(batch, len(ids), base=base, max_text_chars=max_chars, policy=policy)
        places = [place for place in range(len(rows)) if policy.junk == "store" or not is_skipped(rows[place], policy)]
        stored = rows.select(places)
        try:
            written = _write(engine, stored, [vectors[place] for place in places], policy, on_existing, later=later)
        except RowRefused as refused:
            place = next(place for place, row in zip(places, stored, strict=True) if row is refused.row)
            raise InvalidItem(len(ids) + place, len(ids), refused.error) from refused.error
        except RecalliteError as reason:
            bad = _first_bad_vector(engine, vectors)
            if bad is None:
                raise
            raise InvalidItem(len(ids) + bad, len(ids), reason) from reason
        by_place = dict(zip(places, written, strict=True))
        ids += [by_place.get(place, "") for place in range(len(rows))]
        if on_progress is not None:
            on_progress(len(ids), total)
    start_comparing(engine, added=True)
    return ids


def _write(
    engine: Engine,
    rows: RowColumns,
    vectors: Sequence[object],
    policy: WritePolicy,
    on_existing: OnExisting,
    *,
    later: bool,
) -> list[str]:
    identity = identity_for(engine, next((vector for vector in vectors if vector is not None), None))
    embed_rows(engine.embedder, rows, vectors, identity)
    ids = write_rows(engine, rows, identity, policy, on_existing, later=later)
    engine.may_have_uncompared = engine.may_have_uncompared or later
    embed_some_pending(engine, rows)
    return ids


def embed_some_pending(engine: Engine, rows: Sequence[Row]) -> None:
    """Embed some pending records, where the embedder works.

    The rows are already stored, so a failure here is not raised: the next write tries again.
    """
    columns = RowColumns.of(rows)
    columns.take_back()  # rows that were merged or repeated were never inserted
    if any(columns.pending):
        engine.may_have_pending = True
    elif not engine.store.writing and engine.may_have_pending and any(columns.vectors):
        with engine.afterwards("embedding"):
            drain_pending(engine, PENDING_A_WRITE)


def _first_bad_vector(engine: Engine, vectors: Sequence[object]) -> int | None:
    """The position of the first vector that cannot be stored, for the error message."""
    identity = identity_for(engine, next((vector for vector in vectors if vector is not None), None))
    for place, vector in enumerate(vectors):
        if vector is not None:
            try:
                if not isinstance(vector, EmbeddedText):
                    check_vectors(vector, None if identity is None else identity.dimension)
                elif identity is not None:
                    check_embedded([vector], identity)
            except EmbedderMismatch:  # no fault of this one
                return None
            except RecalliteError:
                return place
    return None
