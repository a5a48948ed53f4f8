"""Power loss: the writes of mixed work, logged, and states of the disk made of them at random points.

In a state, bytes that were not synced are there, gone, torn at 512 or 4,096 bytes or zeros, in any order; names too may
be gone where their folder was not synced. Failures: a store does not open, is in no state that work has left, or not in
one as late as `durability` promises; SQLite or, in one of twenty, `verify` finds damage.
"""

from __future__ import annotations

import random
import shutil
from functools import partial
from pathlib import Path

import apsw

from recallite import Memory
from tests.attacks import process, shim
from tests.attacks.checking import check_folder, difference
from tests.attacks.disk import Disk, Entry, entries
from tests.attacks.forking import in_child
from tests.attacks.outcome import Outcome
from tests.attacks.shim import Shim
from tests.attacks.workload import (
    NOTHING,
    VERBS,
    Embedder,
    Hands,
    Operation,
    State,
    make_plan,
    small_snapshots,
    snapshot,
    states,
)

__all__ = ["attack"]

_LENGTH = 50
_EACH = 250
_DEEP = 20
_LIMIT_S = 600.0
# The index of notes promises no more than to be made again.
_VERBS = tuple(verb for verb in VERBS if verb != "note")


def attack(tries: int, seed: int) -> Outcome:
    """Make and open `tries` states."""
    return shim.preloaded(__name__, tries, seed)


def _attack(tries: int, seed: int, folder: Path) -> Outcome:
    small_snapshots()
    told, outcome, number = Shim(folder), Outcome("states"), 0
    while outcome.tries < tries:
        series, wanted = seed * 1000 + number, min(_EACH, tries - outcome.tries)
        number += 1
        work = folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        durability = "normal" if number % 3 == 0 else "full"
        plan = make_plan(series, _LENGTH, NOTHING, verbs=_VERBS)
        work.mkdir()
        told.log()
        ended = in_child(partial(_work, told, work, plan, durability), _LIMIT_S)
        log = [*entries(told.logged())]
        if ended.error is not None or ended.signal or ended.hung:
            raise RuntimeError(f"the work fails without any power loss: {ended}")
        ended = in_child(partial(_series, work, log, plan, durability, wanted, series), _LIMIT_S)
        if ended.value is None:
            outcome.tries += wanted
            kind = "hung" if ended.hung else "crash" if ended.signal else "untyped"
            outcome.fail(kind, f"series {series}: {(ended.error or f'signal {ended.signal}')[-600:]}")
        else:
            outcome += ended.value
    return outcome


def _work(told: Shim, folder: Path, plan: list[Operation], durability: str) -> None:
    hands = Hands(folder, durability=durability)
    for number, operation in enumerate(plan):
        hands.do(operation)
        told.acknowledge(number + 1)
    hands.close()


def _series(work: Path, log: list[Entry], plan: list[Operation], durability: str, wanted: int, seed: int) -> Outcome:
    """States at so many points of one log."""
    outcome, chance, disk, done = Outcome("states"), random.Random(seed), Disk(work), 0
    after = [[NOTHING]]
    for operation in plan:
        after.append([*states(operation, after[-1][-1])])
    whole = [state for each in after for state in each]
    # A little work changes names only: half the points lie before and after calls that do.
    telling = [place for place, entry in enumerate(log) if entry.kind not in "WM"]
    points = sorted(
        min(len(log), chance.choice(telling) + chance.randrange(3)) if chance.random() < 0.5
        else chance.randrange(len(log) + 1)
        for _ in range(wanted)
    )  # fmt: skip
    for place in range(len(log) + 1):
        while points and points[0] == place:
            points.pop(0)
            state = work.with_name("state")
            shutil.rmtree(state, ignore_errors=True)
            state.mkdir()
            how = disk.after_power_loss(chance, state)
            outcome.tries += 1
            where = f"series {seed}, {durability}, call {place}, {how}, {_verb(plan, done)}"
            late = [after[done][-1], *(after[done + 1] if done < len(plan) else [])]
            early = [each for step in after[: done + 2] for each in step]
            expected = late if durability == "full" else early
            made = [each.given["name"] for each in plan[:done] if each.verb == "backup"]
            for name in made:
                if not (state / "copies" / name).exists():
                    outcome.fail("lost", f"{where}: the backup {name} is gone")
            try:
                if outcome.tries % _DEEP == 0:
                    problems = check_folder(state, expected, whole).problems
                else:
                    problems = _quick(state, expected, whole)
            except Exception as error:
                outcome.fail("untyped", f"{where}: {type(error).__name__}: {error}")
                continue
            for kind, what in problems:
                outcome.fail(kind, f"{where}: {what}")
        if place < len(log):
            disk.take(log[place])
            if log[place].kind == "M":
                done = log[place].inode
    return outcome


def _verb(plan: list[Operation], done: int) -> str:
    return plan[done].verb if done < len(plan) else "close"


def _quick(folder: Path, expected: list[State], whole: list[State]) -> list[tuple[str, str]]:
    problems = []
    with Memory(folder / "agent.db", embedder=Embedder()) as memory:
        found = snapshot(memory)
        if found not in expected:
            problems.append(("lost" if found in whole else "half done", difference(found, expected)))
    connection = apsw.Connection(str(folder / "agent.db"))
    if (told := connection.pragma("integrity_check")) != "ok":
        problems.append(("half done", f"integrity_check: {told}"))
    connection.close()
    return problems


if __name__ == "__main__":
    process.answer(_attack)
