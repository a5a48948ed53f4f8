"""Bulk work on one machine: this process reads files and writes, worker processes embed or answer questions.

Batches go to the workers and come back in order, a bounded number at a time.
"""

from __future__ import annotations

import io
import os
import pickle
import queue
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from datetime import datetime
from functools import partial
from itertools import islice
from multiprocessing import get_context, resource_tracker
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, Unpack

from recallite.embedding.protocol import Embedder
from recallite.errors import InvalidInput, InvalidItem, RecalliteError, WorkerLost, plain
from recallite.memory import Memory
from recallite.model.checks import check_count, check_path, check_stream, now_us, to_datetime
from recallite.model.records import Hits, NewRecord
from recallite.model.reports import Remembered
from recallite.model.settings import Settings, WritePolicy
from recallite.plugin import engine_of
from recallite.recall.request import RecallOptions
from recallite.remember.prepare import as_new_record, content_id
from recallite.remember.write import check_policy
from recallite.store.store import Progress
from recallite.system.messages import shown
from recallite.system.parallel import limit_cpus, usable_cpus
from recallite.system.processes import ignore_interrupts, interrupts_held, safe_start
from recallite.transfer.lines import Header, Incoming, Lines, format_of, parse, reading
from recallite_bulk.arrow import new_records, new_records_table
from recallite_bulk.stages import Embed, Recall, known_ids, write

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
    placed = (Placed(f"item {number}", item) for number, item in enumerate(items))
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
    """Leave out the records that are stored already. Redaction changes the id: `write` finds redacted ones."""
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


PARQUET = "parquet"
# A line may spell each character of a text as two escapes of six, and carry a megabyte of metadata and vectors.
_CHARS_PER_CHARACTER, _OTHER_CHARS = 12, 16_000_000


class Placed(NamedTuple):
    """An item and where it stands, in words: "line 7"."""

    label: str
    item: Any


def file_format(path: str | os.PathLike[str], format: str | None = None) -> str:
    """The format given, else that of the file's ending: parquet, jsonl, csv or text."""
    if format == PARQUET or (format is None and check_path(path).suffix.lower() == f".{PARQUET}"):
        return PARQUET
    return format_of(path, format)


def read_files(
    paths: list[str | os.PathLike[str]], *, format: str | None, store: str, max_text_chars: int
) -> Iterator[Placed]:
    """The new records of files, in order. Raises InvalidItem, which names the line."""
    for path in paths:
        prefix = f"{Path(path).name}, " if len(paths) > 1 else ""
        if file_format(path, format) == PARQUET:
            for number, record in enumerate(new_records(path), 1):
                yield Placed(f"{prefix}row {number}", record)
            continue
        with reading(path, store=store, count=False) as (stream, _):
            lines = Lines(stream, max_chars=_CHARS_PER_CHARACTER * max_text_chars + _OTHER_CHARS)
            yield from read_lines(lines, file_format(path, format), prefix, max_text_chars)


def read_lines(lines: Lines, format: str, prefix: str, max_text_chars: int) -> Iterator[Placed]:
    """The new records of lines. Raises InvalidItem for a line that is none, or that only `import` can read."""
    entries = parse(format, lines, max_text_chars=max_text_chars)
    while True:
        try:
            entry = next(entries, None)
            if entry is None:
                return
            label = f"{prefix}line {lines.number}"
            if isinstance(entry, Incoming) and entry.recorded_until is None:
                yield Placed(label, entry)
            elif not isinstance(entry, Header):
                raise InvalidInput("it is no new memory but a link, a version or a document of an export: use import")
        except RecalliteError as reason:
            raise InvalidItem(lines.number - 1, 0, reason, label=f"{prefix}line {lines.number}") from reason


def records_of_lines(lines: Sequence[str], format: str) -> Any:
    """The new records of lines of JSON or text as an Arrow table. Raises InvalidInput, which quotes the line."""
    longest = max(map(len, lines), default=0) + 2
    stream = Lines(io.StringIO("".join(f"{line}\n" for line in lines)), max_chars=longest)
    try:
        return new_records_table(placed.item for placed in read_lines(stream, format, "", longest))
    except InvalidItem as refused:
        raise InvalidInput(f"{refused.error}: {shown(lines[refused.position])}") from None


Task = TypeVar("Task")
Result = TypeVar("Result")
# Batches under way for each process: one in work and one that waits for it.
_AHEAD = 2


class _Pipe(Protocol):
    """One end of a pipe; Windows has another class for it."""

    def send_bytes(self, data: bytes, /) -> None: ...
    def recv_bytes(self) -> bytes: ...
    def close(self) -> None: ...


class Workers(Generic[Task, Result]):
    """`count` processes, each of which calls `make()` once and what that returns with one task after another.

    They are started afresh ("spawn"), when there are tasks for them, share the cores of this process and end with it,
    however it ends. `make`, tasks and results are pickled. Use it with `with`. Raises InvalidInput if `make` cannot
    be pickled.

    A thread and a pipe for each: a ProcessPoolExecutor whose process ends while a task is written to it hangs before
    Python 3.11.6 (https://github.com/python/cpython/issues/94777).
    """

    def __init__(self, make: Callable[[], Callable[[Task], Result]], count: int) -> None:
        try:
            pickled = pickle.dumps(make)
        except Exception as fault:  # of the objects that it holds
            raise InvalidInput(
                f"worker processes cannot be given {shown(make, 200)} ({fault}): give names and settings, such as the "
                "name of an embedder in place of an object"
            ) from fault
        self._workers = [_Worker(pickled, max(1, usable_cpus() // count)) for _ in range(count)]
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="recallite-worker")

    def map(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield the result of each task, in order. Tasks are taken as results are.

        Raises what a worker raised, and WorkerLost if one has ended.
        """
        under_way: deque[Future[Any]] = deque()
        stream, failure = iter(tasks), None
        while True:
            try:
                task = next(stream)
            except StopIteration:
                break
            except RecalliteError as fault:  # the tasks before it are done first
                failure = fault
                break
            under_way.append(self._threads.submit(self._call, task))
            if len(under_way) >= _AHEAD * len(self._workers):
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
        if failure is not None:
            raise failure

    def _call(self, task: Task) -> Any:
        worker = self._idle.get()
        try:
            return worker.call(task)
        finally:
            self._idle.put(worker)

    def __enter__(self) -> Workers[Task, Result]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:  # their work is not wanted any more
            self._threads.shutdown(wait=False, cancel_futures=True)
            for worker in self._workers:
                worker.kill()
        self._threads.shutdown()
        for worker in self._workers:
            worker.close()


class _Worker:
    """One process and the pipe to it; a thread at a time calls it."""

    _starting = threading.Lock()

    def __init__(self, pickled: bytes, cores: int) -> None:
        self._pickled, self._cores = pickled, cores
        self._process: SpawnProcess | None = None
        self._pipe: _Pipe | None = None
        self._killed = False

    def call(self, task: object) -> Any:
        """Return what the process returns for a task. Raises what it raises, and WorkerLost if it has ended."""
        data = pickle.dumps(task)
        try:
            pipe = self._pipe or self._start()
            pipe.send_bytes(data)
            answer = pipe.recv_bytes()
        except (EOFError, OSError) as ended:
            raise WorkerLost(
                "a worker process ended before its work was done: it was killed or ran out of memory, or the program "
                'that starts workers has no `if __name__ == "__main__":`. What is stored stays, and the same run again '
                "does the rest"
            ) from ended
        result, raised = pickle.loads(answer)
        if raised is not None:
            raise raised
        return result

    def kill(self) -> None:
        """End the process at once; whoever waits for it gets WorkerLost."""
        with self._starting:
            self._killed = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """Let the process end, which waits for tasks or was killed."""
        if self._pipe is not None and self._process is not None:
            self._pipe.close()
            self._process.join()

    def _start(self) -> _Pipe:
        context = get_context("spawn")
        with self._starting:
            if self._killed:
                raise EOFError
            here, there = context.Pipe()
            # Daemonic: if `with` is never left, this process does not wait for them as it ends.
            process = context.Process(target=_serve, args=(there, self._pickled, self._cores), daemon=True)
            # Ctrl-C is for this process alone, also while the other starts and has no handler of its own yet. The
            # tracker, which multiprocessing starts with the first process, would let the signal through again.
            with safe_start():
                resource_tracker.ensure_running()
                with interrupts_held():
                    process.start()
            there.close()
            self._process, self._pipe = process, here
        return here


def _serve(pipe: _Pipe, pickled: bytes, cores: int) -> None:
    """Answer tasks until the pipe ends, which it does with the process at its other end."""
    ignore_interrupts()
    limit_cpus(cores)
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(pipe, tasks), daemon=True).start()
    made: list[Callable[[Any], Any]] = []

    def call(task: bytes) -> Any:
        if not made:  # here, so that its errors are those of a task
            made.append(pickle.loads(pickled)())
        return made[0](pickle.loads(task))

    while True:
        pipe.send_bytes(_answer(call, tasks.get()))


def _receive(pipe: _Pipe, tasks: queue.SimpleQueue[bytes]) -> None:
    try:
        while True:
            tasks.put(pipe.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)


def _answer(call: Callable[[bytes], Any], task: bytes) -> bytes:
    """The pickle of what a call returned and what it raised; one of them is None."""
    try:
        return pickle.dumps((call(task), None))
    except RecalliteError as fault:
        return pickle.dumps((None, plain(fault)))
    except Exception as fault:
        fault.add_note(f"In a worker process:\n{''.join(traceback.format_exception(fault))}")
        try:
            answer = pickle.dumps((None, fault))
            pickle.loads(answer)
        except Exception:  # of a class that cannot be pickled
            return pickle.dumps((None, RuntimeError(*fault.__notes__)))
        return answer
