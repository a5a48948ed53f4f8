"""Kills in the middle of bulk writes and of the comparison that follows: nothing is lost, and nothing done twice."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from datetime import timedelta

from recallite import Memory
from tests.unit.core.memory.support import PLAIN
from tests.unit.core.memory.test_catching_up import PAIRS, dated, paused, relations, unrelated

KILLS, ROUNDS = 12, 3
WORK = """
import sys
from recallite import Memory
from tests.unit.core.memory.support import PLAIN
from tests.system.memory.test_catching_up_processes import items
memory = Memory(sys.argv[1], settings=PLAIN)
for round in range(int(sys.argv[2])):
    memory.remember_many(items(round), batch_size=100)
    print("written", flush=True)
memory.store.catch_up()
print("compared", flush=True)
"""


def items(round):
    """What a round writes: each begins after those before it."""
    texts = [f"Round {round}, {text}" for text in unrelated(150)]
    if round == 0:
        texts = [old for old, _ in PAIRS] + texts
    if round == ROUNDS - 1:
        texts += [new for _, new in PAIRS]
    return [{**item, "created_at": item["created_at"] + timedelta(days=200 * round)} for item in dated(texts)]


def test_kills_lose_and_double_nothing(tmp_path):
    chance = random.Random(3)
    with Memory(tmp_path / "whole.db", settings=PLAIN) as memory:
        for round in range(ROUNDS):
            paused(memory).remember_many(items(round))
        memory.store.catch_up()
        expected, count = relations(memory), memory.count(include_superseded=True)
    assert len(expected[0]) >= 4
    began = time.monotonic()
    assert run(tmp_path / "first.db")[0] == ROUNDS + 1
    took = time.monotonic() - began
    killed = 0
    for number in range(KILLS):
        path = tmp_path / f"{number}.db"
        told, ended = run(path, chance.uniform(0.2, took))
        killed += ended
        with Memory(path, settings=PLAIN) as memory:
            paused(memory)
            assert memory.store.verify().problems == ()
            stored = memory.count(include_superseded=True)
            assert stored >= sum(len(items(round)) for round in range(min(told, ROUNDS)))
            texts = [each.text for each in memory.list(limit=1000, include_superseded=True)]
            assert len(set(texts)) == len(texts) == stored
            if told < ROUNDS:  # the batch that was under way is there whole or not at all
                continue
            memory.store.catch_up()
            assert relations(memory) == expected
            assert (memory.count(include_superseded=True), memory.store.verify().problems) == (count, ())
    assert killed


def run(path, seconds=None):
    """How many steps the work acknowledged, and whether it was killed after so many seconds."""
    child = subprocess.Popen([sys.executable, "-c", WORK, path, str(ROUNDS)], stdout=subprocess.PIPE, text=True)
    try:
        told, _ = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        told, _ = child.communicate()
    return len(told.split()), child.returncode != 0
