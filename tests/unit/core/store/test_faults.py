"""A full disk, a damaged page, a transaction that breaks off."""

from __future__ import annotations

from pathlib import Path

import pytest

from recallite import Memory
from recallite.errors import StoreCorrupt, StoreError
from recallite.store.sql.derived import WordNumbers
from recallite.store.sqlite.schema import PAGE_SIZE_BYTES
from tests.raising import raises
from tests.unit.core.memory.support import PLAIN, state, unit

LONG = "word " * 200


@pytest.fixture
def full(on_disk):
    """A memory whose file may grow by no more than three pages."""
    on_disk.remember("kept words")
    with on_disk._engine.store.exclusive() as connection:
        pages = connection.pragma("page_count") + 3
        connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    return on_disk


def test_a_full_disk_is_named_and_nothing_of_the_batch_is_stored(full):
    before = state(full)
    with raises(StoreError, "full", match=r"agent\.db is full.*Free some space"):
        full.remember_many(f"number {number} {LONG}" for number in range(500))
    assert state(full) == before
    assert full.store.verify().problems == ()
    assert [hit.text for hit in full.recall("words")] == ["kept words"]


def test_batches_before_the_disk_was_full_stay(full):
    progress = []
    with raises(StoreError, "full"):
        full.remember_many(
            (f"number {number} {LONG}" for number in range(500)),
            batch_size=4,
            on_progress=lambda done, total: progress.append(done),
        )
    assert full.count() == 1 + (progress[-1] if progress else 0)
    assert full.store.verify().problems == ()


def test_a_store_goes_on_once_there_is_space(full):
    with raises(StoreError, "full"):
        full.remember_many(f"lost {number} {LONG}" for number in range(500))
    with full._engine.store.exclusive() as connection:
        connection.execute("PRAGMA max_page_count = 1000000").fetchall()
    full.remember_many(f"found {number} {LONG}" for number in range(50))
    assert full.recall("found 7", limit=1)[0].text == f"found 7 {LONG}"
    assert full.recall("lost") == []
    assert full.store.verify().problems == ()


def test_numbers_are_dropped_before_another_thread_may_write(on_disk, monkeypatch):
    """Between the rollback and the cache's clearing another thread wrote with the numbers of words never stored."""
    held = []
    real = WordNumbers.forget

    def watched(numbers: WordNumbers) -> None:
        held.append(on_disk._engine.store._lock._is_owned())
        real(numbers)

    monkeypatch.setattr(WordNumbers, "forget", watched)
    with on_disk._engine.store.exclusive() as connection:
        pages = connection.pragma("page_count") + 1
        connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    with raises(StoreError, "full"):
        on_disk.remember_many(f"number {number} {LONG}" for number in range(500))
    assert held[:1] == [True]


def damage(path: str, text: bytes) -> None:
    """Overwrite the head of one leaf page that holds `text`."""
    data = bytearray(Path(path).read_bytes())
    pages = [
        page
        for page in range(1, len(data) // PAGE_SIZE_BYTES)
        if text in data[page * PAGE_SIZE_BYTES : (page + 1) * PAGE_SIZE_BYTES]
    ]
    start = pages[len(pages) // 2] * PAGE_SIZE_BYTES
    data[start : start + 64] = b"\xff" * 64
    Path(path).write_bytes(data)


@pytest.fixture
def damaged(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember_many({"text": f"text number {number} {LONG}", "vector": unit(number)} for number in range(300))
    damage(path, b"text number")
    with Memory(path, settings=PLAIN) as memory:
        yield memory


@pytest.mark.parametrize(
    "use",
    [
        lambda memory: memory.list(limit=None),
        lambda memory: memory.recall("text", limit=300),
        lambda memory: memory.store.rebuild(),
    ],
    ids=["list", "recall", "rebuild"],
)
def test_a_damaged_page_is_named_with_what_to_do(damaged, use):
    with pytest.raises(StoreCorrupt, match="damaged") as raised:
        use(damaged)
    assert damaged.path in str(raised.value)
    assert "{" not in str(raised.value)
    assert "backup" in str(raised.value)


def test_verify_names_a_damaged_page(damaged):
    found = damaged.store.verify()
    assert "SQLite integrity_check" in [problem.name for problem in found.problems]
    assert not found.ok
