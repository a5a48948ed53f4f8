"""python -m benchmarks.peers --corpus FILE --cache DIR [--records N ...] [--only NAME ...] [--rounds N].

Each contender builds in a process of its own and is then opened in another. All of them stay open and are asked in
turns, round after round, so what else the machine does meets every one. The first round is not counted: it warms, and
it tries each contender's efforts: afterwards the quickest that reach a recall@10 of .95 and of .99 are used.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks import dataset, saving
from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.dataset import FILTERS, Dataset
from benchmarks.environment import describe, embed_each_question
from benchmarks.isolated_process import QUIET, DidNotFinish, Failed, run
from benchmarks.peers import report
from benchmarks.peers.contenders import CONTENDERS
from recallite.embedding import load
from recallite.text.words import STOP_TERMS, tokenize

RESULTS = saving.RESULTS / "peers.json"
TARGETS = {".95": 0.95, ".99": 0.99}
_MODULE = "benchmarks.peers.process"
# Questions of the sweep over efforts, questions in a batch, and inserts.
_SWEPT, _BATCH, _INSERTS = 200, 100, 20


def main() -> None:
    """Measure, save and print."""
    options = saving.arguments(_parser())
    console = Console(stderr=True)
    saved = saving.read(options.out)
    if not options.render:
        measure(options, saved, console)
    print(report.markdown(saved))


def measure(options: argparse.Namespace, saved: dict[str, Any], console: Console) -> None:
    """All contenders at all sizes, into `saved` and its file."""
    embedder = CachedEmbedder(load(), options.cache)
    command = saving.command("benchmarks.peers")
    saved |= {**describe(), "command": command, "embedder": embedder.name, "load": round(os.getloadavg()[0], 1)}
    with tempfile.TemporaryDirectory(dir=options.work) as scratch:
        for records in options.records:
            if options.resume and str(records) in saved.get("results", {}):
                continue
            folder = (options.work or Path(scratch)) / f"records-{records}"
            data = dataset.prepare(folder, options.corpus, records, embedder, saving.progress(console))
            write_words(data)
            stores = Path(scratch) / f"stores-{records}"
            results = {name: built(name, data, stores / folder_of(name), options) for name in options.only}
            console.log(", ".join(f"{name}: {result.get('build_s', result)}" for name, result in results.items()))
            rounds = Rounds(results, data, stores, options)
            for number in range(options.rounds + 1):
                rounds.ask(number)
                console.log(f"round {number} of {options.rounds}")
            rounds.end()
            saved.setdefault("results", {})[str(records)] = {"rounds": options.rounds, "contenders": results}
            saving.write(saved, options.out)


def write_words(data: Dataset) -> None:
    """Write the questions without stop words, or with all of them if nothing is left."""
    words = [re.findall(r"\w+", question.lower()) for question in data.questions]
    content = [[word for word in line if not STOP_TERMS.issuperset(tokenize(word))] or line for line in words]
    (data.folder / "words.json").write_text(json.dumps([" ".join(line) for line in content]), encoding="utf-8")


def built(name: str, data: Dataset, store: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The figures of building a contender's store, or why there are none."""
    store.mkdir(parents=True)
    arguments = {"task": "build", "contender": name, "data": data.folder, "store": store}
    try:
        return run(_MODULE, arguments, options.limit, _python(name, options))
    except DidNotFinish:
        return {"failed": f"was not built within {options.limit:.0f} s"}
    except Failed as error:
        return {"failed": f"build: {error}"}


class Served:
    """A contender's process, which answers tasks one at a time."""

    def __init__(self, name: str, data: Dataset, log: Path, python: str) -> None:
        arguments = {"task": "serve", "contender": name, "data": str(data.folder)}
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                [python, "-W", "ignore", "-m", _MODULE, json.dumps(arguments)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ, **QUIET},
            )  # fmt: skip
        self.began = self._answer()

    def ask(self, do: str, **arguments: Any) -> Any:
        """The answer to a task. Raises Failed with the last line that the process wrote."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        if line := self._process.stdout.readline():
            return json.loads(line)
        self._process.wait()
        last = (self._log.read_text().strip() or "ended").splitlines()[-1]
        raise Failed(re.sub(r"\(?/[^\s)]+\)?", "", last)[:200].strip())


class Rounds:
    """All contenders, opened, and what they answered so far; the figures go into `results`."""

    def __init__(
        self, results: dict[str, dict[str, Any]], data: Dataset, stores: Path, options: argparse.Namespace
    ) -> None:
        self._results, self._options = results, options
        self._open: dict[str, Served] = {}
        self._figures: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
        for name in [name for name, result in results.items() if "failed" not in result]:
            with self._dropping(name):
                store = stores / folder_of(name)
                self._open[name] = Served(name, data, store.with_suffix(".log"), _python(name, options))
                opened = self._open[name].ask("open", folder=str(store))["open_s"]
                results[name]["open_s"] = round(opened + self._open[name].began["import_s"], 3)

    def ask(self, number: int) -> None:
        """One round. The first sweeps over the efforts and is not counted."""
        count, seconds = self._options.count, self._options.seconds
        if number == 0:
            self._each(0, "sweep", "sweep", count=_SWEPT, seconds=seconds)
            for name in self._open:
                self._results[name] |= chosen(self._figures.pop((name, "sweep"))[0])
        questions = {"begin": number * count, "count": count, "seconds": seconds}
        for target in TARGETS:
            self._each(number, f"vector {target}", "ask", target, mode="vector", **questions)
        self._each(number, "hybrid", "ask", ".99", mode="hybrid", **questions)
        self._each(number, "batch", "batch", ".99", begin=number * count, count=_BATCH)
        few = {**questions, "count": max(count // 4, 5), "seconds": seconds / 2}
        for mode in ("vector", "hybrid"):
            for filter in FILTERS:
                self._each(number, f"{mode}, {filter}", "ask", ".99", mode=mode, filter=filter, **few)
        if number == 0:
            self._figures.clear()

    def end(self) -> None:
        """Weigh, insert, ask again, and put what the rounds gave into the results."""
        rounds, self._figures = self._figures, defaultdict(list)
        again = {"begin": 0, "count": self._options.count, "seconds": self._options.seconds}
        self._each(0, "weight", "weigh")
        self._each(0, "insert", "insert", count=_INSERTS, seconds=5.0)
        self._each(0, "after inserts", "ask", ".99", mode="hybrid", **again)
        for name, served in self._open.items():
            result = self._results[name]
            result |= {what: once[0] for (of, what), once in self._figures.items() if of == name}
            result["added_mb"] = round(result["weight"]["anonymous_mb"] - served.began["before_mb"], 1)
            result["figures"] = {what: summary(figures) for (of, what), figures in rounds.items() if of == name}
            served.end()

    def _each(self, number: int, what: str, do: str, target: str | None = None, **arguments: Any) -> None:
        """Give each contender that is able to it a task; each round begins with another of them."""
        names = list(self._open)
        first = number % max(len(names), 1)
        able = {"batch": "hybrid", "insert": "insert", "ask": arguments.get("mode")}.get(do)
        for name in names[first:] + names[:first]:
            if self._open[name].began.get(able, True):
                effort = {} if target is None else {"effort": self._results[name]["efforts"][target]}
                with self._dropping(name):
                    self._figures[name, what].append(self._open[name].ask(do, **arguments, **effort))

    @contextmanager
    def _dropping(self, name: str) -> Iterator[None]:
        """Leave a contender out from now on if it fails in the block, and say why."""
        try:
            yield
        except (Failed, BrokenPipeError) as error:
            self._results[name]["failed"] = str(error)
            if (served := self._open.pop(name, None)) is not None:
                served.end()


def chosen(sweep: list[dict[str, Any]]) -> dict[str, Any]:
    """The curve of a sweep, and for each target the quickest effort that reaches it, or the best if none does."""
    curve = [
        {"effort": one["effort"], "p50_ms": one["p50_ms"], "recall": float(np.nanmean(one["recall"]))} for one in sweep
    ]
    efforts = {}
    for name, target in TARGETS.items():
        enough = [point for point in curve if point["recall"] >= target]
        best = min(enough, key=lambda point: point["p50_ms"]) if enough else max(curve, key=lambda at: at["recall"])
        efforts[name] = best["effort"]
    return {"curve": curve, "efforts": efforts}


def summary(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of the rounds' figures, the least and the most p50, all calls, and the mean of recall@10."""
    names = [name for name in ("p50_ms", "p99_ms", "cpu_ms", "queries_per_second") if name in rounds[0]]
    figures: dict[str, Any] = {name: round(float(np.median([one[name] for one in rounds])), 3) for name in names}
    if "p50_ms" in rounds[0]:
        times = [one["p50_ms"] for one in rounds]
        figures |= {"low_ms": min(times), "high_ms": max(times), "calls": sum(one["calls"] for one in rounds)}
    if "recall" in rounds[0]:
        shares = [share for one in rounds for share in one["recall"]]
        figures["recall@10"] = round(float(np.nanmean(shares)), 4)
    return figures


def folder_of(name: str) -> str:
    """The name of the folder of a contender's store."""
    return re.sub(r"\W+", "_", name)


def _python(name: str, options: argparse.Namespace) -> str:
    return dict(one.split("=", 1) for one in options.python).get(name, sys.executable)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers", description="Recallite beside what a user would pick instead."
    )
    parser.add_argument("--records", type=int, nargs="+", default=[50_000], help="sizes (50,000)")
    parser.add_argument(
        "--only", nargs="+", choices=list(CONTENDERS), metavar="NAME", default=list(CONTENDERS), help="contenders (all)"
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds that are counted (5)")
    parser.add_argument("--count", type=int, default=100, help="questions of a pass (100)")
    parser.add_argument("--seconds", type=float, default=0.5, help="seconds of a pass at most (0.5)")
    parser.add_argument("--limit", type=float, default=300, help="seconds that building may take (300)")
    parser.add_argument(
        "--python", nargs="+", default=[], metavar="NAME=PATH", help="contenders that run by another interpreter"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the results as JSON")
    return parser


if __name__ == "__main__":
    embed_each_question()
    main()
