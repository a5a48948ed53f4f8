"""Errors of the system at any call: no space, no quota, a failing disk, signals, no descriptors, writes cut short.

One process works on; a fault hits one call of an operation, or each from there on. Failures: an error that is no
RecalliteError, or tells of damage where there is none; a transaction that is half done, or done though it raised; a
handle, the same or a new one, that does not work once the fault is gone.
"""

from __future__ import annotations

import random
import shutil
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from typing import NamedTuple

from recallite.errors import NotADatabase, RecalliteError, StoreCorrupt
from tests.attacks import process, shim
from tests.attacks.checking import check_after, check_folder
from tests.attacks.forking import in_child
from tests.attacks.outcome import Outcome
from tests.attacks.shim import Shim
from tests.attacks.workload import NOTHING, Hands, Operation, State, make_plan, small_snapshots, states

__all__ = ["attack"]

_EACH = 150
_LIMIT_S = 600.0


class _Fault(NamedTuple):
    action: str
    error: str
    kinds: tuple[str, ...]
    for_good: bool = True
    weight: float = 1.0


_CHANGES = ("write", "truncate", "sync", "create", "rename")
_FAULTS = (
    _Fault("fail", "ENOSPC", _CHANGES, weight=2),
    _Fault("fail", "EDQUOT", _CHANGES, weight=2),
    _Fault("fail", "EIO", (*_CHANGES, "unlink"), weight=2),
    _Fault("fail", "EIO", ("read",), weight=2),
    _Fault("fail", "EMFILE", ("open",)),
    _Fault("fail", "ENFILE", ("open",)),
    _Fault("fail", "ENOMEM", ("map",), weight=0.3),
    # For good it would be a signal without end, which no program survives.
    _Fault("fail", "EINTR", ("write", "read", "truncate", "sync", "open"), for_good=False, weight=2),
    _Fault("shorten", "EIO", ("write",)),
)


def attack(tries: int, seed: int) -> Outcome:
    """Hit `tries` calls or series of calls."""
    return shim.preloaded(__name__, tries, seed)


def _attack(tries: int, seed: int, folder: Path) -> Outcome:
    small_snapshots()
    told, outcome, number = Shim(folder), Outcome("faults hit"), 0
    while outcome.tries < tries:
        shutil.rmtree(folder / "store", ignore_errors=True)
        wanted, series = min(_EACH, tries - outcome.tries), seed * 1000 + number
        ended = in_child(partial(_series, told, folder / "store", wanted, series), _LIMIT_S)
        number += 1
        if ended.value is None:
            outcome.tries += 1
            kind = "hung" if ended.hung else "crash" if ended.signal else "untyped"
            outcome.fail(kind, f"series {series}: {ended.error or ended.signal} ({told.hit})")
        else:
            figures = Counter(outcome.figures) + Counter(ended.value.figures)
            outcome += ended.value
            outcome.figures = dict(figures)
    return outcome


def _series(told: Shim, folder: Path, wanted: int, seed: int) -> Outcome:
    """One process on one store, hit so many times."""
    outcome, chance, hands, state = Outcome("faults hit"), random.Random(seed), Hands(folder), NOTHING
    calls: dict[tuple[str, ...], int] = {}
    hit: Counter[str] = Counter()
    number = 0
    while outcome.tries < wanted:
        number += 1
        (operation,) = make_plan(seed * 10_000 + number, 1, state, most=40)
        fault = chance.choices(_FAULTS, [each.weight for each in _FAULTS])[0]
        if fault.kinds == ("read",) and chance.random() < 0.7:
            operation = Operation("reopen", {})  # what is read later is cached
        hands.prepare(operation)
        after = list(states(operation, state))
        known = (operation.verb, *fault.kinds)
        for_good = fault.for_good and chance.random() < 0.4
        at = chance.randrange(max(1, calls.get(known, 6)))
        told.arm(fault.action, at=at, kinds=fault.kinds, error=fault.error, for_good=for_good)
        raised: BaseException | None = None
        try:
            hands.do(operation)
        except Exception as error:
            raised = error
        # Threads of their own write snapshots and compare memories: hit here, and done before the check.
        for thread in threading.enumerate():
            if thread.name == "recallite-index-snapshot":
                thread.join()
        hands.memory._engine.comparing.wait()
        hits = told.disarm()
        calls[known] = int(told.control.calls)
        where = f"series {seed}, {operation.verb}, {fault.error if fault.action == 'fail' else 'short'} at {told.hit}"
        where += f" (call {at}{' and on' if for_good else ''}): {type(raised).__name__}: {raised}"
        if hits:
            outcome.tries += 1
            hit[fault.error if fault.action == "fail" else "short writes"] += 1
            hit["errors told" if raised is not None else "survived"] += 1
        if raised is not None and not hits:
            outcome.fail("wrong", f"raised without a fault: {where}")
        elif raised is not None:
            for kind, what in _of_type(raised, fault, told.hit):
                outcome.fail(kind, f"{what}: {where}")
        before, state = state, check_after(outcome, hands, state, after, raised, where)
        if raised is not None and state == before and chance.random() < 0.7:
            state = _again(outcome, hands, operation, state, where)
        if outcome.tries % 25 == 0 and hits:
            for kind, what in check_folder(folder, [state], [state]).problems:
                outcome.fail(kind, f"{what}: by {where}")
        shutil.rmtree(hands.copies)
        hands.copies.mkdir()
    _close_under_fault(told, hands, chance)
    for kind, what in check_folder(folder, [state], [state]).problems:
        outcome.fail(kind, f"{what}: after series {seed}")
    outcome.figures = {name: float(count) for name, count in sorted(hit.items())}
    return outcome


def _again(outcome: Outcome, hands: Hands, operation: Operation, state: State, where: str) -> State:
    """Do what was refused once more, now that nothing stands in its way: with what is cached of the first time."""
    raised: BaseException | None = None
    try:
        hands.do(operation)
    except Exception as error:
        raised = error
        outcome.fail("wrong", f"refused again, without a fault: {type(error).__name__}: {error}, after {where}")
    return check_after(outcome, hands, state, [*states(operation, state)], raised, f"done again after {where}")


def _close_under_fault(told: Shim, hands: Hands, chance: random.Random) -> None:
    """Closing tells no error and leaves a whole file."""
    told.arm("fail", at=chance.randrange(4), error="EIO", for_good=True)
    try:
        hands.close()
    finally:
        told.disarm()


def _of_type(raised: BaseException, fault: _Fault, hit: str) -> list[tuple[str, str]]:
    """What is wrong with an error as the answer to a fault."""
    # SQLite does not tell why it could not make a file.
    full = fault.error in ("ENOSPC", "EDQUOT") and "write" in fault.kinds and not hit.startswith("open")
    if not isinstance(raised, RecalliteError):
        return [("untyped", "no error of ours")]
    if isinstance(raised, StoreCorrupt | NotADatabase):
        return [("wrong", "taken for damage")]
    if full and raised.reason != "full":
        return [("wrong", "not told as a full disk")]
    return []


if __name__ == "__main__":
    process.answer(_attack)
