"""python -m benchmarks.quality [--data DIR] [--beam DIR] [--realtalk DIR] [--set NAME ...] and more: see --help."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import saving
from benchmarks.cached_embedder import CachedEmbedder, cached
from benchmarks.environment import describe, embed_each_question
from benchmarks.quality import (
    beam,
    boards,
    confidence,
    dates,
    fact_consolidation,
    first_tries,
    junk,
    languages,
    left_out,
    locomo,
    longmemeval,
    named,
    pairs,
    precision_bench,
    realmem,
    realtalk,
    report,
    requests,
    scifact,
    scripts,
    truth_tables,
    updates,
    written,
)
from benchmarks.quality.result import Evaluation
from recallite import Memory, Settings
from recallite.embedding import load

SETS: dict[str, Evaluation] = {
    "locomo": locomo.evaluate,
    "longmemeval": longmemeval.evaluate,
    "realmem": realmem.evaluate,
    "scifact": scifact.evaluate,
    "confidence": confidence.evaluate,
    "beam": beam.evaluate,
    "realtalk": realtalk.evaluate,
    "first_tries": first_tries.evaluate,
    "left_out": left_out.evaluate,
    "named": named.evaluate,
    "scripts": scripts.evaluate,
    "languages": languages.evaluate,
    "written": written.evaluate,
    "contrasts": written.of_contrasts,
    "requests": requests.evaluate,
    "precision": precision_bench.evaluate,
    "facts": fact_consolidation.evaluate,
    "beam_updates": updates.of_beam,
    "longmemeval_updates": updates.of_longmemeval,
    "pairs": pairs.evaluate,
    "dates": dates.evaluate,
    "junk": junk.evaluate,
}
# Sets that ask the stores of another share its cache.
_CACHES = {"confidence": "locomo", "beam_updates": "beam", "longmemeval_updates": "longmemeval"}
_OWN = ("first_tries", "left_out", "named", "scripts", "written", "pairs", "dates", "junk")
RESULTS = saving.RESULTS / "quality.json"


def main() -> None:
    """Run the sets, or print a saved run as Markdown."""
    options = _arguments()
    if options.render:
        print(report.markdown(saving.read(options.out)))
        return
    run = evaluate(_folders(options), options.embedder, options.cache, codes=not options.no_codes)
    before = saving.read(options.out)
    run["sets"] = {
        **{name: {"commit": before["commit"], **result} for name, result in before.get("sets", {}).items()},
        **run["sets"],
    }
    saving.write(run, options.out)
    print(report.markdown(run))
    if any(name in run["sets"] for name in truth_tables.TITLES):
        print(f"\n{report.truth_markdown(run)}")
    print(f"\n{boards.markdown(run)}")


def evaluate(
    folders: dict[str, Path], embedder_name: str | None, cache: Path | None, *, codes: bool = True
) -> dict[str, Any]:
    """All figures of the sets, each read from its folder; without `codes` of tokens `default` reranks nothing."""
    inner = load(embedder_name)
    run: dict[str, Any] = {**describe(), "embedder": inner.name, "fingerprint": inner.fingerprint, "sets": {}}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        for name, data in folders.items():
            # What is cached is let go after each set.
            folder = None if cache is None else cache / _CACHES.get(name, name)
            embedder = cached(inner, folder) if codes else CachedEmbedder(inner, folder)
            task = progress.add_task(report.TITLES[name], total=None)
            try:
                run["sets"][name] = SETS[name](
                    data,
                    lambda: Memory(":memory:", embedder=embedder, settings=Settings(token_codes=codes)),  # noqa: B023
                    lambda done, total: progress.update(task, completed=done, total=total),  # noqa: B023
                )
                # How many texts were not in the cache: it explains the seconds.
                run["sets"][name]["embedded"] = embedder.embedded
                if not run["sets"][name].get("code_bytes_per_record"):
                    run["sets"][name]["figures"].pop("no reranking", None)
            finally:
                embedder.flush()
    return run


def _folders(options: argparse.Namespace) -> dict[str, Path]:
    """The folder of each set that is named, or that has one; of those in two parts the file."""
    named = {
        "beam": options.beam,
        "beam_updates": options.beam,
        "realtalk": options.realtalk,
        "facts": options.facts,
        "precision": options.precision,
        "languages": languages.TABLES[options.part],
        "contrasts": written.TABLES[options.part],
        "requests": requests.TABLES[options.part],
        **dict.fromkeys(_OWN, Path()),
    }
    folders = {name: named.get(name, options.data) for name in SETS}
    return {name: folder for name, folder in folders.items() if folder and name in (options.set or SETS)}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description="Retrieval quality, as a table.")
    parser.add_argument("--data", type=Path, help="folder with locomo*.json.gz, longmemeval_s*.json.gz, ... , scifact/")
    parser.add_argument("--set", nargs="+", choices=list(SETS), help="the sets to run (all that have a folder)")
    parser.add_argument("--beam", type=Path, help="folder or git repository with BEAM")
    parser.add_argument("--realtalk", type=Path, help="folder or git repository with REALTALK")
    parser.add_argument("--facts", type=Path, help="folder or git repository with EvoMemBench")
    parser.add_argument("--precision", type=Path, help="folder or git repository with PrecisionMemBench")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the result as JSON")
    parser.add_argument("--embedder", help="an embedder's name, or a folder with an ONNX model (the default model)")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings between runs")
    parser.add_argument(
        "--part",
        choices=list(languages.TABLES),
        default="dev",
        help="of languages, contrasts and requests: choose on dev, report on held",
    )
    parser.add_argument("--no-codes", action="store_true", help="without codes of tokens: nothing is reranked")
    parser.add_argument("--render", action="store_true", help="print the saved result as Markdown and run nothing")
    options = parser.parse_args()
    if not options.render and (missing := set(options.set or ("locomo",)) - set(_folders(options))):
        parser.error(
            f"no folder for {', '.join(sorted(missing))}: give --data, --beam, --realtalk, --facts or --precision"
        )
    return options


if __name__ == "__main__":
    embed_each_question()
    main()
