"""Records made from their numbers, so that ten million need no file beside the store: `build` them, `measure` them.

python -m benchmarks.scaling.large build --work DIR [--records 10000000]
python -m benchmarks.scaling.large measure --work DIR

Lines of at most 16 made-up words, vectors around 100,000 centres. `build` writes them in one process, compared with
nothing, and prints how far it is; `measure` asks, opens and writes to the store, each in a process of its own, and
saves the figures.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from benchmarks import corpus, saving
from benchmarks.dataset import Dataset
from benchmarks.environment import describe
from benchmarks.isolated_process import peak_rss_mb, run
from benchmarks.scaling import report

__all__ = ["MARK", "LargeDataset", "build", "items", "prepare", "vectors"]

MARK = "large.json"
"""The file of a folder of data that is of this module: the number of records."""
RESULTS = saving.RESULTS / "large.json"
BLOCK, DIMENSION = 50_000, 384
_CENTRES, _NOISE, _MOST_WORDS, _BATCH = 100_000, 0.8, 16, 8192
_ASKED, _EXACT, _TOP, _QUERY_WORDS = 1000, 200, 10, 8
_TOLD = 500_000
_LIMIT_S = 3600.0
# Ways of opening the store: see `benchmarks.scaling`.
_CASES: dict[str, dict[str, Any]] = {"from the snapshot": {}, "low memory": {"low_memory": True}}


class LargeDataset(Dataset):
    """Questions in files; the exact answers are places, for the vectors are in none."""

    @cached_property
    def records(self) -> int:
        """The number of records that were written."""
        return int(json.loads((self.folder / MARK).read_text("utf-8"))["records"])

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """The ten nearest records of the first questions (questions, 10)."""
        nearest: NDArray[np.int64] = np.load(self.folder / "nearest.npy")
        return nearest

    def recall(self, question: int, places: Sequence[int], filter: str = "") -> float:
        """recall@10 of the ranking of a question; not a number for one whose exact answer is not known."""
        if question >= len(self.places):
            return float("nan")
        return len({*places[:_TOP]} & {*self.places[question].tolist()}) / _TOP


@cache
def _centres() -> NDArray[np.float32]:
    return np.random.default_rng(0).standard_normal((_CENTRES, DIMENSION), np.float32)


def vectors(block: int) -> NDArray[np.float32]:
    """The unit vectors of a block, float32 (50,000, 384): the same each time."""
    generator = np.random.default_rng(1 + block)
    made = _centres()[generator.integers(0, _CENTRES, BLOCK)]
    made += np.float32(_NOISE) * generator.standard_normal((BLOCK, DIMENSION), np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


def items(records: int) -> Iterator[dict[str, Any]]:
    """The records as `remember_many` takes them, made a block at a time."""
    lines = (" ".join(line.split()[:_MOST_WORDS]) for line in corpus.synthetic_lines())
    for begin in range(0, records, BLOCK):
        block = list(islice(lines, min(BLOCK, records - begin)))
        for place, item in enumerate(corpus.items(block, vectors(begin // BLOCK)), begin):
            yield {**item, "source": f"session {place // corpus.SOURCE_LINES}"}


def build(folder: Path, records: int) -> dict[str, Any]:
    """Write all records to a new store, and tell of each half million on standard error."""
    # Imported here: what opens a store imports this module for its questions.
    from benchmarks.cases.write_cost import POLICIES
    from benchmarks.peers.process import bytes_on_disk
    from recallite import Memory

    store, began, spent = folder / "store", time.perf_counter(), time.process_time()

    def figures() -> dict[str, Any]:
        return {
            "build_s": round(time.perf_counter() - began, 1),
            "build_cpu_s": round(time.process_time() - spent, 1),
            "build_peak_rss_mb": peak_rss_mb(),
            "disk_mb": round(bytes_on_disk(store) / 1e6, 1),
        }

    def tell(done: int, _: int | None) -> None:
        if done % _TOLD < _BATCH:
            print(json.dumps({"records": done, **figures()}), file=sys.stderr, flush=True)

    store.mkdir(parents=True)
    with Memory(store / "memory.db", embedder=None) as memory:
        memory.remember_many(items(records), policy=POLICIES["without"], batch_size=_BATCH, on_progress=tell)
    with closing(apsw.Connection(str(store / "memory.db"))) as connection:
        # Else every process that writes would go on with comparing, an hour for ten million.
        connection.execute("DELETE FROM uncompared")
    written = {**describe(), "records": records, **figures()}
    (folder / MARK).write_text(json.dumps(written), encoding="utf-8")
    return written


def prepare(folder: Path) -> LargeDataset:
    """The questions and their exact answers, made once: all vectors are made again, two minutes for ten million."""
    data = LargeDataset(folder)
    if (folder / "nearest.npy").exists():
        return data
    questions = [" ".join(line.split()[:_QUERY_WORDS]) for line in islice(corpus.synthetic_lines(1), _ASKED)]
    (folder / "questions.json").write_text(json.dumps(questions), encoding="utf-8")
    query_vectors = vectors(-(-data.records // BLOCK))[:_ASKED]
    np.save(folder / "asked.npy", query_vectors)
    best, places = np.full((_EXACT, _TOP), -np.inf), np.zeros((_EXACT, _TOP), np.int64)
    for begin in range(0, data.records, BLOCK):
        block = vectors(begin // BLOCK)[: data.records - begin]
        cosines = np.concatenate([best, query_vectors[:_EXACT] @ block.T], axis=1)
        numbers = np.concatenate([places, np.tile(np.arange(begin, begin + len(block)), (_EXACT, 1))], axis=1)
        top = np.argpartition(-cosines, _TOP - 1, axis=1)[:, :_TOP]
        best, places = np.take_along_axis(cosines, top, 1), np.take_along_axis(numbers, top, 1)
    np.save(folder / "nearest.npy", places)
    return data


def _measure(folder: Path, out: Path) -> dict[str, Any]:
    data = prepare(folder)
    where = {"data": folder, "store": folder / "store"}
    built = json.loads((folder / MARK).read_text("utf-8"))
    saved = saving.read(out) | {**describe(), "command": saving.command("benchmarks.scaling.large")}
    figures = saved.setdefault("results", {}).setdefault(str(data.records), {})
    figures |= {name: built[name] for name in ("build_s", "build_cpu_s", "build_peak_rss_mb", "disk_mb")}

    def task(name: str, **arguments: Any) -> dict[str, Any]:
        measured = run("benchmarks.scaling.process", {"task": name, **where, **arguments}, _LIMIT_S)
        print(json.dumps({name: measured, **arguments}), file=sys.stderr, flush=True)
        return measured

    opened = figures.setdefault("open", {})
    # The first opening makes the snapshot that the others need.
    for name, settings in {"from the store": {"index_snapshot": False}, "": {}, **_CASES}.items():
        measured = task("open" if name else "ask", **({"settings": settings} if name else {"filters": []}))
        if name:
            opened[name] = {**measured, **task("weigh", settings=settings)}
        else:
            figures |= measured
        saving.write(saved, out)
    figures |= task("write")
    saving.write(saved, out)
    return saved


def main() -> None:
    """Build, or measure, save and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling.large", description="Ten million records.")
    parser.add_argument("step", choices=("build", "measure"))
    parser.add_argument("--work", type=Path, required=True, help="folder of the store and its questions")
    parser.add_argument("--records", type=int, default=10_000_000, help="how many to build")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the figures as JSON")
    options = parser.parse_args()
    if options.step == "build":
        print(json.dumps(build(options.work, options.records)))
    else:
        print(report.markdown(_measure(options.work, options.out)))


if __name__ == "__main__":
    main()
