"""python -m benchmarks.scaling --corpus FILE --cache DIR [--records 1000 10000 100000 1000000].

A store is built at each size, then asked, opened and written to, each in a process of its own. What is measured is
saved at once: `--resume` goes on where a run was stopped.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from benchmarks import dataset, saving
from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.dataset import Dataset
from benchmarks.environment import describe, embed_each_question
from benchmarks.harness.measure import seconds
from benchmarks.isolated_process import run
from benchmarks.scaling import report
from recallite.embedding import load

RESULTS = saving.RESULTS / "scaling.json"
SIZES = (1000, 10_000, 100_000, 1_000_000)
# Ways of opening a store: fields of `Settings` by name, and `low_memory`. Each is timed and weighed in new processes.
CASES: dict[str, dict[str, Any]] = {
    "from the store": {"index_snapshot": False},
    "from the snapshot": {},
    "low memory": {"low_memory": True},
}
_OPENED = 3
_LIMIT_S = 900.0


def main() -> None:
    """Measure, save and print."""
    options = saving.arguments(_parser())
    console = Console(stderr=True)
    saved = saving.read(options.out)
    if not options.render:
        measure(options, saved, console)
    print(report.markdown(saved))


def measure(options: argparse.Namespace, saved: dict[str, Any], console: Console) -> None:
    """All sizes, into `saved` and its file."""
    embedder = CachedEmbedder(load(), options.cache)
    command = saving.command("benchmarks.scaling")
    saved |= {**describe(), "command": command, "embedder": embedder.name, "data": dataset.describe()}
    results: dict[str, Any] = saved.setdefault("results", {})
    with tempfile.TemporaryDirectory(dir=options.work) as scratch:
        for records in options.records:
            if options.resume and str(records) in results:
                continue
            console.log(f"{records:,} records")
            folder = (options.work or Path(scratch)) / f"records-{records}"
            data = dataset.prepare(folder, options.corpus, records, embedder, saving.progress(console))
            with tempfile.TemporaryDirectory(dir=scratch) as store:
                results[str(records)] = _at_one_size(data.folder, Path(store))
            saving.write(saved, options.out)


def _at_one_size(data: Path, store: Path) -> dict[str, Any]:
    where = {"data": data, "store": store}
    building = {"task": "build", "contender": "recallite", **where}
    built = run("benchmarks.peers.process", building, _LIMIT_S)
    answered = run("benchmarks.scaling.process", {"task": "ask", **where}, _LIMIT_S)
    opened: dict[str, Any] = {}
    for name, settings in CASES.items():
        opening = {"settings": settings, **where}
        times = [run("benchmarks.scaling.process", {"task": "open", **opening}, _LIMIT_S) for _ in range(_OPENED)]
        opened[name] = {key: round(median(time[key] for time in times), 3) for key in times[0]}
        opened[name] |= run("benchmarks.scaling.process", {"task": "weigh", **opening}, _LIMIT_S)
    written = run("benchmarks.scaling.process", {"task": "write", **where}, _LIMIT_S)
    return {**built, **answered, "open": opened, "command_s": _commands(Dataset(data), store), **written}


def _commands(data: Dataset, store: Path) -> dict[str, float]:
    """Seconds of `recallite recall` in all, embedding included: with the index snapshot, and when it is first made."""
    command = [sys.executable, "-m", "recallite", "--db", str(store / "memory.db"), "recall"]

    def recall() -> None:
        subprocess.run([*command, data.questions[0]], check=True, capture_output=True)

    def without() -> None:
        (store / "memory.db-index").unlink(missing_ok=True)
        recall()

    recall()
    ways = {"with the snapshot": recall, "without a snapshot": without}
    return {name: round(median(seconds(way) for _ in range(_OPENED)), 3) for name, way in ways.items()}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description="Recallite from small to large.")
    parser.add_argument("--records", type=int, nargs="+", default=SIZES, help="sizes (1,000 to 1,000,000)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the results as JSON")
    return parser


if __name__ == "__main__":
    embed_each_question()
    main()
