"""Many processes on one file: locks, visibility, kills."""

from __future__ import annotations

import random
import threading

import apsw
import pytest

from recallite import Memory, Settings
from recallite.errors import StoreUnavailable
from recallite.model.records import NewRecord
from tests.limits import LAST_RESORT_SECONDS
from tests.raising import raises
from tests.unit.core.memory.support import PLAIN, Other, scored, spawn, state, unit


def test_a_write_waits_for_the_lock_no_longer_than_the_timeout(path):
    with Memory(path, settings=Settings(embedder="none", busy_timeout_ms=20)) as memory, Other(path) as other:
        kept = memory.remember("kept")
        before = state(memory)
        assert other("memory._engine.store._writer.connection.execute('BEGIN IMMEDIATE') is not None")
        for write in (
            lambda: memory.remember("y"),
            lambda: memory.remember_many(["y", "z"]),
            lambda: memory.update(kept.id, text="w"),
            lambda: memory.forget(kept.id),
            memory.store.rebuild,
            memory.store.vacuum,
        ):
            with raises(StoreUnavailable, "locked", match=r"agent\.db is locked.*busy_timeout_ms"):
                write()
        assert state(memory) == before
        other("memory._engine.store._writer.connection.execute('ROLLBACK') is not None")
        memory.remember("y")
        assert memory.count() == 2


def test_reading_never_waits_for_a_writer(path):
    """The timeout is so long that a read which took the write lock would run into the test's own."""
    settings = Settings(embedder="none", busy_timeout_ms=2 * LAST_RESORT_SECONDS * 1000)
    with Memory(path, settings=settings) as memory, Other(path) as other:
        kept = memory.remember("kept words")
        assert other("memory._engine.store._writer.connection.execute('BEGIN IMMEDIATE') is not None")
        assert [hit.id for hit in memory.recall("words")] == [kept.id]
        reader = threading.Thread(target=memory.get, args=(kept.id,), daemon=True)
        reader.start()
        reader.join(LAST_RESORT_SECONDS)
        waited = reader.is_alive()
        other("memory._engine.store._writer.connection.execute('ROLLBACK') is not None")
        reader.join()
        assert not waited, "get waited for the write lock of another process"


_WRITER = """
import sys
from recallite import Memory, Settings
with Memory(sys.argv[1], settings=Settings(embedder="none", durability="normal", busy_timeout_ms=900_000)) as memory:
    first = memory.remember("the first of " + sys.argv[2])
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(sys.argv[3])):
        memory.update(first.id, importance=number / 100)
        memory.remember(f"number {number} of {sys.argv[2]}")
"""


def test_no_writer_is_refused_while_others_write(path):
    """Deferred transactions that read and then write fail with BUSY at once; every write here reads first."""
    Memory(path, settings=PLAIN).close()
    writers = [spawn(_WRITER, path, name, 40) for name in "abcd"]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n", writer.stderr.read()
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    ends = [(writer.communicate()[1], writer.returncode) for writer in writers]
    assert ends == [("", 0)] * 4
    with Memory(path, settings=PLAIN) as memory:
        assert memory.count() == 4 * 41
        assert memory.store.verify().problems == ()


def test_a_deferred_transaction_would_fail_at_once(path):
    """What IMMEDIATE prevents."""
    Memory(path, settings=PLAIN).close()
    first, second = apsw.Connection(path), apsw.Connection(path)
    for connection in (first, second):
        connection.set_busy_timeout(10_000)
        connection.execute("BEGIN").fetchall()
        connection.execute("SELECT count(*) FROM record").fetchall()
    first.execute("INSERT INTO scope (path) VALUES ('/a')")
    first.execute("COMMIT")
    with pytest.raises(apsw.BusyError):
        second.execute("INSERT INTO scope (path) VALUES ('/b')")
    first.close()
    second.close()


def test_a_recall_sees_every_commit_of_another_process(path):
    with Memory(path, settings=PLAIN) as memory, Other(path) as other:

        def same(query: str) -> list[str]:
            here = memory.recall(query, profile={"half_life_days": 0})
            there = other(
                f"[(hit.id, round(hit.score, 5)) for hit in memory.recall({query!r}, profile={{'half_life_days': 0}})]"
            )
            assert scored(here) == there
            return [hit.text for hit in here]

        a, b = other("memory.remember_many(['red apple', 'red berry'])")
        assert sorted(same("red")) == ["red apple", "red berry"]
        other(f"memory.update({a!r}, text='green pear').text")
        assert same("red") == ["red berry"]
        assert same("pear") == ["green pear"]
        other(f"memory.update({b!r}, scope='/moved').scope")
        assert [hit.id for hit in memory.recall("red", scope="/moved")] == [b]
        assert same("pear") == ["green pear"]
        other(f"memory.link({a!r}, {b!r})")
        assert sorted(same("pear")) == ["green pear", "red berry"]
        other(f"memory.forget({a!r}).records")
        assert same("pear") == []
        memory.remember("a pear again")
        assert same("pear") == ["a pear again"]
        other("memory.store.rebuild().ok")
        assert same("red") == ["red berry"]


def test_numbers_of_words_agree_after_another_process_vacuumed(path):
    """A vacuum drops unused words; a process that still had their numbers in its cache wrote words of others."""
    with Memory(path, settings=PLAIN) as memory, Other(path) as other:
        gone = memory.remember("zebra quagga okapi")
        other("memory.remember('zebra quagga okapi').id")
        memory.forget(scope="/")
        assert gone.id not in {record.id for record in memory.list()}
        memory.store.vacuum()
        memory.remember("lion tiger leopard")
        other("memory.remember('zebra quagga okapi').id")
        assert [hit.text for hit in memory.recall("quagga")] == ["zebra quagga okapi"]
        assert [hit.text for hit in memory.recall("tiger")] == ["lion tiger leopard"]
        assert memory.store.verify().problems == ()


_ENDLESS = """
import sys
from recallite import Memory, Settings
memory = Memory(sys.argv[1], settings=Settings(embedder="none"))
number = 0
while True:
    items = [
        {"text": f"batch {number} item {place} " + "word " * 40, "vector": [1.0 + place, 1, 2, 3, 4, 5, 6, 7]}
        for place in range(20)
    ]
    print("\\n".join(memory.remember_many(items)), flush=True)
    number += 1
"""


@pytest.mark.parametrize("seed", range(3))
def test_what_was_acknowledged_survives_a_kill(path, seed):
    process = spawn(_ENDLESS, path)
    acknowledged = [process.stdout.readline().strip() for _ in range(random.Random(seed).randrange(20, 300))]
    process.kill()
    acknowledged += [line for line in process.communicate()[0].split("\n") if len(line) == 36]
    with Memory(path, settings=PLAIN) as memory:
        stored = {record.id for record in memory.list(limit=None)}
        assert set(acknowledged) <= stored
        assert len(stored) % 20 == 0, "a batch is stored whole or not at all"
        assert memory.store.verify().problems == ()
        memory.remember(NewRecord("after the kill", vector=unit(1, 8)))
        assert [hit.text for hit in memory.recall("kill", limit=1)] == ["after the kill"]


def test_a_backup_holds_one_commit_while_another_process_writes(path, tmp_path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember_many([f"before {number}" for number in range(50)])
        process = spawn(_ENDLESS.replace('"vector": [1.0 + place, 1, 2, 3, 4, 5, 6, 7]', '"kind": "busy"'), path)
        process.stdout.readline()
        copies = [memory.store.backup(tmp_path / f"copy{number}.db") for number in range(3)]
        process.kill()
        process.communicate()
    for copy in copies:
        with Memory(copy, settings=PLAIN) as restored:
            assert restored.count(kinds=["memory"]) == 50
            assert restored.count(kinds=["busy"]) % 20 == 0
            assert restored.store.verify().problems == ()
            assert restored.recall("before 7", kinds=["memory"], limit=1)[0].text == "before 7"


def test_two_memories_of_one_process_share_a_file(path):
    with Memory(path, settings=PLAIN) as first:
        with Memory(path, settings=PLAIN) as second:
            kept = first.remember("from the first")
            assert [hit.id for hit in second.recall("first")] == [kept.id]
            second.update(kept.id, text="changed by the second")
            assert [hit.text for hit in first.recall("second")] == ["changed by the second"]
        # Closing one must not drop the lock that the other holds.
        with Other(path, busy_timeout_ms=0) as other, first._engine.store.atomic():
            Memory(path, settings=PLAIN).close()
            assert other("attempt(lambda: memory.remember('x'))") == "StoreUnavailable"
