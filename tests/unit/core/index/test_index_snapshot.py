"""The index snapshot: the same answers as from the store, ignored where anything differs, deleted with what it held."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from recallite import Memory, Settings
from recallite.derivation import derive
from recallite.errors import InvalidInput, StoreCorrupt
from recallite.index import growable, lexical, snapshot
from recallite.index.growable import Growable
from recallite.index.table import RecordTable
from recallite.model.records import NewRecord
from recallite.recall.request import recall_arguments
from recallite.store.opening import open_store
from tests.unit.core.index.support import told
from tests.unit.core.memory.support import raw, scored, unit
from tests.unit.core.store.contract.support import row

FAST = Settings(embedder="none", durability="normal")
PLAIN = Settings(embedder="none", durability="normal", index_snapshot=False)
WORDS = ["apple", "berry", "cherry", "date", "elder", "fig", "grape"]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Snapshots of small stores, and files of large arrays for small ones."""
    monkeypatch.setattr(snapshot, "_SMALLEST", 10)
    monkeypatch.setattr(snapshot, "_FAR_BEHIND", 5)
    monkeypatch.setattr(growable, "_LARGE_BYTES", 64)


def item(number: int) -> dict:
    return {
        "text": f"{WORDS[number % 7]} {WORDS[number * 3 % 7]} unique{number}",
        "vector": unit(number),
        "source": f"s{number // 9}" if number % 4 else None,
        "position": number % 9,
        "importance": number % 10 / 10,
        "kind": "memory" if number % 3 else "note",
        "created_at": "2026-01-01T00:00:00Z",
    }


def answers(memory: Memory) -> list[list[tuple[str, float]]]:
    questions = [
        {"query": "apple berry"},
        {"query": "unique7", "vector": unit(7)},
        {"query": "", "vector": unit(8), "kinds": ["note"]},
        {"query": "fig date", "diversify_by": "one_per_source"},
    ]
    return [
        scored(memory.recall(limit=30, **recall_arguments({**question, "half_life_days": 0}))) for question in questions
    ]


def origin(memory: Memory) -> str:
    return memory.store.stats().index["origin"]


@pytest.fixture
def stored(path) -> str:
    """A store of 100 records with links and a changed text, closed, with its snapshot."""
    with Memory(path, settings=FAST) as memory:
        ids = memory.remember_many([item(number) for number in range(100)])
        memory.store.catch_up()  # else a later recall has them compared, beside what a test counts
        memory.link(ids[3], ids[40], strength=0.5)
        memory.update(ids[5], text="apple changed", vector=unit(500))
        memory.recall("apple")
        assert origin(memory) == "store"
    assert Path(f"{path}-index").exists()
    return path


def expected(path: str) -> list[list[tuple[str, float]]]:
    with Memory(path, settings=PLAIN) as memory:
        found = answers(memory)
        assert origin(memory) == "store"
    return found


@pytest.mark.parametrize(("count", "kept"), [(9, False), (30, True)])
def test_who_stores_many_writes_it_without_a_recall(path, count, kept):
    with Memory(path, settings=FAST) as memory:
        memory.remember_many(map(item, range(count)))
        assert memory._engine.index.commit is None
    assert os.path.exists(f"{path}-index") == kept
    with Memory(path, settings=FAST) as memory, Memory(path, settings=PLAIN) as loaded:
        assert answers(memory) == answers(loaded)
        assert (memory._engine.index.origin, loaded._engine.index.origin) == ("snapshot" if kept else "store", "store")
        memory.remember(NewRecord("apple pie"))
    with Memory(path, settings=PLAIN) as memory:  # a few are no reason to load what nobody asks
        memory.remember(NewRecord("cherry pie"))


def test_answers_from_the_snapshot_are_those_from_the_store(stored):
    with Memory(stored, settings=FAST) as memory:
        assert answers(memory) == expected(stored)
        assert origin(memory) == "snapshot"
    assert stat.S_IMODE(os.stat(f"{stored}-index").st_mode) == 0o600
    assert not Path(f"{stored}-index-part").exists()


def test_changes_since_are_caught_up_and_do_not_reach_the_file(stored):
    before = Path(f"{stored}-index").read_bytes()
    with Memory(stored, settings=PLAIN) as memory:
        ids = [record.id for record in memory.list(limit=None, order="oldest")]
        memory.remember(NewRecord("apple new", vector=unit(7), source="s1", position=3))
        memory.update(ids[20], text="berry apple again")
        memory.update(ids[30], importance=1.0, position=0)
        memory.link(ids[1], ids[60])
    with Memory(stored, settings=FAST) as memory:
        assert answers(memory) == expected(stored)
        assert origin(memory) == "snapshot"
        memory.remember(NewRecord("apple newer", vector=unit(8)))
        assert answers(memory) == expected(stored)
        assert Path(f"{stored}-index").read_bytes() == before


def test_every_array_is_that_of_an_index_from_the_store(path):
    """Also after changes, which the snapshot is caught up with."""
    texts = ["I live in Berlin.", "I prefer tea.", "Always reply in French.", "!!!"]
    with Memory(path, settings=FAST) as memory:
        ids = memory.remember_many([{"text": text, "vector": unit(place)} for place, text in enumerate(texts)])
        memory.remember_many([item(number) for number in range(40)])
        memory.update(ids[0], text="I live in Rome.", vector=unit(50))
        memory.recall("apple")
    for changed in ({}, {"kind": "episode"}, {"position": 3, "source": "s1"}, {"scope": "/a"}):
        with Memory(path, settings=FAST) as memory:
            if changed:
                memory.recall("apple")
                memory.update(ids[0], **changed)
            memory.recall("apple")
            assert origin(memory) == "snapshot"
            followed = told(memory)
        with Memory(path, settings=PLAIN) as memory:
            memory.recall("apple")
            assert origin(memory) == "store"
            assert told(memory) == followed
    assert any(any(map(any, each)) for each in followed["frames"])
    assert set(followed["standing"]) == {0, 1, 2}
    assert set(followed["positioned"]) == {0, 1}


def test_words_stay_when_the_tail_of_a_snapshot_has_none(path):
    """The last segment was taken for the tail's, and the next record ended all before it."""
    with Memory(path, settings=FAST) as memory:
        memory.remember_many([f"apple unique{number}" for number in range(300)])
        memory.recall("apple")
        for number in range(1, 11):
            memory.remember("!" * number)
            memory.recall("apple")
    with Memory(path, settings=FAST) as memory:
        memory.recall("apple")
        assert origin(memory) == "snapshot"
        memory.remember("cherry")
        assert len(memory.recall("apple", mode="keyword", limit=500)) == 300
        assert len(memory.recall("cherry", mode="keyword")) == 1
        followed = told(memory)
    with Memory(path, settings=PLAIN) as memory:
        memory.recall("apple")
        assert told(memory) == followed


def test_far_behind_it_is_written_again_at_close(stored):
    token = Path(f"{stored}-index").read_bytes()[:400]
    with Memory(stored, settings=FAST) as memory:
        memory.recall("apple")
        memory.remember_many([item(number) for number in range(100, 140)])
        found = answers(memory)
    assert Path(f"{stored}-index").read_bytes()[:400] != token
    with Memory(stored, settings=FAST) as memory:
        assert answers(memory) == found == expected(stored)
        assert origin(memory) == "snapshot"
        assert memory._engine.index.changed == 0


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 4096)


def _flip(path: Path) -> None:
    """One bit of the last section's data."""
    data = bytearray(path.read_bytes())
    place = max(place for place, byte in enumerate(data) if byte)
    data[place] ^= 1
    path.write_bytes(data)


def _flip_header(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(data)


def _other_format(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[7] += 1
    path.write_bytes(data)


def _swap_pages(path: Path) -> None:
    """Two pages of data in each other's place: a plain sum of all words is the same."""
    data = bytearray(path.read_bytes())
    filled = [start for start in range(4096, len(data), 4096) if any(data[start : start + 4096])]
    first, second = next(pair for pair in pairwise(filled) if data[pair[0] : pair[1]] != data[pair[1] : pair[1] + 4096])
    data[first : first + 4096], data[second : second + 4096] = (
        data[second : second + 4096], data[first : first + 4096],
    )  # fmt: skip
    path.write_bytes(data)


@pytest.mark.parametrize("low_memory", [False, True])
@pytest.mark.parametrize(
    "spoil",
    [
        _swap_pages,
        _truncate,
        _flip,
        _flip_header,
        _other_format,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"RcIndex\x01 and nothing else"),
        lambda path: path.unlink(),
        lambda path: (path.unlink(), path.mkdir()),
    ],
    ids=["pages swapped", "truncated", "flipped", "header", "format", "empty", "short", "missing", "folder"],
)
def test_a_damaged_snapshot_is_ignored(stored, spoil, low_memory, monkeypatch):
    monkeypatch.setenv("RECALLITE_LOW_MEMORY", str(int(low_memory)))
    spoil(Path(f"{stored}-index"))
    with Memory(stored, settings=FAST) as memory:
        assert answers(memory) == expected(stored)
        assert memory._engine.index.loads == 1


def test_a_foreign_snapshot_is_ignored(stored, tmp_path):
    other = str(tmp_path / "other.db")
    with Memory(other, settings=FAST) as memory:
        memory.remember_many([item(number) for number in range(200, 300)])
        memory.recall("apple")
    shutil.copyfile(f"{other}-index", f"{stored}-index")
    with Memory(stored, settings=FAST) as memory:
        assert answers(memory) == expected(stored)
        assert origin(memory) == "store"


def test_a_restored_backup_that_went_another_way_ignores_the_snapshot(stored, tmp_path):
    """Sequences alone agree again after as many commits; what they say does not."""
    copy = str(tmp_path / "copy.db")
    with Memory(stored, settings=FAST) as memory:
        memory.store.backup(copy)
        memory.recall("apple")
        memory.remember_many([item(number) for number in range(100, 140)])
        memory.recall("apple")
    shutil.copyfile(f"{stored}-index", f"{copy}-index")
    with Memory(copy, settings=PLAIN) as memory:
        for number in range(300, 340):
            memory.remember(NewRecord(**item(number)))
    with Memory(copy, settings=FAST) as memory:
        assert answers(memory) == expected(copy)
        assert origin(memory) == "store"


@pytest.mark.parametrize("verb", ["rebuild", "vacuum"])
def test_numbers_of_words_that_changed_make_it_useless(stored, verb):
    with Memory(stored, settings=PLAIN) as memory:
        memory.forget(memory.recall("unique9", mode="keyword")[0].id)
    with Memory(stored, settings=FAST) as memory:
        memory.recall("apple")
    with Memory(stored, settings=PLAIN) as memory:
        getattr(memory.store, verb)()
    with Memory(stored, settings=FAST) as memory:
        assert answers(memory) == expected(stored)
        assert origin(memory) == "store"
        assert memory.store.verify().problems == ()


def test_forget_removes_it_before_it_returns(stored):
    with Memory(stored, settings=PLAIN) as memory:
        Path(f"{stored}-index-part").write_bytes(b"left by a killed process")
        memory.forget(memory.list(limit=1)[0].id)
        assert not Path(f"{stored}-index").exists()
        assert not Path(f"{stored}-index-part").exists()
    with Memory(stored, settings=FAST) as memory:
        assert answers(memory) == expected(stored)


def test_a_file_knows_the_token_of_the_last_one_until_a_record_is_purged(path):
    store = open_store(path, derive=derive)
    with store.atomic() as writer:
        ids = writer.records.insert([row("a"), row("b")], None)
        identity, commit = writer.snapshot.identity(), writer.changes.commit()
        assert identity.token == ""
        assert writer.snapshot.publish(identity, "first", commit, lambda: None)
        assert writer.snapshot.identity().token == "first"
        writer.records.delete(ids[:1])
        assert writer.snapshot.identity().token == ""
    store.close()


def test_nothing_that_held_a_purged_record_is_written(stored):
    with Memory(stored, settings=FAST) as memory:
        memory.recall("apple")
        memory.forget(memory.list(limit=1)[0].id)
        memory.recall("apple")
    assert not Path(f"{stored}-index").exists()


def test_one_that_is_written_while_something_is_forgotten_is_not_kept(stored, monkeypatch):
    real, forgotten = snapshot.write, []

    def write(*arguments) -> None:
        real(*arguments)
        with Memory(stored, settings=PLAIN) as other:
            forgotten.append(other.list(limit=1)[0].id)
            other.forget(forgotten[-1])
        real(*arguments)  # as if the forgetting process had not seen the unfinished file

    Path(f"{stored}-index").unlink()
    monkeypatch.setattr(snapshot, "write", write)
    with Memory(stored, settings=FAST) as memory:
        memory.recall("apple")
    assert forgotten
    assert not Path(f"{stored}-index").exists()
    assert not Path(f"{stored}-index-part").exists()


def test_where_it_cannot_be_written_nothing_is_lost(path):
    Path(f"{path}-index-part").mkdir()
    with Memory(path, settings=FAST) as memory:
        memory.remember_many([item(number) for number in range(100)])
        memory.recall("apple")
    assert not Path(f"{path}-index").exists()
    assert expected(path)


def test_a_full_disk_keeps_no_part_of_it(path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(snapshot.os, "fsync", full)
    with Memory(path, settings=FAST) as memory:
        memory.remember_many([item(number) for number in range(20)])
        memory.recall("apple")
    assert not [*Path(path).parent.glob("*-index*")]


def test_an_exit_without_close_while_it_is_written_raises_nothing_in_its_thread(path, monkeypatch):
    def refused(*_):
        raise RuntimeError("cannot schedule new futures after shutdown")

    raised = []
    monkeypatch.setattr(snapshot, "write", refused)
    monkeypatch.setattr(threading, "excepthook", raised.append)
    with Memory(path, settings=FAST) as memory:
        memory.remember_many([item(number) for number in range(20)])
        memory.recall("apple")
    assert raised == []
    assert not Path(f"{path}-index").exists()


def test_none_for_a_store_in_memory_or_by_setting(path):
    for where, settings in ((":memory:", FAST), (path, PLAIN)):
        with Memory(where, settings=settings) as memory:
            memory.remember_many([item(number) for number in range(100)])
            memory.recall("apple")
    assert not Path(f"{path}-index").exists()
    with pytest.raises(InvalidInput, match="index_snapshot"):
        Settings(index_snapshot="yes")


def owners(memory: Memory) -> set[int]:
    """What the arrays of the index are views of; all that hold a record are views of one file if they are mapped."""
    found = set()
    for array in memory._engine.index.arrays().values():
        while isinstance(array.base, np.ndarray):
            array = array.base
        if array.nbytes > 100:
            found.add(id(array.base) if array.base is not None else id(array))
    return found


@pytest.mark.parametrize("low_memory", ["0", "1"])
def test_it_answers_alike_before_and_after_it_moves_onto_its_snapshot(stored, low_memory, monkeypatch):
    monkeypatch.setenv("RECALLITE_LOW_MEMORY", low_memory)
    Path(f"{stored}-index").unlink()
    with Memory(stored, settings=FAST) as memory:
        assert answers(memory) == expected(stored)
        memory._engine._snapshots._thread.join()
        assert len(owners(memory)) == 1
        assert origin(memory) == "store"
        assert answers(memory) == expected(stored)
        memory.remember_many([item(number) for number in range(200, 260)])
        assert answers(memory) == expected(stored)
    with Memory(stored, settings=FAST) as memory:
        assert answers(memory) == expected(stored)
        assert origin(memory) == "snapshot"


def test_arrays_that_do_not_fit_together_are_loaded_from_the_store_instead(stored, monkeypatch):
    """Also if that is found when the index moves onto what it has just written."""
    Path(f"{stored}-index").unlink()

    def refused(*_):
        raise ValueError("rows")

    with Memory(stored, settings=FAST) as memory:
        with monkeypatch.context() as patch:
            patch.setattr(RecordTable, "check", refused)
            memory.recall("apple")
            memory._engine._snapshots._thread.join()
            assert memory._engine.index.commit is None
        assert answers(memory) == expected(stored)


def test_without_room_for_a_copy_it_is_read_into_memory(stored, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(snapshot, "write_at", full)
    with Memory(stored, settings=FAST) as memory:
        assert answers(memory) == expected(stored)
        assert origin(memory) == "snapshot"


@pytest.mark.parametrize("with_snapshot", [True, False])
def test_one_recall_of_a_process_answers_alike(stored, with_snapshot, monkeypatch):
    monkeypatch.setattr("recallite.engine._LARGE", 10)
    once = Settings(embedder="none", index_snapshot=with_snapshot)
    with Memory(stored, settings=once) as memory:
        found = scored(memory.recall("unique7", vector=unit(7), limit=10, profile={"half_life_days": 0}), 3)
        assert origin(memory) == ("snapshot" if with_snapshot else "store")
    with Memory(stored, settings=PLAIN) as memory:
        assert scored(memory.recall("unique7", vector=unit(7), limit=10, profile={"half_life_days": 0}), 3) == found


def test_columns_follow_what_others_write(stored):
    connection = raw(stored)
    connection.execute("UPDATE record SET kind = 'own', position = 77 WHERE id = 4")
    connection.close()
    with Memory(stored, settings=PLAIN) as memory:
        assert memory.store.verify().problems == ()
        assert [hit.kind for hit in memory.recall("apple berry cherry", kinds=["own"])] == ["own"]
    connection = raw(stored)
    connection.execute("DELETE FROM kind WHERE name = 'own'")
    connection.close()
    with Memory(stored, settings=PLAIN) as memory:
        assert {problem.name for problem in memory.store.verify().problems} == {"record whose kind has no number"}
        assert memory.recall("apple berry cherry")
        assert memory.store.rebuild().problems == ()
        assert [hit.kind for hit in memory.recall("apple berry cherry", kinds=["own"])] == ["own"]


@pytest.mark.parametrize("value", ["'soon'", "x'00'", "1.5"])
def test_a_time_that_is_none_is_named(stored, value):
    connection = raw(stored)
    connection.execute(f"UPDATE record SET created_at = {value} WHERE id = 4")
    connection.close()
    with (
        Memory(stored, settings=PLAIN) as memory,
        pytest.raises(StoreCorrupt, match="record 4: created_at is not what was stored"),
    ):
        memory.recall("apple berry cherry")


def test_segments_too_large_to_merge_answer_as_one(path, monkeypatch):
    monkeypatch.setattr(lexical, "_LARGEST_MERGE", 4000)
    with Memory(path, settings=PLAIN) as memory:
        memory.recall("apple")
        for start in range(0, 4000, 400):
            memory.remember_many([item(number) for number in range(start, start + 400)])
            memory.recall("apple")
        assert len(memory._engine.index.words._segments) > 2
        followed = answers(memory)
    assert expected(path) == followed


def test_rows_appended_to_a_given_array_use_its_room_then_move():
    given = np.zeros((6, 2), dtype=np.int32)
    grown = Growable.over(given, 4)
    seen = grown.array
    grown.extend(np.ones((2, 2), dtype=np.int32))
    assert grown.array.base is given
    grown.extend(np.full((3, 2), 2, dtype=np.int32))
    assert grown.array.tolist() == [[0, 0]] * 4 + [[1, 1]] * 2 + [[2, 2]] * 3
    assert seen.tolist() == [[0, 0]] * 4


def test_what_was_being_written_when_the_store_got_a_key_goes(path, monkeypatch):
    with Memory(path, settings=FAST) as memory:
        memory.remember_many([item(number) for number in range(100)])
        store, write = memory._engine.store, snapshot.write

        def overtaken(*arguments):
            write(*arguments)
            store.key = object()  # as a rekey does before it lets go of the store

        with monkeypatch.context() as patch:
            patch.setattr(snapshot, "write", overtaken)
            memory.recall("apple")
            memory._engine._snapshots._thread.join()
        assert [Path(f"{path}-index{ending}").exists() for ending in ("", "-part")] == [False, False]
        store.key = None


def test_files_of_large_arrays_and_a_key_exclude_each_other(path, monkeypatch):
    monkeypatch.setenv("RECALLITE_LOW_MEMORY", "1")
    with Memory(path, settings=FAST) as memory, pytest.raises(InvalidInput, match="LOW_MEMORY"):
        memory.store.rekey("a passphrase")
