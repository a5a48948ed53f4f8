"""Processes that write to a memory on a PostgreSQL server and recall from it, while something happens to it.

A writer notes in a file what it is about to write, and then what it was told: that is there after it is killed.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

from recallite import Memory, Settings
from recallite.errors import RecalliteError, StoreError, WriteUnknown
from recallite_postgres import repositories
from tests.attacks.index_difference import difference
from tests.attacks.workload import Embedder

__all__ = ["SHARED", "Settled", "few_feed_rows", "opened", "read", "settled", "write"]

SHARED = "/shared"
_WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
_MANY = 5
_CHECKED_EVERY = 20
# Readers that never rest would leave the writers no processor.
_PAUSE_SECONDS = 0.5


def opened(address: str, *, wait_ms: int = 60_000) -> Memory:
    """A memory as the attacks open it."""
    settings = Settings(busy_timeout_ms=wait_ms)
    return Memory(f"{address}&server_wait_ms={wait_ms}", embedder=Embedder(), settings=settings)


def few_feed_rows() -> None:
    """Have this process trim the feed often: readers that fall behind have to load everything again."""
    repositories.KEPT_ROWS, repositories._TRIMMED_EVERY = 1, 1


def write(
    address: str,
    name: str,
    seed: int,
    operations: int | None,
    log: Path,
    *,
    stop: Path | None = None,
    trims: bool = False,
) -> dict[str, Any]:
    """Write to a scope of its own and to the shared one, so often or until a file appears.

    Returns the milliseconds of each write, and errors.
    """
    if trims:
        few_feed_rows()
    chance, errors, took_ms = random.Random(seed), Counter[str](), list[float]()
    held: list[str] = []
    with open(log, "a", buffering=1, encoding="utf-8") as notes, opened(address) as memory:
        for number in itertools.count():
            if number == operations or (stop is not None and stop.exists()):
                break
            verb = chance.choices(("one", "many", "update", "forget"), (8, 1, 2, 2))[0] if held else "one"
            scope = SHARED if chance.random() < 0.3 else f"/{name}"
            keys = [f"{name}n{number}i{place}" for place in range(_MANY if verb == "many" else 1)]
            if verb in ("update", "forget"):
                keys = [chance.choice(held)]
            began = time.perf_counter()
            print(json.dumps(["try", verb, keys]), file=notes)
            try:
                _do(memory, verb, keys, scope, f"says {' '.join(chance.choices(_WORDS, k=6))} number{number}")
                said = "done"
            except WriteUnknown:
                said = "unknown"
            except RecalliteError as error:
                said = "not done"
                errors[f"{type(error).__name__}: {error}"[:300]] += 1
            print(json.dumps([said, verb, keys]), file=notes)
            took_ms.append((time.perf_counter() - began) * 1e3)
            if said == "done" and verb in ("one", "many"):
                held += keys
            elif verb == "forget" and said != "not done":
                held.remove(keys[0])
    return {"errors": dict(errors), "took_ms": took_ms}


def _do(memory: Memory, verb: str, keys: list[str], scope: str, text: str) -> None:
    match verb:
        case "one":
            memory.scoped(scope).remember(f"{keys[0]} {text}", id=keys[0], tags=[scope.strip("/")])
        case "many":
            memory.scoped(scope).remember_many([{"text": f"{key} {text}", "id": key} for key in keys])
        case "update":
            memory.update(keys[0], text=f"{keys[0]} {text}")
        case "forget":
            memory.forget(keys[0])


class Settled:
    """What the notes of writers say must be in the memory, must not be, or may be."""

    def __init__(self) -> None:
        self.there: set[str] = set()
        self.gone: set[str] = set()
        self.either: set[str] = set()
        self.said: Counter[str] = Counter()

    def __iadd__(self, log: Path) -> Settled:
        pending: list[str] = []
        for said, verb, keys in map(json.loads, log.read_text(encoding="utf-8").splitlines()):
            if said == "try":
                pending = keys if verb != "update" else []
                continue
            pending = []
            self.said[said] += 1
            if verb != "update":
                self._settle(said, verb, keys)
        self.either.update(pending)  # it was killed meanwhile
        self.there -= self.either
        return self

    def _settle(self, said: str, verb: str, keys: list[str]) -> None:
        if said == "unknown":
            self.either.update(keys)
        elif verb == "forget" and said == "done":
            self.there.difference_update(keys)
            self.gone.update(keys)
        elif said == "done":
            self.there.update(keys)
        elif verb != "forget":
            self.gone.update(keys)


def settled(logs: list[Path]) -> Settled:
    """What several writers noted."""
    found = Settled()
    for log in logs:
        found += log
    return found


def read(address: str, seed: int, stop: Path, *, trims: bool = False) -> dict[str, Any]:
    """Recall until a file appears, and compare the index with a fresh one now and then and at the end."""
    if trims:
        few_feed_rows()
    chance, errors, took_ms, misses = random.Random(seed), Counter[str](), list[float](), list[str]()
    last, number = False, 0
    with opened(address) as memory:
        index = memory._engine.index
        while not last:
            last = stop.exists()
            number += 1
            began = time.perf_counter()
            try:
                query = f"{' '.join(chance.choices(_WORDS, k=2))} number{chance.randrange(40)}"
                memory.scoped(SHARED if chance.random() < 0.3 else "/").recall(query, limit=5)
                took_ms.append((time.perf_counter() - began) * 1e3)
                if number % _CHECKED_EVERY == 0 or last:
                    found = difference(memory._engine.store, index)
                    misses += [] if found is None else [found]
            except StoreError as error:
                errors[f"{type(error).__name__}: {error}"[:300]] += 1
                last = False
            time.sleep(_PAUSE_SECONDS * chance.random())
        return {
            "errors": dict(errors), "took_ms": took_ms, "misses": misses, "loads": index.loads, "pid": os.getpid(),
        }  # fmt: skip
