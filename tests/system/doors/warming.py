"""Commands run beside a resident process, in a folder of sockets of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from recallite import Memory, Settings
from recallite_cli.run import run
from recallite_server.warm import asking, commands
from tests.limits import LAST_RESORT_SECONDS, until

_WATCHED = """
import atexit, os, sys
def tell():
    with open(os.environ["LOADED"], "w") as file:
        file.write(" ".join(sys.modules))
atexit.register(tell)
from recallite_server.main import main
sys.exit(main())
"""
HEAVY = {"click", "rich", "msgspec", "numpy", "apsw", "recallite.memory"}


class Ran(NamedTuple):
    """What a command printed, its exit code, and whether it did without all that is heavy."""

    out: str
    err: str
    code: int
    light: bool


class Warm:
    """Runs commands on one store: in a process of their own, in this one by the resident process, or without it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, str(folder / "agent.db")

    def command(self, *words: str, **environment: str) -> Ran:
        loaded = self.folder / "loaded"
        done = subprocess.run(
            [sys.executable, "-c", _WATCHED, "--db", self.path, *words], capture_output=True, stdin=subprocess.DEVNULL,
            env={**os.environ, "LOADED": str(loaded), **environment}, timeout=LAST_RESORT_SECONDS, encoding="utf-8",
        )  # fmt: skip
        return Ran(done.stdout, done.stderr, done.returncode, not HEAVY & set(loaded.read_text().split()))

    def asked(self, *words: str) -> tuple[str, str, int | None]:
        """What a command prints that the resident process answers, and its exit code; None if it does not."""
        return self._printed(commands.answered, words)

    def full(self, *words: str) -> tuple[str, str, int | None]:
        """What the full command line prints, which opens the store; figures in JSON need the same kernels."""
        if "--json" in words:
            return self.command("--no-warm", *words)[:3]
        return self._printed(run, words)

    def _printed(self, call: Callable[[list[str]], int | None], words: Sequence[str]) -> tuple[str, str, int | None]:
        with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
            code = call(["--db", self.path, *words])
        return out.getvalue(), err.getvalue(), code

    def start(self) -> asking.Link:
        return asking.start(LAST_RESORT_SECONDS)


def fill(path: str) -> None:
    """Make a store with changes, scopes, tags, a source and characters of other scripts."""
    with Memory(path, settings=Settings(embedder="none")) as memory:
        memory.remember("The API listens on port 8080", scope="/work", tags=["api"], created_at="2026-01-02")
        memory.remember("The API listens on port 9090 now", scope="/work", tags=["api"], created_at="2026-03-04")
        memory.remember("Ada likes täa\tand cake\nevery day", source="chat", context="Ada", importance=0.9)
        memory.remember("The office is in Oslo", kind="fact", tags=["office"], metadata={"held until": 1, "b": [2.50]})


def running() -> list[int]:
    """The process ids of the resident processes."""
    pids = []
    for path in asking.sockets():
        try:
            pids.append(json.loads(asking.Link(path).ask("state"))["pid"])
        except asking.Unanswered:
            continue
    return pids


def has_ended(pid: int) -> bool:
    """Whether a process has ended; this one is its parent, and has waited for it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def end_all() -> None:
    """End the resident processes."""
    pids = running()
    for path in asking.sockets():
        try:
            asking.Link(path).ask("stop")
        except asking.Unanswered:
            continue
    until(lambda: all(map(has_ended, pids)))
