"""The change feed, the derived sketches, and giving space back."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from datetime import timedelta

import apsw
import numpy as np
import pytest

from recallite import Memory, engine
from recallite.errors import InvalidInput, StoreError
from recallite.model.records import NewRecord
from recallite.store.sql.vectors import pack
from recallite.store.sqlite import transaction
from tests.unit.core.memory.support import PLAIN, raw, scored, unit


def sequence(memory: Memory) -> int:
    return memory.store.stats().sequence


def test_every_write_moves_the_sequence_and_no_read_does(on_disk):
    first, second = on_disk.remember_many(["one", "two"])
    for write in (
        lambda: on_disk.remember("three"),
        lambda: on_disk.update(first, importance=0.9),
        lambda: on_disk.update(first, text="changed"),
        lambda: on_disk.link(first, second),
        lambda: on_disk.forget(second),
        on_disk.store.rebuild,
    ):
        before = sequence(on_disk)
        write()
        assert sequence(on_disk) > before
    before = sequence(on_disk)
    on_disk.recall("changed")
    on_disk.get(first)
    on_disk.list()
    on_disk.count()
    on_disk.history(first)
    on_disk.review.explain("changed", first)
    on_disk.store.verify()
    assert sequence(on_disk) == before


def test_recall_writes_nothing_and_counts_arrive_later(on_disk):
    kept = on_disk.remember("counted words")
    with on_disk._engine.store.exclusive() as writer:
        before = writer.total_changes()
    with apsw.Connection(on_disk.path) as other:
        version = other.pragma("data_version")
        for _ in range(3):
            on_disk.recall("counted")
        on_disk.recall_many(["counted", "words"])
        assert other.pragma("data_version") == version
    with on_disk._engine.store.exclusive() as writer:
        assert writer.total_changes() == before
    assert on_disk.get(kept.id).access_count == 5
    path = on_disk.path
    on_disk.recall("counted")
    on_disk.close()
    with Memory(path, settings=PLAIN) as again:
        assert again.get(kept.id).access_count == 6
        assert again.get(kept.id).accessed_at >= kept.created_at


_ENDS_WITHOUT_CLOSING = """
import os, sys
from recallite import Memory, Settings
memory = Memory(sys.argv[1], settings=Settings(embedder="none"))
first = memory.remember("counted words")
for _ in range(3):
    memory.recall("counted")
memory.remember("others")
told = [memory.get(first.id).access_count]
memory.update(first.id, importance=0.9)
memory.recall("counted")
memory.remember("more")
print(*told, memory.get(first.id).access_count, first.id, flush=True)
os._exit(9)
"""


def test_what_was_counted_is_stored_before_a_process_is_killed(path):
    """Writes that only add leave the counts to a later one; others store them, and nothing is stored by halves."""
    ended = subprocess.run(
        [sys.executable, "-c", _ENDS_WITHOUT_CLOSING, path], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 9, ended.stderr
    *told, first = ended.stdout.split()
    assert told == ["3", "4"]
    with Memory(path, settings=PLAIN) as again:
        assert again.get(first).access_count == 3
        assert again.store.verify().ok


def _stored(memory: Memory, id: str) -> int:
    """The access count as other programs see it."""
    with apsw.Connection(memory.path) as other:
        return int(other.execute("SELECT access_count FROM memories WHERE id = ?", (id,)).get)


@pytest.mark.parametrize("limit", ["_ACCESSES_TOGETHER", "_ACCESSES_EVERY_S"])
def test_small_writes_store_access_counts_when_they_are_due(on_disk, monkeypatch, limit):
    kept = on_disk.remember("counted words")
    on_disk.recall("counted")
    on_disk.remember("others")
    assert (_stored(on_disk, kept.id), on_disk.get(kept.id).access_count) == (0, 1)
    before = on_disk.get(kept.id), on_disk.list()
    monkeypatch.setattr(engine, limit, 1 if limit == "_ACCESSES_TOGETHER" else 0.0)
    on_disk.remember("more")
    assert _stored(on_disk, kept.id) == 1
    assert (on_disk.get(kept.id), on_disk.list()[1:]) == before


def test_access_counts_do_not_outlive_what_is_purged(on_disk, monkeypatch):
    """Counts that were not stored yet became those of the next record with the id."""
    monkeypatch.setattr(engine, "_ACCESSES_TOGETHER", 1)
    ids = ["a", "b", "c"]
    for id in ids:
        on_disk.remember(f"counted words {id}", id=id)
    on_disk.recall("counted")
    on_disk.forget(ids)
    for id in ids:
        on_disk.remember(f"counted words {id}", id=id)
    assert [on_disk.get(id).access_count for id in ids] == [0, 0, 0]
    on_disk.recall("counted")
    assert [on_disk.get(id).access_count for id in ids] == [1, 1, 1]


@pytest.mark.parametrize("recalls_again", [False, True])
def test_access_counts_that_wait_are_none_of_a_record_that_took_a_purged_id(on_disk, recalls_again):
    """Another handle purges: what this one holds back became a count of the next record with the id."""
    beside = on_disk.remember("counted too")
    kept = on_disk.remember("counted words", id="a")
    on_disk.update("a", text="other counted words")
    on_disk.recall("counted", as_of=kept.recorded_from)
    on_disk.recall("counted")
    assert on_disk.get("a").access_count == 2
    with Memory(on_disk.path, settings=PLAIN) as other:
        other.forget("a")
        # Its time is before the recall, as that of a merge or an import may be.
        other.remember("counted words", id="a", created_at=kept.created_at - timedelta(days=1))
        if recalls_again:
            on_disk.recall("counted")
        on_disk.forget(on_disk.remember("a write that stores counts").id)
        assert _stored(other, "a") == on_disk.get("a").access_count == recalls_again
        assert _stored(other, beside.id) == 2 + recalls_again


@pytest.mark.parametrize("which", ["inner", "outer", "both"])
def test_access_counts_outlast_a_transaction_that_is_undone(on_disk, which):
    kept, gone = on_disk.remember("counted words"), on_disk.remember("others")
    on_disk.recall("counted")
    with suppress(KeyError), on_disk.transaction():
        with suppress(KeyError), on_disk.transaction():
            on_disk.forget(gone.id)
            assert _counted_there(on_disk, kept.id) == 1
            if which != "outer":
                raise KeyError
        if which != "inner":
            raise KeyError
    assert on_disk.get(kept.id).access_count == 1
    on_disk.forget(gone.id)
    assert _stored(on_disk, kept.id) == 1


def _counted_there(memory: Memory, id: str) -> int:
    """The access count that is written, as the transaction of this thread sees it."""
    with memory._engine.store.read() as reader:
        (row,) = reader.sql("SELECT access_count FROM memories WHERE id = ?", (id,))
        return int(row[0])


def test_access_counts_stand_outside_the_feed(on_disk):
    kept = on_disk.remember("counted words")
    before = sequence(on_disk)
    on_disk.recall("counted")
    on_disk.get(kept.id)
    assert sequence(on_disk) == before


def test_who_is_behind_the_trimmed_feed_loads_afresh(path, monkeypatch):
    monkeypatch.setattr(transaction, "KEPT_ROWS", 100)
    with Memory(path, settings=PLAIN) as slow, Memory(path, settings=PLAIN) as busy:
        kept = busy.remember(NewRecord("word kept", vector=unit(0)))
        gone = busy.remember(NewRecord("word gone", vector=unit(1)))
        assert len(slow.recall("word")) == 2
        with busy._engine.store.atomic():
            for number in range(2100):
                busy.update(kept.id, importance=(number % 100) / 100)
        busy.forget(gone.id)
        busy.update(kept.id, text="word changed", vector=unit(2))
        with busy._engine.store.read() as reader:
            assert reader.connection.execute("SELECT count(*) FROM feed").get < 1200
            assert reader.changes.since(slow._engine.index.commit) is None
        assert [hit.text for hit in slow.recall("word", vector=unit(2))] == ["word changed"]


def indexed(memory: Memory) -> dict[int, tuple[bytes, ...]]:
    """What the index has of each vector, by row id."""
    memory.recall("", vector=unit(0))
    found = memory._engine.index.vectors
    owners = found.owners(np.arange(len(found)))
    open_ = np.flatnonzero(memory._engine.index.table.open[owners])
    rows = zip(found.ids(open_).tolist(), found.codes[open_], found.scales[open_], found.residuals[open_], strict=True)
    return {row_id: tuple(each.tobytes() for each in parts) for row_id, *parts in rows}


def derived(memory: Memory) -> dict[int, tuple[bytes, ...]]:
    """The same of the vectors of open records that are stored."""
    with memory._engine.store.read() as reader:
        rows = reader.connection.execute(
            "SELECT v.id, v.record_id, v.value FROM vector v JOIN record r ON r.id = v.record_id "
            "WHERE r.recorded_until IS NULL ORDER BY v.id"
        ).fetchall()
    ids, owners, values = zip(*rows, strict=True)
    made = pack(np.array(ids), np.array(owners), np.array([np.frombuffer(value, dtype="<f4") for value in values]))
    parts = zip(made.codes, made.scales, made.residuals, strict=True)
    return {row_id: tuple(each.tobytes() for each in part) for row_id, part in zip(ids, parts, strict=True)}


def test_indexed_vectors_keep_step_with_the_stored(on_disk):
    ids = on_disk.remember_many([{"text": f"number {number}", "vector": unit(number)} for number in range(20)])
    assert indexed(on_disk) == derived(on_disk)
    assert len(indexed(on_disk)) == 20
    on_disk.update(ids[3], text="changed", vector=unit(99))
    assert indexed(on_disk) == derived(on_disk)
    on_disk.forget(ids[5:9])
    assert indexed(on_disk) == derived(on_disk)
    on_disk.store.rebuild()
    assert indexed(on_disk) == derived(on_disk)
    on_disk.store.vacuum()
    assert indexed(on_disk) == derived(on_disk)
    assert len(indexed(on_disk)) == 16
    with Memory(on_disk.path, settings=PLAIN) as other:
        assert indexed(other) == derived(on_disk)


def test_sql_finds_the_nearest_of_the_current_records(on_disk):
    ids = on_disk.remember_many([{"text": f"number {number}", "vector": unit(number)} for number in range(20)])
    on_disk.update(ids[3], text="changed", vector=unit(99))
    with on_disk._engine.store.read() as reader:
        found = reader.connection.execute(
            "SELECT id, text, vec_distance_cosine(vector, ?1) AS distance FROM memory_vectors "
            "WHERE kind = 'memory' AND scope = '/' ORDER BY distance LIMIT 3",
            (unit(3).astype("<f4").tobytes(),),
        ).fetchall()
        assert reader.connection.execute("SELECT count(*) FROM memory_vectors").get == 20
    vectors = {key: unit(99 if number == 3 else number) for number, key in enumerate(ids)}
    wanted = sorted(vectors, key=lambda key: -float(vectors[key] @ unit(3)))[:3]
    assert [key for key, *_ in found] == wanted
    assert [distance for *_, distance in found] == pytest.approx(
        [1 - float(vectors[key] @ unit(3)) for key in wanted], abs=1e-6
    )


def test_a_dimension_that_is_no_whole_bytes_works(on_disk):
    on_disk.remember_many([{"text": f"number {number}", "vector": unit(number, 7)} for number in range(5)])
    assert on_disk.recall("", vector=unit(3, 7), limit=1)[0].text == "number 3"
    assert on_disk.store.verify().problems == ()
    assert on_disk.store.rebuild().problems == ()


def test_forgetting_leaves_no_row_behind(on_disk):
    ids = on_disk.remember_many(
        [
            {"text": f"number {number}", "vector": unit(number), "tags": ["a"], "source": "s", "scope": f"/s{number}"}
            for number in range(4)
        ]
    )
    on_disk.update(ids[0], text="changed once", vector=unit(9))
    on_disk.update(ids[0], text="changed twice", vector=unit(10))
    on_disk.link(ids[0], ids[1])
    on_disk.recall("changed")
    assert on_disk.forget(ids).versions == 2
    with on_disk._engine.store.read() as reader:
        for table in ("record", "vector", "record_terms", "record_tag", "link", "access", "source"):
            assert reader.connection.execute(f"SELECT count(*) FROM {table}").get == 0, table
    assert on_disk.recall("changed", vector=unit(9)) == []
    assert on_disk.count() == 0


def test_ids_are_never_given_twice(on_disk):
    """SQLite gives the rows of deleted records to new ones; links and caches then point to the wrong memory."""
    last = on_disk.remember_many(["one", "two"])[1]
    with on_disk._engine.store.read() as reader:
        highest = reader.connection.execute("SELECT max(id) FROM record").get
    on_disk.forget(last)
    on_disk.remember("three")
    with on_disk._engine.store.read() as reader:
        assert reader.connection.execute("SELECT max(id) FROM record").get > highest


def test_vacuum_gives_space_back_and_changes_no_answer(on_disk):
    ids = on_disk.remember_many(
        [{"text": f"number {number} " + "filler " * 100, "vector": unit(number)} for number in range(400)]
    )
    on_disk.store.catch_up()
    on_disk.forget(ids[20:])
    before = scored(on_disk.recall("number filler", vector=unit(7), limit=20, profile={"half_life_days": 0}))
    size = on_disk.store.stats().bytes_on_disk
    given_back = on_disk.store.vacuum()
    assert given_back > 0
    assert on_disk.store.stats().bytes_on_disk == size - given_back
    assert on_disk.store.stats().terms < 30
    assert scored(on_disk.recall("number filler", vector=unit(7), limit=20, profile={"half_life_days": 0})) == before
    assert on_disk.store.verify().problems == ()


def test_a_forgotten_text_is_not_in_the_file_after_vacuum(on_disk):
    from pathlib import Path

    gone = on_disk.remember("the secretpassphrase is here", tags=["secrettag"])
    on_disk.remember("something else")
    on_disk.forget(gone.id)
    on_disk.store.vacuum()
    path = on_disk.path
    on_disk.close()
    data = Path(path).read_bytes()
    for word in (b"secretpassphrase", b"secretpassphras", b"secrettag"):
        assert word not in data


def test_a_backup_is_refused_over_an_existing_file(on_disk, tmp_path):
    (tmp_path / "there.db").write_text("precious")
    with pytest.raises(InvalidInput, match=r"there\.db exists"):
        on_disk.store.backup(tmp_path / "there.db")
    assert (tmp_path / "there.db").read_text() == "precious"
    with pytest.raises((InvalidInput, StoreError)):
        on_disk.store.backup(on_disk.path)
    with pytest.raises(StoreError, match="does not exist"):
        on_disk.store.backup(tmp_path / "missing" / "x.db")


def test_a_backup_that_breaks_off_leaves_nothing(on_disk, tmp_path):
    on_disk.remember("one")

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        on_disk.store.backup(tmp_path / "copy.db", on_progress=stop)
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("copy")] == []
    on_disk.remember("two")


def test_a_backup_of_ram_is_a_file(memory, tmp_path):
    kept = memory.remember(NewRecord("kept", vector=unit(1)))
    copy = memory.store.backup(tmp_path / "copy.db")
    with Memory(copy, settings=PLAIN) as restored:
        assert restored.get(kept.id).text == "kept"
        assert restored.store.verify().problems == ()


def test_statements_after_one_that_yields_rows_run_only_when_fetched():
    """Why every multi-statement call in the store ends in fetchall()."""
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE t (x)")
    cursor = connection.execute("SELECT 1; INSERT INTO t VALUES (2)")
    assert connection.execute("SELECT count(*) FROM t").get == 0
    cursor.fetchall()
    assert connection.execute("SELECT count(*) FROM t").get == 1


def test_the_file_closed_with_raw_access_still_opens(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember(NewRecord("one", vector=unit(1)))
    raw(path).close()
    with Memory(path, settings=PLAIN) as memory:
        assert memory.store.verify().problems == ()
