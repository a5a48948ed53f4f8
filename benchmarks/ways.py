"""python -m benchmarks.ways --corpus FILE --cache DIR [--records 10000 100000]: recall with filters and options.

A store a size. Its records have scopes within scopes, tags, metadata, and times over two years; by each of them filters
keep 10 %, 1 % and 0.1 % of the records: by time a stretch in a row, else records far from each other. Every question is
asked in every way in turn, in an order that rotates, in one process, with its vector ready and, but for what the way
says, what `OFF` turns off: the formula alone.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks import corpus, dataset, saving
from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.compare.ways import OFF, TOP
from benchmarks.dataset import FILTERS, Dataset
from benchmarks.environment import describe
from benchmarks.latency.figures import percentiles
from benchmarks.tables import milliseconds, table
from recallite import Memory, Settings
from recallite.embedding import load

__all__ = ["filters", "items", "main", "markdown", "measure", "ways"]

RESULTS = Path(__file__).resolve().parent / "results" / "ways.json"
SIZES = (10_000, 100_000)
QUESTIONS = 300
_WARM_UP = 20
_YEARS = timedelta(days=730)
_PARTS = 1000
PLAIN = "plain"
# A part of a thousand is a project; ten are a team, a hundred a department.
_SCOPES = {"10 %": "/department 0", "1 %": "/department 0/team 0", "0.1 %": "/department 0/team 0/project 0"}
_FIELDS = {"10 %": "department", "1 %": "team", "0.1 %": "project"}
OPTIONS: dict[str, dict[str, Any]] = {
    "`mmr_lambda=0.7`": {"mmr_lambda": 0.7},
    '`group_by="source"`': {"group_by": "source"},
    "`min_confidence=0.12`": {"min_confidence": 0.12},
    '`spread_over="time"`': {"spread_over": "time"},
    '`spread_over="source"`': {"spread_over": "source"},
    **{f'`profile="{name}"`': {"profile": name} for name in ("reeve", "hermes", "memweave")},
    "`limit=50`": {"limit": 50},
}


def main() -> None:
    """Measure, save and print."""
    options = saving.arguments(_parser())
    saved = saving.read(options.out)
    if not options.render:
        _measure_all(options, saved, Console(stderr=True))
    print(markdown(saved))


def measure(data: Dataset, folder: Path, questions: int = QUESTIONS) -> dict[str, Any]:
    """The figures of every way on a store of this data, written into `folder`."""
    until = datetime.now(UTC)
    asked = ways(until)
    with Memory(folder / "memory.db", settings=Settings(query_cache_size=0)) as memory:
        memory.remember_many(items(data, until))
        memory.warmup()
        kept = {name: memory.count(**fields) for name, fields in filters(until).items()}
        elapsed, processor = _times(memory, data, list(asked.values()), questions)
    plain = list(asked).index(PLAIN)
    found = {}
    for place, name in enumerate(asked):
        found[name] = {
            **percentiles(elapsed[:, place].tolist()),
            "processor_p50_ms": round(float(np.median(processor[:, place])), 3),
            "times_plain": round(float(np.median(elapsed[:, place]) / np.median(elapsed[:, plain])), 3),
            "processor_times_plain": round(float(np.median(processor[:, place]) / np.median(processor[:, plain])), 3),
        }
    return {"kept": kept, "ways": found}


def ways(until: datetime) -> dict[str, dict[str, Any]]:
    """The options of each way, for a store whose records end at that time."""
    asked: dict[str, dict[str, Any]] = {PLAIN: {}, **filters(until), **OPTIONS}
    return {name: {"limit": TOP, **OFF, **options} for name, options in asked.items()}


def filters(until: datetime) -> dict[str, dict[str, Any]]:
    """The fields of each filter."""
    middle = until - _YEARS / 2
    found: dict[str, dict[str, Any]] = {}
    for kept, below in FILTERS.items():
        found[f"{kept} by scope"] = {"scope": _SCOPES[kept]}
        found[f"{kept} by tag"] = {"tags": [kept]}
        found[f"{kept} by time"] = {"since": middle, "until": middle + _YEARS * below / _PARTS}
        found[f"{kept} by metadata"] = {"where": {f"metadata.{_FIELDS[kept]}": 0}}
    return found


def items(data: Dataset, until: datetime) -> Iterator[dict[str, Any]]:
    """The records: in the order of time, the last at `until`; neighbours are of distant parts."""
    belongs, step = dataset.parts(len(data.lines)).tolist(), _YEARS / len(data.lines)
    for place, (item, part) in enumerate(zip(corpus.items(data.lines, data.vectors), belongs, strict=True)):
        department, team = part // 100, part // 10
        yield {
            **item,
            "scope": f"/department {department}/team {team}/project {part}",
            "tags": [name for name, below in FILTERS.items() if part < below],
            "created_at": until - step * (len(data.lines) - 1 - place),
            "metadata": {"department": department, "team": team, "project": part, "line": place},
        }


def markdown(saved: dict[str, Any]) -> str:
    """A line a way: its times at each size, and how many times the plain recall of that size they are."""
    results = saved["results"]
    sizes = sorted(results, key=int)
    header = ["single recall, vector ready"]
    for size in sizes:
        header += [f"{int(size):,}: p50 ms", "p95 ms", "times plain"]
    lines = []
    for name in results[sizes[-1]]["ways"]:
        line = [name]
        for size in sizes:
            found = results[size]["ways"][name]
            line += [f"{found['p50_ms']:.2f}", milliseconds(found["p95_ms"]), f"{found['times_plain']:.2f}"]
        lines.append(line)
    caption = f"{saved['processor']}, {saved['cores']} cores, commit {saved['commit']}, {saved['date']}."
    return f"{table(header, lines, left=header[:1])}\n\n{caption}"


def _measure_all(options: argparse.Namespace, saved: dict[str, Any], console: Console) -> None:
    embedder = CachedEmbedder(load(), options.cache)
    saved |= {**describe(), "command": saving.command("benchmarks.ways"), "questions": options.questions}
    results: dict[str, Any] = saved.setdefault("results", {})
    with tempfile.TemporaryDirectory(dir=options.work) as scratch:
        for records in options.records:
            if options.resume and str(records) in results:
                continue
            console.log(f"{records:,} records")
            folder = (options.work or Path(scratch)) / f"records-{records}"
            data = dataset.prepare(folder, options.corpus, records, embedder, saving.progress(console))
            with tempfile.TemporaryDirectory(dir=scratch) as store:
                results[str(records)] = measure(data, Path(store), options.questions)
            saving.write(saved, options.out)


def _times(memory: Memory, data: Dataset, asked: list[dict[str, Any]], questions: int) -> tuple[Any, Any]:
    """Elapsed and processor milliseconds, float64 (questions, ways)."""
    elapsed = np.zeros((_WARM_UP + questions, len(asked)))
    processor = np.zeros_like(elapsed)
    for number in range(len(elapsed)):
        place = number % len(data.questions)
        text, vector = data.questions[place], data.asked[place]
        for step in range(len(asked)):
            way = (number + step) % len(asked)
            began, spent = time.perf_counter(), time.process_time()
            memory.recall(text, vector=vector, **asked[way])
            processor[number, way] = time.process_time() - spent
            elapsed[number, way] = time.perf_counter() - began
    return elapsed[_WARM_UP:] * 1e3, processor[_WARM_UP:] * 1e3


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ways", description="Filters and options of recall.")
    parser.add_argument("--records", type=int, nargs="+", default=SIZES, help="sizes (10,000 and 100,000)")
    parser.add_argument(
        "--questions", type=int, default=QUESTIONS, help=f"how many are asked in each way ({QUESTIONS})"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the result as JSON")
    return parser


if __name__ == "__main__":
    main()
