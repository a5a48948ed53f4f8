"""Vectors for records that wait for theirs: the embedder failed, or was not there, when they were written."""

from __future__ import annotations

from collections.abc import Callable

from recollect.engine import Engine
from recollect.errors import EmbedderError
from recollect.remember.embed import parts_of
from recollect.store import changing, reading, vectors
from recollect.store.filters import without_vector

__all__ = ["BATCH", "Progress", "drain_pending", "embed_pending"]

Progress = Callable[[int, int | None], None]
BATCH = 256


def embed_pending(engine: Engine, *, limit: int | None = None, on_progress: Progress | None = None) -> int:
    """Embed records whose embedding failed or was not possible when they were written; returns how many."""
    identity = engine.embedder.identity()
    with engine.atomic() as connection:
        vectors.register(connection, engine.store.path, **identity._asdict())
    done = 0
    total = None
    if on_progress is not None:
        with engine.store.read() as connection:
            total = reading.count(connection, without_vector())
    while limit is None or done < limit:
        wanted = BATCH if limit is None else min(BATCH, limit - done)
        with engine.store.read() as connection:
            waiting = vectors.waiting(connection, wanted)
        if not waiting:
            engine.may_have_pending = False
            break
        parts = dict(
            zip(
                (row[0] for row in waiting),
                parts_of(engine.embedder, [row[1] for row in waiting], [row[2] for row in waiting]),
                strict=True,
            )
        )
        with engine.atomic() as connection:
            active = vectors.register(connection, engine.store.path, **identity._asdict())
            changing.set_vectors(connection, active, vectors.unchanged(connection, waiting, parts), active=True)
        done += len(waiting)
        if on_progress is not None:
            on_progress(done, total)
    return done


def drain_pending(engine: Engine, limit: int | None) -> None:
    """Embed waiting records after a successful write; a failure leaves them waiting."""
    try:
        embed_pending(engine, limit=limit)
    except EmbedderError:
        return
