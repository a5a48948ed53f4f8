"""Bulk work on one machine: equal to one process, nothing twice, resumed after any stop."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from recallite import Memory, Settings
from recallite.errors import InvalidInput, InvalidItem, WorkerLost
from recallite.model.records import NewRecord
from recallite.model.reports import Remembered
from recallite.model.settings import WritePolicy
from recallite_bulk import content_id, recall_many, remember_files, remember_many, write
from tests.limits import LAST_RESORT_SECONDS

PLAIN = Settings(embedder="none")
INSTANT = Settings(embedder="instant")
CREATED = "2026-01-02T03:04:05Z"
SUBJECTS = ("harbour", "library", "orchard", "station", "bakery", "observatory", "tunnel")


def lines(count):
    return [
        {
            "text": f"The {SUBJECTS[number % 7]} number {number} opened in {1900 + number % 90}.",
            "created_at": CREATED,
            "metadata": {"n": number},
        }
        for number in range(count)
    ]


def state(memory):
    """All that was stored, without what the clock gives."""
    records = [
        {**each.to_dict(), "updated_at": None}
        for each in memory.list(limit=None, order="oldest", include_superseded=True)
    ]
    with memory._engine.store.read() as reader:
        rows = reader.records.find_ids([each["id"] for each in records], "/")
        parts = {id: reader.vectors.of_record(row) for id, row in rows.items()}
    return records, parts


class Killing:
    """An embedder whose process ends when it meets a certain text, where a file allows it."""

    name, dimension, fingerprint = "killing", 4, "killing:4"

    def __init__(self, allowed: str) -> None:
        self.allowed = allowed

    def embed(self, texts):
        import numpy as np

        if any("number 150 " in text for text in texts) and os.path.exists(self.allowed):
            os.unlink(self.allowed)
            os.kill(os.getpid(), signal.SIGKILL)
        vectors = np.array([[len(text), text.count("a"), text.count("o"), 1] for text in texts], np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_workers_store_what_one_process_stores_and_a_second_run_nothing(tmp_path):
    found = []
    for workers in (1, 2):
        with Memory(tmp_path / f"{workers}.db", settings=INSTANT) as memory:
            done: list[tuple[int, None]] = []
            result = remember_many(
                memory,
                lines(150),
                workers=workers,
                batch_size=64,
                on_progress=lambda *told, done=done: done.append(told),
            )
            assert result == Remembered(records=150)
            assert done == [(64, None), (128, None), (150, None)]
            found.append(state(memory))
            assert remember_many(memory, lines(160), workers=workers, batch_size=64) == Remembered(
                records=10, known=150
            )
            assert memory.store.verify().ok
    assert found[0] == found[1]
    assert all(each.values and each.codes for each in found[0][1].values())


def test_what_workers_embedded_is_what_the_store_would_embed(tmp_path):
    with Memory(tmp_path / "a.db", settings=INSTANT) as memory, Memory(tmp_path / "b.db", settings=INSTANT) as other:
        remember_many(memory, lines(20))
        other.remember_many([{**each, "id": content_id(NewRecord(**each))} for each in lines(20)])
        assert state(memory) == state(other)


def test_hits_of_workers_are_those_of_one_process(tmp_path, ready_kernels):
    path = tmp_path / "a.db"
    with Memory(path, settings=INSTANT) as memory:
        remember_many(memory, lines(100))
        accesses = [each.access_count for each in memory.list(limit=None)]
    queries = [f"When did {each} number {number} open?" for number, each in enumerate(SUBJECTS * 3)]
    answers = [
        [each.to_dict()["hits"] for each in recall_many(
            path, queries, workers=workers, settings=INSTANT, now="2026-06-01T00:00:00Z", batch_size=8, limit=3
        )]
        for workers in (1, 2)
    ]  # fmt: skip
    assert answers[0] == answers[1]
    assert [len(each) for each in answers[0]] == [3] * len(queries)
    with Memory(path, settings=INSTANT) as memory:
        assert [each.access_count for each in memory.list(limit=None)] == accesses


def test_a_killed_worker_is_named_and_the_same_run_does_the_rest(tmp_path):
    allowed = tmp_path / "allowed"
    allowed.touch()
    with Memory(tmp_path / "a.db", embedder=Killing(str(allowed))) as memory:
        with pytest.raises(WorkerLost, match="What is stored stays"):
            remember_many(memory, lines(300), workers=2, batch_size=16)
        stored = memory.count(include_superseded=True)
        assert stored < 300
        assert stored % 16 == 0
        assert remember_many(memory, lines(300), workers=2, batch_size=16).records == 300 - stored
        after = state(memory)
        assert memory.store.verify().ok
    with Memory(tmp_path / "b.db", embedder=Killing(str(allowed))) as memory:
        remember_many(memory, lines(300), batch_size=16)
        assert state(memory) == after


def test_ids_are_the_callers_own_or_derived_from_all_that_is_given(memory):
    assert remember_many(memory, [{"text": "a", "id": "own"}, "b", NewRecord(text="b")]).known == 1
    records = [NewRecord(text="b", created_at=time) for time in (CREATED, "2026-01-02T04:04:05+01:00")]
    assert content_id(records[0]) == content_id(records[1])
    variants = [
        NewRecord(text="b"), records[0], NewRecord(text="b", metadata={"n": 1}), NewRecord(text="b", scope="/x"),
        NewRecord(text="b", position=0), NewRecord(text="b", tags=("t",)),
    ]  # fmt: skip
    assert len({content_id(each) for each in variants}) == len(variants)
    assert content_id(NewRecord(text="b"), "/x") == content_id(NewRecord(text="b", scope="/x"))
    assert content_id(NewRecord(text="b", id="one", vector=[1.0])) == content_id(NewRecord(text="b"))
    assert memory.get(content_id(NewRecord(text="b"))).text == "b"
    # Written into stores: it may not change.
    said = hashlib.blake2b(b'{"created_at":1767323045000000,"text":"b"}', digest_size=16).hexdigest()
    assert content_id(records[0]) == f"content-{said}"
    assert content_id(NewRecord(text="b", importance=1)) == content_id(NewRecord(text="b", importance=1.0))


def test_a_scoped_handle_stores_in_its_scope_and_sees_its_own_only(memory):
    ada, bob = memory.scoped("/ada"), memory.scoped("/bob")
    assert remember_many(ada, ["tea"]).records == 1
    assert remember_many(bob, ["tea"]).records == 1
    assert remember_many(ada, ["tea"]).known == 1
    assert [each.scope for each in memory.list()] == ["/bob", "/ada"]


def test_junk_is_left_out_as_the_policy_says(memory):
    policy = WritePolicy(junk="skip")
    assert remember_many(memory, ["thanks!", "Ada moved to Bonn"], policy=policy) == Remembered(records=1, junk=1)


def test_what_another_process_has_stored_meanwhile_is_passed_over(memory, monkeypatch):
    records = [NewRecord(text=str(number), id=str(number)) for number in range(4)]
    real = Memory.remember_many

    def after_another(self, items, **options):
        monkeypatch.setattr(Memory, "remember_many", real)
        real(self, [NewRecord(text="other", id="2")])
        return real(self, items, **options)

    monkeypatch.setattr(Memory, "remember_many", after_another)
    assert write(records, memory) == Remembered(records=3, known=1)
    assert memory.get("2").text == "other"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bad_item_is_named_and_batches_before_it_are_stored(tmp_path, workers):
    with Memory(tmp_path / "a.db", settings=PLAIN) as memory:
        for bad, message in (({"text": ""}, "item 7: text is ''"), (7, "item 7: the item is int 7")):
            items = [{"text": f"{message} {number}"} for number in range(10)]
            items[7] = bad
            before = memory.count(include_superseded=True)
            with pytest.raises(InvalidItem, match=message) as caught:
                remember_many(memory, items, workers=workers, batch_size=3)
            assert (caught.value.position, caught.value.stored) == (7, 6)
            assert memory.count(include_superseded=True) - before == 6


def test_files_are_read_by_their_endings_and_bad_lines_are_named(memory, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "one", "id": "1"}\n\n{"text": "two"}\n')
    (tmp_path / "b.csv").write_text("id,text\n3,three\n")
    (tmp_path / "c.txt").write_text("four\nfive\n")
    paths = [tmp_path / name for name in ("a.jsonl", "b.csv", "c.txt")]
    assert remember_files(memory, paths) == Remembered(records=5)
    assert {each.text for each in memory.list()} == {"one", "two", "three", "four", "five"}
    assert remember_files(memory, paths) == Remembered(known=5)
    (tmp_path / "bad.jsonl").write_text('{"text": "six"}\n{"link": {"source": "1", "target": "3"}}\n')
    with pytest.raises(InvalidItem, match="line 2: it is no new memory but a link"):
        remember_files(memory, tmp_path / "bad.jsonl", batch_size=1)
    assert memory.count() == 6
    with pytest.raises(InvalidItem, match=r"bad.jsonl, line 2"):
        remember_files(memory, [*paths, tmp_path / "bad.jsonl"])


def test_an_export_is_read_as_new_memories(memory, tmp_path):
    memory.remember_many([{"text": "one", "id": "1", "tags": ("t",)}, {"text": "two", "id": "2"}])
    memory.transfer.export(tmp_path / "a.jsonl")
    with Memory(":memory:", settings=PLAIN) as other:
        assert remember_files(other, tmp_path / "a.jsonl") == Remembered(records=2)
        assert other.get("1").tags == ("t",)


def test_parquet_files_are_read(memory, tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pyarrow.parquet

    from recallite_bulk.arrow import new_records_table

    table = new_records_table([NewRecord(**each) for each in lines(10)])
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    assert remember_files(memory, tmp_path / "a.parquet") == Remembered(records=10)


def test_bad_arguments_are_refused(memory):
    for items in ("text", {"text": "a"}, 7):
        with pytest.raises(InvalidInput, match="give a list or a stream"):
            remember_many(memory, items)
    for workers in (0, -1, 2.5, 1000):
        with pytest.raises(InvalidInput, match="workers"):
            remember_many(memory, ["a"], workers=workers)
    with (
        Memory(":memory:", embedder=Killing(lambda: None)) as other,
        pytest.raises(InvalidInput, match="cannot be given"),
    ):
        remember_many(other, ["a"], workers=2)


def alive(group):
    """Whether a process of the group is there."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def command(*arguments, **environment):
    return [sys.executable, "-m", "recallite", *map(str, arguments)], {**os.environ, **environment}


def test_the_command_embeds_files_in_workers_and_resumes(tmp_path):
    path, store = tmp_path / "big.jsonl", tmp_path / "m.db"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines(40)))
    arguments, environment = command(
        "--db", store, "remember", "--workers", 2, path, "--json", RECALLITE_EMBEDDER="instant"
    )
    told = [
        json.loads(subprocess.run(arguments, env=environment, capture_output=True, check=True, text=True).stdout)
        for _ in range(2)
    ]
    assert told == [{"records": 40, "known": 0, "junk": 0}, {"records": 0, "known": 40, "junk": 0}]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_ctrl_c_ends_the_command_and_its_workers(tmp_path):
    """The stream of memories never ends; what was committed stays."""
    pipe, store = tmp_path / "endless.jsonl", tmp_path / "m.db"
    os.mkfifo(pipe)
    arguments, environment = command("--db", store, "remember", "--workers", 2, pipe, RECALLITE_EMBEDDER="none")
    with subprocess.Popen(
        arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        with open(pipe, "w") as stream:
            for each in lines(512 * 6):
                stream.write(json.dumps(each) + "\n")
            stream.flush()
            with Memory(store, settings=PLAIN) as memory:
                while not memory.count():
                    assert running.poll() is None
            os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to all of them
            out, err = running.communicate(timeout=LAST_RESORT_SECONDS)
        assert (running.returncode, out) == (130, "")
        assert err.startswith("recallite: Interrupted: stopped; what is stored stays, and is not stored twice")
    # The process that tracks multiprocessing's semaphores ends a moment after the others.
    last = time.monotonic() + LAST_RESORT_SECONDS
    while alive(running.pid):
        assert time.monotonic() < last
    with Memory(store, settings=PLAIN) as memory:
        assert memory.count(include_superseded=True) % 512 == 0
        assert memory.store.verify().ok
