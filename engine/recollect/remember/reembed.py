"""The move of a store to another embedder."""

from __future__ import annotations

from recollect.engine import Engine
from recollect.remember.embed import parts_of
from recollect.remember.pending import BATCH, Progress, embed_pending
from recollect.store import changing, feed, vectors

__all__ = ["reembed"]


def reembed(engine: Engine, *, on_progress: Progress | None = None) -> int:
    """Give every record vectors of the configured embedder, then switch to them; returns how many were embedded.

    It can be stopped and resumed: finished batches stay. Recall goes on with the old vectors until the switch.
    """
    identity = engine.embedder.identity()
    with engine.atomic() as connection:
        active = vectors.active_embedder(connection)
        target = vectors.add(connection, **identity._asdict())
    if active is None or active.fingerprint == identity.fingerprint:
        return embed_pending(engine, on_progress=on_progress)
    done = 0
    while True:
        with engine.store.read() as connection:
            total = done + vectors.count_without(connection, target)
            waiting = vectors.without(connection, target, BATCH)
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
        with engine.atomic() as connection:
            changing.set_vectors(connection, target, vectors.unchanged(connection, waiting, parts), active=False)
        done += len(waiting)
        if on_progress is not None:
            on_progress(done, total)


def _switch(engine: Engine, target: vectors.EmbedderRow) -> bool:
    """Make the new vectors the active ones; False if a record was written meanwhile that lacks them."""
    with engine.atomic() as connection:
        if vectors.without(connection, target, 1):
            return False
        vectors.activate(connection, target)
        vectors.drop_others(connection, target)
        feed.append(connection, "reload", 0)
    return True
