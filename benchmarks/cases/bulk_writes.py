"""Bulk writes: the rate and the bytes written as a store grows, and what catching up costs.

Lines with random unit vectors given, so that no model is timed. sqlite-vec with FTS5 gets the same lines and vectors.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import sqlite_vec

from benchmarks import corpus
from benchmarks.harness.case import Case, Context, Figures
from recallite import Memory
from recallite.model.settings import WritePolicy

__all__ = ["CASE"]

_DIMENSION, _PARTS, _BATCH, _COMPARED = 384, 5, 8192, 20_000


@contextmanager
def _setup(context: Context) -> Iterator[dict[str, Any]]:
    lines = corpus.read_lines(context.corpus, context.records)
    yield {"lines": lines, "path": context.folder / "bulk.db"}


def _tables(state: dict[str, Any], context: Context) -> Iterator[Figures]:
    lines, path = state["lines"], state["path"]
    with Memory(path, embedder=None) as memory:
        memory.store.warmup()
        yield Figures("by part of the store", _growing(memory, lines[: context.records]))
    compared = lines[: min(context.records, _COMPARED)]
    yield Figures("comparison, and what users assemble", _beside(context.folder, compared))
    yield Figures("bytes a record, compared", _bytes(context.folder / "compared later.db", len(compared)))


def _items(lines: list[str], seed: int) -> list[dict[str, Any]]:
    """Lines with vectors of a pool: what a vector is does not change what it costs to write."""
    count = min(len(lines), _BATCH)
    vectors = np.random.default_rng(seed).standard_normal((count, _DIMENSION)).astype(np.float32)
    return [{"text": line, "vector": vectors[place % count]} for place, line in enumerate(lines)]


def _growing(memory: Memory, lines: list[str]) -> dict[str, dict[str, Any]]:
    """Rates within one call: what waits to be compared is compared after it."""
    items, marks = _items(lines, 2), [(0, time.perf_counter(), time.process_time(), _bytes_written())]

    def mark(done: int, _: int | None) -> None:
        marks.append((done, time.perf_counter(), time.process_time(), _bytes_written()))

    memory.remember_many(items, batch_size=_BATCH, on_progress=mark)
    bounds = [marks[round(part * (len(marks) - 1) / _PARTS)] for part in range(_PARTS + 1)]
    rows = {}
    for before, after in (*pairwise(dict.fromkeys(bounds)), (marks[0], marks[-1])):
        count, elapsed, spent, written = np.subtract(after, before).tolist()
        rows[f"from {before[0]:,} to {after[0]:,}"] = {
            "records a second": round(count / elapsed),
            "processor us a record": round(spent / count * 1e6, 1),
            "bytes written a record": round(written / count),
        }
    return rows


def _bytes_written() -> int:
    """Bytes that this process has given the system to write: to the WAL, and from there to the file."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text("ascii").splitlines())
    return int(fields["wchar"])


def _bytes(path: Path, records: int) -> dict[str, dict[str, Any]]:
    with apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY) as connection:
        sizes = connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name ORDER BY 2 DESC").fetchall()
    large = {name: {"bytes a record": round(size / records, 1)} for name, size in sizes if size > records}
    return {"all": {"bytes a record": round(sum(size for _, size in sizes) / records)}} | large


def _beside(folder: Path, lines: list[str]) -> dict[str, dict[str, Any]]:
    items = _items(lines, 0)
    rows = {}
    for name, policy in (("compared later", None), ("compared at once", WritePolicy(compare="now"))):
        with Memory(folder / f"{name}.db", embedder=None) as memory:
            rows[name] = _timed(len(items), lambda: memory.remember_many(items, policy=policy))  # noqa: B023
            if policy is None:
                rows["catching up, after it"] = _timed(len(items), memory.store.catch_up)
    rows["sqlite-vec and FTS5"] = _timed(len(items), lambda: _assembled(folder / "assembled.db", items))
    return rows


def _timed(count: int, call: Any) -> dict[str, Any]:
    began, spent = time.perf_counter(), time.process_time()
    call()
    elapsed, spent = time.perf_counter() - began, time.process_time() - spent
    return {"records a second": round(count / elapsed), "processor us a record": round(spent / count * 1e6, 1)}


def _assembled(path: Path, items: list[dict[str, Any]]) -> None:
    with closing(apsw.Connection(str(path))) as connection:
        connection.enable_load_extension(True)
        connection.load_extension(sqlite_vec.loadable_path())
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"CREATE VIRTUAL TABLE vectors USING vec0(embedding float[{_DIMENSION}])")
        connection.execute("CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='porter unicode61')")
        for begin in range(0, len(items), _BATCH):
            batch = list(enumerate(items[begin : begin + _BATCH], begin))
            with connection:
                rows = [(place, item["vector"].tobytes()) for place, item in batch]
                connection.executemany("INSERT INTO vectors(rowid, embedding) VALUES (?, ?)", rows)
                texts = [(place, item["text"]) for place, item in batch]
                connection.executemany("INSERT INTO texts(rowid, text) VALUES (?, ?)", texts)


CASE = Case("bulk_writes", "what many writes cost as a store grows", _setup, _tables)
