"""python -m benchmarks.batch [--corpus FILE] [--records N] [--embedder NAME]: bulk work by one process, two and Ray.

A file of so many lines as JSON is stored in a new SQLite file three times: by one process, by one that has two workers
embed, and by one that has the actors of a Ray cluster embed, which are two, one on each of two nodes started here.
Then questions, made of the lines, are asked of the first store in the same three ways. The time of a way begins when
its function is called: workers and actors are started in it, the nodes are not.

What the ways store (records, vectors, token codes) and answer (every column of the hits) has to be equal byte for byte.
All processes share the cores of one machine, and the one that writes is one of them: this measures what dividing the
work costs, not what more machines give. `--embedder` adds the results of an embedder to those saved.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import corpus, saving
from benchmarks.environment import describe
from benchmarks.ray_nodes import two_nodes
from benchmarks.tables import table
from recallite import Memory, Settings
from recallite.bulk import on_ray, recall_many, remember_files
from recallite.bulk.arrow import hits_table

__all__ = ["WAYS", "main", "markdown", "measure"]

RESULTS = Path(__file__).resolve().parent / "results" / "batch.json"
WAYS = ("one process", "two workers", "Ray, two nodes")
_CREATED, _NOW = "2026-01-01T00:00:00Z", "2026-11-01T00:00:00Z"
_BATCH, _QUESTIONS_A_BATCH, _LIMIT = 512, 256, 10


def main() -> None:
    """Measure, save and print."""
    options = _arguments()
    saved = saving.read(RESULTS)
    if not options.render:
        with tempfile.TemporaryDirectory(dir=options.work) as folder, two_nodes():
            run = measure(options.corpus, options.records, options.questions, options.embedder, Path(folder))
        saved[options.embedder] = {**describe(), **run}
        saving.write(saved, RESULTS)
    print(markdown(saved))


def measure(path: Path | None, records: int, questions: int, embedder: str, folder: Path) -> dict[str, Any]:
    """Seconds of each way to store and to ask, and whether its results are those of the first."""
    import pyarrow as pa
    import ray.data

    load = os.getloadavg()[0]
    lines = corpus.read_lines(path, records)
    file = folder / "corpus.jsonl"
    file.write_text("".join(json.dumps({"text": each, "created_at": _CREATED}) + "\n" for each in lines), "utf-8")
    settings = Settings(embedder=embedder)
    stores = [folder / f"{place}.db" for place in range(len(WAYS))]
    asked = corpus.queries(lines, questions)

    def here(workers: int) -> Callable[[Path], object]:
        def store(target: Path) -> None:
            with Memory(target, settings=settings) as memory:
                remember_files(memory, file, workers=workers, batch_size=_BATCH)

        return store

    def recalled(workers: int) -> Callable[[], Any]:
        given: dict[str, Any] = {"settings": settings, "limit": _LIMIT, "now": _NOW, "batch_size": _QUESTIONS_A_BATCH}
        return lambda: hits_table([*recall_many(stores[0], asked, workers=workers, **given)])

    def by_ray(target: Path) -> None:
        on_ray.remember(file, target, settings=settings, workers=2, batch_size=_BATCH)

    def recalled_by_ray() -> Any:
        dataset = ray.data.from_arrow(pa.table({"question": range(len(asked)), "query": asked}))
        found = on_ray.recall(
            dataset, stores[0], settings=settings, limit=_LIMIT, now=_NOW, workers=2, batch_size=_QUESTIONS_A_BATCH
        )
        return pa.concat_tables(found.iter_batches(batch_size=None, batch_format="pyarrow"))

    ways: dict[str, dict[str, Any]] = {}
    for way, target, store in zip(WAYS, stores, (here(1), here(2), by_ray), strict=True):
        began = time.perf_counter()
        store(target)
        ways[way] = {"store_s": round(time.perf_counter() - began, 2), "stored": _digest(target, settings)}
    for way, ask in zip(WAYS, (recalled(1), recalled(2), recalled_by_ray), strict=True):
        began = time.perf_counter()
        hits = ask()
        ways[way]["recall_s"] = round(time.perf_counter() - began, 2)
        ways[way]["answered"] = hashlib.sha256(json.dumps(hits.to_pylist(), default=str).encode()).hexdigest()
    return {"load_before": round(load, 1), "records": records, "questions": len(asked), "ways": ways}


def _digest(path: Path, settings: Settings) -> str:
    """A hash of all ids with their vectors and token codes, in the order in which they were stored."""
    found = hashlib.sha256()
    with Memory(path, settings=settings) as memory, memory._engine.store.read() as reader:
        for ids in _slices([each.id for each in memory.list(limit=None, order="oldest", include_superseded=True)]):
            for id, row in sorted(reader.records.find_ids(ids, "/").items()):
                parts = reader.vectors.of_record(row)
                found.update(id.encode())
                for each in (*parts.values, *parts.codes):
                    found.update(each)
    return found.hexdigest()


def _slices(ids: list[str]) -> Iterator[list[str]]:
    yield from (ids[begin : begin + _BATCH] for begin in range(0, len(ids), _BATCH))


def markdown(saved: dict[str, Any]) -> str:
    """The tables of the saved runs."""
    if not saved:
        raise saving.NotMeasured("batch")
    told = []
    for embedder, run in saved.items():
        first = run["ways"][WAYS[0]]
        rows = [
            (
                way,
                f"{found['store_s']:,.1f}",
                f"{run['records'] / found['store_s']:,.0f}",
                f"{found['recall_s']:,.1f}",
                f"{run['questions'] / found['recall_s']:,.0f}",
                "yes" if (found["stored"], found["answered"]) == (first["stored"], first["answered"]) else "no",
            )
            for way, found in run["ways"].items()
        ]
        header = ("", "store, s", "records a second", "ask, s", "questions a second", "equal byte for byte")
        told.append(
            f"{table(header, rows, left=header[:1])}\n\n"
            f"Embedder {embedder}, {run['records']:,} records, {run['questions']:,} questions, commit {run['commit']}, "
            f"{run['date']}, {run['cores']} cores, load {run['load_before']} before."
        )
    return "\n\n".join(told)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.batch", description="Bulk work, three ways.")
    parser.add_argument("--corpus", type=Path, help="text file (.gz too), a line a record; synthetic ones without it")
    parser.add_argument("--records", type=int, default=100_000, help="how many lines are stored")
    parser.add_argument("--questions", type=int, default=5_000, help="how many questions are asked")
    parser.add_argument("--embedder", default="default", help="the embedder of the stores")
    parser.add_argument("--work", type=Path, help="folder for the stores, on the disk to be measured (temporary)")
    parser.add_argument("--render", action="store_true", help="print the saved results and stop")
    return parser.parse_args()


if __name__ == "__main__":
    main()
