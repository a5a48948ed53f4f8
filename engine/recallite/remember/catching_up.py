"""Catching up: what records that were written many at a time do to others is found in the background.

Such records wait in the store, in the order of their row ids. Each step compares the next of them as a write of each
would have, and has them wait no longer, in one transaction: what a crash interrupts is done again, and nothing twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec
from msgspec import structs

from recallite.engine import Engine
from recallite.model.checks import now_us
from recallite.model.policies import WritePolicy
from recallite.remember.compared_records import Known
from recallite.remember.detection import Detection
from recallite.remember.effects import Effects
from recallite.remember.model_judging import start_judging
from recallite.store.sql.comparisons import read_policy
from recallite.store.supersession_values import Uncompared
from recallite.store.transaction import Reader, Writer
from recallite.store.values import Commit, Row
from recallite.text.statements.keys import record_keys

MANY = 64
"""Records from which on a batch is compared later."""
# Records compared in a transaction, for which another writer waits.
_AT_ONCE = 256
# How long to hold the interpreter's lock, and to give it up: else a recall would wait 5 ms for it, several times.
_TURN_SECONDS, _PAUSE_SECONDS = 1e-3, 1e-5


def policy_json(policy: WritePolicy) -> str:
    """Encode a policy for the records that wait; their texts are redacted already."""
    return msgspec.json.encode(structs.replace(policy, redact=None).to_dict()).decode()


def comparing_policies(policy: WritePolicy) -> Callable[[bool], str]:
    """Return the encoded policy as a function of whether the caller chose a row's id: such a row repeats no other."""
    policies = policy_json(policy), policy_json(structs.replace(policy, duplicates="store"))
    return policies.__getitem__


def start_comparing(engine: Engine) -> None:
    """Have the records that wait compared in the background; those of an open transaction wait for a later write."""
    if not engine.may_have_uncompared or engine.store.nested:
        return
    engine.may_have_uncompared = False
    with engine.store.read() as reader:
        waits = reader.uncompared.first(1) is not None
    if waits:
        engine.may_have_uncompared = True
        with suppress(RuntimeError):  # no thread left: a later write tries again
            engine.comparing.start(lambda stopped: catch_up(engine, stopped=stopped))


def catch_up(engine: Engine, *, until: int | None = None, stopped: Callable[[], bool] = bool) -> int:
    """Compare all records that wait, or those up to a row id; returns how many there were."""
    done = 0
    while not stopped():
        with engine.store.read() as reader:
            ahead = _waiting(reader)
            if ahead is None or (until is not None and ahead.first.first_id > until):
                break
            give_way = _Turns()
            for row in ahead.rows.values():  # parsed before the store is locked
                record_keys(row.text, row.context)
                give_way()
        with engine.atomic() as writer:
            done += _compare_next(engine, writer, ahead)
    if done and engine.language_model is not None:
        start_judging(engine)
    return done


class _Waiting(NamedTuple):
    """Records that wait to be compared, by their row ids, as of a commit."""

    commit: Commit
    first: Uncompared
    rows: dict[int, Row]


def _waiting(reader: Reader) -> _Waiting | None:
    first = reader.uncompared.first(_AT_ONCE)
    if first is None:
        return None
    rows = reader.records.rows(range(first.first_id, first.last_id + 1), reader.vectors.active_embedder())
    return _Waiting(reader.changes.commit(), first, rows)


class _Turns:
    """Gives up the interpreter's lock for a moment if it was held for a turn."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def __call__(self) -> None:
        if time.perf_counter() - self._began > _TURN_SECONDS:
            time.sleep(_PAUSE_SECONDS)
            self._began = time.perf_counter()


def _compare_next(engine: Engine, writer: Writer, ahead: _Waiting) -> int:
    """Compare the next records that wait, in their order; returns how many."""
    waiting = ahead if writer.changes.matches(ahead.commit) else _waiting(writer)
    if waiting is None:
        return 0
    policy = read_policy(waiting.first.policy)
    assert policy is not None
    for waiting_id, again in writer.occurrences.of([*waiting.rows]).items():  # a new one is no change of the feed
        waiting.rows[waiting_id].repeated = tuple((occurrence.at, occurrence.text) for occurrence in again)
    effects = _compared(engine, writer, waiting.rows, policy)
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
        _compared(engine, writer, rows, policy).store()


def _compared(engine: Engine, writer: Writer, stored: dict[int, Row], policy: WritePolicy) -> Effects:
    """Compare stored rows, by their row ids and in this order, with others; returns what is to be stored of it."""
    rows, row_ids = [*stored.values()], {row.public_id: row_id for row_id, row in stored.items()}

    def row_id(known: Known) -> int:
        return row_ids[known.public_id] if isinstance(known, Row) else known.record_id

    give_way = _Turns()
    detection = Detection(writer, rows, policy, give_way)
    asks = policy.judge and engine.language_model is not None
    effects = Effects(writer, detection, row_id, lambda: None, now_us(), asks=asks)
    for place, row in enumerate(rows):
        detected = detection.compared(place)
        effects.add(row, detected)
        if detected.same is not None:
            effects.add_repetition(row, detected.same)
        detection.wrote(place)
        give_way()
    return effects
