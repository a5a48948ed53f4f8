"""Embedding stored records: pending ones, and all of them where the embedder changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

from recallite.engine import Engine
from recallite.errors import EmbedderError
from recallite.remember.embed import finished, parts_by_id, retry_reason
from recallite.store.store import Progress
from recallite.store.transaction import Writer
from recallite.store.values import EmbedderRow, Parts
from recallite.system.turnstile import StepSize, giving_way

_BATCH = 256
Text: TypeAlias = tuple[int, str, str | None]
"""The row id, the text and the context of a record."""


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
    # A few are embedded after a write, whose caller waits for them.
    step = StepSize(first=_BATCH) if limit is None else None
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

        def store(writer: Writer, some: Sequence[Text], parts: dict[int, Parts]) -> None:
            active = writer.vectors.register_embedder(**identity._asdict())
            writer.vectors.set(active, writer.vectors.unchanged(some, finished(parts)), active=True)

        _in_turns(engine, step, waiting, parts, store)
        tried += len(waiting)
        done += sum(bool(part.values) for part in parts.values())
        problem = problem or retry_reason(parts.values())
        if on_progress is not None:
            on_progress(tried, total)
    if problem is not None:
        raise EmbedderError(problem)
    return done


def _in_turns(
    engine: Engine,
    step: StepSize | None,
    texts: Sequence[Text],
    parts: Mapping[int, Parts],
    store: Callable[[Writer, Sequence[Text], dict[int, Parts]], None],
) -> None:
    """Store the parts of texts, of some in each turn of the background; without a step all at once."""
    left = texts
    while left:
        some = left if step is None else left[: step.size]
        with engine.atomic(step=step) as writer:
            if step is not None:
                step.count = len(some)
            store(writer, some, {row_id: parts[row_id] for row_id, *_ in some if row_id in parts})
        left = left[len(some) :]


def _drop_others(engine: Engine, embedder: EmbedderRow) -> None:
    """Drop the vectors of other embedders, some in each turn of the background."""
    step, last = StepSize(first=256, most=1 << 14), 0
    while True:
        with engine.store.read() as reader:
            ids = reader.vectors.of_others(embedder, last, step.size)
        with engine.atomic(step=step) as writer:
            writer.vectors.drop(ids, embedder)
            step.count = len(ids)
        if not ids:
            return
        last = ids[-1]


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
        _drop_others(engine, target)  # which an interrupted run has left
        return embedded + _update_codes(engine, target.id)
    done, step = 0, StepSize(first=32)
    while True:
        with engine.store.read() as reader:
            total = done + reader.vectors.count_lacking(target)
            waiting = reader.vectors.lacking(target, _BATCH)
        if not waiting:
            with giving_way(), engine.atomic() as writer:
                if writer.vectors.lacking(target, 1):  # a record was written meanwhile
                    continue
                writer.vectors.switch_to(target)
            _drop_others(engine, target)
            return done
        parts = parts_by_id(engine.embedder, waiting)

        def store(writer: Writer, some: Sequence[Text], parts: dict[int, Parts]) -> None:
            writer.vectors.set(target, writer.vectors.unchanged(some, finished(parts)), active=False)

        _in_turns(engine, step, waiting, parts, store)
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
    done, last, step = 0, 0, StepSize(first=32)
    while True:
        with engine.store.read() as reader:
            lacking = reader.vectors.lacking_token_codes(embedder_id, last, _BATCH)
        if not lacking:
            return done
        embedded = {key: part for key, part in parts_by_id(engine.embedder, lacking).items() if part.values}

        def store(writer: Writer, some: Sequence[Text], parts: dict[int, Parts]) -> None:
            nonlocal done
            same = writer.vectors.unchanged(some, parts)
            done += writer.vectors.add_token_codes(embedder_id, {key: part.codes for key, part in same.items()})

        _in_turns(engine, step, lacking, embedded, store)
        last = lacking[-1][0]
