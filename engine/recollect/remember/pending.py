"""Embedding pending records: those whose embedder failed or was missing when they were written."""

from __future__ import annotations

from collections.abc import Callable

from recollect.engine import Engine
from recollect.errors import EmbedderError
from recollect.remember.embed import finished, parts_by_id, retry_reason

__all__ = ["BATCH", "Progress", "drain_pending", "embed_pending"]

Progress = Callable[[int, int | None], None]
BATCH = 256


def embed_pending(engine: Engine, *, limit: int | None = None, on_progress: Progress | None = None) -> int:
    """Embed records whose embedding failed or was not possible when they were written; returns how many.

    A refused text is marked as such. Raises EmbedderError where the embedder fails; where it fails for one text, only
    after the others were embedded.
    """
    identity = engine.embedder.identity()
    with engine.atomic() as writer:
        writer.vectors.register_embedder(**identity._asdict())
    done = tried = last = 0
    total = problem = None
    if on_progress is not None:
        with engine.store.read() as reader:
            total = reader.vectors.count_waiting()
    while limit is None or tried < limit:
        with engine.store.read() as reader:
            waiting = reader.vectors.waiting(BATCH if limit is None else min(BATCH, limit - tried), last)
        if not waiting:
            # A text that fails alone is not tried again on every write.
            engine.may_have_pending = False
            break
        last = waiting[-1][0]
        parts = parts_by_id(engine.embedder, waiting, patient=True)
        with engine.atomic() as writer:
            active = writer.vectors.register_embedder(**identity._asdict())
            same = writer.vectors.unchanged(waiting, finished(parts))
            writer.vectors.set(active, same, active=True)
        tried += len(waiting)
        done += sum(bool(each.values) for each in parts.values())
        problem = problem or retry_reason(parts.values())
        if on_progress is not None:
            on_progress(tried, total)
    if problem is not None:
        raise EmbedderError(problem)
    return done


def drain_pending(engine: Engine, limit: int | None) -> None:
    """Embed pending records; a failure leaves them pending."""
    try:
        embed_pending(engine, limit=limit)
    except EmbedderError:
        return
