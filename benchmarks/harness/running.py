"""Runs of cases from the command line."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import saving
from benchmarks.environment import describe
from benchmarks.harness import report
from benchmarks.harness.case import Case, Context, Timing
from benchmarks.harness.measure import interleaved

__all__ = ["find", "main", "names", "run"]

_CASES = Path(__file__).resolve().parents[1] / "cases"


def names() -> list[str]:
    """Names of all cases, which are those of their modules."""
    return sorted(path.stem for path in _CASES.glob("[a-z]*.py"))


def find(name: str) -> Case:
    """The case of a module of `benchmarks.cases`."""
    case: Case = import_module(f"benchmarks.cases.{name}").CASE
    return case


def run(case: Case, context: Context) -> dict[str, Any]:
    """Tables of a case at one size, with the machine, commit and date."""
    load_before = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
    tables = []
    with case.setup(context) as state:
        for table in case.tables(state, context):
            rows = interleaved(table) if isinstance(table, Timing) else table.rows
            tables.append({"title": table.title, "rows": rows})
            context.log(f"{case.name}, {table.title}: done")
    return {
        **describe(),
        "command": saving.command(f"benchmarks {case.name}"),
        "load_before": load_before,
        "records": context.records,
        "rounds": context.rounds,
        "unit": case.unit,
        "tables": tables,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a case at each size, save and print it; `list` names all cases."""
    options = _parser().parse_args(arguments)
    if options.case == "list":
        for name in names():
            print(f"{name:20} {find(name).answers}")
        return
    case = find(options.case)
    out: Path = options.out or saving.RESULTS / f"{case.name}.json"
    if not options.render:
        if options.work is not None:
            options.work.mkdir(parents=True, exist_ok=True)
        for records in options.records or case.records:
            with tempfile.TemporaryDirectory(dir=options.work) as folder:
                context = Context(
                    records=records,
                    rounds=options.rounds or case.rounds,
                    folder=Path(folder),
                    **{name: getattr(options, name) for name in _SHARED},
                )
                report.save(case.name, str(records), run(case, context), out)
    try:
        print(report.markdown(saving.read(out)))
    except saving.NotMeasured:
        raise SystemExit(f"{out} has no result of {case.name}: run it without --render first") from None


_SHARED = {
    "corpus": (Path, "text file (.gz too), a record per line; made up if it is missing"),
    "cache": (Path, "folder that keeps embeddings between runs"),
    "work": (Path, "folder for data, kept, and for stores, removed (temporary)"),
    "data": (Path, "folder with data sets, for the cases that read some"),
    "embedder": (str, "name of an embedder (default)"),
    "address": (str, "postgresql://..., for the cases that ask a server"),
    "few": (int, "most repetitions of slow parts, for a trial run"),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Runs a benchmark case.")
    parser.add_argument("case", choices=["list", *names()], metavar="CASE", help="a case, or list")
    parser.add_argument("--records", type=int, nargs="+", help="sizes of the stores")
    parser.add_argument("--rounds", type=int, help="how often each way is timed")
    for name, (type_, text) in _SHARED.items():
        default = "default" if name == "embedder" else None
        parser.add_argument(f"--{name}", type=type_, default=default, help=text)
    parser.add_argument("--out", type=Path, help="JSON file for the result (benchmarks/results/CASE.json)")
    parser.add_argument("--render", action="store_true", help="print the saved result and measure nothing")
    return parser
