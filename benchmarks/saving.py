"""Options, files and commands of runs that save each result as they go."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

__all__ = ["RESULTS", "NotMeasured", "arguments", "command", "progress", "read", "write"]


RESULTS = Path(__file__).resolve().parent / "results"


class NotMeasured(Exception):
    """No results of that name are saved."""


def arguments(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options of a parser and those that every run has."""
    parser.add_argument("--corpus", type=Path, help="text file (.gz too), a memory per line; else made up")
    parser.add_argument("--cache", type=Path, help="folder that keeps embeddings between runs")
    parser.add_argument("--work", type=Path, help="folder for the data, kept, and for the stores, removed (temporary)")
    parser.add_argument("--resume", action="store_true", help="leave out what is saved already")
    parser.add_argument("--render", action="store_true", help="print the saved results and run nothing")
    options = parser.parse_args()
    if options.work is not None:
        options.work.mkdir(parents=True, exist_ok=True)
    return options


def command(module: str) -> str:
    """The command of this run, without the folders of this machine."""
    arguments = [Path(argument).name if "/" in argument else argument for argument in sys.argv[1:]]
    arguments = arguments[1:] if arguments and arguments[0] == module.split()[-1] else arguments
    return " ".join(["python -m", module, *arguments])


def progress(console: Console) -> Callable[[int, int], None]:
    """Tells now and then how many texts are embedded."""

    def tick(done: int, total: int) -> None:
        if done % 16_384 < 2048:
            console.log(f"embedded {done:,} of {total:,}")

    return tick


def read(path: Path) -> dict[str, Any]:
    """The saved results, empty before the first run."""
    saved: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return saved


def write(saved: dict[str, Any], path: Path) -> None:
    """Save results whole: a run that is stopped leaves those before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_suffix(".tmp")
    written.write_text(json.dumps(saved, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    written.replace(path)
