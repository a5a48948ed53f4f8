"""kill -9, at any microsecond and before, after and in the middle of every write, sync, truncation, rename and removal.

A child does mixed work and acknowledges each call that has returned; then another opens what is left. Failures: an
acknowledged write is lost; a transaction, a backup, an export or an index of notes is half there; `verify` is not
clean; a file stays for good that the next work of the same kind does not remove.
"""

from __future__ import annotations

import random
import shutil
import signal
import time
from pathlib import Path

from tests.attacks import process, shim
from tests.attacks.checking import check_folder
from tests.attacks.forking import Child, Ended, in_child
from tests.attacks.outcome import Outcome
from tests.attacks.shim import Shim
from tests.attacks.workload import NOTHING, Hands, Operation, State, make_plan, small_snapshots, states

__all__ = ["attack"]

_LENGTH = 14
_PREPARED = 40
_AT_CALLS = ("kill before", "kill after", "kill midway")
# Writes are twenty times as many as all the others.
_KINDS = (("write",), ("sync", "truncate", "rename", "unlink", "open"))
_LIMIT_S = 120.0


def attack(tries: int, seed: int) -> Outcome:
    """Kill `tries` times: half at calls of libc, spread over all of them, half at random times."""
    return shim.preloaded(__name__, tries, seed)


def _attack(tries: int, seed: int, folder: Path) -> Outcome:
    small_snapshots()
    outcome = Outcome("kills")
    hit: dict[str, int] = {}
    kills = _Kills(Shim(folder), folder, outcome, hit)
    number = 0
    while outcome.tries < tries:
        kills.round(seed * 1000 + number, most=min(tries - outcome.tries, max(20, tries // 16)))
        number += 1
    outcome.figures = {f"at {kind}": float(count) for kind, count in sorted(hit.items())}
    return outcome


class _Kills:
    """Rounds of kills in copies of a prepared folder."""

    def __init__(self, shim: Shim, folder: Path, outcome: Outcome, hit: dict[str, int]) -> None:
        self._shim, self._folder, self._outcome, self._hit = shim, folder, outcome, hit

    def round(self, seed: int, most: int) -> None:
        """Prepare a store, and kill the same work on copies of it at most so many times."""
        chance = random.Random(seed)
        first = make_plan(seed, _PREPARED, NOTHING)
        self._prepared, self._copy = self._folder / "prepared", self._folder / "copy"
        shutil.rmtree(self._prepared, ignore_errors=True)
        self._before = NOTHING
        for operation in first:
            *_, self._before = states(operation, self._before)
        _expect(in_child(lambda: _work(self._prepared, first, None), _LIMIT_S))
        shutil.rmtree(self._prepared / "copies")
        plan = make_plan(seed + 500, _LENGTH, self._before)
        calls = []
        for kinds in _KINDS:
            self._fresh()
            self._shim.arm("count", kinds=kinds)
            began = time.monotonic()
            _expect(in_child(lambda: _work(self._copy, plan, self._shim), _LIMIT_S))
            took = time.monotonic() - began
            self._shim.disarm()
            calls.append(self._shim.control.calls)
        for number in range(most):
            self._fresh()
            where = f"seed {seed}"
            if number % 2:
                kinds, among = _KINDS[number // 2 % 2], calls[number // 2 % 2]
                # One of as many even parts as there are kills of these kinds: together they are everywhere.
                parts = max(1, most // 4)
                at = min(among - 1, int((number // 4 + chance.random()) * among / parts))
                action = chance.choice(_AT_CALLS)
                self._shim.arm(action, at=at, kinds=kinds)
                ended = in_child(lambda: _work(self._copy, plan, self._shim), _LIMIT_S)
                where += f", {action} call {at} ({self._shim.hit})"
                kind = self._shim.hit.split()[0]
            else:
                wait = chance.uniform(0, took)
                child = Child(lambda: _work(self._copy, plan, self._shim))
                time.sleep(wait)
                child.kill()
                ended = child.wait(_LIMIT_S)
                where += f", at {wait * 1000:.3f} ms"
                kind = "any time"
            self._shim.disarm()
            if ended.signal != signal.SIGKILL:
                if ended.error is not None or ended.signal or ended.hung:
                    self._outcome.fail("hung" if ended.hung else "crash", f"{where}: {ended}")
                continue  # it had ended before
            self._outcome.tries += 1
            self._hit[kind] = self._hit.get(kind, 0) + 1
            if chance.random() < 0.2:
                self._kill_the_opening(chance)
            self._check(plan, where)

    def _fresh(self) -> None:
        shutil.rmtree(self._copy, ignore_errors=True)
        shutil.copytree(self._prepared, self._copy)
        self._shim.control.acknowledged = 0

    def _kill_the_opening(self, chance: random.Random) -> None:
        """Kill the process that opens what another kill left, while it recovers."""
        self._shim.arm(chance.choice(_AT_CALLS), at=chance.randrange(12))
        ended = in_child(lambda: Hands(self._copy).close(), _LIMIT_S)
        self._shim.disarm()
        if ended.signal == signal.SIGKILL:
            self._outcome.tries += 1
            self._hit["an opening after a kill"] = self._hit.get("an opening after a kill", 0) + 1

    def _check(self, plan: list[Operation], where: str) -> None:
        done = self._shim.acknowledged
        state = self._before
        whole: list[State] = [state]
        expected: list[State] = [state]
        for number, operation in enumerate(plan[: done + 1]):
            after = list(states(operation, state))
            expected = [state, *after] if number == done else [after[-1]]
            whole += after
            state = after[-1]
        ended = in_child(lambda: check_folder(self._copy, expected, whole), _LIMIT_S)
        under_way = plan[done].verb if done < len(plan) else "close"
        if ended.value is None:
            kind = "hung" if ended.hung else "crash" if ended.signal else "untyped"
            self._outcome.fail(kind, f"{where}, during {under_way}: {(ended.error or f'signal {ended.signal}')[-400:]}")
            return
        for kind, what in ended.value.problems:
            self._outcome.fail(kind, f"{where}, during {under_way}: {what}")


def _work(folder: Path, plan: list[Operation], told: Shim | None) -> None:
    hands = Hands(folder)
    for number, operation in enumerate(plan):
        hands.prepare(operation)
        hands.do(operation)
        if told is not None:
            told.acknowledge(number + 1)
    hands.close()


def _expect(ended: Ended) -> None:
    if ended.error is not None or ended.signal or ended.hung:
        raise RuntimeError(f"the work fails without any kill: {ended}")


if __name__ == "__main__":
    process.answer(_attack)
