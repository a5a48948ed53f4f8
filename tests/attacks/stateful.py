"""Stateful property tests: steps that Hypothesis draws, in a store and in a model of it, which must stay equal.

A run has at most fifty steps in a file of its own. A run that fails is made shorter by Hypothesis and told as the
steps that it takes.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections import Counter
from multiprocessing import get_context
from pathlib import Path

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.stateful import run_state_machine_as_test

from recallite.system.parallel import usable_cpus
from tests.attacks.outcome import Outcome
from tests.attacks.stateful_machine import StoreMachine

__all__ = ["attack"]

_STEPS_A_RUN = 50
_STEPS_A_ROUND = 500
_MOST_WORDS = 6_000
_PHASES = (Phase.generate, Phase.shrink)


def attack(tries: int, seed: int) -> Outcome:
    """Make at least `tries` steps, in rounds of 500; many rounds run on all processors."""
    rounds = [
        (seed, number, min(_STEPS_A_ROUND, tries - start))
        for number, start in enumerate(range(0, tries, _STEPS_A_ROUND))
    ]
    outcome, figures = Outcome("steps"), Counter[str]()
    if len(rounds) == 1:
        parts = [_round(rounds[0])]
    else:
        with get_context("spawn").Pool(usable_cpus()) as pool:
            parts = pool.map(_round, rounds, chunksize=1)
    for part in parts:
        figures.update(part.figures)
        outcome += part
    outcome.figures = {name: float(count) for name, count in sorted(figures.items())}
    return outcome


def _round(chosen: tuple[int, int, int]) -> Outcome:
    """So many steps of one seed; it ends at the first failure."""
    number = chosen[0] * 1_000_000 + chosen[1]
    outcome, steps = Outcome("steps"), chosen[2]
    counts = Counter[str]()
    # Hypothesis writes down what it learns of the code under test, and where it failed: not into the working folder.
    with tempfile.TemporaryDirectory(prefix="recallite-hypothesis-") as home:
        set_hypothesis_home_dir(Path(home))
        try:
            while counts["steps"] < steps and not outcome.failures:
                # The first run of each draw is the simplest there is, whatever the seed.
                runs = 1 + -(-(steps - counts["steps"]) // _STEPS_A_RUN)
                _draw(number * 1_000 + counts["draws"], runs, counts, outcome)
        finally:
            set_hypothesis_home_dir(None)
    outcome.tries = counts["steps"]
    outcome.figures = {name: float(count) for name, count in counts.items() if name != "steps"}
    return outcome


def _draw(number: int, runs: int, counts: Counter[str], outcome: Outcome) -> None:
    machine = seed(number)(type("Store", (StoreMachine,), {"counts": counts}))
    counts["draws"] += 1
    chosen = settings(
        max_examples=runs, stateful_step_count=1 + _STEPS_A_RUN, database=None, deadline=None, print_blob=False,
        verbosity=Verbosity.normal, phases=_PHASES, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            run_state_machine_as_test(machine, settings=chosen)
    except Exception as fault:
        steps_told = "\n".join([printed.getvalue(), *getattr(fault, "__notes__", ())])
        kind = "wrong" if isinstance(fault, AssertionError) else "untyped"
        outcome.fail(kind, f"seed {number}: {type(fault).__name__}: {fault}\n{steps_told}"[:_MOST_WORDS])
