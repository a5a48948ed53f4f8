"""Writers of different scopes run at the same time, and those of one scope one after the other."""

from __future__ import annotations

import threading

import pytest

from recallite import Memory, Settings
from recallite.derivation import derive
from recallite.errors import StoreUnavailable
from recallite.remember import pending
from recallite.remember.write import Batch
from recallite.store.opening import open_store
from tests.limits import LAST_RESORT_SECONDS
from tests.raising import raises
from tests.unit.core.store.contract.support import row

PLAIN = Settings(embedder="none")


@pytest.fixture
def stores(postgres_address):
    """Two of one memory, as two processes have them."""
    opened = [open_store(postgres_address, busy_timeout_ms=200, derive=derive) for _ in range(2)]
    yield opened
    for store in opened:
        store.close()


def test_what_names_other_scopes_is_written_at_the_same_time(stores):
    first, second = stores
    with first.atomic(locks=["/ada"]) as ada:
        ada.records.insert([row("a", "the same words here", scope="/ada", tags=("same",))], None)
        with second.atomic(locks=["/bob"]) as bob:
            bob.records.insert([row("b", "the same words here", scope="/bob", tags=("same",))], None)
    with first.read() as reader:
        ids = reader.records.find_ids(["a", "b"], "/")
        block = reader.blocks.terms(sorted(ids.values()))
        # Words and tags were numbered once, by whoever came first.
        assert block.terms[: block.offsets[1]].tolist() == block.terms[block.offsets[1] :].tolist()


def test_who_names_the_same_scope_waits_and_who_names_none_waits_for_all(stores):
    first, second = stores
    with first.atomic(locks=["/ada"]):
        for locks in (["/ada"], ["/bob", "/ada"], None):
            with raises(StoreUnavailable, "locked"), second.atomic(locks=locks):
                pass
        with raises(StoreUnavailable, "locked"), second.atomic(wait=False, locks=["/ada"]):
            pass
    with first.atomic(), raises(StoreUnavailable, "locked"), second.atomic(locks=["/ada"]):
        pass


def test_a_change_that_commits_late_is_seen_by_who_read_before(stores):
    """Its sequence number and its transaction are older than what the reader has seen already."""
    first, second = stores
    with first.atomic(locks=["/ada"]) as late:
        late.records.insert([row("late", scope="/ada")], None)
        with second.atomic(locks=["/bob"]) as early:
            early.records.insert([row("early", scope="/bob")], None)
        with second.read() as reader:
            seen = reader.changes.commit()
            found = reader.records.find_ids(["late", "early"], "/")
            assert set(found) == {"early"}
    with second.read() as reader:
        missed = reader.changes.since(seen)
        (row_id,) = reader.records.find_ids(["late"], "/").values()
        assert [(change.first_id, change.last_id) for change in missed] == [(row_id, row_id)]
        assert row_id < found["early"]
        assert not reader.changes.contained_in(seen)
        assert reader.changes.since(reader.changes.commit()) == []


def test_the_index_of_a_reader_takes_what_commits_late(postgres_address):
    with Memory(postgres_address, settings=PLAIN) as memory, Memory(postgres_address, settings=PLAIN) as other:
        memory.remember("zebras graze", scope="/bob")
        assert len(other.recall("zebras")) == 1
        began, go_on = threading.Event(), threading.Event()

        def write_late():
            with memory._engine.store.atomic(locks=["/ada"]) as writer:
                writer.records.insert([row("late", "zebras gallop", scope="/ada")], None)
                began.set()
                go_on.wait(LAST_RESORT_SECONDS)

        thread = threading.Thread(target=write_late)
        thread.start()
        began.wait(LAST_RESORT_SECONDS)
        other.remember("zebras sleep", scope="/bob")
        assert sorted(hit.text for hit in other.recall("zebras")) == ["zebras graze", "zebras sleep"]
        go_on.set()
        thread.join()
        assert sorted(hit.text for hit in other.recall("zebras")) == ["zebras gallop", "zebras graze", "zebras sleep"]


def test_what_commits_late_is_compared_though_its_ids_are_lower(postgres_address, monkeypatch):
    with Memory(postgres_address, settings=PLAIN) as memory, Memory(postgres_address, settings=PLAIN) as other:
        for each in (memory, other):
            each._engine.comparing.stop()
        began, go_on = threading.Event(), threading.Event()
        write_all, compare_ahead = Batch.write_all, pending._Ahead

        def written_late(batch):
            ids = write_all(batch)
            if threading.current_thread() is thread:
                began.set()
                go_on.wait(LAST_RESORT_SECONDS)
            return ids

        def compared_before_the_commit(*arguments):
            ahead = compare_ahead(*arguments)
            go_on.set()
            thread.join()
            return ahead

        monkeypatch.setattr(Batch, "write_all", written_late)
        monkeypatch.setattr(pending, "_Ahead", compared_before_the_commit)
        shelves = [f"Shelf {number} holds {number * 7} jars" for number in range(pending.MANY)]
        late = ["Dana lives in Oslo", *shelves, "Dana moved to Bergen"]
        thread = threading.Thread(target=lambda: memory.scoped("/ada").remember_many(late))
        thread.start()
        began.wait(LAST_RESORT_SECONDS)
        other.scoped("/bob").remember_many(shelves)
        other.store.catch_up()
        current = {record.text for record in other.scoped("/ada").list(limit=1000)}
        assert current == {*shelves, "Dana moved to Bergen"}
        assert other.store.verify().problems == ()


def test_many_threads_write_with_few_connections(postgres_address):
    with Memory(f"{postgres_address}&pool_size=3") as memory:
        problems = []

        def write(number):
            try:
                for place in range(5):
                    memory.remember(f"thread {number} writes sentence {place}", scope=f"/{number}")
            except Exception as fault:
                problems.append(fault)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        assert memory.count() == 30
        assert memory.store.verify().problems == ()
