"""Bulk work on one machine: this process reads and writes, others embed or answer questions."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, Unpack

from recallite.embedding.protocol import Embedder
from recallite.errors import InvalidInput, InvalidItem, RecalliteError
from recallite.memory import Memory
from recallite.model.checks import check_count, check_stream, now_us, to_datetime
from recallite.model.policies import WritePolicy
from recallite.model.records import Hits, NewRecord
from recallite.model.reports import Remembered
from recallite.model.settings import Settings
from recallite.plugin import engine_of
from recallite.recall.request import RecallOptions
from recallite.remember.identity import content_id
from recallite.remember.prepare import as_new_record
from recallite.remember.write import check_policy
from recallite.store.store import Progress
from recallite_bulk.embedding import Embed
from recallite_bulk.input_files import Placed, read_files
from recallite_bulk.recalling import Recall
from recallite_bulk.workers import Workers
from recallite_bulk.writing import known_ids, write

BATCH = 512
QUESTIONS = 256
MAX_WORKERS = 256


class _Numbered(NamedTuple):
    number: int
    label: str
    record: NewRecord


class _Batch(NamedTuple):
    fresh: list[_Numbered]
    known: int


def remember_many(
    memory: Memory,
    items: Iterable[object],
    *,
    workers: int = 1,
    batch_size: int = BATCH,
    policy: WritePolicy | None = None,
    on_progress: Progress | None = None,
) -> Remembered:
    """Store a stream of memories that `workers` processes embed, and pass over those that are stored already.

    Items are as for `Memory.remember_many`. One without an id gets its `content_id`, so that a run that was stopped is
    finished by the same run again. What has an id is a memory of its own: it repeats and continues no other. This
    process alone writes, a batch a transaction, in order; `on_progress(done, None)` is called after each. With one
    worker this process embeds, too; the records and vectors are the same.

    Raises InvalidItem for the item that stopped it and WorkerLost for a process that ended; batches before are stored.
    """
    check_stream(items)
    placed = (Placed(f"item {place}", item) for place, item in enumerate(items))
    return _remember(memory, placed, workers, batch_size, policy, on_progress)


def remember_files(
    memory: Memory,
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,
    workers: int = 1,
    batch_size: int = BATCH,
    policy: WritePolicy | None = None,
    on_progress: Progress | None = None,
) -> Remembered:
    """`remember_many` of files: JSON lines, CSV, text (a memory a line) or Parquet, by their endings or `format`."""
    listed = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    placed = read_files(listed, format=format, store=memory.path, max_text_chars=memory.settings.max_text_chars)
    return _remember(memory, placed, workers, batch_size, policy, on_progress)


def _remember(
    memory: Memory,
    placed: Iterable[Placed],
    workers: int,
    batch_size: int,
    policy: WritePolicy | None,
    on_progress: Progress | None,
) -> Remembered:
    engine = engine_of(memory).core
    write_policy = check_policy(engine, policy)
    count = check_count(workers, "workers", maximum=MAX_WORKERS)
    size = check_count(batch_size, "batch_size")
    total, done, idle = Remembered(), 0, 0
    waiting: deque[_Batch] = deque()  # under way

    def fresh() -> Iterator[list[NewRecord]]:
        """Yield the records of each batch that are not stored yet; a batch without any is only counted."""
        nonlocal idle
        for batch in _batches(placed, size):
            unknown = _without_known(memory, batch, write_policy)
            if unknown.fresh:
                waiting.append(unknown)
                yield [entry.record for entry in unknown.fresh]
            else:
                idle += unknown.known

    make = partial(_embedding, engine.settings, engine.embedder.spec, write_policy, memory.scope)
    with Workers(make, count) if count > 1 else nullcontext() as processes:
        results = map(make(), fresh()) if processes is None else processes.map(fresh())
        while True:
            try:
                records = next(results, None)
                if records is None:
                    return total + Remembered(known=idle)
                total += write(records, memory, policy=write_policy) + Remembered(known=waiting[0].known)
            except InvalidItem as refused:
                position, label = refused.position, refused.label
                if label is None:  # it is a place in the batch
                    position, label, _ = waiting[0].fresh[position]
                raise InvalidItem(position, total.records, refused.error, label=label) from refused.error
            batch = waiting.popleft()
            done += len(batch.fresh) + batch.known
            if on_progress is not None:
                on_progress(done + idle, None)


def _embedding(
    settings: Settings, spec: Any, policy: WritePolicy, base: str
) -> Callable[[Iterable[object]], list[NewRecord]]:
    return Embed(settings=settings, embedder=spec, policy=policy, base=base).records


def _batches(placed: Iterable[Placed], size: int) -> Iterator[list[_Numbered]]:
    numbered = enumerate(placed)
    while batch := [*islice(numbered, size)]:
        records = []
        for number, (label, item) in batch:
            try:
                records.append(_Numbered(number, label, as_new_record(item)))
            except RecalliteError as reason:
                raise InvalidItem(number, 0, reason, label=label) from reason
        yield records


def _without_known(memory: Memory, batch: list[_Numbered], policy: WritePolicy) -> _Batch:
    """Leave out the records that are stored already. Redaction changes the id: `write` finds those."""
    names: list[str | None] = []
    for _, _, record in batch:
        name = record.id
        if name is None and policy.redact is None:
            with suppress(InvalidInput):  # said better when it is embedded
                name = content_id(record, memory.scope)
        names.append(name)
    known = known_ids(memory, [name for name in names if isinstance(name, str)])
    fresh = [entry for entry, name in zip(batch, names, strict=True) if name not in known]
    return _Batch(fresh, len(batch) - len(fresh))


def recall_many(
    path: str | os.PathLike[str],
    queries: Iterable[str],
    *,
    workers: int = 1,
    settings: Settings | None = None,
    embedder: Embedder | str | None = None,
    base: str = "/",
    key: str | None = None,
    limit: int | None = None,
    now: datetime | str | None = None,
    batch_size: int = QUESTIONS,
    **options: Unpack[RecallOptions],
) -> Iterator[Hits]:
    """The hits of a stream of queries, in order, from `workers` processes that each open the store at `path`.

    All are asked as of one moment, `now` or when the first is asked, and do not count as accesses. Options are those of
    `Memory.recall`. Raises WorkerLost for a process that ended.
    """
    count = check_count(workers, "workers", maximum=MAX_WORKERS)
    size = check_count(batch_size, "batch_size")
    moment = to_datetime(now_us()) if now is None else now
    make = partial(
        Recall, path, settings=settings, embedder=embedder, base=base, key=key, limit=limit, now=moment, options=options
    )
    stream = iter(queries)
    batches = iter(lambda: [*islice(stream, size)], [])
    if count > 1:
        with Workers(partial(_answering, make), count) as processes:
            for answers in processes.map(batches):
                yield from answers
        return
    with make() as opened:
        for batch in batches:
            yield from opened.texts(batch)


def _answering(make: Callable[[], Recall]) -> Callable[[Sequence[str]], list[Hits]]:
    return make().texts
