"""Bulk work on a Ray cluster, by Ray Data. Needs the extra `ray`.

A Ray cluster that is started with RAY_USAGE_STATS_ENABLED=0 in its environment sends no usage statistics; one that is
started here, where none is connected to, has it set, and no dashboard.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, Unpack

from msgspec import json

from recallite.embedding.protocol import Embedder
from recallite.errors import InvalidInput, InvalidItem, RecalliteError, WorkerLost, plain
from recallite.model.checks import check_count, is_address, now_us, to_datetime
from recallite.model.reports import Remembered
from recallite.model.settings import Settings, WritePolicy
from recallite.recall.request import RecallOptions
from recallite.store.store import Progress
from recallite.system.messages import fault_text, install_command
from recallite.system.parallel import limit_cpus
from recallite_bulk.arrow import Table, new_records
from recallite_bulk.jobs import BATCH, PARQUET, QUESTIONS, file_format, records_of_lines
from recallite_bulk.stages import Embed, KnownIds, OpenedStore, Recall, known_ids, write

__all__ = ["embed", "recall", "remember"]

Dataset: TypeAlias = Any
"""A ray.data.Dataset."""
Source: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Dataset"


def embed(
    source: Source,
    *,
    settings: Settings | None = None,
    embedder: Embedder | str | None = None,
    policy: WritePolicy | None = None,
    base: str = "/",
    workers: int | None = None,
    batch_size: int = BATCH,
    cpus: float = 1,
    ray_options: Mapping[str, Any] | None = None,
) -> Dataset:
    """New records as a dataset with ids and vectors, a block a batch, in order; nothing is stored.

    `source` is a dataset whose columns are arguments of `remember`, or files of JSON lines, text or Parquet that every
    machine can read. `workers` is the most actors, with `cpus` cores each, each of which loads the model once; None
    takes what the cluster has. `ray_options` are further arguments of `map_batches`, such as `num_gpus`. A worker
    that is lost is replaced, and its batch done again.
    """
    make = partial(Embed, settings=settings, embedder=embedder, policy=policy, base=base)
    return _mapped(source, make, workers, batch_size, cpus, ray_options)


def remember(
    source: Source,
    path: str | os.PathLike[str],
    *,
    settings: Settings | None = None,
    embedder: Embedder | str | None = None,
    policy: WritePolicy | None = None,
    base: str = "/",
    workers: int | None = None,
    batch_size: int = BATCH,
    cpus: float = 1,
    ray_options: Mapping[str, Any] | None = None,
    on_progress: Progress | None = None,
) -> Remembered:
    """Embed a corpus on all machines and store it; what is stored already is passed over, before it is embedded.

    A SQLite file is written by this process alone, in the order of the source, a batch a transaction. To a server the
    workers write themselves; then `path` and its password have to be valid on their machines. Records without an id get
    their `recallite_bulk.content_id`, so that a batch that is done twice is stored once, and a run that was stopped is
    finished by the same run again. `on_progress(done, None)` counts the records that were not known. The arguments are
    those of `embed`. Raises what a worker raised, and WorkerLost if Ray gave up.
    """
    total = Remembered()
    make: Any = partial(_Remember, os.fspath(path), settings, embedder, policy, base)
    with ExitStack() as stack:
        if not is_address(path):  # only to a server several processes may write at once
            opened = stack.enter_context(OpenedStore(path, settings, embedder, base))
            make = partial(_Fresh, settings, embedder, policy, base, KnownIds.of(opened.memory))
        for row in _rows(_mapped(source, make, workers, batch_size, cpus, ray_options, catches=True)):
            total += Remembered(**json.decode(row["done"]))
            if row["records"] is not None:
                records = [*new_records(_pyarrow().ipc.open_stream(row["records"]))]
                total += write(records, opened.memory, policy=policy)
            if on_progress is not None:
                on_progress(total.records + total.junk, None)
    return total


def recall(
    source: Source,
    path: str | os.PathLike[str],
    *,
    settings: Settings | None = None,
    embedder: Embedder | str | None = None,
    base: str = "/",
    limit: int | None = None,
    now: datetime | str | None = None,
    workers: int | None = None,
    batch_size: int = QUESTIONS,
    cpus: float = 1,
    ray_options: Mapping[str, Any] | None = None,
    **options: Unpack[RecallOptions],
) -> Dataset:
    """The hits of many questions as a dataset of `recallite_bulk.arrow.hit_schema`, in the order of the questions.

    `source` is a dataset, or Parquet files, with the columns `query` and `question`, an int or text that names it. The
    store at `path` is a server or a file that lies there on every machine: a copy that nobody writes to will do. Each
    worker loads model and index once. All questions are asked as of one moment, `now` or when this is called. What is
    wrong in a worker is raised by Ray, when the dataset is read.
    """
    moment = to_datetime(now_us()) if now is None else now
    make = partial(
        _NamedQuestions, os.fspath(path), settings=settings, embedder=embedder, base=base, limit=limit, now=moment,
        options=options,
    )  # fmt: skip
    return _mapped(source, make, workers, batch_size, cpus, ray_options)


def _report(done: Remembered, records: Table = None, failure: RecalliteError | None = None) -> Table:
    """Return one row about a batch: Ray brings back neither an empty block nor a typed error."""
    pa = _pyarrow()
    stream = None
    if records is not None:
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, records.schema) as writer:
            writer.write_table(records)
    row = {
        "done": json.encode(done).decode(),
        "failure": None if failure is None else pickle.dumps(plain(failure)),
        "records": None if stream is None else stream.getvalue().to_pybytes(),
    }
    kinds = [("done", pa.string()), ("failure", pa.binary()), ("records", pa.large_binary())]
    return pa.table({name: [value] for name, value in row.items()}, schema=pa.schema(kinds))


class _Fresh:
    """Embeds what is not stored yet, for the process that stores it."""

    def __init__(
        self, settings: Settings | None, embedder: Any, policy: WritePolicy | None, base: str, known: KnownIds
    ) -> None:
        self._embed = Embed(settings=settings, embedder=embedder, policy=policy, base=base, known=known)

    def __call__(self, batch: Any) -> Table:
        embedded = self._embed(batch)
        known = Remembered(known=batch.num_rows - embedded.num_rows)
        return _report(known, embedded if embedded.num_rows else None)


class _Remember(OpenedStore):
    """Embeds and stores what is not stored yet, in a store on a server."""

    def __init__(
        self, path: str, settings: Settings | None, embedder: Any, policy: WritePolicy | None, base: str
    ) -> None:
        super().__init__(path, settings, embedder, base)
        self._policy = policy
        known = partial(known_ids, self.memory)
        self._embed = Embed(settings=self.memory.settings, embedder=embedder, policy=policy, base=base, known=known)

    def __call__(self, batch: Any) -> Table:
        try:
            records = self._embed.records(new_records(batch))
            done = write(records, self.memory, policy=self._policy)
        except InvalidItem as refused:
            raise InvalidInput(f"row {refused.position + 1}: {refused.error}", refused.error.reason) from None
        return _report(done + Remembered(known=batch.num_rows - len(records)))


class _NamedQuestions(Recall):
    """Answers questions that have names, by which their hits are told apart."""

    def __call__(self, batch: Any) -> Table:
        if "question" not in batch.schema.names:
            raise InvalidInput("the questions have no column question: number or name them, or their hits are nobody's")
        return super().__call__(batch)


class _Actor:
    """Calls what `make` returns; makes it with the first batch, so that its errors count as errors of a batch.

    It reads batches of `lines` of that format; with `catches` it returns a typed error in a report.
    """

    def __init__(self, make: Any, cpus: float, lines: str | None, catches: bool) -> None:
        limit_cpus(max(1, int(cpus)))
        self._lines, self._catches = lines, catches
        self._make = make
        self._call: Any = None

    def __call__(self, batch: Any) -> Table:
        try:
            if self._lines is not None:
                batch = records_of_lines(batch.column("text").to_pylist(), self._lines)
            if self._call is None:
                self._call = self._make()
            return self._call(batch)
        except RecalliteError as failure:
            if not self._catches:
                raise
            return _report(Remembered(), failure=failure)


def _mapped(
    source: Source,
    make: Any,
    workers: int | None,
    batch_size: int,
    cpus: float,
    ray_options: Mapping[str, Any] | None,
    *,
    catches: bool = False,
) -> Dataset:
    """`source` in blocks of `batch_size` rows, each transformed by an actor."""
    size = check_count(batch_size, "batch_size")
    most = None if workers is None else check_count(workers, "workers")
    data = _connected()
    dataset, lines = _dataset(data, source)
    # Blocks of exactly this size, in order: a worker then embeds the very batches that one process would.
    dataset.context.execution_options.preserve_order = True
    return dataset.repartition(target_num_rows_per_block=size, strict=True).map_batches(
        _Actor, batch_size=None, batch_format="pyarrow", fn_constructor_args=(make, cpus, lines, catches),
        compute=data.ActorPoolStrategy(min_size=1, max_size=most), num_cpus=cpus, **(ray_options or {}),
    )  # fmt: skip


def _dataset(data: Any, source: Source) -> tuple[Dataset, str | None]:
    """Return the dataset of a source, and the format of its lines if it has lines of files."""
    if isinstance(source, data.Dataset):
        return source, None
    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    formats = {file_format(path) for path in paths}
    if len(formats) != 1 or not formats <= {PARQUET, "jsonl", "text"}:
        raise InvalidInput(f"the files are {', '.join(sorted(formats))}: give Parquet, JSON lines or text, of one kind")
    names = [os.path.abspath(os.fspath(path)) for path in paths]
    (format,) = formats
    return (data.read_parquet(names), None) if format == PARQUET else (data.read_text(names), format)


def _connected() -> Any:
    """ray.data, connected to the cluster that the program or RAY_ADDRESS names, else to one started here."""
    try:
        import ray
        import ray.data
    except ImportError as missing:
        raise InvalidInput(f"bulk work on a cluster needs {missing.name}: {install_command('ray')}") from None
    if not ray.is_initialized():
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(include_dashboard=False, logging_level="WARNING")
    return ray.data


def _rows(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Yield the report of each batch, in order, as it is done. Raises what a worker raised, and WorkerLost."""
    import ray.exceptions

    try:
        for block in dataset.iter_batches(batch_size=None, batch_format="pyarrow"):
            for row in block.to_pylist():
                if row["failure"] is not None:
                    raise pickle.loads(row["failure"])
                yield row
    except ray.exceptions.RayError as fault:
        raise WorkerLost(
            f"Ray gave up ({fault_text(fault)}). What is stored stays, and the same run again does the rest"
        ) from fault


def _pyarrow() -> Any:
    import pyarrow
    import pyarrow.ipc

    return pyarrow
