"""python -m benchmarks.agents [life] [scale] --data DIR --corpus FILE --cache DIR [--records 100000]."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import dataset, saving
from benchmarks.agents import life, report, scale
from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.environment import describe
from recallite.embedding import load

RESULTS = Path(__file__).resolve().parents[1] / "results" / "agents.json"


def main() -> None:
    """Measure what was asked for, save and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agents", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=["life", "scale", []], help="what to measure (both)")
    parser.add_argument("--data", type=Path, help="folder with locomo*.json.gz")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the result as JSON")
    options = saving.arguments(parser)
    saved = saving.read(options.out)
    if not options.render:
        measure(options, saved, Console(stderr=True))
    print(report.markdown(saved))


def measure(options: argparse.Namespace, saved: dict[str, Any], console: Console) -> None:
    """The parts, into `saved` and its file."""
    for part in options.parts or ["life", "scale"]:
        measured = _life(options, console) if part == "life" else _scale(options, console)
        saved[part] = {**describe(), "command": saving.command("benchmarks.agents"), **measured}
        saving.write(saved, options.out)


def _life(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    embedder = CachedEmbedder(load(), None if options.cache is None else options.cache / "locomo")
    try:
        return life.evaluate(options.data, embedder, lambda done, total: console.log(f"life {done} of {total}"))
    finally:
        embedder.flush()


def _scale(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    embedder = CachedEmbedder(load(), options.cache)
    with tempfile.TemporaryDirectory(dir=options.work) as scratch:
        folder = (options.work or Path(scratch)) / f"records-{options.records}"
        data = dataset.prepare(folder, options.corpus, options.records, embedder, saving.progress(console))
        return scale.evaluate(data, Path(scratch), console.log)


if __name__ == "__main__":
    main()
