"""Catching up: what records that were written many at a time do to others is found in the background.

Such records wait in the store, in the order of their row ids. Each step compares the next of them as a write of each
would have, and has them wait no longer, in one transaction: what a crash interrupts is done again, and nothing twice.
Statements are judged before a step, which then holds the lock for 10 to 20 ms, and gives way to other writers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import msgspec
from msgspec import structs

from recallite.engine import Engine
from recallite.model.checks import now_us
from recallite.model.policies import WritePolicy
from recallite.remember.compared_records import Known, stated_at
from recallite.remember.detection import Detected, Detection, Verdicts
from recallite.remember.effects import Effects
from recallite.remember.model_judging import start_judging
from recallite.store.supersession_values import Standpoint, Uncompared
from recallite.store.transaction import Reader, Writer
from recallite.store.values import Row
from recallite.system.turnstile import StepSize

MANY = 64
"""Records from which on a batch is compared later."""
# Records judged before the store is locked, to compare some of them at a time in it.
_READ_AHEAD = 256
_WORK = "comparing"
# How long to hold the interpreter's lock, and to give it up: else a recall would wait 5 ms for it, several times.
_TURN_SECONDS, _PAUSE_SECONDS = 1e-3, 1e-5


def policy_json(policy: WritePolicy) -> str:
    """Encode a policy for the records that wait; their texts are redacted already."""
    return msgspec.json.encode(structs.replace(policy, redact=None).to_dict()).decode()


def comparing_policies(policy: WritePolicy) -> Callable[[bool], str]:
    """Return the encoded policy as a function of whether the caller chose a row's id: such a row repeats no other."""
    policies = policy_json(policy), policy_json(structs.replace(policy, duplicates="store"))
    return policies.__getitem__


def start_comparing(engine: Engine, *, added: bool = False) -> None:
    """Have the records that wait compared in the background; those of an open transaction wait for a later write.

    Unless this process has `added` some, another one that is at it goes on alone: two would do the same work.
    """
    if not engine.may_have_uncompared or engine.store.nested:
        return
    engine.may_have_uncompared = False
    with engine.store.read() as reader:
        waits = reader.uncompared.first(1) is not None
    if waits:
        engine.may_have_uncompared = True
        if added or engine.comparing.runs or not engine.store.is_done_elsewhere(_WORK):
            with suppress(RuntimeError):  # no thread left: a later write tries again
                engine.comparing.start(lambda stopped: catch_up(engine, stopped=stopped))


def catch_up(engine: Engine, *, stopped: Callable[[], bool] = bool) -> int:
    """Compare all records that wait; returns how many there were."""
    with engine.store.doing(_WORK):
        done = _compare_all(engine, stopped)
    if done and engine.language_model is not None:
        start_judging(engine)
    return done


def _compare_all(engine: Engine, stopped: Callable[[], bool]) -> int:
    done, step = 0, StepSize()
    while not stopped():
        verdicts: Verdicts = {}
        with engine.store.read() as reader:
            # Who reads a store in memory keeps its writers waiting.
            ahead = _waiting(reader, step.size if engine.store.in_memory else _READ_AHEAD)
            if ahead is None:
                break
            _judge_ahead(reader, ahead, verdicts, stopped)
        left = len(ahead.rows)
        while left > 0 and not stopped():
            with engine.atomic(step=step) as writer:
                step.count = _compare_next(engine, writer, step.size, verdicts)
            if not step.count:
                break
            left, done = left - step.count, done + step.count
    return done


class _Waiting(NamedTuple):
    """Records that wait to be compared, by their row ids."""

    first: Uncompared
    rows: dict[int, Row]

    @property
    def policy(self) -> WritePolicy:
        """The policy that they were written under."""
        return WritePolicy.from_dict(msgspec.json.decode(self.first.policy))


def _waiting(reader: Reader, most: int) -> _Waiting | None:
    first = reader.uncompared.first(most)
    if first is None:
        return None
    rows = reader.records.rows(range(first.first_id, first.last_id + 1), reader.vectors.active_embedder())
    return _Waiting(first, rows)


def _judge_ahead(reader: Reader, waiting: _Waiting, verdicts: Verdicts, stopped: Callable[[], bool]) -> None:
    """Judge records and those that they will be compared with, as far as one can tell before the store is locked.

    This is what takes long. It decides nothing: `_compare_next` compares them again, by then with all that others have
    written, and finds most verdicts made.
    """
    rows, give_way = [*waiting.rows.values()], _Turns()
    detection = Detection(reader, rows, waiting.policy, give_way, verdicts)
    for place in range(len(rows)):
        if stopped():
            return
        detected = detection.compared(place)
        for relation in [*([] if detected.same is None else [detected.same]), *detected.superseded]:
            detection.superseded(relation.other.public_id)
        detection.wrote(place)
        give_way()


class _Turns:
    """Gives up the interpreter's lock for a moment if it was held for a turn."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def __call__(self) -> None:
        if time.perf_counter() - self._began > _TURN_SECONDS:
            time.sleep(_PAUSE_SECONDS)
            self._began = time.perf_counter()


def _compare_next(engine: Engine, writer: Writer, most: int, verdicts: Verdicts) -> int:
    """Compare at most `most` of the next records that wait, in their order; returns how many."""
    waiting = _waiting(writer, most)
    if waiting is None:
        return 0
    policy = waiting.policy
    rows, row_ids = list(waiting.rows.values()), {row.public_id: row_id for row_id, row in waiting.rows.items()}

    def row_id(known: Known | Standpoint) -> int:
        return row_ids[known.public_id] if isinstance(known, Row) else known.record_id

    detection = Detection(writer, rows, policy, verdicts=verdicts)
    asks = policy.judge and engine.language_model is not None
    effects = Effects(writer, detection, row_id, lambda: None, now_us(), asks=asks)
    for place, row in enumerate(rows):
        effects.add(row, _in_order(writer, row, detection.compared(place), row_id))
        detection.wrote(place)
    ids = range(waiting.first.first_id, waiting.first.last_id + 1)
    writer.statements.derive(ids, tell=True)
    effects.store()
    writer.uncompared.done(waiting.first)
    return len(ids)


def _in_order(writer: Writer, row: Row, detected: Detected, row_id: Callable[[Known | Standpoint], int]) -> Detected:
    """Return what was detected by the order of time: a record supersedes what it repeats or replaces, unless that was
    said since; then it is superseded by it.
    """
    relations = [*([] if detected.same is None else [detected.same]), *detected.superseded]
    if not relations:
        return detected
    again = writer.occurrences.of([row_id(relation.other) for relation in relations])

    def since(other: Known) -> bool:
        times = [stated_at(other), *(relation.at for relation in again.get(row_id(other), ()))]
        return max(times) > stated_at(row)

    return detected._replace(
        same=None,
        superseded=[relation for relation in relations if not since(relation.other) and not relation.other.pinned],
        successors=[
            *detected.successors,
            *(relation for relation in relations if since(relation.other) and not row.pinned),
        ][:1],
    )
