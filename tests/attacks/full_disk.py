"""A file system that is really full: a small one of our own, filled again and again while work goes on.

Failures: a write that does not end in success or a StoreError of a full disk; one that is half done, or done though it
raised; reading that fails; a store that does not go on once there is space.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

from recallite.errors import RecalliteError
from tests.attacks import process
from tests.attacks.checking import check_after, check_folder
from tests.attacks.outcome import Outcome
from tests.attacks.workload import NOTHING, VERBS, Hands, make_plan, small_snapshots, states

__all__ = ["attack", "missing"]

_OWN = ("unshare", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs -o size=4m tmpfs "$0" && exec "$@"')
_OPERATIONS = 8
_SERIES = 25
_READING = ("recall", "note")


def missing() -> str | None:
    """Why there can be no file system of our own here; None where there can."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return "unshare, which makes a file system of our own, is not here"
    tried = subprocess.run([*_OWN, "/tmp", "true"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"no file system can be mounted here: {tried.stderr.strip()}"


def attack(tries: int, seed: int) -> Outcome:
    """Fill the disk `tries` times."""
    return process.run(__name__, tries, seed, command=_OWN)


def _attack(tries: int, seed: int, folder: Path) -> Outcome:
    small_snapshots()
    outcome, told = Outcome("fillings"), 0
    for number in range(0, tries, _SERIES):
        told += _series(outcome, folder / f"store{number}", min(_SERIES, tries - number), seed * 1000 + number)
        shutil.rmtree(folder / f"store{number}")
    outcome.figures = {"errors told": float(told)}
    return outcome


def _series(outcome: Outcome, folder: Path, fillings: int, seed: int) -> int:
    """One store, so many fillings; how many operations were refused."""
    chance, hands, state, refused = random.Random(seed), Hands(folder), NOTHING, 0
    filler = folder.with_name("filler")
    seen = [state]  # since copies were removed: a backup or an export is of any of them
    for filling in range(fillings):
        operations = make_plan(seed * 1000 + filling, _OPERATIONS, state, verbs=VERBS, most=30)
        for operation in operations:  # the user writes notes while there is space
            hands.prepare(operation)
        _fill(filler, leave=chance.choice((0, 4096, 16_384, 65_536)))
        outcome.tries += 1
        for operation in operations:
            after, raised = list(states(operation, state)), None
            try:
                hands.do(operation)
            except Exception as error:
                raised = error
            where = f"series {seed}, filling {filling}, {operation.verb}: {type(raised).__name__}: {raised}"
            if raised is not None:
                refused += 1
                filler.unlink(missing_ok=True)
                if not isinstance(raised, RecalliteError):
                    outcome.fail("untyped", where)
                elif raised.reason != "full" or operation.verb == "recall":
                    outcome.fail("wrong", where)
            state = check_after(outcome, hands, state, after, raised, where)
            seen.append(state)
            if raised is not None:
                break  # what follows was planned from the state after it
        filler.unlink(missing_ok=True)
        for name in ("copies", "notes"):
            if sum(path.stat().st_size for path in (folder / name).rglob("*")) > 1_000_000:
                shutil.rmtree(folder / name)
                (folder / name / "memory").mkdir(parents=True)
        if filling % 5 == 4:
            for kind, what in check_folder(folder, [state], seen).problems:
                outcome.fail(kind, f"series {seed}, after filling {filling}: {what}")
            shutil.rmtree(folder / "copies")
            (folder / "copies").mkdir()
            seen = [state]
    hands.close()
    return refused


def _fill(filler: Path, leave: int) -> None:
    """Leave no more than so many bytes."""
    held = os.statvfs(filler.parent)
    size = held.f_bavail * held.f_frsize - leave
    with filler.open("wb") as stream:
        try:
            stream.write(bytes(max(0, size)))
        except OSError:
            return


if __name__ == "__main__":
    process.answer(_attack)
