"""LangGraph's store over a Memory beside LangGraph's own: generated operations and values, each result compared.

Where both of LangGraph's stores answer alike, ours has to; where they differ, ours has to answer as one of them.
"""

from __future__ import annotations

import math
import random
import sqlite3
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from enum import Enum, IntEnum, StrEnum
from uuid import UUID

import pytest

pytest.importorskip("langgraph.store.sqlite", reason="langgraph-checkpoint-sqlite is not installed")

from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from recallite import Memory
from recallite.errors import RecalliteError
from recallite_connect.langgraph import RecalliteStore

pytestmark = pytest.mark.usefixtures("offline")


class Mood(Enum):
    CALM = "calm"
    TRIED = 3


class Rank(IntEnum):
    LOW = 1


class Tone(StrEnum):
    DRY = "dry"


@dataclass
class Visit:
    place: str
    at: datetime
    notes: tuple[str, ...] = ()


class Opaque:
    """What no store but one in memory can keep."""

    def __eq__(self, other):
        return isinstance(other, Opaque)

    __hash__ = None


SCALARS = [
    None, True, False, 0, 1, -7, 2**53 + 1, 2**63 - 1, -(2**63), 2**70, 0.0, 1.5, -2.25, 1e300, float("inf"),
    float("nan"), "", " ", "tea", "1", "naïve café", "漢字", "🦆", "a\nb", "tab\there", "nul\0inside", "lone\ud83d",
    "it's \"quoted\"", "x" * 5000, datetime(2026, 3, 1, 9, 30), datetime(2026, 3, 1, 9, 30, 15, 250, UTC),
    datetime(2026, 3, 1, tzinfo=timezone(timedelta(hours=5, minutes=30))), date(2026, 3, 1), time(9, 30, 1),
    UUID("12345678-1234-5678-1234-567812345678"), Mood.CALM, Mood.TRIED, Rank.LOW, Tone.DRY,
    Visit("pier", datetime(2026, 5, 1, tzinfo=UTC), ("windy",)), {1, 2}, b"bytes", Opaque(), timedelta(hours=1),
]  # fmt: skip
KEYS = ["n", "name", "a.b", "a", "b", "with space", "ünï", "", "0", "k-1", 'quo"te', 7]
NAMESPACES = [("users",), ("users", "ada"), ("users", "bob"), ("notes", "a b"), ("notes", "x", "y"), ("%", "_")]
ITEMS = ["k", "k2", "a/b", " padded ", "", "é", "nul\0"]
ROUNDS = 40


def generated_value(rng, depth=0):
    roll = rng.random()
    if depth == 0 or (roll < 0.25 and depth < 4):
        return {rng.choice(KEYS): generated_value(rng, depth + 1) for _ in range(rng.randrange(4))}
    if roll < 0.4 and depth < 4:
        return rng.choice((list, tuple))(generated_value(rng, depth + 1) for _ in range(rng.randrange(4)))
    return rng.choice(SCALARS)


def generated_filter(rng):
    if rng.random() < 0.5:
        operand = rng.choice(SCALARS[:34])
        return {rng.choice(["n", "name", "a.b", "a", "k-1"]): rng.choice([operand, {"$eq": operand}, {"$ne": operand}])}
    # A key with a dot is two keys to the store on disk, and times are no texts to it.
    operand = rng.choice([value for value in SCALARS[:24] if isinstance(value, int | float | str)])
    return {rng.choice(["n", "name", "a", "k-1"]): {rng.choice(["$gt", "$gte", "$lt", "$lte"]): operand}}


def generated_operation(rng):
    namespace, key = rng.choice(NAMESPACES), rng.choice(ITEMS)
    roll = rng.random()
    if roll < 0.45:
        return PutOp(namespace, key, generated_value(rng))
    if roll < 0.5:
        return PutOp(namespace, key, None)
    if roll < 0.7:
        return GetOp(namespace, key)
    if roll < 0.9:
        return SearchOp(namespace[: rng.randrange(3)], filter=generated_filter(rng) if rng.random() < 0.6 else None,
                        limit=1000)  # fmt: skip
    return ListNamespacesOp(
        (MatchCondition("prefix", namespace[:1]),) if rng.random() < 0.5 else None,
        rng.choice([None, 1, 2]), 1000, 0,
    )  # fmt: skip


def shape(value, *, plain):
    """A value as it compares: enumerations and dataclasses as their parts, and with `plain` all as JSON has it."""
    if isinstance(value, Enum):
        return shape(value.value, plain=plain)
    if is_dataclass(value):
        return shape({field.name: getattr(value, field.name) for field in fields(value)}, plain=plain)
    if isinstance(value, dict):
        return {key: shape(inner, plain=plain) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [shape(inner, plain=plain) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if plain else str(value)
    if plain and isinstance(value, date | time):
        return value.isoformat()
    return str(value) if plain and isinstance(value, UUID) else value


class Refused(Exception):
    """An operation that a store does not do."""


def done(store, operation):
    try:
        [result] = store.batch([operation])
    except (ValueError, TypeError, UnicodeError, sqlite3.Error, RecalliteError) as fault:
        raise Refused(str(fault)) from fault
    return result


def rows(store, operation):
    """What a store answers, as rows in an order of their own; None if it refuses."""
    try:
        result = done(store, operation)
    except Refused:
        return None
    if isinstance(operation, SearchOp):
        return sorted((item.namespace, item.key) for item in result)
    return sorted(result)


def is_ordered(value, operand):
    """Whether both can be told apart as more or less: two numbers or two texts."""
    return any(isinstance(value, kind) and isinstance(operand, kind) for kind in (str, int | float))


def ordered_alike(answer, store, operation):
    """Whether a search finds what SQLite compares as it is, and no more than what it finds by casts."""
    ((key, comparison),) = (operation.filter or {"": None}).items()
    found = rows(store, operation)
    if found is None or not isinstance(comparison, dict) or comparison.keys() & {"$eq", "$ne"}:
        return False
    (operand,) = comparison.values()
    least = {row for row in found if is_ordered(done(store, GetOp(*row)).value.get(key), operand)}
    return least <= {*answer} <= {*found}


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_operations_answer_as_those_of_langgraphs_own_stores(seed):
    rng = random.Random(seed)
    with Memory(":memory:") as memory, SqliteStore.from_conn_string(":memory:") as on_disk:
        on_disk.setup()
        ours, in_memory = RecalliteStore(memory, index=False), InMemoryStore()
        for _ in range(30):
            operation = generated_operation(rng)
            if isinstance(operation, PutOp):
                put_in_all(operation, ours, in_memory, on_disk)
            elif isinstance(operation, GetOp):
                item, kept, plain = (done(store, operation) for store in (ours, in_memory, on_disk))
                assert (item is None) is (kept is None) is (plain is None)
                if item is not None:
                    assert (item.namespace, item.key) == (kept.namespace, kept.key)
                    assert shape(item.value, plain=False) == shape(kept.value, plain=False)
                    assert shape(item.value, plain=True) == plain.value
            else:
                answer, *theirs = (rows(store, operation) for store in (ours, in_memory, on_disk))
                if theirs == [None, None]:
                    continue
                alike = isinstance(operation, SearchOp) and ordered_alike(answer, on_disk, operation)
                assert answer in theirs or alike, operation


def put_in_all(operation, ours, in_memory, on_disk):
    """Put an item into three stores: what LangGraph's store on disk takes, ours has to; nowhere, if one refuses it."""
    refused = []
    for store in (ours, on_disk, in_memory):
        try:
            done(store, operation)
        except Refused:
            refused.append(store)
    assert ours not in refused or on_disk in refused, operation
    if refused:
        for store in (ours, in_memory, on_disk):
            store.batch([operation._replace(value=None)])


@pytest.mark.parametrize("value", SCALARS, ids=lambda value: repr(value)[:30])
def test_a_value_comes_back_as_langgraphs_store_in_memory_gives_it(value):
    with Memory(":memory:") as memory, SqliteStore.from_conn_string(":memory:") as on_disk:
        on_disk.setup()
        ours, in_memory = RecalliteStore(memory), InMemoryStore()
        put = PutOp(("kept",), "k", {"one": value, "in a list": [value, "beside"], "in": {"an object": value}})
        in_memory.batch([put])
        try:
            done(ours, put)
        except Refused:
            with pytest.raises(Refused):
                done(on_disk, put)
            assert ours.get(("kept",), "k") is None
            return
        kept = in_memory.get(("kept",), "k").value
        assert shape(ours.get(("kept",), "k").value, plain=False) == shape(kept, plain=False)
