"""Eight processes that write to a memory on a PostgreSQL server, and eight that recall from it.

Each writes to a scope of its own and, three times of ten, to one that all share. Failures: an acknowledged write is not
there; an index that has followed the feed differs from one that is loaded; any error. Half of the time the feed keeps
so few rows that readers who fall behind have to load everything again.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.attacks import process
from tests.attacks.forking import Child, Ended
from tests.attacks.outcome import Outcome
from tests.attacks.postgres_clients import opened, read, settled, write
from tests.system.postgres.server import PostgresServer

__all__ = ["attack", "check", "percentiles", "started"]

_CLIENTS = 8
_LIMIT_S = 7_200.0


def attack(tries: int, seed: int) -> Outcome:
    """Make `tries` writes, divided among eight processes."""
    return process.run(__name__, tries, seed)


def started() -> PostgresServer:
    """A server that keeps what it acknowledges, with room for all clients."""
    return PostgresServer.started(fsync=True, settings={"max_connections": "200"})


def _attack(tries: int, seed: int, folder: Path) -> Outcome:
    outcome, server = Outcome("writes"), started()
    try:
        for part, trims in enumerate((False, True)):
            _run(outcome, server, tries // 2, seed + part, folder, trims=trims)
    finally:
        server.remove()
    return outcome


def _run(outcome: Outcome, server: PostgresServer, tries: int, seed: int, folder: Path, *, trims: bool) -> None:
    address, stop = server.address(schema=f"run_{seed}"), folder / f"stop{seed}"
    logs = [folder / f"{seed}w{number}" for number in range(_CLIENTS)]
    for log in logs:
        log.touch()
    # All at once: they create the schema at the same time too.
    writers = [
        Child(partial(write, address, f"w{number}", seed * 100 + number, tries // _CLIENTS, log, trims=trims))
        for number, log in enumerate(logs)
    ]
    readers = [Child(partial(read, address, seed * 100 + number, stop, trims=trims)) for number in range(_CLIENTS)]
    written = [writer.wait(_LIMIT_S) for writer in writers]
    stop.touch()
    recalled = [reader.wait(_LIMIT_S) for reader in readers]
    outcome.tries += sum(len(end.value["took_ms"]) for end in written if end.value)
    for end in (*written, *recalled):
        check(outcome, end, f"seed {seed}")
    said = settled(logs)
    with opened(address) as memory:
        held = {record.id for record in memory.list(limit=1_000_000, include_superseded=True)}
        if memory.store.verify().problems:
            outcome.fail("half done", f"verify: {memory.store.verify().problems[:3]}")
    for key in sorted(said.there - held):
        outcome.fail("lost", f"{key} was acknowledged")
    for key in sorted(said.gone & held):
        outcome.fail("wrong", f"{key} was refused or forgotten and is there")
    name = "trimmed " if trims else ""
    percentiles(outcome, f"{name}write", [each for end in written if end.value for each in end.value["took_ms"]])
    percentiles(outcome, f"{name}recall", [each for end in recalled if end.value for each in end.value["took_ms"]])
    loads = sum(end.value["loads"] for end in recalled if end.value)
    outcome.figures[f"{name}loads a reader"] = loads / len(recalled)


def check(outcome: Outcome, end: Ended, where: str, *, errors: bool = True) -> None:
    """Count how a client ended: what it raised, and where its index differed."""
    if end.value is None:
        kind = "hung" if end.hung else "crash" if end.signal else "untyped"
        outcome.fail(kind, f"{where}: {(end.error or f'signal {end.signal}')[-900:]}")
        return
    told: Counter[str] = Counter(end.value["errors"])
    if errors:
        for what, times in told.items():
            outcome.fail("wrong", f"{where}: {times} times {what}")
    for what in end.value.get("misses", ()):
        outcome.fail("wrong", f"{where}: the index differs from a fresh one: {what}")


def percentiles(outcome: Outcome, name: str, took_ms: list[Any]) -> None:
    """Note the median and the 99th percentile."""
    if took_ms:
        outcome.figures[f"{name}s"] = float(len(took_ms))
        for share in (50, 99):
            outcome.figures[f"{name} p{share} ms"] = round(float(np.percentile(took_ms, share)), 1)


if __name__ == "__main__":
    process.answer(_attack)
