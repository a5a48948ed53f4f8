"""python -m benchmarks.memory_systems --data DIR --cache DIR [--only NAME ...] [--python NAME=PATH ...].

Each system runs in a process of its own, with its own embedding model if Recallite's package holds it, and with
Recallite's. What is measured is saved at once; a system that is run again replaces its figures.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import saving
from benchmarks.environment import describe, embed_each_question
from benchmarks.isolated_process import DidNotFinish, Failed, run
from benchmarks.memory_systems import report
from benchmarks.memory_systems.systems import SYSTEMS

RESULTS = saving.RESULTS / "memory_systems.json"
_GIVEN = "default"
# Systems that ask nobody and tell nobody while they are measured.
_ALONE = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "MEM0_TELEMETRY": "False",
    "OPENAI_API_KEY": "none",
    "OTEL_SDK_DISABLED": "true",
}


def main() -> None:
    """Measure, save and print."""
    options = _arguments()
    saved = saving.read(options.out)
    if not options.render:
        measure(options, saved, Console(stderr=True))
    print(report.markdown(saved))


def measure(options: argparse.Namespace, saved: dict[str, Any], console: Console) -> None:
    """All systems on all sets, into `saved` and its file."""
    os.environ.update(_ALONE)
    pythons = dict(one.split("=", 1) for one in options.python)
    for of in options.sets:
        for name in options.only:
            for model in dict.fromkeys([_GIVEN, SYSTEMS[name].here or _GIVEN]):
                cache = None if options.cache is None else options.cache / model
                task = {"system": name, "embedder": model, "set": of, "data": options.data, "cache": cache}
                module, python = "benchmarks.memory_systems.process", pythons.get(name, sys.executable)
                about = {"commit": describe()["commit"], "load": round(os.getloadavg()[0], 1)}
                try:
                    figures = {**run(module, task, options.limit, python), **about}
                except DidNotFinish:
                    figures = {"failed": f"did not finish in {options.limit:.0f} s"}
                except Failed as error:
                    figures = {"failed": str(error)}
                console.log(f"{name}, {model}, {of}: {figures.get('figures', figures)}")
                saved |= {**describe(), "command": saving.command("benchmarks.memory_systems")}
                saved.setdefault("results", {}).setdefault(of, {}).setdefault(name, {})[model] = figures
                saving.write(saved, options.out)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.memory_systems", description="Memory systems without a language model."
    )
    parser.add_argument("--data", type=Path, help="folder with locomo*.json.gz and longmemeval_s*.json.gz")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings between runs")
    parser.add_argument("--sets", nargs="+", choices=list(report.SETS), default=list(report.SETS), help="sets (all)")
    parser.add_argument(
        "--only", nargs="+", choices=list(SYSTEMS), metavar="NAME", default=list(SYSTEMS), help="systems (all)"
    )
    parser.add_argument(
        "--python", nargs="+", default=[], metavar="NAME=PATH", help="systems that run by another interpreter"
    )
    parser.add_argument("--limit", type=float, default=3600, help="seconds that a system may take on a set (3600)")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the results as JSON")
    parser.add_argument("--render", action="store_true", help="print the saved results and run nothing")
    return parser.parse_args()


if __name__ == "__main__":
    embed_each_question()
    main()
