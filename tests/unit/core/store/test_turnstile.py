"""Work in the background gives way: who waits for the write lock goes first, in this process and in others."""

from __future__ import annotations

import os
import stat
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from recallite import Memory
from recallite.store.sqlite.store import SqliteStore
from recallite.system import turnstile
from recallite.system.turnstile import Background, StepSize, Turnstile, giving_way, is_present, paced, present
from tests.limits import LAST_RESORT_SECONDS, until
from tests.unit.core.memory.support import PLAIN

OTHERS = pytest.mark.parametrize("apart", [False, True], ids=["threads", "processes"])


@pytest.fixture
def path(tmp_path):
    SqliteStore(tmp_path / "agent.db").close()
    return str(tmp_path / "agent.db")


@contextmanager
def stores(path, apart):
    """Three stores on a file, which wait for each other as those of processes do; or one for three threads."""
    opened = [SqliteStore(path) for _ in range(3 if apart else 1)]
    try:
        yield opened if apart else opened * 3
    finally:
        for store in opened:
            store.close()


@OTHERS
def test_who_waits_goes_before_the_background(path, apart, monkeypatch):
    monkeypatch.setattr(turnstile, "_LONGEST_WAIT_SECONDS", LAST_RESORT_SECONDS)
    order = []
    with stores(path, apart) as (holder, waiter, worker):

        def write():
            with waiter.atomic():
                order.append("waits")

        def work():
            with giving_way(), worker.atomic():
                order.append("background")

        threads = [threading.Thread(target=write), threading.Thread(target=work)]
        with holder.atomic():
            threads[0].start()
            until(lambda: not worker._turnstile.is_free())
            threads[1].start()
        for thread in threads:
            thread.join(LAST_RESORT_SECONDS)
    assert order == ["waits", "background"]


@OTHERS
def test_the_background_gets_a_turn_though_somebody_always_waits(path, apart, monkeypatch):
    monkeypatch.setattr(turnstile, "_LONGEST_WAIT_SECONDS", 0.01)
    with stores(path, apart) as (_, waiter, worker):
        with waiter._turnstile.waiting(), giving_way(), worker.atomic() as writer:
            writer.meta.claim_as_index()
        with worker.read() as reader:
            assert reader.meta.is_index()


def test_after_its_wait_the_background_waits_for_the_lock_as_others_do(path, monkeypatch):
    """Threads that always write left it free for an instant only, in which the background never looked."""
    monkeypatch.setattr(turnstile, "_LONGEST_WAIT_SECONDS", 0.01)
    asked = []
    with stores(path, apart=False) as (store, *_):

        class Noted:
            def acquire(self, blocking=True):
                asked.append(blocking)
                return lock.acquire(blocking)

            def release(self):
                lock.release()

        def work():
            with giving_way(), store.atomic():
                pass

        lock, thread = store._lock, threading.Thread(target=work)
        with store.atomic(), store._turnstile.waiting():
            monkeypatch.setattr(store, "_lock", Noted())
            thread.start()
            until(lambda: asked)
        thread.join(LAST_RESORT_SECONDS)
        assert asked[0]
        monkeypatch.setattr(store, "_lock", lock)


def test_a_turn_inside_another_transaction_waits_for_nobody(path):
    with stores(path, apart=False) as (store, *_), store._turnstile.waiting(), store.atomic(), giving_way():
        with store.atomic():
            assert store.nested
        assert store.writing
    assert not store.writing


def test_after_a_turn_the_background_pauses_as_long(monkeypatch):
    slept, now = [], 100.0
    monkeypatch.setattr(turnstile.time, "monotonic", lambda: now)
    monkeypatch.setattr(turnstile.time, "sleep", slept.append)
    gate = Turnstile(None)
    gate.had_turn(0.015)
    gate.wait_until_free()
    assert slept == [pytest.approx(0.015)]
    gate, slept[:] = Turnstile(None), []
    with giving_way(rests=False):  # what a user waits for goes on at once
        gate.had_turn(0.015)
    gate.wait_until_free()
    assert slept == [0.0]


def paced_beside(store, count):
    """What the background has been through of so many items, growing, and its thread."""
    been = []

    def work():
        with giving_way(), store.read():  # of its own transaction it need not take notice
            been.extend(paced(range(count)))

    thread = threading.Thread(target=work)
    thread.start()
    return been, thread


def test_the_background_rests_while_somebody_is_in_a_transaction(path, monkeypatch):
    monkeypatch.setattr(turnstile, "_RESTING_SECONDS", LAST_RESORT_SECONDS)
    monkeypatch.setattr(turnstile, "_WORKING_SECONDS", 0.0)
    with stores(path, apart=False) as (store, *_):
        with store.read():
            with store.read():  # the first goes on
                pass
            rests = rested(monkeypatch)
            been, thread = paced_beside(store, 3)
            until(lambda: rests)
            assert been == []
        thread.join(LAST_RESORT_SECONDS)
        assert been == [0, 1, 2]
        with store.atomic():
            been, thread = paced_beside(store, 3)
            until(lambda: len(rests) > 1)
            assert been == []
        thread.join(LAST_RESORT_SECONDS)
        assert (been, len(rests), turnstile._in_transactions) == ([0, 1, 2], 2, {})


def rested(monkeypatch):
    """A list that grows with each rest."""
    rests, wait = [], turnstile._nobody_is.wait

    def noted(seconds):
        rests.append(seconds)
        return wait(seconds)

    monkeypatch.setattr(turnstile._nobody_is, "wait", noted)
    return rests


def test_beside_somebody_who_never_leaves_the_background_goes_on(path, monkeypatch):
    monkeypatch.setattr(turnstile, "_RESTING_SECONDS", 0.001)
    monkeypatch.setattr(turnstile, "_WORKING_SECONDS", 0.0)
    with stores(path, apart=False) as (store, *_), store.read():
        rests = rested(monkeypatch)
        been, thread = paced_beside(store, 20)
        thread.join(LAST_RESORT_SECONDS)
        assert (been, len(rests)) == ([*range(20)], 20)


def test_only_the_background_rests(path, monkeypatch):
    rests = rested(monkeypatch)
    with stores(path, apart=False) as (store, *_), store.read():
        items = [1, 2]
        assert paced(items) is items
        turnstile.give_way()
    assert rests == []


@pytest.mark.parametrize("place", ["file", ":memory:"])
def test_whoever_holds_the_lock_does_not_rest(path, monkeypatch, place):
    """Else those rest with it who wait for the lock, though they compute nothing."""
    rests, been = rested(monkeypatch), []
    with stores(path, apart=False) as (store, *_), store.read():
        other = store if place == "file" else SqliteStore(place)

        def work():
            with giving_way(), other.atomic():
                been.extend(paced(range(3)))
            if place != "file":
                with giving_way(), other.read():
                    been.extend(paced(range(3)))

        monkeypatch.setattr(turnstile, "_WORKING_SECONDS", 0.0)
        before = len(rests)
        with giving_way():
            turnstile.give_way()  # its own transaction is none that it waits for
        assert len(rests) == before
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(LAST_RESORT_SECONDS)
    assert been == [0, 1, 2] * (1 if place == "file" else 2)
    assert turnstile._in_transactions == {}


def test_a_task_that_was_told_to_stop_runs_again_though_whoever_told_it_did_not_wait(monkeypatch):
    monkeypatch.setattr(turnstile, "_CLOSING_SECONDS", 0.0)
    background, told, relieved, runs = Background("tests"), threading.Event(), threading.Event(), []

    def task(stopped):
        runs.append(1)
        if len(runs) == 1:
            until(stopped)
            told.set()
            relieved.wait(LAST_RESORT_SECONDS)

    background.start(task)
    until(lambda: runs)
    with background.relieved():
        assert told.wait(LAST_RESORT_SECONDS)
    relieved.set()
    assert background.wait(LAST_RESORT_SECONDS)
    assert len(runs) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_forked_child_knows_of_no_thread_of_its_parent(path):
    with stores(path, apart=False) as (store, *_), store.read():
        assert turnstile._in_transactions
        child = os.fork()
        if not child:
            os._exit(len(turnstile._in_transactions))
        assert os.waitpid(child, 0)[1] == 0
        assert turnstile._in_transactions


def test_the_size_of_a_step_follows_the_processor_time_of_its_work(monkeypatch):
    worked, now = 0.0, 0.0
    monkeypatch.setattr(turnstile.time, "thread_time", lambda: worked)
    monkeypatch.setattr(turnstile.time, "perf_counter", lambda: now)
    step = StepSize(first=16, most=512)

    def took(seconds_of_one, times=1):
        nonlocal worked, now
        with step.turn():
            worked, now = worked + step.count * seconds_of_one, now + times * step.count * seconds_of_one
        return step.size

    assert [took(2**-13) for _ in range(4)] == [32, 64, 81, 81]
    assert [took(1.0) for _ in range(4)] == [20, 5, 1, 1]
    assert [took(2**-20) for _ in range(12)][-1] == 512
    with step.turn():
        step.count = 0
    assert step.size == 512
    # Four times as long, as the machine is busy; with a disk that is waited for, it holds the lock 50 ms at most.
    assert [took(2**-13, times=4) for _ in range(4)][-2:] == [81, 81]
    assert [took(2**-13, times=16) for _ in range(4)][-2:] == [25, 25]


def test_the_file_is_there_while_somebody_waits_and_only_then(path):
    with stores(path, apart=True) as (holder, waiter, _):
        with holder.atomic():
            thread = threading.Thread(target=lambda: waiter.atomic().__enter__())
            thread.start()
            until(lambda: os.path.exists(f"{path}-turn"))
        thread.join(LAST_RESORT_SECONDS)
        assert not os.path.exists(f"{path}-turn")


def test_a_store_in_memory_and_one_that_is_alone_make_no_file(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sorted(os.listdir(tmp_path))
    for place in (":memory:", path):
        with Memory(place, settings=PLAIN) as memory:
            memory.remember_many([f"Shelf {number} holds plums" for number in range(80)])
            memory.store.catch_up()
    assert sorted(os.listdir(tmp_path)) == before


def test_several_are_present_until_the_last_has_left(tmp_path):
    beside, place = tmp_path / "agent.db", str(tmp_path / "agent.db-turn")
    beside.touch(0o640)
    with present(place, str(beside)):
        with present(place, str(beside)):
            assert is_present(place)
        assert is_present(place)
        if sys.platform != "win32":
            assert stat.S_IMODE(os.stat(place).st_mode) == 0o640
    assert not is_present(place)
    assert not os.path.exists(place)


def test_a_file_that_nobody_holds_is_removed(tmp_path):
    place = tmp_path / "agent.db-turn"
    place.touch()
    assert not is_present(str(place))
    assert not place.exists()


@pytest.mark.parametrize("name", ["turn", "comparing", "embedding"])
def test_whoever_opens_a_store_removes_the_file_that_nobody_holds(path, name):
    place = f"{path}-{name}"
    with present(place, path):
        SqliteStore(path).close()
        assert os.path.exists(place)
    Path(place).touch()  # of a process that was killed, or could not remove it
    SqliteStore(path).close()
    assert not os.path.exists(place)


def test_where_no_file_can_be_made_nobody_is_seen_and_nothing_fails(tmp_path):
    gate = Turnstile(str(tmp_path / "missing" / "agent.db-turn"), str(tmp_path))
    with gate.waiting():
        assert not gate.is_free()  # for the threads of this process
        assert not is_present(str(tmp_path / "missing" / "agent.db-turn"))
    assert gate.is_free()


@pytest.mark.skipif(sys.platform == "win32", reason="making links needs a privilege")
def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path):
    place, target = tmp_path / "agent.db-turn", tmp_path / "other"
    target.write_text("another program's")
    place.symlink_to(target)
    with present(str(place), str(tmp_path)):
        assert not is_present(str(place))
    assert (place.is_symlink(), target.read_text()) == (True, "another program's")
