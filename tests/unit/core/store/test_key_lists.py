"""Records listed by random keys: what is found is what is listed, through runs, merges, erasures and rollbacks."""

from __future__ import annotations

import random
from contextlib import suppress

import numpy as np
import pytest

from recallite import Memory
from recallite.derivation import derive
from recallite.errors import StoreCorrupt
from recallite.store.opening import open_store
from recallite.store.sqlite import key_lists
from recallite.store.sqlite.key_lists import MOST_APART, KeyLists, keys_instead, read_run, run_of, to_merge
from tests.unit.core.memory.support import PLAIN

MOST = 5


@pytest.fixture
def store(tmp_path):
    store = open_store(str(tmp_path / "store.db"), derive=derive)
    with store.atomic() as writer:
        writer.connection.execute("CREATE TABLE kept (record_id INTEGER PRIMARY KEY, keys BLOB)")
    yield store
    store.close()


@pytest.fixture
def small(monkeypatch):
    """Runs that are made, merged and written again after a few records."""
    monkeypatch.setattr(key_lists, "_RECENT_RECORDS", 8)
    monkeypatch.setattr(key_lists, "_LOOK_RECORDS", 8)
    monkeypatch.setattr(key_lists, "_SPARE", 1)


class Oracle:
    """The keys of each record that is listed."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.pool = [self.chance.randrange(-(2**63), 2**63) for _ in range(60)]
        self.listed = {}
        self.last_id = 0

    def rows(self, ids):
        return [(each, packed(self.listed[each])) for each in ids]

    def new(self, count):
        ids = range(self.last_id + 1, self.last_id + count + 1)
        self.last_id += count
        return self.put(ids)

    def put(self, ids):
        for each in ids:
            self.listed[each] = self.chance.sample(self.pool, self.chance.randint(1, 6))
        return self.rows(ids)

    def take(self, count):
        ids = self.chance.sample(sorted(self.listed), min(count, len(self.listed)))
        rows = self.rows(ids)
        for each in ids:
            del self.listed[each]
        return rows

    def newest(self):
        held = {}
        for row_id in sorted(self.listed, reverse=True):
            for key in self.listed[row_id]:
                held.setdefault(key, []).append(row_id)
        return {key: ids[:MOST] for key, ids in held.items()}

    def check(self, lists):
        one_by_one = {}
        for key in self.pool:
            one_by_one |= lists.newest([key], MOST)
        for found in (lists.newest(self.pool, MOST), one_by_one):
            assert {key: ids for key, ids in found.items() if ids} == self.newest()
        pairs = sorted((each, key) for each, keys in self.listed.items() for key in keys)
        assert [*zip(*(each.tolist() for each in lists.all()), strict=True)] == pairs


def packed(keys):
    return np.array(keys, dtype="<i8").tobytes()


class Lists(KeyLists):
    """Lists of records whose rows are in the table `kept`."""

    def add(self, rows):
        super().add(rows)
        self._execute_many("INSERT INTO kept VALUES (?, ?)", rows)

    def remove(self, rows, *, erase):
        super().remove(rows, erase=erase)
        self._execute_many("DELETE FROM kept WHERE record_id = ?", [(row[0],) for row in rows])


def lists_of(transaction):
    return Lists(transaction, "text", "SELECT record_id, keys FROM kept WHERE record_id > ?")


@pytest.mark.parametrize("seed", range(4))
def test_what_is_listed_is_found_and_nothing_else(store, small, seed):
    oracle = Oracle(seed)
    beside = open_store(store.path, derive=derive)  # keeps runs of its own, some of them from before an erasure
    try:
        for step in range(40):
            with (beside if step % 5 == 4 else store).atomic() as writer:
                lists = lists_of(writer)
                act = oracle.chance.random()
                if act < 0.35:
                    lists.add(oracle.new(oracle.chance.randint(8, 30)))
                elif act < 0.65:
                    lists.add(oracle.new(oracle.chance.randint(1, 4)))
                elif act < 0.85:
                    lists.remove(
                        oracle.take(oracle.chance.choice([1, 3, 20])), erase=bool(oracle.chance.getrandbits(1))
                    )
                else:  # as after another text
                    rows = oracle.take(oracle.chance.choice([1, 5, 12]))
                    lists.remove(rows, erase=True)
                    lists.add(oracle.put([row[0] for row in rows]))
                oracle.check(lists)
            for each in (store, beside):
                with each.read() as reader:
                    oracle.check(lists_of(reader))
    finally:
        beside.close()


def test_runs_are_few_and_hold_little_that_does_not_count(store):
    oracle = Oracle(1)
    with store.atomic() as writer:
        lists = lists_of(writer)
        for _ in range(70):
            lists.add(oracle.new(64))
        connection = writer.connection
        assert connection.execute("SELECT count(*) FROM text_run").get < 14
        for _ in range(40):
            lists.remove(oracle.take(90), erase=False)
            lists.add(oracle.new(64))
        left = connection.execute("SELECT count(*) FROM text_unlisted").get
        assert left < connection.execute("SELECT sum(length(keys)) / 8 FROM text_run").get / 16
        oracle.check(lists)


def test_what_is_rolled_back_is_found_no_more(store, small):
    oracle = Oracle(2)
    with store.atomic() as writer:
        lists_of(writer).add(oracle.new(30))
    before = dict(oracle.listed)

    def fail():
        with store.atomic() as writer:
            for _ in range(9):
                lists_of(writer).add(oracle.new(20))
            lists_of(writer).remove(oracle.take(5), erase=True)
            oracle.check(lists_of(writer))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    oracle.listed = before
    with store.atomic() as writer:
        oracle.check(lists_of(writer))


def test_what_was_read_after_an_erasure_that_is_rolled_back_is_not_kept(store, small):
    oracle = Oracle(3)
    with store.atomic() as writer:
        lists_of(writer).add(oracle.new(30))
    before = dict(oracle.listed)
    with suppress(ZeroDivisionError), store.atomic() as writer:
        lists_of(writer).remove(oracle.take(5), erase=True)
        with suppress(ZeroDivisionError), store.atomic():
            lists_of(writer).clear()
            assert lists_of(writer).newest([1], MOST) == {}
            raise ZeroDivisionError
        oracle.check(lists_of(writer))
        raise ZeroDivisionError
    oracle.listed = before
    with store.atomic() as writer:
        oracle.check(lists_of(writer))


def test_nothing_of_an_erased_key_is_left_in_the_file(store, monkeypatch):
    """Erased one after the other, as the key of one has overwritten that of the one before."""
    monkeypatch.setattr(key_lists, "_RECENT_RECORDS", 64)
    with store.atomic() as writer:
        keys = {row_id: [11**17 + row_id, 13**16 * row_id % 2**62] for row_id in range(1, 101)}
        lists_of(writer).add([(each, packed(owned)) for each, owned in keys.items()])
    for row_id in [*range(1, 100)]:
        with store.atomic() as writer:
            lists_of(writer).remove([(row_id, packed(keys[row_id]))], erase=True)
            blobs = b"".join(row[0] for row in writer.connection.execute("SELECT keys FROM text_run"))
        assert not any(packed([key]) in blobs for each in range(1, row_id + 1) for key in keys[each])
        assert all(packed([key]) in blobs for each in range(row_id + 1, 101) for key in keys[each])
    store.compact()
    with open(store.path, "rb") as file:
        content = file.read()
    assert not any(packed([key]) in content for each in range(1, 100) for key in keys[each])
    assert all(packed([key]) in content for key in keys[100])
    with store.atomic() as writer:
        lists_of(writer).remove([(100, packed(keys[100]))], erase=True)
        tables = ("text_run", "text_unlisted", "text_key")
        assert [writer.connection.execute(f"SELECT count(*) FROM {table}").get for table in tables] == [0, 0, 0]


@pytest.mark.parametrize("recent", [64, 128])
def test_a_key_that_is_listed_again_after_it_was_erased_leaves_the_others(store, monkeypatch, recent):
    monkeypatch.setattr(key_lists, "_RECENT_RECORDS", recent)
    keys = {row_id: [row_id << 32] for row_id in range(1, 101)}
    again = [(1, packed(keys[1]))]
    with store.atomic() as writer:
        lists_of(writer).add([(each, packed(owned)) for each, owned in keys.items()])
    for _ in range(3):
        with store.atomic() as writer:
            lists_of(writer).remove(again, erase=True)
            assert lists_of(writer).all()[0].tolist() == [*range(2, 101)]
            lists_of(writer).add(again)
            assert lists_of(writer).all()[0].tolist() == [*range(1, 101)]


def test_the_newest_records_are_found_without_a_list(store):
    """A write of one writes no page of a list; another process reads what is not in a run from the records."""
    oracle = Oracle(3)
    beside = open_store(store.path, derive=derive)
    try:
        for step in range(200):
            with (beside if step % 3 else store).atomic() as writer:
                lists_of(writer).add(oracle.new(1))
                written = [
                    writer.connection.execute(f"SELECT count(*) FROM text_{each}").get for each in ("run", "key")
                ]
                assert written == [step >= 127, 0]
                if step % 20 == 0:
                    oracle.check(lists_of(writer))
        with beside.read() as reader:
            oracle.check(lists_of(reader))
    finally:
        beside.close()


def test_few_versions_are_passed_to_read_the_newest(path, monkeypatch):
    monkeypatch.setattr(key_lists, "_MOST_PASSED", 8)
    with Memory(path, settings=PLAIN) as memory:
        fact = memory.remember("Dana lives in Oslo")
        for number in range(20):
            memory.update(fact.id, text=f"Dana lives in house {number}")
        with memory._engine.store.read() as reader:
            read = reader.connection.execute
            last = read("SELECT max(id) FROM record").get
            for name in ("text", "statement"):
                after = read("SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?", (f"{name}_listed",)).get
                assert 0 < after <= last <= after + 8
        assert memory.store.verify().problems == ()


def test_records_too_far_apart_are_in_no_run_together(store, small):
    with store.atomic() as writer:
        lists = lists_of(writer)
        lists.add([(1 + place * MOST_APART, packed([70, place])) for place in range(20)])
        for start in range(16):
            lists.add([(1 + start * MOST_APART + place, packed([900])) for place in range(1, 30)])
        assert lists.newest([70], 30) == {70: [1 + place * MOST_APART for place in reversed(range(20))]}
        assert lists.newest([900], 2) == {900: [1 + 15 * MOST_APART + 29, 1 + 15 * MOST_APART + 28]}
        assert len(lists.newest([900], 999)[900]) == 16 * 29


@pytest.mark.parametrize(
    ("keys", "offsets"),
    [(b"", b""), (b"12345678", b""), (packed([2, 1]), bytes(8)), ("text", bytes(4)), (packed([1]), None)],
)
def test_a_spoilt_run_is_told(keys, offsets):
    with pytest.raises(StoreCorrupt, match=r"store\.db: a run of keys is not what was stored.*recallite rebuild"):
        read_run(1, keys, offsets, "store.db")


def test_keys_that_overwrite_others_leave_them_sorted():
    run = run_of(np.array([5, 1, 3, 3, 9]), np.array([1, 2, 3, 4, 5]))
    assert keys_instead(run, np.array([0, 2])).tolist() == [3, 3]
    assert keys_instead(run, np.array([3, 4])).tolist() == [3, 3]
    assert keys_instead(run, np.arange(5)).tolist() == []


def test_eight_runs_of_a_size_are_merged_up_to_the_largest():
    assert to_merge(dict.fromkeys(range(7), 300)) == []
    assert to_merge({**dict.fromkeys(range(8), 300), 8: 5000}) == [*range(8)]
    assert to_merge(dict.fromkeys(range(8), 2**18)) == []
