"""Bulk work by one process, by two workers, and by two Ray nodes if Ray is installed.

Lines are stored in a file for each way, then questions are asked of the first. The time of a way begins when its
function is called: workers and actors start in it, the nodes do not. Stores (records, vectors, token codes) and answers
(all columns of the hits) are compared byte for byte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.harness.case import Case, Context, Figures
from benchmarks.harness.measure import rates
from benchmarks.ray_nodes import two_nodes
from recallite import Memory, Settings
from recallite.recall.request import recall_arguments
from recallite_bulk import on_ray, recall_many, remember_files
from recallite_bulk.arrow import hits_table

__all__ = ["CASE"]

_WORKERS = {"one process": 1, "two workers": 2}
_RAY = "Ray, two nodes"
_CREATED, _NOW = "2026-01-01T00:00:00Z", "2026-11-01T00:00:00Z"
_BATCH, _QUESTIONS_A_BATCH, _LIMIT = 512, 256, 10


@contextmanager
def _setup(context: Context) -> Iterator[tuple[Path, list[str]]]:
    lines = corpus.read_lines(context.corpus, context.records)
    file = context.folder / "corpus.jsonl"
    file.write_text("".join(json.dumps({"text": line, "created_at": _CREATED}) + "\n" for line in lines), "utf-8")
    questions = corpus.queries(lines, context.rounds)
    if find_spec("ray") is None:
        yield file, questions
        return
    with two_nodes():
        yield file, questions


def _tables(state: tuple[Path, list[str]], context: Context) -> Iterator[Figures]:
    file, questions = state
    settings, names = Settings(embedder=context.embedder), [*_WORKERS, *([_RAY] if find_spec("ray") else [])]
    stores = {name: file.with_name(f"{name}.db") for name in names}
    first, answers = stores["one process"], dict[str, Any]()

    def store(name: str) -> None:
        if name == _RAY:
            on_ray.remember(file, stores[name], settings=settings, workers=2, batch_size=_BATCH)
            return
        with Memory(stores[name], settings=settings) as memory:
            remember_files(memory, file, workers=_WORKERS[name], batch_size=_BATCH)

    def ask(name: str) -> None:
        arguments: dict[str, Any] = {
            "settings": settings,
            "limit": _LIMIT,
            "now": _NOW,
            "batch_size": _QUESTIONS_A_BATCH,
        }
        if name == _RAY:
            answers[name] = _asked_on_ray(questions, first, arguments)
        else:
            answers[name] = hits_table([*recall_many(first, questions, workers=_WORKERS[name], **arguments)])

    rows = rates({name: lambda name=name: store(name) for name in names}, context.records)
    digests = {name: _digest(stores[name], settings) for name in names}
    yield Figures("store", {n: {**row, "equal": digests[n] == digests[names[0]]} for n, row in rows.items()})
    rows = rates({name: lambda name=name: ask(name) for name in names}, len(questions), "questions")
    hits = {name: table.to_pylist() for name, table in answers.items()}
    yield Figures("ask", {n: {**row, "equal": hits[n] == hits[names[0]]} for n, row in rows.items()})


def _asked_on_ray(questions: list[str], store: Path, arguments: dict[str, Any]) -> Any:
    import pyarrow as pa
    import ray.data

    dataset = ray.data.from_arrow(pa.table({"question": range(len(questions)), "query": questions}))
    answers = on_ray.recall(dataset, store, **recall_arguments({"workers": 2, **arguments}))
    return pa.concat_tables(answers.iter_batches(batch_size=None, batch_format="pyarrow"))


def _digest(path: Path, settings: Settings) -> str:
    """A hash of all ids with their vectors and token codes, in the order in which they were stored."""
    digest = hashlib.sha256()
    with Memory(path, settings=settings) as memory, memory._engine.store.read() as reader:
        ids = [part.id for part in memory.list(limit=None, order="oldest", include_superseded=True)]
        for begin in range(0, len(ids), _BATCH):
            for id, row in sorted(reader.records.find_ids(ids[begin : begin + _BATCH], "/").items()):
                parts = reader.vectors.of_record(row)
                digest.update(id.encode())
                for part in (*parts.values, *parts.codes):
                    digest.update(part)
    return digest.hexdigest()


CASE = Case("batch", "what it costs to divide bulk work", _setup, _tables, rounds=5_000)
