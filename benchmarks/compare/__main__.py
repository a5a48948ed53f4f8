"""python -m benchmarks.compare BASE [--records 1000 100000 1000000] [--rounds 10] --corpus FILE --cache DIR.

Recall of the working tree and of another revision, BASE, at each size. Each has a process and a store of its own, built
by its own `remember_many` from the same data. They answer rounds of the same questions by turns, never both at once,
and who begins changes with each round: what else the machine does then meets both, and the ratio of the two holds where
their times do not. Run it on an idle machine all the same.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import dataset, saving
from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.compare.figures import SIDES, Rounds, markdown
from benchmarks.compare.side import ROOT, Side, checked_out
from benchmarks.compare.ways import WAYS, Way
from benchmarks.dataset import Dataset
from benchmarks.environment import describe, embed_each_question
from recallite.embedding import load

__all__ = ["compare", "main"]

SIZES = (1000, 100_000, 1_000_000)
QUESTIONS = 100


def main() -> None:
    """Compare, print, and save where that is asked for."""
    options = _arguments()
    console = Console(stderr=True)
    embedder = CachedEmbedder(load(), options.cache)
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory())
        work: Path = options.work or Path(scratch)
        commit, tree = stack.enter_context(checked_out(options.base))
        run = {**describe(), "base": commit, "rounds": options.rounds, "questions_per_round": QUESTIONS, "results": {}}
        for records in options.records:
            console.log(f"{records:,} records")
            folder = work / f"records-{records}"
            data = dataset.prepare(folder, options.corpus, records, embedder, saving.progress(console))
            run["results"][str(records)] = compare(
                tree, data, work / "compare", options.rounds, options.ways, QUESTIONS
            )
            if options.out is not None:
                saving.write(run, options.out)
    print(markdown(run))


def compare(
    base: Path, data: Dataset, work: Path, rounds: int, names: Sequence[str] = tuple(WAYS), questions: int = QUESTIONS
) -> dict[str, Any]:
    """The figures of each way at one size. `base` is a source tree; stores and compiled kernels are kept in `work`."""
    with (
        Side("base", base, work / "base", data.folder) as one,
        Side("now", ROOT, work / "now", data.folder) as other,
    ):
        sides = {"base": one, "now": other}
        ways_by_name = {name: {side: _asked(sides[side], WAYS[name]) for side in SIDES} for name in names}
        refused = {name: _refused(sides, ways) for name, ways in ways_by_name.items()}
        rounds_by_way = {name: Rounds() for name in names if not refused[name]}
        for number in range(rounds):
            places = [(number * questions + place) % len(data.questions) for place in range(questions)]
            # All ways in each round: what slows the machine for a while meets one round of each.
            for name, results in rounds_by_way.items():
                order = SIDES if number % 2 == 0 else SIDES[::-1]
                answers = {
                    side: sides[side].ask("round", way=ways_by_name[name][side], places=places) for side in order
                }
                results.add(places, answers["base"], answers["now"])
        ways = {
            name: rounds_by_way[name].figures() if name in rounds_by_way else {"refused": refused[name]}
            for name in names
        }
        return {"opened": {side: sides[side].opened for side in SIDES}, "ways": ways}


def _asked(side: Side, way: Way) -> dict[str, Any]:
    """The way as this side can be asked: without turning off what it does not have."""
    known = side.ask("known", options=way.off)
    off = {name: value for name, value in way.off.items() if name in known}
    return asdict(replace(way, options={**way.options, **off}, off={}))


def _refused(sides: dict[str, Side], ways: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return the reason why a side cannot answer in a way, by side."""
    refusals = {name: side.ask("refusal", way=ways[name]) for name, side in sides.items()}
    return {name: refusal for name, refusal in refusals.items() if refusal is not None}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description="Recall of two commits.")
    parser.add_argument("base", metavar="BASE", help="the revision that the working tree is compared with")
    parser.add_argument("--records", type=int, nargs="+", default=SIZES, help="sizes (1,000, 100,000 and 1,000,000)")
    parser.add_argument("--rounds", type=int, default=10, help=f"rounds of {QUESTIONS} questions a way (10)")
    named = ", ".join(WAYS).replace("%", "%%")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), metavar="WAY", default=list(WAYS), help=named)
    parser.add_argument("--corpus", type=Path, help="text file (.gz too), a memory per line; else made up")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings between runs")
    parser.add_argument("--work", type=Path, help="folder that keeps data, stores and compiled kernels (temporary)")
    parser.add_argument("--out", type=Path, help="where to save the figures as JSON too")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error(f"--rounds is {options.rounds}: at least 1")
    return options


if __name__ == "__main__":
    embed_each_question()
    main()
