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
_PLAIN = "memory"


def embed_pending(engine: Engine, *, limit: int | None = None, on_progress: Progress | None = None) -> int:
    """Embed records whose embedding failed or was not possible when they were written; returns how many.

    A text that the embedder refuses keeps no other from its vectors. Raises EmbedderError where it fails, or has
    refused a text, after the others were embedded.
    """
    identity = engine.embedder.identity()
    with engine.atomic() as connection:
        vectors.register(connection, engine.store.path, **identity._asdict())
    done = 0
    total = None
    if on_progress is not None:
        with engine.store.read() as connection:
            total = reading.count(connection, without_vector())
    size = BATCH
    refused: dict[int, EmbedderError] = {}
    while limit is None or done < limit:
        wanted = size if limit is None else min(size, limit - done)
        with engine.store.read() as connection:
            found = vectors.waiting(connection, wanted + len(refused))
        waiting = [row for row in found if row[0] not in refused][:wanted]
        if not waiting:
            engine.may_have_pending = bool(refused)
            break
        try:
            made = parts_of(engine.embedder, [row[1] for row in waiting], [row[2] for row in waiting])
        except EmbedderError as reason:
            # Where it fails for a plain word too, it is down.
            parts_of(engine.embedder, [_PLAIN], [None])
            if len(waiting) == 1:
                refused[waiting[0][0]] = reason
            size = 1
            continue
        size = min(BATCH, 2 * size)
        parts = dict(zip((row[0] for row in waiting), made, strict=True))
        with engine.atomic() as connection:
            active = vectors.register(connection, engine.store.path, **identity._asdict())
            changing.set_vectors(connection, active, vectors.unchanged(connection, waiting, parts), active=True)
        done += len(waiting)
        if on_progress is not None:
            on_progress(done, total)
    if refused:
        raise next(iter(refused.values()))
    return done


def drain_pending(engine: Engine, limit: int | None) -> None:
    """Embed waiting records after a successful write; a failure leaves them waiting."""
    try:
        embed_pending(engine, limit=limit)
    except EmbedderError:
        return
