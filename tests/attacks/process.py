"""An attack in a process of its own: `run(module, ...)` starts it, `answer(attack)` in the module gives its outcome."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from tests.attacks.outcome import Outcome

__all__ = ["ROOT", "answer", "run"]

ROOT = Path(__file__).resolve().parents[2]


def run(
    module: str, tries: int, seed: int, *, command: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> Outcome:
    """The outcome that a module hands to `answer`, for `attack(tries, seed, folder)` in an empty folder.

    `command` is one that runs another; the folder is its first argument. Raises RuntimeError where the process fails.
    """
    # A disk's own time to sync tells nothing here.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="recallite-attack-", dir=memory) as folder:
        arguments = json.dumps({"tries": tries, "seed": seed, "folder": folder})
        done = subprocess.run(
            [*command, *([folder] if command else []), sys.executable, "-m", module, arguments],
            # Interpreted kernels are loaded at once, in every child that is forked.
            env={**os.environ, "RECALLITE_KERNELS": "python", **(environment or {})},
            cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{module} ended with {done.returncode}")
    found = json.loads(done.stdout.splitlines()[-1])
    return Outcome(**{**found, "failures": Counter(found["failures"])})


def answer(attack: Callable[[int, int, Path], Outcome]) -> NoReturn:
    """Run an attack with the arguments of this process and hand its outcome to `run`."""
    given = json.loads(sys.argv[1])
    outcome = attack(given["tries"], given["seed"], Path(given["folder"]))
    print("\n" + json.dumps(vars(outcome)), flush=True)
    os._exit(0)
