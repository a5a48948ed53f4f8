"""python -m tests.attacks [ATTACK ...] [--tries N] [--seed S] [--render]: the long run."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import saving
from benchmarks.environment import describe
from benchmarks.tables import table
from tests.attacks.attacks import ATTACKS
from tests.attacks.outcome import FAILURES

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "resilience.json"


def main() -> None:
    """Attack, save and print; the exit status is 1 where anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=f"{', '.join(ATTACKS)} (all)")
    parser.add_argument("--tries", type=int, help="instead of each attack's own number")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS, help="where to save the result as JSON")
    parser.add_argument("--render", action="store_true", help="print the saved results and run nothing")
    options = parser.parse_args()
    if unknown := set(options.attacks) - set(ATTACKS):
        parser.error(f"no attack is called {', '.join(sorted(unknown))}: there are {', '.join(ATTACKS)}")
    saved = saving.read(options.out)
    if options.render:
        print(markdown(saved))
        return
    console, failed = Console(stderr=True), False
    for name in options.attacks or ATTACKS:
        tries = ATTACKS[name].tries if options.tries is None else options.tries
        console.log(f"{name}: {tries:,} tries")
        started = time.monotonic()
        outcome = ATTACKS[name](tries, options.seed)
        failed = failed or bool(outcome.failures)
        for example in outcome.examples:
            console.log(example, markup=False)
        # Another run may have saved another attack meanwhile.
        saved = saving.read(options.out)
        saved[name] = {
            **describe(), "command": saving.command("tests.attacks"), "seed": options.seed,
            "seconds": round(time.monotonic() - started, 1), "unit": outcome.unit, "tries": outcome.tries,
            "failures": dict(outcome.failures), "examples": outcome.examples, "figures": outcome.figures,
        }  # fmt: skip
        saving.write(saved, options.out)
    print(markdown(saved))
    sys.exit(failed)


def markdown(saved: dict[str, Any]) -> str:
    """Tries and failures of each attack."""
    if not saved:
        return "Nothing is saved."
    header = ("attack", "tries", *FAILURES, "minutes", "figures", "date, commit")
    lines = [
        (
            name,
            f"{run['tries']:,} {run['unit']}",
            *(str(run["failures"].get(kind, 0)) for kind in FAILURES),
            f"{run['seconds'] / 60:.1f}",
            ", ".join(f"{figure.replace('_', ' ')} {value:g}" for figure, value in run["figures"].items()),
            f"{run['date']}, {run['commit']}",
        )
        for name, run in saved.items()
    ]
    return table(header, lines, left=("attack", "tries", "figures", "date, commit"))


if __name__ == "__main__":
    main()
