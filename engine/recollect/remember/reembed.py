"""Vectors for records that wait for theirs, and the move of a store to another embedder."""

from __future__ import annotations

from recollect.engine import Engine
from recollect.errors import EmbedderError
from recollect.remember.embed import parts_of
from recollect.remember.write import Progress
from recollect.store import feed, reading, vectors, writing
from recollect.store.filters import Condition

__all__ = ["embed_pending", "reembed"]

_BATCH = 256


def embed_pending(engine: Engine, *, limit: int | None = None, on_progress: Progress | None = None) -> int:
    """Embed records whose embedding failed or was not possible when they were written; returns how many."""
    identity = engine.embedder.identity()
    with engine.store.atomic() as connection:
        vectors.register(connection, engine.store.path, **identity._asdict())
    done = 0
    total = None
    if on_progress is not None:
        with engine.store.read() as connection:
            total = reading.count(connection, Condition("r.embedding_state != 'embedded'"))
    while limit is None or done < limit:
        wanted = _BATCH if limit is None else min(_BATCH, limit - done)
        with engine.store.read() as connection:
            waiting = vectors.waiting(connection, wanted)
        if not waiting:
            break
        parts = dict(
            zip(
                (row[0] for row in waiting),
                parts_of(engine.embedder, [row[1] for row in waiting], [row[2] for row in waiting]),
                strict=True,
            )
        )
        with engine.store.atomic() as connection:
            active = vectors.register(connection, engine.store.path, **identity._asdict())
            writing.set_vectors(connection, active, vectors.unchanged(connection, waiting, parts), active=True)
        done += len(waiting)
        if on_progress is not None:
            on_progress(done, total)
    return done


def reembed(engine: Engine, *, on_progress: Progress | None = None) -> int:
    """Give every record vectors of the configured embedder, then switch to them; returns how many were embedded.

    It can be stopped and resumed: finished batches stay. Recall goes on with the old vectors until the switch.
    """
    identity = engine.embedder.identity()
    with engine.store.atomic() as connection:
        active = vectors.active_embedder(connection)
        target = vectors.add(connection, **identity._asdict())
    if active is None or active.fingerprint == identity.fingerprint:
        return embed_pending(engine, on_progress=on_progress)
    done = 0
    while True:
        with engine.store.read() as connection:
            total = done + vectors.count_without(connection, target)
            waiting = vectors.without(connection, target, _BATCH)
        if not waiting and _switch(engine, target):
            return done
        if not waiting:
            continue
        ids = [row[0] for row in waiting]
        parts = dict(
            zip(
                ids,
                parts_of(engine.embedder, [row[1] for row in waiting], [row[2] for row in waiting]),
                strict=True,
            )
        )
        with engine.store.atomic() as connection:
            writing.set_vectors(connection, target, vectors.unchanged(connection, waiting, parts), active=False)
        done += len(waiting)
        if on_progress is not None:
            on_progress(done, total)


def _switch(engine: Engine, target: vectors.EmbedderRow) -> bool:
    """Make the new vectors the active ones; False if a record was written meanwhile that lacks them."""
    with engine.store.atomic() as connection:
        if vectors.without(connection, target, 1):
            return False
        vectors.activate(connection, target)
        vectors.drop_others(connection, target)
        feed.append(connection, "reload", 0)
    return True


def drain_pending(engine: Engine, limit: int | None) -> None:
    """Embed waiting records after a successful write; a failure leaves them waiting."""
    try:
        embed_pending(engine, limit=limit)
    except EmbedderError:
        return
