"""The index snapshot beside a server: the same answers, of this memory and server only, gone with what it held."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from recallite import Memory, Settings
from recallite.errors import StoreError
from recallite.index import snapshot
from recallite.model.records import NewRecord
from tests.unit.core.memory.support import scored, unit

pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")
pytest.importorskip("psycopg_pool", reason="psycopg_pool is not installed: the extra `postgres`")

from recallite_postgres import repositories

FAST = Settings(embedder="none")
PLAIN = Settings(embedder="none", index_snapshot=False)
WORDS = ["apple", "berry", "cherry", "date", "elder", "fig", "grape"]


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path, postgres_address):
    """The cache folder of repositories, which are written of small memories too."""
    monkeypatch.setattr(repositories, "_folder", lambda: str(tmp_path / "cache" / "index"))
    monkeypatch.setattr(snapshot, "_SMALLEST", 10)
    monkeypatch.setattr(snapshot, "_FAR_BEHIND", 5)
    return tmp_path / "cache" / "index"


def items(first, count):
    return [
        {"text": f"{WORDS[number % 7]} {WORDS[number * 3 % 7]} unique{number}", "vector": unit(number)}
        for number in range(first, first + count)
    ]


def recalled(memory):
    memory.recall("apple", vector=unit(3))
    return memory.store.stats().index["origin"]


def answers(memory):
    questions = [{"query": "apple berry"}, {"query": "unique7", "vector": unit(7)}, {"query": "fig", "vector": unit(8)}]
    return [scored(memory.recall(limit=30, profile={"half_life_days": 0}, **question)) for question in questions]


@pytest.fixture
def stored(postgres_address, folder) -> tuple[str, Path]:
    """The address of a memory of 40 records, closed, and its snapshot."""
    with Memory(postgres_address, settings=FAST) as memory:
        memory.remember_many(items(0, 40))
        assert recalled(memory) == "store"
    (file,) = folder.iterdir()
    return postgres_address, file


def test_answers_are_those_of_an_index_from_the_server(stored):
    address, file = stored
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(file.parent).st_mode) == 0o700
    with Memory(address, settings=PLAIN) as plain:
        plain.remember_many(items(40, 3))
        plain.update(plain.list(limit=1)[0].id, text="apple changed", vector=unit(500))
        expected = answers(plain)
        assert recalled(plain) == "store"
    with Memory(address, settings=FAST) as memory:
        assert answers(memory) == expected
        assert recalled(memory) == "snapshot"


def test_whoever_forgets_removes_it_and_writes_no_other_with_traces(stored):
    address, file = stored
    with Memory(address, settings=FAST) as memory:
        assert recalled(memory) == "snapshot"
        file.with_name(f"{file.name}-part").write_bytes(b"left by a killed process")
        memory.forget(memory.list(limit=1)[0].id)
        assert [*file.parent.iterdir()] == []
        recalled(memory)
    assert [*file.parent.iterdir()] == []
    with Memory(address, settings=FAST) as memory:
        assert recalled(memory) == "store"
    assert file.exists()


def test_a_receipt_tells_of_it(stored):
    address, _ = stored
    with Memory(address, settings=PLAIN) as memory:
        assert memory.forget(memory.list(limit=1)[0].id, receipt=True).receipt.index_snapshot
        assert not memory.forget(memory.list(limit=1)[0].id, receipt=True).receipt.index_snapshot


def test_where_the_rows_cannot_be_searched_the_receipt_says_so(stored, monkeypatch):
    """The records are gone by then: an error would have them taken for kept."""

    def fails(*_):
        raise StoreError("it failed", "io")

    address, _ = stored
    with Memory(address, settings=PLAIN) as memory:
        id, before = memory.list(limit=1)[0].id, memory.count()
        monkeypatch.setattr(repositories.PostgresErasure, "found_in_tables", fails)
        gone = memory.forget(id, receipt=True)
        assert (gone.records, memory.count()) == (1, before - 1)
    assert [problem for problem in gone.receipt.problems if "could not be searched (io)" in problem]


def test_what_another_machine_forgot_leaves_with_the_next_opening(stored, monkeypatch, tmp_path):
    address, file = stored
    with monkeypatch.context() as patch:
        patch.setattr(repositories, "_folder", lambda: str(tmp_path / "elsewhere"))
        with Memory(address, settings=FAST) as other:
            gone = other.recall("unique7", mode="keyword")[0].id
            other.forget(gone)
    assert file.exists()
    with Memory(address, settings=FAST) as memory:
        assert gone not in {hit.id for hit in memory.recall("unique7", vector=unit(7))}
        assert not file.exists()
    assert not file.exists()


def test_it_is_of_no_restored_schema_and_of_no_server_that_began_again(stored, postgres_server):
    address, file = stored
    kept = file.read_bytes()
    schema = address.rpartition("schema=")[2].split("&")[0]
    postgres_server.execute(f"DROP SCHEMA {schema} CASCADE")
    with Memory(address, settings=PLAIN) as memory:
        memory.remember_many(items(100, 20))
    assert file.read_bytes() == kept
    with Memory(address, settings=FAST) as memory:
        assert recalled(memory) == "store"
        assert memory.store.stats().index["records"] == 20
    with Memory(address, settings=FAST) as memory:
        assert recalled(memory) == "snapshot"
    postgres_server.stop()
    postgres_server.start()
    with Memory(address, settings=FAST) as memory:
        assert recalled(memory) == "store"


def test_a_damaged_one_is_not_used(stored):
    address, file = stored
    data = bytearray(file.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    file.write_bytes(data)
    with Memory(address, settings=FAST) as memory:
        memory.remember(NewRecord("apple pie", vector=unit(900)))
        assert recalled(memory) == "store"


def test_old_ones_and_those_above_the_bytes_of_all_go(folder, monkeypatch):
    folder.mkdir(parents=True)
    for place, name in enumerate(("newest", "large", "larger")):
        (folder / name).write_bytes(b"0" * 1000)
        os.utime(folder / name, (2e9 - place, 2e9 - place))
    os.utime(folder / "large", (1, 1))
    monkeypatch.setattr(repositories, "_MOST_BYTES", 2500)
    assert Path(repositories.snapshot_path("postgresql://a/b")).parent == folder
    assert sorted(file.name for file in folder.iterdir()) == ["larger", "newest"]
    monkeypatch.setattr(repositories, "_MOST_BYTES", 500)
    repositories.snapshot_path("postgresql://a/b")
    assert [file.name for file in folder.iterdir()] == ["newest"]


def test_without_a_cache_folder_there_is_none(monkeypatch, tmp_path, postgres_address):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(repositories, "_folder", lambda: str(tmp_path / "file" / "index"))
    with Memory(postgres_address, settings=FAST) as memory:
        memory.remember_many(items(0, 20))
        assert recalled(memory) == "store"
