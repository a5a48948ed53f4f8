"""A PostgreSQL server, its network and its clients are killed while processes write and recall.

Four processes write and two recall, through a proxy. What happens to them in turn: `kill -9` of a writer, of one of the
server's processes, of the server; every connection cut; a connection cut before, during or after a COMMIT; a failover
to a synchronous standby. Failures: an acknowledged write is not there, one that is said not to be done is, an index
differs from one that is loaded, an error without a type. What clients are told, and how often, is in the figures.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

from tests.attacks import process
from tests.attacks.forking import Child, Ended
from tests.attacks.outcome import Outcome
from tests.attacks.postgres import check
from tests.attacks.postgres_clients import opened, read, settled, write
from tests.limits import until
from tests.system.postgres.proxy import Proxy
from tests.system.postgres.server import PostgresServer
from tests.system.postgres.standby import promote, standby_of

__all__ = ["FAULTS", "attack"]

FAULTS = (
    "commit cut during", "writer killed", "server killed", "network cut", "failover", "commit cut after",
    "server process killed", "commit cut before",
)  # fmt: skip
_WRITERS, _READERS = 4, 2
_LIMIT_S = 600.0
_CUT_S = 30.0


def attack(tries: int, seed: int) -> Outcome:
    """Do `tries` faults, each kind in turn."""
    return process.run(__name__, tries, seed)


def _attack(tries: int, seed: int, folder: Path) -> Outcome:
    outcome = Outcome("faults")
    for start in range(0, tries, len(FAULTS)):
        faults = [FAULTS[number % len(FAULTS)] for number in range(start, min(start + len(FAULTS), tries))]
        with _Round(outcome, seed + start, folder) as each:
            for fault in faults:
                each.do(fault)
    return outcome


class _Round:
    """A server with its standby, and their clients."""

    def __init__(self, outcome: Outcome, seed: int, folder: Path) -> None:
        self._outcome, self._seed, self._folder = outcome, seed, folder
        self._chance, self._done = random.Random(seed), Counter[str]()
        self._stop = folder / f"stop{seed}"
        self._logs: list[Path] = []
        self._ended: list[Ended] = []

    def __enter__(self) -> _Round:
        self._stack = contextlib.ExitStack()
        self._server = PostgresServer.started(fsync=True)
        self._stack.callback(self._server.remove)
        opened(self._server.address(schema="agents")).close()
        self._standby: PostgresServer | None = standby_of(self._server, synchronous=True)
        self._stack.callback(self._standby.remove)
        self._proxy = self._stack.enter_context(Proxy(self._server.socket))
        other = self._stack.enter_context(Proxy(self._standby.socket))
        hosts = f"127.0.0.1:{self._proxy.port},127.0.0.1:{other.port}"
        self._address = f"postgresql://postgres@{hosts}/postgres?schema=agents"
        self._other = other
        self._writers = [self._writer() for _ in range(_WRITERS)]
        self._readers = [self._child(partial(read, self._address, number, self._stop)) for number in range(_READERS)]
        return self

    def _writer(self) -> Child:
        name = f"s{self._seed}w{len(self._logs)}"
        log = self._folder / name
        log.touch()
        self._logs.append(log)
        return self._child(partial(write, self._address, name, len(self._logs), None, log, stop=self._stop))

    def _child(self, work: Callable[[], Any]) -> Child:
        def alone() -> Any:
            for server in (self._server, self._standby):
                if server is not None:
                    server.let_go()
            return work()

        return Child(alone)

    def do(self, fault: str) -> None:
        """Do one of FAULTS once all have written something meanwhile."""
        lines = self._lines()
        until(lambda: self._lines() > lines + 2 * _WRITERS)
        time.sleep(self._chance.random() * 0.2)
        match fault.split():
            case ["writer", _]:
                self._writers[0].kill()
                self._ended.append(self._writers.pop(0).wait(_LIMIT_S))
                self._writers.append(self._writer())
            case ["server", "killed"]:
                self._server.kill()
                self._server.start()
            case ["server", "process", _]:
                clients = "backend_type = 'client backend' AND application_name = 'recallite'"
                for (pid,) in self._server.execute(f"SELECT pid FROM pg_stat_activity WHERE {clients} LIMIT 1"):
                    os.kill(pid, signal.SIGKILL)
            case ["network", _]:
                self._proxy.cut()
            case ["failover"]:
                self._fail_over()
            case ["commit", "cut", ("before" | "during" | "after") as when]:
                self._cut(when)
        self._outcome.tries += 1
        self._done[fault] += 1

    def _lines(self) -> int:
        return sum(log.read_bytes().count(b"\n") for log in self._logs)

    def _cut(self, when: Literal["before", "during", "after"]) -> None:
        self._proxy.cut_at(b"COMMIT", when=when).wait(_CUT_S)

    def _fail_over(self) -> None:
        if self._standby is not None:
            self._server.kill()
            promote(self._standby)
            self._server, self._standby, self._proxy = self._standby, None, self._other

    def __exit__(self, *fault: object) -> None:
        with self._stack:
            self._stop.touch()
            ended = [child.wait(_LIMIT_S) for child in (*self._writers, *self._readers)]
            if fault[0] is None:
                self._judge(ended)

    def _judge(self, ended: list[Ended]) -> None:
        outcome, where = self._outcome, f"seed {self._seed}"
        for end in ended:
            check(outcome, end, where, errors=False)
        said = settled(self._logs)
        with opened(self._server.address(schema="agents")) as memory:
            held = {record.id for record in memory.list(limit=None, include_superseded=True)}
            if memory.store.verify().problems:
                outcome.fail("half done", f"{where}: verify: {memory.store.verify().problems[:3]}")
        for key in sorted(said.there - held):
            outcome.fail("lost", f"{where}: {key} was acknowledged")
        for key in sorted(said.gone & held):
            outcome.fail("wrong", f"{where}: {key} was said not to be there, and is")
        told = Counter({f"writes {what}": times for what, times in said.said.items()})
        for end in ended[-_READERS:]:
            told["recalls"] += len(end.value["took_ms"]) if end.value else 0
            told["recalls refused"] += sum(end.value["errors"].values()) if end.value else 0
        for name, times in (self._done + told).items():
            outcome.figures[name] = outcome.figures.get(name, 0.0) + times


if __name__ == "__main__":
    process.answer(_attack)
