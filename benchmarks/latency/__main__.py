"""python -m benchmarks.latency --records 100000 --corpus FILE --cache DIR.

A store of the first lines of the corpus, with their real embeddings, is built in a temporary folder; lines after those
are the questions (those that end in a question mark first) and the texts of single writes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks import corpus
from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.environment import describe
from benchmarks.latency import agreement, recalling, starting, writing
from recallite.embedding import load

RESULTS = Path(__file__).resolve().parents[1] / "results" / "latency.json"
_HELD_OUT, _SMALL = 20_000, 10_000
_QUESTIONS, _COMPARED = 1000, 200
_MAIN = ("p50_ms", "p95_ms", "p99_ms")
_SINGLE = ("records_per_second", "queries_per_second", "share_outside_embedder", "recall@10")


def main() -> None:
    """Measure, save and print."""
    options = _arguments()
    if options.render:
        print(markdown(json.loads(options.out.read_text(encoding="utf-8"))))
        return
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        run = measure(options, Path(folder), console)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(run, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    show(run, Console(width=max(Console().width, 110)))


def measure(options: argparse.Namespace, folder: Path, console: Console) -> dict[str, Any]:
    """All figures at this size."""
    embedder = load(options.embedder)
    all_lines = corpus.read_lines(options.corpus, options.records + _HELD_OUT)
    lines, held_out = all_lines[: options.records], all_lines[options.records :]
    questions = corpus.queries(held_out, _QUESTIONS)
    console.log(f"embedding {len(lines):,} lines; those in the cache are not embedded again")
    vectors = _embedded(lines, CachedEmbedder(embedder, options.cache), console)
    asked = embedder.embed(questions)
    large, small = folder / "large.db", folder / "small.db"
    cases: dict[str, Any] = {}
    console.log("remember_many")
    cases |= writing.build(large, embedder, lines, vectors)
    writing.build(small, embedder, lines[:_SMALL], vectors[:_SMALL])
    console.log("recall")
    cases |= recalling.measure(large, embedder, questions, asked)
    console.log("recall@10 and backends")
    cases |= agreement.vector_stage(large, embedder, lines, vectors, questions, asked)
    cases |= agreement.backends(large, folder, questions[:_COMPARED], asked[:_COMPARED])
    console.log("new processes")
    cases |= starting.measure(large, small, questions[0], asked[0].tolist())
    console.log("remember")
    cases |= writing.measure(large, embedder, held_out, questions)
    return {**describe(), "embedder": embedder.name, "records": len(lines), "cases": cases}


def show(run: dict[str, Any], console: Console) -> None:
    """Print a run."""
    table = Table(
        title=f"Latency at {run['records']:,} records",
        caption=f"Embedder {run['embedder']}, commit {run['commit']}, {run['date']}, {run['cores']} cores",
    )
    for name in ("case", "p50 ms", "p95 ms", "p99 ms", "more"):
        table.add_column(name, justify="left" if name in ("case", "more") else "right")
    for name, figures in run["cases"].items():
        more = (f"{key}: {_told(value)}" for key, value in figures.items() if key not in (*_MAIN, "max_ms", "calls"))
        shown = (f"{figures[key]:.2f}" if key in figures else "" for key in _MAIN)
        table.add_row(name, *shown, "\n".join(more))
    console.print(table)


def markdown(run: dict[str, Any]) -> str:
    """The main figures of a run in Markdown."""
    lines = ["| case | p50 ms | p95 ms | p99 ms |", "| --- | ---: | ---: | ---: |"]
    others = []
    for name, figures in run["cases"].items():
        if "p50_ms" in figures:
            shown = " | ".join(f"{figures[key]:.2f}" if key in figures else "" for key in _MAIN)
            lines.append(f"| {name} | {shown} |")
        others += [f"{name}: {figures[key]:,} {key.replace('_', ' ')}" for key in _SINGLE if key in figures]
        if (loaded := figures.get("stages_ms", {}).get("catch_up")) and name.startswith("new process"):
            others.append(f"{name}: {loaded:.0f} ms of it load the index")
    caption = (
        f"{run['records']:,} records, {run['embedder']}, commit {run['commit']}, {run['date']}, {run['cores']} cores."
    )
    return "\n".join([*lines, "", *(f"- {other}" for other in others), "", caption])


def _told(value: Any) -> str:
    return ", ".join(f"{key} {part}" for key, part in value.items()) if isinstance(value, dict) else str(value)


def _embedded(lines: list[str], embedder: CachedEmbedder, console: Console) -> NDArray[np.float32]:
    """A vector a line: that of its first part."""

    def tick(done: int, total: int) -> None:
        if done % 16_384 < 2048:
            console.log(f"{done:,} of {total:,}")

    vectors, owners = embedder.embed_documents(lines, [None] * len(lines), tick)
    embedder.flush()
    return vectors[np.searchsorted(owners, np.arange(len(lines)))]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.latency", description="Latency at size.")
    parser.add_argument("--records", type=int, default=100_000, help="records in the store (100,000)")
    parser.add_argument("--corpus", type=Path, help="text file (.gz too), a memory per line; else made up")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings between runs")
    parser.add_argument("--work", type=Path, help="folder for the stores, on the disk to be measured (temporary)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the result as JSON")
    parser.add_argument("--embedder", help="an embedder's name, or a folder with an ONNX model (the default model)")
    parser.add_argument("--render", action="store_true", help="print the saved result as Markdown and stop")
    options = parser.parse_args()
    if options.records < _SMALL:
        parser.error(f"--records is {options.records}: at least {_SMALL}")
    return options


if __name__ == "__main__":
    main()
