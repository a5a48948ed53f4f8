"""Catching up: what records that were written many at a time do to others is found in the background.

Such records wait in the store, in the order of their row ids. Each step compares the next of them as a write of each
would have, and has them wait no longer, in one transaction: what a crash interrupts is done again, and nothing twice.
Statements are judged before a step, which then holds the lock for 10 to 20 ms, and gives way to other writers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import structs

from recallite.engine import Engine
from recallite.model.checks import now_us
from recallite.model.policies import WritePolicy
from recallite.remember.compared_records import Known
from recallite.remember.detection import Detection, Verdicts
from recallite.remember.effects import Effects
from recallite.remember.model_judging import start_judging
from recallite.store.sql.comparisons import read_policy
from recallite.store.store import COMPARING
from recallite.store.supersession_values import Uncompared
from recallite.store.transaction import Reader, Writer
from recallite.store.values import Row
from recallite.system.turnstile import StepSize

MANY = 64
"""Records from which on a batch is compared later."""
# Records judged before the store is locked, to compare some of them at a time in it.
_READ_AHEAD = 256
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
    if not engine.may_have_uncompared or engine.store.writing:
        return
    engine.may_have_uncompared, waits = False, True
    with engine.afterwards("looking for memories to compare"):
        with engine.store.read() as reader:
            waits = reader.uncompared.first(1) is not None
        if waits and (added or engine.comparing.runs or not engine.store.is_done_elsewhere(COMPARING)):
            engine.comparing.start(lambda stopped: catch_up(engine, stopped=stopped))
    engine.may_have_uncompared |= waits


def catch_up(engine: Engine, *, until: int | None = None, stopped: Callable[[], bool] = bool) -> int:
    """Compare all records that wait, or those up to a row id; returns how many there were."""
    with engine.store.read() as reader:
        first = _waiting(reader, 1, until)
    if first is None:
        return 0
    with engine.store.doing(COMPARING):
        done = _compare_all(engine, until, stopped)
    if done and engine.language_model is not None:
        start_judging(engine)
    return done


def _compare_all(engine: Engine, until: int | None, stopped: Callable[[], bool]) -> int:
    done, step = 0, StepSize()
    while not stopped():
        verdicts: Verdicts = {}
        with engine.store.read() as reader:
            # Who reads a store in memory keeps its writers waiting.
            ahead = _waiting(reader, step.size if engine.store.in_memory else _READ_AHEAD, until)
            if ahead is None:
                break
            _judge_ahead(reader, ahead, verdicts, stopped)
        left = ahead.first.last_id - ahead.first.first_id + 1  # some may be superseded or forgotten by now
        while left > 0 and not stopped():
            with engine.atomic(step=step) as writer:
                step.count = _compare_next(engine, writer, step.size, until, verdicts)
            if not step.count:
                break
            left, done = left - step.count, done + step.count
    return done


class _Waiting(NamedTuple):
    """Records that wait to be compared, by their row ids, under their policy."""

    first: Uncompared
    rows: dict[int, Row]
    policy: WritePolicy


def _waiting(reader: Reader, most: int, until: int | None) -> _Waiting | None:
    first = reader.uncompared.first(most)
    if first is None or (until is not None and first.first_id > until):
        return None
    if until is not None:
        first = first._replace(last_id=min(first.last_id, until))
    policy = read_policy(first.policy)
    assert policy is not None  # `first` leaves out those that cannot be read
    ids = range(first.first_id, first.last_id + 1)
    rows = reader.records.rows(ids, reader.vectors.active_embedder())
    for row_id, again in reader.occurrences.of([*rows]).items():
        rows[row_id].repeated = tuple((occurrence.at, occurrence.text) for occurrence in again)
    return _Waiting(first, rows, policy)


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
        for relation in detection.compared(place).superseded:
            detection.superseded(relation.other)
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


def _compare_next(engine: Engine, writer: Writer, most: int, until: int | None, verdicts: Verdicts) -> int:
    """Compare at most `most` of the next records that wait, in their order; returns how many."""
    waiting = _waiting(writer, most, until)
    if waiting is None:
        return 0
    effects = _compared(engine, writer, waiting.rows, waiting.policy, verdicts)
    ids = range(waiting.first.first_id, waiting.first.last_id + 1)
    writer.uncompared.done(waiting.first)
    writer.statements.derive(ids, tell=True)
    effects.store()
    return len(ids)


def compare_changed(engine: Engine, writer: Writer, record_ids: Sequence[int]) -> None:
    """Compare records that have another text now, or hold again, with others, as writes of them would have been.

    They stay records of their own. Superseded ones are not compared, and those that wait already in their turn; many
    wait with them.
    """
    record_ids = writer.uncompared.without(record_ids)
    if not record_ids:
        return
    policy = structs.replace(engine.settings.write_policy, duplicates="store")
    if len(record_ids) >= MANY:
        writer.uncompared.add(record_ids, policy_json(policy))
        writer.statements.derive(record_ids)
        engine.may_have_uncompared = True
    else:
        rows = writer.records.rows(record_ids, writer.vectors.active_embedder())
        _compared(engine, writer, rows, policy, {}).store()


def _compared(
    engine: Engine, writer: Writer, stored: Mapping[int, Row], policy: WritePolicy, verdicts: Verdicts
) -> Effects:
    """Compare stored rows, by their row ids and in this order, with others; returns what is to be stored of it."""
    rows, row_ids = [*stored.values()], {row.public_id: row_id for row_id, row in stored.items()}

    def row_id(known: Known) -> int:
        return row_ids[known.public_id] if isinstance(known, Row) else known.record_id

    detection = Detection(writer, rows, policy, verdicts=verdicts)
    asks = policy.judge and engine.language_model is not None
    effects = Effects(writer, detection, row_id, lambda: None, now_us(), asks=asks)
    for place, row in enumerate(rows):
        detected = detection.compared(place)
        effects.add(row, detected)
        if detected.same is not None:
            effects.add_repetition(row, detected.same)
        detection.wrote(place)
    return effects
