"""Embedding stored records: pending ones, and all of them where the embedder changes."""

from __future__ import annotations

from contextlib import suppress

from recallite.engine import Engine
from recallite.errors import EmbedderError
from recallite.remember.embed import finished, parts_by_id, retry_reason
from recallite.store.store import Progress

_BATCH = 256


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
            waiting = reader.vectors.waiting(_BATCH if limit is None else min(_BATCH, limit - tried), last)
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
        done += sum(bool(part.values) for part in parts.values())
        problem = problem or retry_reason(parts.values())
        if on_progress is not None:
            on_progress(tried, total)
    if problem is not None:
        raise EmbedderError(problem)
    return done


def drain_pending(engine: Engine, limit: int | None) -> None:
    """Embed pending records; a failure leaves them pending."""
    with suppress(EmbedderError):
        embed_pending(engine, limit=limit)


def reembed(engine: Engine, *, on_progress: Progress | None = None) -> int:
    """Give every record vectors of the configured embedder, then switch to them; returns how many were embedded.

    Refused texts are tried again. Token codes are added or removed as the settings say. It can be interrupted and
    resumed: finished batches stay. Recall uses the old vectors until the switch.
    """
    identity = engine.embedder.identity()
    with engine.atomic() as writer:
        active = writer.vectors.active_embedder()
        target = writer.vectors.add_embedder(**identity._asdict())
        writer.vectors.forget_refusals(target.id)
    engine.may_have_pending = True
    if active is None or active.fingerprint == identity.fingerprint:
        embedded = embed_pending(engine, on_progress=on_progress)
        return embedded + _update_codes(engine, target.id)
    done = 0
    while True:
        with engine.store.read() as reader:
            total = done + reader.vectors.count_lacking(target)
            waiting = reader.vectors.lacking(target, _BATCH)
        if not waiting:
            with engine.atomic() as writer:
                if not writer.vectors.lacking(target, 1):  # else a record was written meanwhile
                    writer.vectors.switch_to(target)
                    return done
            continue
        parts = parts_by_id(engine.embedder, waiting)
        with engine.atomic() as writer:
            writer.vectors.set(target, writer.vectors.unchanged(waiting, finished(parts)), active=False)
        if problem := retry_reason(parts.values()):
            raise EmbedderError(problem)
        done += sum(bool(part.values) for part in parts.values())
        if on_progress is not None:
            on_progress(done, total)


def start_over(engine: Engine) -> bool:
    """Make the configured embedder that of the store at once, with all records pending. False if it is already.

    For derived stores: the old vectors are dropped, and pending records are found by keyword.
    """
    identity = engine.embedder.identity()
    with engine.atomic() as writer:
        active = writer.vectors.active_embedder()
        if active is None or active.fingerprint == identity.fingerprint:
            return False
        writer.vectors.start_over(writer.vectors.add_embedder(**identity._asdict()))
    engine.may_have_pending = True
    return True


def _update_codes(engine: Engine, embedder_id: int) -> int:
    """Add missing token codes, or remove all; returns how many records were embedded for it.

    A record with a given vector, in fewer parts than its text has, gets none.
    """
    if not engine.settings.token_codes:
        with engine.atomic() as writer:
            writer.vectors.drop_token_codes()
        return 0
    if not engine.embedder.gives_codes:
        return 0
    done, last = 0, 0
    while True:
        with engine.store.read() as reader:
            lacking = reader.vectors.lacking_token_codes(embedder_id, last, _BATCH)
        if not lacking:
            return done
        parts = parts_by_id(engine.embedder, lacking)
        with engine.atomic() as writer:
            same = writer.vectors.unchanged(lacking, {key: part for key, part in parts.items() if part.values})
            done += writer.vectors.add_token_codes(
                embedder_id, {record_id: part.codes for record_id, part in same.items()}
            )
        last = lacking[-1][0]
