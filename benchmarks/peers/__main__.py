"""python -m benchmarks.peers --corpus FILE --cache DIR [--records 10000 100000 1000000] [--only NAME ...].

Each contender builds in one process, then is opened and asked in another, at one size after the other. What is
measured is saved at once: `--resume` goes on where a run was stopped.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import dataset, saving
from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.environment import describe, embed_each_question
from benchmarks.isolated_process import DidNotFinish, Failed, run
from benchmarks.peers import plots, report
from benchmarks.peers.contenders import CONTENDERS
from recallite.embedding import load

RESULTS = saving.RESULTS / "peers.json"
SIZES = (10_000, 100_000, 1_000_000)
# What a graph must reach when Recallite was not measured at this size.
_TARGET = 0.995


def main() -> None:
    """Measure, save, print and draw."""
    options = saving.arguments(_parser())
    console = Console(stderr=True)
    saved = saving.read(options.out)
    if not options.render:
        measure(options, saved, console)
    print(report.markdown(saved))
    saving.draw(lambda: plots.draw(saved, options.out.parent), console)


def measure(options: argparse.Namespace, saved: dict[str, Any], console: Console) -> None:
    """All contenders at all sizes, into `saved` and its file."""
    embedder = CachedEmbedder(load(), options.cache)
    command = saving.command("benchmarks.peers")
    saved |= {**describe(), "command": command, "embedder": embedder.name, "data": dataset.describe()}
    results: dict[str, Any] = saved.setdefault("results", {})
    with tempfile.TemporaryDirectory(dir=options.work) as scratch:
        for records in options.records:
            of_size: dict[str, Any] = results.setdefault(str(records), {})
            wanted = [name for name in options.only if not (options.resume and report.is_settled(of_size.get(name)))]
            if not wanted:
                continue
            console.log(f"{records:,} records")
            folder = (options.work or Path(scratch)) / f"records-{records}"
            data = dataset.prepare(folder, options.corpus, records, embedder, saving.progress(console))
            for name in wanted:
                ours = of_size.get("recallite", {}).get("modes", {}).get("vector", {})
                began = time.perf_counter()
                of_size[name] = hopeless(name, records, results, options.limit) or contend(
                    name, data.folder, Path(scratch), ours.get("recall@10", _TARGET), options.limit
                )
                saving.write(saved, options.out)
                console.log(f"{name}: {report.in_short(of_size[name])} [{time.perf_counter() - began:.0f} s]")


def hopeless(name: str, records: int, results: dict[str, Any], limit_s: float) -> dict[str, Any]:
    """Return the reason to skip a contender: its build time grows at least linearly, so it cannot finish."""
    took: dict[int, float] = {}
    for size, of_size in results.items():
        result = of_size.get(name, {})
        if int(size) < records and ("build_s" in result or result.get("did_not_finish") == "build"):
            took[int(size)] = result.get("build_s", result.get("limit_s"))
    if not took or took[max(took)] * records / max(took) <= limit_s:
        return {}
    return {"not_tried": {"records": max(took), "build_s": took[max(took)]}, "limit_s": limit_s}


def contend(name: str, data: Path, scratch: Path, target: float, limit_s: float) -> dict[str, Any]:
    """One contender at one size: its figures, or why there are none."""
    entry, description = CONTENDERS[name], describe()
    if missing := entry.missing():
        return {"not_installed": missing}
    result: dict[str, Any] = {
        "versions": entry.versions(),
        "date": description["date"],
        "commit": description["commit"],
    }
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=scratch) as store:
        for task in ("build", "ask"):
            arguments = {"task": task, "contender": name, "data": data, "store": store, "target": target}
            try:
                result |= run("benchmarks.peers.process", arguments, limit_s - (time.perf_counter() - began))
            except DidNotFinish:
                return {**result, "did_not_finish": task, "limit_s": limit_s}
            except Failed as error:
                return {**result, "failed": f"{task}: {error}"}
    return result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description="Recallite beside what a user would pick instead."
    )
    parser.add_argument("--records", type=int, nargs="+", default=SIZES, help="sizes (10,000 to 1,000,000)")
    parser.add_argument(
        "--only", nargs="+", choices=list(CONTENDERS), metavar="NAME", default=list(CONTENDERS), help="contenders (all)"
    )
    parser.add_argument("--limit", type=float, default=300, help="seconds that a contender may take at a size (300)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the results as JSON, plots beside it")
    return parser


if __name__ == "__main__":
    embed_each_question()
    main()
