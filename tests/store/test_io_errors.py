"""What the system says when a disk fails, a quota is used up or descriptors run out, told with what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from os import environ

import apsw
import pytest
from msgspec import structs

from benchmarks.resilience import process, shim
from recallite import Memory
from recallite.errors import StoreError, StoreIOError
from recallite.remember import write
from recallite.store.sqlite.faults import as_store_error
from recallite.store.sqlite.store import SqliteStore
from tests.memory.support import PLAIN, WordEmbedder

# Each of (what, error of the system, calls it hits) is done on a store of its own; prints the error it raises.
_PROGRAM = """
import json, sys
from pathlib import Path
from benchmarks.resilience.shim import Shim
from recallite import Memory, Settings
folder = Path(sys.argv[1])
told, answers = Shim(folder), []
for number, (verb, error, kind) in enumerate(json.loads(sys.argv[2])):
    path = folder / str(number) / "agent.db"
    path.parent.mkdir()
    plain = Settings(embedder="none")
    held = Memory(path, settings=plain)
    held.remember_many(f"text number {place} " + "word " * 50 for place in range(40))
    if verb == "list the checkpointed":
        held.vacuum()
        held.close()
    calls = {
        "remember": lambda: held.remember("one more"),
        "list": lambda: Memory(path, settings=plain).list(),
        "list the checkpointed": lambda: Memory(path, settings=plain).list(),
        "open": lambda: Memory(path, settings=plain),
        "backup": lambda: held.backup(folder / f"{number}-copy.db"),
    }
    told.arm("fail", kinds=[kind], error=error, for_good=True)
    try:
        calls[verb]()
        answers.append(["nothing", ""])
    except Exception as fault:
        answers.append([type(fault).__name__, str(fault)])
    told.disarm()
    with Memory(path, settings=plain) as after:
        assert after.count() == 40 and after.verify().ok
print(json.dumps(answers))
"""
_EXPECTED = {
    ("remember", "EDQUOT", "write"): ("StoreFull", "quota of the disk that holds", "have the quota raised"),
    ("remember", "ENOSPC", "write"): ("StoreFull", "is full; the write was rolled back", "Free some space"),
    ("remember", "ENOSPC", "sync"): ("StoreFull", "is full; the write was undone, but may be there", "Free some space"),
    ("remember", "EIO", "write"): ("StoreIOError", "cannot be written", "Check the disk"),
    ("remember", "EIO", "sync"): ("StoreIOError", "cannot be written", "Check the disk"),
    ("list", "EIO", "read"): ("StoreIOError", "cannot be read", "the file may be intact"),
    ("list the checkpointed", "EIO", "read"): ("StoreIOError", "cannot be read", "the file may be intact"),
    ("open", "EMFILE", "open"): ("StoreIOError", "too many open files", "ulimit -n"),
    ("backup", "EDQUOT", "write"): ("StoreFull", "quota of the disk that holds", "nothing was left of the backup"),
    ("backup", "EIO", "write"): ("StoreIOError", "cannot be written", "nothing was left of the backup"),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    if (reason := shim.missing()) is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("io")
    library = shim.build(folder)
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(folder), json.dumps([*_EXPECTED])],
        env={**environ, "LD_PRELOAD": str(library), "RECALLITE_KERNELS": "python"},
        stdout=subprocess.PIPE, text=True, check=True, cwd=process.ROOT,
    )  # fmt: skip
    return dict(zip(_EXPECTED, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("case", _EXPECTED, ids="-".join)
def test_an_error_of_the_system_is_told_with_what_to_do(answers, case):
    kind, message = answers[case]
    expected, *parts = _EXPECTED[case]
    assert kind == expected, message
    for part in parts:
        assert part in message


def test_what_was_updated_is_returned_as_it_was_committed(on_disk, monkeypatch):
    """It was read again after the commit: a disk that failed then, or another's `forget`, made `update` raise."""
    kept = on_disk.remember("first words")
    on_disk.update(kept.id, text="second words")

    def fails(*_):
        raise StoreError("the disk failed")

    commit = SqliteStore.atomic

    @contextmanager
    def then_fails(store, **options):
        with commit(store, **options) as connection:
            yield connection
        monkeypatch.setattr(SqliteStore, "read", fails)

    monkeypatch.setattr(SqliteStore, "atomic", then_fails)
    changed = on_disk.update(kept.id, text="third words", importance=0.9)
    monkeypatch.undo()
    assert changed == structs.replace(on_disk.get(kept.id), outcome="updated")
    assert (changed.text, changed.importance) == ("third words", 0.9)
    monkeypatch.setattr(SqliteStore, "atomic", then_fails)
    restored = on_disk.restore(kept.id, 0)
    monkeypatch.undo()
    assert restored == structs.replace(on_disk.get(kept.id), outcome="updated")
    assert restored.text == "first words"


def test_an_update_counts_the_accesses_so_far(on_disk):
    kept = on_disk.remember("first words")
    for _ in range(3):
        on_disk.recall("words")
    assert on_disk.update(kept.id, importance=0.9).access_count == 3


def test_what_is_stored_is_not_told_as_failed_by_what_comes_after(path, monkeypatch):
    """Vectors that wait are embedded after the commit: a disk that fails then made `remember` raise."""

    def fails(*_):
        raise StoreError("the disk failed")

    embedder = WordEmbedder()
    with Memory(path, embedder=embedder, settings=PLAIN) as memory:
        monkeypatch.setattr(write, "drain_pending", fails)
        assert memory.remember("kept words").outcome == "created"
        assert memory.count() == 1
        monkeypatch.undo()
        assert memory.remember("more words").text == "more words"


def test_an_error_is_told_though_the_connection_was_closed_meanwhile(tmp_path):
    connection = apsw.Connection(str(tmp_path / "a.db"))
    connection.close()
    fault = apsw.IOError("disk I/O error")
    fault.extendedresult = apsw.SQLITE_IOERR_WRITE
    told = as_store_error(fault, "a.db", connection)
    assert isinstance(told, StoreIOError)
    assert "a.db cannot be written" in str(told)
