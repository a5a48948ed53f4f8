"""Calls with good and hostile arguments: every verb of Memory and its services, the tools, settings and importers.

Failures: an error that is no RecalliteError (untyped), save a TypeError for arguments that a function has not and what
a caller's own object raised; a store that is another after a call that failed (half done); a process that ended
(crash); a call that takes more than 20 seconds of processor time (hung). Batches of calls run in children, each on a
store of its own, most of them in RAM; the same seed and batch make the same calls.
"""

from __future__ import annotations

import mmap
import os
import random
import re
import signal
import struct
import traceback
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

from recallite import Memory, Settings
from recallite.errors import InvalidItem, RecalliteError
from tests.attacks.forking import in_child
from tests.attacks.fuzz_calls import Prepared, make_call
from tests.attacks.fuzz_values import Foreign, Values, scratch
from tests.attacks.outcome import Outcome

__all__ = ["attack"]

_BATCH = 5_000
_ON_DISK = 10  # every tenth batch
_SECONDS_A_CALL = 20.0
_MOST_RECORDS = 300
_WRONG_CALL = re.compile(r"unexpected keyword argument|positional argument|required keyword-only|multiple values")


def attack(tries: int, seed: int) -> Outcome:
    """Make `tries` calls; figures say how many were taken and how many refused."""
    outcome = Outcome("calls")
    first = taken = refused = 0
    with scratch() as folder:
        while first < tries:
            most = min(_BATCH, tries - first)
            at = mmap.mmap(-1, 8)
            ended = in_child(partial(_batch, seed, first, most, Path(folder), at), limit_s=3_600.0)
            (reached,) = struct.unpack("q", at[:])
            where = f"seed {seed}, call {reached} of the batch from {first}"
            if ended.value is not None:
                part, counts = ended.value
                outcome += part
                taken, refused = taken + counts["taken"], refused + counts["refused"]
                first += most
                continue
            if ended.signal == signal.SIGVTALRM or ended.hung:
                outcome.fail("hung", where)
            elif ended.signal:
                outcome.fail("crash", f"{where}: signal {ended.signal}")
            else:
                outcome.fail("untyped", f"{where}: {ended.error}")
            outcome.tries += reached - first + 1
            first = reached + 1
    outcome.figures = {"taken": float(taken), "refused": float(refused)}
    return outcome


def _batch(seed: int, first: int, count: int, folder: Path, at: mmap.mmap) -> tuple[Outcome, Counter[str]]:
    """Calls on a fresh store; `at` tells the parent which one is made."""
    outcome, counts = Outcome("calls"), Counter[str]()
    chance = random.Random(f"{seed} {first}")
    with scratch() as own:
        values = Values(chance, Path(own))
        os.chdir(own)
        on_disk = (first // _BATCH) % _ON_DISK == _ON_DISK - 1
        settings = Settings(embedder="none", durability="normal")
        with Memory(Path(own) / "fuzz.db" if on_disk else ":memory:", settings=settings) as memory:
            memory._engine.comparing.stop()  # it would change the store beside a call that is refused
            watched = _Watched(memory)
            for number in range(first, first + count):
                struct.pack_into("q", at, 0, number)
                signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS_A_CALL)
                outcome.tries += 1
                _try(
                    make_call(memory, values),
                    watched,
                    values,
                    outcome,
                    counts,
                    f"seed {seed}, call {number} from {first}",
                )
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            found = memory.store.verify()
            if not found.ok:
                outcome.fail("wrong", f"seed {seed}, after the calls from {first}: {found}")
    return outcome, counts


def _try(call: Prepared, watched: _Watched, values: Values, outcome: Outcome, counts: Counter[str], where: str) -> None:
    watched.before()
    try:
        result = call.run()
    except (RecalliteError, Foreign) as fault:
        counts["refused"] += 1
        stored = fault.stored if isinstance(fault, InvalidItem) else 0
        _shown(fault, call, outcome, where)
        if watched.changed() and not stored:
            outcome.fail("half done", f"{where}: {_said(call)}: {type(fault).__name__}")
    except Exception as fault:
        counts["refused"] += 1
        if not (isinstance(fault, TypeError) and _WRONG_CALL.search(str(fault))):
            last = traceback.extract_tb(fault.__traceback__)[-1]
            said = f"{type(fault).__name__}: {str(fault)[:200]} ({last.filename[-40:]}:{last.lineno})"
            outcome.fail("untyped", f"{where}: {_said(call)}: {said}")
        if watched.changed():
            outcome.fail("half done", f"{where}: {_said(call)}: {type(fault).__name__}")
    else:
        counts["taken"] += 1
        found = getattr(result, "id", None)
        if isinstance(found, str) and len(values.ids) < _MOST_RECORDS:
            values.ids.append(found)
        watched.trim()


def _shown(fault: BaseException, call: Prepared, outcome: Outcome, where: str) -> None:
    """A message is short and can be printed."""
    try:
        said = str(fault)
        said.encode()
    except Exception as reason:
        outcome.fail("wrong", f"{where}: {_said(call)}: the message cannot be printed: {type(reason).__name__}")
        return
    if len(said) > 2_000:
        outcome.fail("wrong", f"{where}: {_said(call)}: a message of {len(said)} characters")


def _said(call: Prepared) -> str:
    def brief(value: Any) -> str:
        try:
            return ascii(value)[:60]
        except Exception:
            return f"<{type(value).__name__}>"

    options = ", ".join(f"{name}={brief(value)}" for name, value in call.options.items())
    return f"{call.name}({', '.join(map(brief, call.arguments))}{', ' if options else ''}{options})"


class _Watched:
    """Tells whether a call changed what the tables hold; that nothing was written at all is cheap to tell."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._writer = memory._engine.store._writer.connection
        tables = self._writer.execute(
            "SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name != 'meta'"
        )
        parts = [
            f'(SELECT count(*) {"" if without_rowid else "|| total(rowid)"} FROM "{name}")'
            for name, without_rowid in tables
        ]
        self._query = "SELECT " + ", ".join(parts)
        self._changes, self._digest = -1, ()

    def before(self) -> None:
        """Look, where something was written since."""
        if self._writer.total_changes() != self._changes:
            self._digest = self._look()

    def changed(self) -> bool:
        """Whether the tables are others than before."""
        return self._writer.total_changes() != self._changes and self._look() != self._digest

    def trim(self) -> None:
        """Keep the store small."""
        if self._writer.total_changes() != self._changes and self._memory.count() > _MOST_RECORDS:
            self._memory.forget(scope="/")

    def _look(self) -> tuple[Any, ...]:
        self._changes = self._writer.total_changes()
        found = self._writer.execute(self._query).fetchone()
        return tuple(found) if found else ()
