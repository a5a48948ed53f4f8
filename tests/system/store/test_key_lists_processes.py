"""Kills in the middle of runs that are written, merged and erased: nothing is lost, and nothing found twice."""

from __future__ import annotations

import random
import subprocess
import sys
import time

from recallite.derivation import derive
from recallite.model.filters import Filter
from recallite.store.opening import open_store
from tests.unit.core.store.contract.support import NOW, row

KILLS, ROUNDS, BATCH = 8, 60, 64
EVERY = Filter()
WORK = """
import sys
from recallite.derivation import derive
from recallite.store.opening import open_store
from tests.system.store.test_key_lists_processes import ROUNDS, write
store = open_store(sys.argv[1], derive=derive)
for number in range(ROUNDS):
    write(store, number)
    print(number, flush=True)
"""


def texts(number):
    """What a round writes, and what it erases of that; every second round repeats the one before."""
    written = [f"Person {place} lives in town {number // 2}" for place in range(BATCH)]
    return written, written[number % 7 :: 9]


def write(store, number):
    written, erased = texts(number)
    with store.atomic() as writer:
        rows = [row(f"{number} {place}", text, kind="memory") for place, text in enumerate(written)]
        ids = dict(zip(written, writer.records.insert(rows, None), strict=True))
        writer.records.insert([row(f"{number} alone", f"Alone in round {number}", kind="memory")], None)
        writer.records.delete([ids[text] for text in erased])


def test_kills_lose_and_double_nothing(tmp_path):
    chance = random.Random(7)
    began = time.monotonic()
    assert run(tmp_path / "whole.db") == (ROUNDS, False)
    took = time.monotonic() - began
    killed = 0
    for number in range(KILLS):
        path = tmp_path / f"{number}.db"
        told, ended = run(path, chance.uniform(0.3 * took, took))
        killed += ended
        store = open_store(str(path), derive=derive)
        try:
            assert store.verify().problems == ()
            with store.read() as reader:
                stored = {each.id: each.text for each in reader.records.find(EVERY, NOW, limit=10_000)}
                rounds = len({id.split()[0] for id in stored})
                assert rounds in (told, told + 1)  # the one under way is there whole or not at all
                expected = []
                for each in range(rounds):
                    written, erased = texts(each)
                    expected += [*(text for text in written if text not in erased), f"Alone in round {each}"]
                assert sorted(stored.values()) == sorted(expected)
                keys = [row("x", text).content_hash[:8] for text in set(expected)]
                found = [each.row_id for each in reader.records.current_by_text(keys, NOW)]
                assert len(found) == len(set(found)) == len(expected)
        finally:
            store.close()
    assert killed


def run(path, seconds=None):
    """How many rounds the work acknowledged, and whether it was killed after so many seconds."""
    child = subprocess.Popen([sys.executable, "-c", WORK, path], stdout=subprocess.PIPE, text=True)
    try:
        told, _ = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        told, _ = child.communicate()
    return len(told.split()), child.returncode != 0
